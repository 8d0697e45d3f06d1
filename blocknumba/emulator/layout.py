"""Addresses of a module's variables in their spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blocknumba.emulator.memory import GlobalMemory
from blocknumba.emulator.syntax import Function, Program, Variable

# Shared memory that the system keeps, at the start of each block's.
# Source: CUDA Programming Guide, "Compute Capabilities": 1 KB per thread block.
SHARED_BASE = 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses of variables.

    addresses: in a variable's own space.
    shared_end, local_end: bytes that the last variable reaches to.
    parameter_offsets: of the kernel's parameters, and the size of all of them last.
    dynamic_shared_bytes: what the launch asks for beyond the variables with a size.
    """

    addresses: dict[Variable, int]
    shared_end: int
    local_end: int
    parameter_offsets: tuple[int, ...]
    dynamic_shared_bytes: int


def lay_out(program: Program, kernel: Function, dynamic_shared_bytes: int,
            globals_: dict[Variable, np.ndarray], memory: GlobalMemory) -> Layout:
    """Addresses for one launch of a kernel.

    globals_: the contents of the module's global and const variables.
    """
    addresses: dict[Variable, int] = {}
    for variable, contents in globals_.items():
        addresses[variable] = memory.map(contents, variable.name)
    offset, offsets = 0, []
    for parameter in kernel.parameters:
        offset = _aligned(offset, parameter.align)
        addresses[parameter] = offset
        offsets.append(offset)
        offset += parameter.size
    declared = list(program.variables.values())
    for function in program.functions.values():
        declared += function.variables
        if not function.is_kernel:
            declared += [*function.parameters, *function.results]
    shared_end = _lay_out_shared(declared, addresses, dynamic_shared_bytes)
    local_end = 0
    for variable in declared:
        if variable.space in ("local", "param"):
            addresses[variable] = _aligned(local_end, variable.align)
            local_end = addresses[variable] + variable.size
    return Layout(addresses, shared_end, local_end, (*offsets, offset), dynamic_shared_bytes)


def _lay_out_shared(declared: list[Variable], addresses: dict[Variable, int], dynamic: int) -> int:
    """Lay out static arrays, then the extern one, which all its names share; returns the end."""
    end = SHARED_BASE
    shared = [variable for variable in declared if variable.space == "shared"]
    for variable in shared:
        if variable.size:
            addresses[variable] = _aligned(end, variable.align)
            end = addresses[variable] + variable.size
    flexible = [variable for variable in shared if not variable.size]
    end = _aligned(end, max([variable.align for variable in flexible], default=1))
    addresses.update(dict.fromkeys(flexible, end))
    return end + dynamic


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align
