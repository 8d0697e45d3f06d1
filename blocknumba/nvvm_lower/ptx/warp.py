"""Inline PTX for communication within a block: shuffles, votes, barriers."""

from __future__ import annotations

from functools import cache

from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

ALL_LANES = "0xffffffff"
SHUFFLED = ("i32", "float")
SHUFFLES = {"bfly": 31, "idx": 31, "down": 31, "up": 0}  # mode -> clamp


def _shuffle(mode: str, type_: str, lane: str, operands: tuple[str, ...],
             width: int = WARP_SIZE) -> Assembly:
    control = WARP_SIZE - width << 8 | SHUFFLES[mode]
    text = f"shfl.sync.{mode}.b32 $0, $1, {lane}, {control:#x}, {ALL_LANES};"
    return Assembly(f"shuffle.{mode}.{type_}", text, (type_,), (type_, *operands),
                    "shfl.sync", has_effect=True, converges=True)


@cache
def shuffle(mode: str, type_: str, lane: int, width: int = WARP_SIZE) -> Assembly:
    """The operand of another lane: lane ^ n ("bfly"), n ("idx"), lane + n or - n ("down", "up").

    width: a power of two: of that many lanes each, out of which nothing comes.
    """
    return _shuffle(mode, type_, str(lane), (), width)


@cache
def shuffle_from(type_: str) -> Assembly:
    """The first operand of the lane that the second operand, an i32, names."""
    return _shuffle("idx", type_, "$2", ("i32",))


@cache
def vote(mode: str) -> Assembly:
    """Whether "any" or "all" lanes have a nonzero operand, as an i32 of 0 or 1."""
    text = (f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.{mode}.pred p, p, {ALL_LANES}; "
            "selp.b32 $0, 1, 0, p; }")
    return Assembly(f"vote.{mode}", text, ("i32",), ("i32",), "vote.sync",
                    has_effect=True, converges=True)


BALLOT = Assembly(
    "vote.ballot",
    f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, {ALL_LANES}; }}",
    ("i32",), ("i32",), "vote.sync", has_effect=True, converges=True)
# A value that is the same in all lanes already; the shuffle tells the assembler that it is.
UNIFORM = Assembly("uniform", f"shfl.sync.idx.b32 $0, $1, 0, 0x1f, {ALL_LANES};", ("i32",),
                   ("i32",), "shfl.sync", converges=True)
# The same, kept where it is written: it is not computed again later.
UNIFORM_HERE = Assembly("uniform.here", UNIFORM.text, ("i32",), ("i32",), "shfl.sync",
                        has_effect=True, converges=True)
# A value computed once, where this is written; libNVVM would compute it again at each use.
HELD = Assembly("held", "mov.b32 $0, $1;", ("i32",), ("i32",), "mov", has_effect=True)
BARRIER = Assembly("barrier", "bar.sync 0;", (), (), "bar", has_effect=True,
                   touches_memory=True, converges=True)
WARP_BARRIER = Assembly("warp_barrier", f"bar.warp.sync {ALL_LANES};", (), (),
                        "bar.warp.sync", has_effect=True, touches_memory=True,
                        converges=True)
DYNAMIC_SHARED_BYTES = Assembly("dynamic_shared_bytes", "mov.u32 $0, %dynamic_smem_size;", ("i32",),
                                (), "special registers: %dynamic_smem_size")
TRAP = Assembly("trap", "trap;", (), (), "trap", has_effect=True)
# Wait for the end of the previous kernel in the stream; its results are visible afterwards.
WAIT_FOR_KERNEL_BEFORE = Assembly(
    "wait_for_kernel_before", "griddepcontrol.wait;", (), (), "griddepcontrol",
    needs=Capability.LAUNCH_DEPENDENTS, has_effect=True, touches_memory=True)


@cache
def named_barrier(number: int, threads: int) -> Assembly:
    """Wait until this many threads, a multiple of the warp size, have reached the barrier."""
    return Assembly(f"barrier.{number}", f"bar.sync {number}, {threads};", (), (), "bar",
                    has_effect=True, touches_memory=True, converges=True)


@cache
def set_registers(count: int, gives: bool) -> Assembly:
    """Every thread of a warpgroup has count registers from here on: fewer, or more."""
    modifier = "dec" if gives else "inc"
    return Assembly(f"setmaxnreg.{modifier}.{count}",
                    f"setmaxnreg.{modifier}.sync.aligned.u32 {count};", (), (), "setmaxnreg",
                    needs=Capability.SET_MAX_REGISTERS, has_effect=True, touches_memory=True,
                    converges=True)


def rows() -> list[Assembly]:
    """Every row of this module, for tests; set_registers is only for whole programs."""
    return [
        *(shuffle(mode, type_, 16) for mode in SHUFFLES for type_ in SHUFFLED),
        shuffle("up", "i32", 2, 8),
        *map(shuffle_from, SHUFFLED), vote("any"), vote("all"), BALLOT, UNIFORM, BARRIER,
        WARP_BARRIER, TRAP, WAIT_FOR_KERNEL_BEFORE, named_barrier(1, 64)]
