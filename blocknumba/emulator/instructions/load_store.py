"""ld and st."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator.access import load, store
from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.syntax import Address, Operand, Symbol, Variable
from blocknumba.emulator.values import dtype_of

_SPACES = ("global", "shared", "local", "param", "const")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def space_of(site: Site, address: Operand) -> str:
    """The state space that an opcode names; generic when it names none."""
    modifiers = [modifier.split("::")[0] for modifier in site.opcode]
    space = next((modifier for modifier in modifiers if modifier in _SPACES), "generic")
    if space != "param" or not isinstance(address, Address):
        return space
    symbol = address.base
    target = symbol.target if isinstance(symbol, Symbol) else None
    if isinstance(target, Variable):
        return "param" if target.is_kernel_parameter else "local"
    return "param" if site.function.is_kernel else "local"


def vector_width(site: Site) -> int:
    """Number of elements of an access."""
    return next((count for modifier, count in _VECTORS.items() if modifier in site.opcode), 1)


def load_step(site: Site) -> Step:
    """ld: one element or a vector."""
    type_ = site.opcode[-1]
    size, count = dtype_of(type_).itemsize, vector_width(site)
    target, source = site.operands[:2]
    space, strong = space_of(site, source), site.has(*_STRONG)
    read, pc, dtype = site.address(source), site.pc, dtype_of(type_)
    items = site.items(target)
    if len(items) != count:
        raise site.refuse("given {} destinations, accepted {}", len(items), count)
    writes = [site.write(item, type_) for item in items]

    def step(cohort: Cohort) -> None:
        values = load(cohort, space, read(cohort), size, count, pc, strong)
        for write, value in zip(writes, values):
            write(cohort, value.view(dtype))
    return step


def store_step(site: Site) -> Step:
    """st: one element or a vector."""
    type_ = site.opcode[-1]
    size, count = dtype_of(type_).itemsize, vector_width(site)
    target, source = site.operands[:2]
    space, strong = space_of(site, target), site.has(*_STRONG)
    bits = np.dtype(f"u{size}")
    address, pc = site.address(target), site.pc
    items = site.items(source)
    if len(items) != count:
        raise site.refuse("given {} values, accepted {}", len(items), count)
    reads = [site.read(item, type_) for item in items]

    def step(cohort: Cohort) -> None:
        store(cohort, space, address(cohort), size,
              [read(cohort).view(bits) for read in reads], pc, strong)
    return step


def do_nothing(_: Site) -> Step:
    """An instruction that is only a hint."""
    return lambda cohort: None


TABLE: dict[str, Decoder] = {
    "ld": load_step, "ldu": load_step, "st": store_step,
    "prefetch": do_nothing, "prefetchu": do_nothing, "applypriority": do_nothing,
    "discard": do_nothing, "createpolicy": do_nothing, "setmaxnreg": do_nothing,
    "griddepcontrol": do_nothing,
}
