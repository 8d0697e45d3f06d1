"""Structured control flow; every condition is a scalar, so all threads of a program agree."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import CONTROL, TERMINATOR, op
from blocknumba.tile_ir.ir.types import TileType, bool_


@op(TERMINATOR)
def yield_(*values) -> None:
    """Yield values to the enclosing `if` or, as the next loop-carried values, to `for`."""


@op(TERMINATOR)
def continue_if(condition, *values) -> None:
    """End one iteration of `loop`: values are the next loop-carried ones; go on if condition."""
    require(condition == TileType(bool_), "loop: condition must be a scalar bool, got {}",
            condition)


@op(TERMINATOR)
def return_() -> None:
    """End of the kernel; only as the last op of its body."""


@op(CONTROL)
def if_(condition, *, result_types) -> tuple[TileType, ...]:
    """Run regions[0] if condition, else regions[1]; the results are what that one yields.

    condition: scalar bool; both regions have no arguments and yield result_types.
    """
    require(condition == TileType(bool_), "if: condition must be a scalar bool, got {}", condition)
    return result_types


@op(CONTROL)
def for_(start, stop, step, *initial, num_stages=None, unroll=None,
         warp_specialize=None) -> tuple[TileType, ...]:
    """For each i of Python's range(start, stop, step) run regions[0](i, *carried).

    initial: the first loop-carried values.
    start, stop, step: scalars of one integer dtype; step, of either sign, is not 0.  The region
    yields the next loop-carried values; the results are the last ones.  The number of iterations
    is exact even where start + iterations * step overflows the dtype.
    num_stages: tiles in flight when the loop is pipelined; unroll: iterations per jump, 1 for a
    loop as it is written; warp_specialize: whether producer warps fetch the tiles.  All three are
    hints, which change no result, and None where the compiler decides.
    """
    require(start == stop == step and start.is_scalar and start.dtype.is_integer,
            "range: bounds must be scalar ints of one dtype, got {}, {}, {}", start, stop, step)
    return initial


@op(CONTROL)
def loop(*initial) -> tuple[TileType, ...]:
    """Run regions[0](*initial) and, while `continue_if` is true, again on the values it carries.

    The region runs at least once; the results are the values that the last continue_if carried.
    """
    return initial
