"""Likely strides: a guess of how far apart in memory neighbours along an axis of a tile are.

Where nothing says that an axis is contiguous, some axis is probably more so than the others:

    at = (p // W * W + p % W)[:, None] + (c * stride)[None, :]
          1/64 * 64    + 1 = 2              1 * 64

Places to store to that were loaded next to each other are taken to be sorted, as those of elements
that are kept, or of tokens by expert; where they are not, no layout is better than another.

A guess serves to choose a layout only, never whether code is right.  A number that is not known is
taken to be UNKNOWN, times what it is known to be a multiple of; of strides of one array the last
is taken to be the least, and of scalar arguments the later the lesser.
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OpTable
from blocknumba.tile_ir.ir.uses import carried, is_loop

UNKNOWN = 64.0  # a size or a stride of which nothing is known
UNIT = 1.5  # the stride of an array's last axis, which is 1 in most if it may be
SORTED = 1.0  # of sorted places
FAR = 2.0 ** 40  # of what is loaded, or computed in any other way
NEARER = 0.999  # of an argument, by the stride of the one before it

Rule = Callable[["LikelyStrides", Op, int], float]


class LikelyStrides:
    """The likely stride of each integer or pointer tile of a function along each axis.

    In elements of what pointers point to; 0 where all elements are equal.
    of_stores: whether the pointers are stored to, so that loaded places are taken to be sorted.
    """

    def __init__(self, fn: Function, infos: AxisInfos, of_stores: bool = False):
        self._infos, self._of_stores = infos, of_stores
        self._initial: dict[Value, Value] = {}
        for op in walk(fn.body):
            if is_loop(op):
                entering = carried(op)
                self._initial |= zip(entering.args, entering.initial, strict=True)
                self._initial |= zip(op.results, entering.initial, strict=True)
        self._last: dict[str, int] = {}
        for parameter in fn.parameters:
            if parameter.kind == "stride":
                last = self._last.get(parameter.argument, 0)
                self._last[parameter.argument] = max(last, parameter.axis)
        self._sizes = {
            argument: self._size_of_parameter(argument, parameter, place)
            for place, (argument, parameter)
            in enumerate(zip(fn.body.args, fn.parameters, strict=True))
        }
        self._found: dict[tuple[Value, int], float] = {}

    def of(self, value: Value, axis: int) -> float:
        """The likely stride of a value along an axis."""
        value = self._initial.get(value, value)
        if not value.type.shape or value.type.shape[axis] == 1:
            return 0.0
        key = value, axis
        if key not in self._found:
            self._found[key] = FAR  # of what depends on itself
            op = value.owner
            self._found[key] = _RULES[op.name](self, op, axis) if op and op.name in _RULES else FAR
        return self._found[key]

    def size(self, value: Value) -> float:
        """The likely magnitude of an integer that is the same for a whole tile."""
        known = constant_of(value)
        if known is not None:
            return abs(float(known))
        while value.owner is not None and value.owner.name in ("splat", "broadcast", "reshape",
                                                               "cast"):
            value = value.owner.x
        if value in self._sizes:
            return self._sizes[value]
        if value.owner is not None and value.owner.name == "mul":
            return self.size(value.owner.x) * self.size(value.owner.y)
        return self._unknown(value)

    def are_sorted(self, op: Op, axis: int) -> bool:
        """Whether what a load brings is taken to be places in order, to store to."""
        return self._of_stores and self._infos[op.pointer].axes[axis].contiguity > 1

    def _size_of_parameter(self, argument: Value, parameter: object, place: int) -> float:
        may_be_one = parameter.kind == "stride" and parameter.divisibility == 1
        if may_be_one and parameter.axis == self._last[parameter.argument]:
            return UNIT
        return self._unknown(argument) * NEARER ** place

    def _unknown(self, value: Value) -> float:
        return UNKNOWN * min(axis.divisibility for axis in self._infos[value].axes)


def _sum(strides: LikelyStrides, op: Op, axis: int) -> float:
    return sum(strides.of(operand, axis) for operand in op.operands)


def _product(strides: LikelyStrides, op: Op, axis: int) -> float:
    """Of one that varies and one that does not."""
    x, y = (strides.of(operand, axis) for operand in (op.x, op.y))
    if x and y:
        return FAR
    return x * strides.size(op.y) if x else y * strides.size(op.x)


def _quotient(strides: LikelyStrides, op: Op, axis: int) -> float:
    """On average: one step in as many as the divisor is."""
    if strides.of(op.y, axis):
        return FAR
    return strides.of(op.x, axis) / max(strides.size(op.y), 1.0)


def _loaded(strides: LikelyStrides, op: Op, axis: int) -> float:
    return SORTED if strides.are_sorted(op, axis) else FAR


def _same(strides: LikelyStrides, op: Op, axis: int) -> float:
    return strides.of(op.x, axis)


def _greatest(strides: LikelyStrides, op: Op, axis: int) -> float:
    return max(strides.of(operand, axis) for operand in (op.x, op.y))


def _reshaped(strides: LikelyStrides, op: Op, axis: int) -> float:
    """Of an axis that stays; of one that was cut, or joined from several, that of the innermost."""
    source, made = op.x.type.shape, op.result.type.shape
    inner = _size(made[axis + 1:])
    for index in range(len(source)):
        if _size(source[index + 1:]) == inner and source[index] > 1:
            return strides.of(op.x, index)
        if _size(source[index + 1:]) < inner < _size(source[index:]):
            return strides.of(op.x, index) * inner / _size(source[index + 1:])
    return FAR


def _transposed(strides: LikelyStrides, op: Op, axis: int) -> float:
    return strides.of(op.x, op.attrs["axes"][axis])


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


_RULES = OpTable[Rule]("likely stride", {
    "arange": lambda *_: 1.0, "splat": lambda *_: 0.0, "constant": lambda *_: 0.0,
    "add": _sum, "sub": _sum, "offset": _sum, "mul": _product,
    **dict.fromkeys(("floordiv", "truncdiv"), _quotient),
    **dict.fromkeys(("mod", "truncmod", "cast", "broadcast"), _same),
    **dict.fromkeys(("minimum", "maximum", "select"), _greatest),
    "load": _loaded, "reshape": _reshaped, "transpose": _transposed,
})
