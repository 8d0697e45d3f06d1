"""Last reads of staged tiles, and backward slices: the ops that values are computed by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import buffer_view, wgmma
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import CONTROL, PURE, TERMINATOR
from blocknumba.tile_ir.ir.uses import Uses, carried


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
