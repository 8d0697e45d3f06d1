"""The difference of a value from one iteration of a loop to the next, where it is a constant.

    for %start in range(0, n, 1024):      1024
        %at = %start + arange(0, 1024)    1024
        %p = offset %x, %at               1024, in elements
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.tile_ir.ir.function import Op, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE, OpTable
from blocknumba.tile_ir.ops.control import for_
from blocknumba.tile_ir.ops.shape import splat


def iteration_step(value: Value, loop: Op) -> int | None:
    """The difference, the same for all elements; None where it is not known.

    value: one of the loop's region, outside of loops within, or from before the loop.
    """
    inside = {result for op in walk(loop.regions[0]) for result in op.results}
    return _Steps(loop, inside).of(value)


class _Steps:
    """Differences of the values of one loop; inside: those that its ops make."""

    def __init__(self, loop: Op, inside: set[Value]):
        self._loop, self._inside = loop, inside
        self._known: dict[Value, int | None] = {}
        if loop.opdef is for_:
            self._known[loop.regions[0].args[0]] = _constant(loop.step)
        for arg in loop.regions[0].args:
            self._known.setdefault(arg, None)

    def of(self, value: Value) -> int | None:
        """The difference of one value."""
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> int | None:
        if value not in self._inside:
            return 0
        op = value.owner
        if not op.opdef.has(PURE) or op.regions:
            return None
        steps = [self.of(operand) for operand in op.operands]
        if not any(step != 0 for step in steps):
            return 0
        rule = _RULES.get(op.name)
        return None if rule is None or None in steps else rule(op, *steps)


def _product(op: Op, x: int, y: int) -> int | None:
    if x and y:
        return None
    factor = _constant(op.x if y else op.y)
    return None if factor is None else factor * (x or y)


def _same(op: Op, x: int) -> int:
    return x


def _widened(op: Op, x: int) -> int | None:
    source, to = op.x.type.dtype, op.result.type.dtype
    return x if source.is_integer and to.is_integer and to.bits >= source.bits else None


# of integers that wrap around a difference holds modulo a power of two, as every multiple of one
_RULES = OpTable[Callable[..., int | None]]("step of an iteration", {
    "add": lambda op, x, y: x + y, "sub": lambda op, x, y: x - y, "offset": lambda op, x, y: x + y,
    "mul": _product, "splat": _same, "broadcast": _same, "reshape": _same, "cast": _widened,
})


def _constant(value: Value) -> int | None:
    """The integer that a value is, of all elements."""
    op = value.owner
    if op is not None and op.opdef is splat:
        op = op.x.owner
    if op is None or op.name != "constant":
        return None
    number = op.attrs["value"]
    return number if isinstance(number, int) else None
