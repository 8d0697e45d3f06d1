"""Last reads of staged tiles; backward slices: the ops that values are computed by; increments.

Like analysis/affine.py, increments assume that index arithmetic does not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import buffer_view, wgmma
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import CONTROL, OPS, PURE, TERMINATOR
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import int32
from blocknumba.tile_ir.ir.uses import Uses, carried

_ADDITIVE = ("add", "sub", "offset")


def last_reads(uses: Uses, stages: Iterable[Op]) -> list[Op]:
    """The ops that may read staged tiles last: the stages and the users of their buffers.

    A wgmma reads until the wait for it, so the wait stands for it.
    """
    found = list(stages)
    values = [op.result for op in found]
    while values:
        for op in uses.users(values.pop()):
            if op.opdef is buffer_view:
                values.append(op.result)
            else:
                found += uses.users(op.result) if op.opdef is wgmma else [op]
    return found


@dataclass(frozen=True, slots=True)
class Slice:
    """Backward slice of values of an iteration: the ops that compute them from the counter.

    ops: of the body, in order.  carried: indices of the carried values that the ops use, directly
    or through earlier iterations.
    """

    ops: tuple[Op, ...]
    carried: tuple[int, ...]


def slice_of(loop: Op, values: Iterable[Value],
             movable: Callable[[Op], bool] = lambda _: False) -> Slice | None:
    """The slice of values of an iteration, enough to compute them for a later iteration too.

    None if one of its ops is neither pure nor movable.
    """
    (region,), own = loop.regions, carried(loop)
    following = dict(zip(own.args, own.following, strict=True))
    reached = _reached(region, values, following, movable)
    if reached is None:
        return None
    ops, args = reached
    return Slice(ops, tuple(index for index, arg in enumerate(own.args) if arg in args))


def ops_for(region: Region, values: Iterable[Value],
            movable: Callable[[Op], bool] = lambda _: False) -> tuple[Op, ...] | None:
    """The ops of a region that compute values, in order.

    None if one of them is neither pure nor movable.
    """
    reached = _reached(region, values, {}, movable)
    return None if reached is None else reached[0]


def _reached(
    region: Region, values: Iterable[Value], following: Mapping[Value, Value],
    movable: Callable[[Op], bool] = lambda _: False
) -> tuple[tuple[Op, ...], set[Value]] | None:
    """The ops of a region that compute values, in order, and the region arguments that they use.

    None if one of the ops is neither pure nor movable.
    following: per argument, its value in the next iteration, which is reached too.
    """
    inside, needed, args, todo = set(region.ops), set(), set(), list(values)
    while todo:
        value = todo.pop()
        if value in following:
            if value not in args:
                args.add(value)
                todo.append(following[value])
            continue
        op = value.owner
        if op not in inside or op in needed:
            continue
        if not _is_pure(op) and not movable(op):
            return None
        needed.add(op)
        todo += _operands(op)
    return tuple(op for op in region.ops if op in needed), args


def _within(op: Op) -> Iterator[Op]:
    """An op and the ops of its regions."""
    yield op
    for region in op.regions:
        yield from walk(region)


def _is_pure(op: Op) -> bool:
    return all(inner.opdef.has(PURE | CONTROL | TERMINATOR) for inner in _within(op))


def _operands(op: Op) -> Iterator[Value]:
    for inner in _within(op):
        yield from inner.operands


# from one iteration to the next ----------------------------------------------------------------
def scalar_pointers(ops: Iterable[Op]) -> tuple[Value, ...]:
    """The scalar pointers that some of the ops compute and others make tiles of pointers from."""
    ops = tuple(ops)
    used = {value for op in ops if op.results[0].type.shape for value in op.operands}
    return tuple(value for op in ops for value in op.results
                 if value in used and value.type.is_pointer and value.type.is_scalar)


def increments(rebuilder: Rebuilder, loop: Op, values: Iterable[Value]) -> Mapping[Value, Value]:
    """Emit, before a `for`, the increments of its values from one iteration to the next.

    Increments of pointers are in elements.  Values with varying increments are left out.
    """
    finder = _Increments(rebuilder, loop)
    found = {value: finder.of(value) for value in values}
    return {value: increment for value, increment in found.items() if increment is not None}


class _Increments:
    """Finds increments through the arithmetic of a loop's scalars."""

    def __init__(self, rebuilder: Rebuilder, loop: Op):
        self._rebuilder = rebuilder
        self._inside = set(loop.regions[0].ops)
        self._counter, *self._carried = loop.regions[0].args
        self._step = rebuilder[loop.step]

    def of(self, value: Value) -> Value | None:
        """The increment of a value that varies in the loop; None if it is unknown or varies too."""
        op, dtype = value.owner, value.type.dtype
        if not value.type.is_pointer and not (dtype.is_signed and dtype.bits >= int32.bits):
            return None  # these may wrap around
        if value is self._counter:
            return self._step
        if op not in self._inside or not (op.name in _ADDITIVE or op.name == "mul"):
            return None
        left, right = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
        if self._varies(left) and self._varies(right):
            return None if op.name == "mul" else self._sum(op, self.of(left), self.of(right))
        varying, other = (left, right) if self._varies(left) else (right, left)
        increment, emit = self.of(varying), self._rebuilder.builder.emit
        if increment is None or op.name in ("add", "offset"):
            return increment
        if op.name == "mul":
            return emit(OPS["mul"], increment, self._rebuilder[other])
        zero = self._rebuilder.builder.constant(0, increment.type.dtype)
        return increment if varying is left else emit(OPS["sub"], zero, increment)

    def _sum(self, op: Op, left: Value | None, right: Value | None) -> Value | None:
        """The increment of the sum or difference of two values that vary."""
        if left is None or right is None or left.type != right.type:
            return None
        return self._rebuilder.builder.emit(OPS["sub" if op.name == "sub" else "add"], left, right)

    def _varies(self, value: Value) -> bool:
        return (value is self._counter or value in self._carried or value.owner in self._inside)
