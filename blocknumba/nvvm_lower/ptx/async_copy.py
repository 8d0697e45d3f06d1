"""Inline PTX of copies from global to shared memory that do not go through registers."""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import POINTER, Assembly
from blocknumba.nvvm_lower.ptx.memory import SHARED_ADDRESS
from blocknumba.nvvm_lower.target import Capability

SIZES = (4, 8, 16)  # PTX ISA, "cp.async": cp-size, bytes
_BYPASSES_L1 = 16  # bytes; PTX ISA, "cp.async": .cg is of this size only


def _assembly(name: str, text: str, *operands: str) -> Assembly:
    return Assembly(name, text, (), operands, "cp.async", needs=Capability.CP_ASYNC,
                    has_effect=True, touches_memory=True)


@cache
def copy(size_bytes: int, partial: bool, predicated: bool) -> Assembly:
    """Begin to copy size_bytes.

    Operands: shared address, global address; if partial the number of bytes to read, after which
    zeros follow; if predicated a number that is 0 where nothing is copied.
    """
    cache_ = ".cg" if size_bytes == _BYPASSES_L1 else ".ca"
    read_size = ", $2" if partial else ""
    text = f"cp.async{cache_}.shared.global [$0], [$1], {size_bytes}{read_size};"
    if predicated:
        text = f"{{ .reg .pred p; setp.ne.b32 p, ${2 + partial}, 0; @p {text} }}"
    name = f"cp.async.{size_bytes}" + ".partial" * partial + ".if" * predicated
    flags = ["i32"] * (partial + predicated)
    return _assembly(name, text, SHARED_ADDRESS, POINTER["global"], *flags)


COMMIT = _assembly("cp.async.commit", "cp.async.commit_group;")


@cache
def wait(pending: int) -> Assembly:
    """Wait for all groups of this thread but the latest few."""
    return _assembly(f"cp.async.wait.{pending}", f"cp.async.wait_group {pending};")


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    return [*(copy(size, partial, predicated) for size in SIZES for partial in (False, True)
              for predicated in (False, True)), COMMIT, wait(0), wait(2)]
