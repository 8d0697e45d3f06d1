"""Loops whose tiles stay in registers: a piece of the tile goes through all iterations at once.

    for k in range(0, n, 256):           for row in range(4):              the row's 16 vectors
        total += a[r, k] * x[k]              t = total[row, :]             are in registers, and
                                             for k in range(0, n, 256):    memory is read along
                                                 t += a[row, k] * x[k]     a row, not by turns
                                             total[row, :] = t

    for k in range(0, n, 256):           for row in range(4):              the lanes are combined
        total += sum(a[r, k] * x[k], 1)      t = vectors of 0.0            once
                                             for k in range(0, n, 256):
                                                 t += a[row, k] * x[k]
                                             total[row] += sum(t)

That is the same where an element needs none but itself of the iteration before, and where
nothing is written.  It is done where each piece moves through memory by elements side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from blocknumba.cpu_lower.elements import Lanes, uniform
from blocknumba.cpu_lower.emitter import MOVING, ROOTS, Coordinates, Emitter
from blocknumba.cpu_lower.ops.elementwise import combine
from blocknumba.cpu_lower.ops.reduce import COMBINED, RowOfLanes, Reduction
from blocknumba.cpu_lower.versions import in_two_versions
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import TERMINATOR

FREE_REGISTERS = 2  # of three vector registers, one holds what an iteration computes
MAX_VECTORS = 16  # of a piece
Body = Callable[[Sequence[str]], list[str]]  # names of the carried values -> of the next ones
Counted = Callable[[Sequence[tuple[str, str]], Body], list[str]]


def loop_of_pieces(emitter: Emitter, op: Op, counted: Counted) -> bool:
    """Write a `for` piece by piece, if it is one of those; whether it was.

    counted: writes the loop, of types and first values, and a body; the names of the last values.
    """
    region, = op.regions
    _, *args = region.args
    if not args or not _moves_along(emitter, region):
        return False
    yielded = region.terminator.operands
    sums = [_sum_of(arg, value, emitter) for arg, value in zip(args, yielded)]
    roots = [o for o in region.ops if o.name in ROOTS and not o.opdef.has(TERMINATOR)]
    if None not in sums and len(roots) == len({s for s in sums}):
        return _sums_of_rows(emitter, op, [s for s in sums if s is not None], counted)
    return not roots and _pieces(emitter, op, counted)


def _moves_along(emitter: Emitter, region: Region) -> bool:
    """Whether loads read side by side from iteration to iteration, or the same, and in order."""
    index = region.args[0]
    for op in region.ops:
        if any(emitter.plan.is_shared(value) or emitter.plan.is_eager(value)
               for value in op.results if value.type.shape):
            return False
        if op.name == "load":
            address = emitter.plan.affine[op.pointer]
            if not isinstance(address, AffineExpression) or any(
                    len(monomial) > 1 for monomial, _ in address.base.terms
                    if any(atom.value is index for atom in monomial)):
                return False
    return True


def _run_scalars(emitter: Emitter, region: Region) -> None:
    """Make the scalars of an iteration known, but those that it yields."""
    yielded = frozenset(region.terminator.operands)
    for op in region.ops:
        if op.name in ROOTS:
            continue
        for value in op.results:
            if not value.type.shape and value not in yielded:
                emitter.known.scalars[value] = emitter.compute_scalar(value)


# tiles ------------------------------------------------------------------------------------------
def _pieces(emitter: Emitter, op: Op, counted: Counted) -> bool:
    """Carry a few vectors of each tile in registers through all iterations."""
    region, = op.regions
    args, values = region.args[1:], list(region.terminator.operands)
    shape = args[0].type.shape
    if not shape or any(arg.type.shape != shape for arg in args) or not all(
            _is_own(value, frozenset(args)) for value in values):
        return False
    axis, lanes = emitter.lanes_of(values)
    together = _vectors(emitter, shape, axis, lanes, len(args))
    if not together:
        return False
    buffers = [emitter.buffer(arg.type, axis) for arg in args]

    def piece(coordinates: Coordinates) -> None:
        places = list(_places(emitter, coordinates, axis, lanes, together))
        accesses = [(arg, place) for place in places for arg in args]
        first = [emitter.dense(value.type.dtype, emitter.at(value, place))
                 for place in places for value in op.initial]
        types = [emitter.type(arg.type.dtype, lanes) for arg, _ in accesses]

        def body(names: Sequence[str]) -> list[str]:
            def following() -> list[str]:
                emitter.known.elements = dict(zip(accesses, map(Lanes, names)))
                _run_scalars(emitter, region)
                return [emitter.dense(value.type.dtype, emitter.at(value, place))
                        for place in places for value in values]
            return in_two_versions(emitter, region, following, types)
        last = counted(list(zip(types, first)), body)
        for (arg, place), name, buffer in zip(accesses, last, buffers * len(places)):
            emitter.keep(arg, place, Lanes(name), buffer)

    with emitter.filled_by(op.initial, shape, axis):
        emitter.nest(shape, axis, lanes, piece, together=together)
    emitter.known.buffers.update(zip(op.results, buffers))
    return True


def _is_own(value: Value, args: frozenset[Value]) -> bool:
    """Whether an element needs no elements of args but those at its own place."""
    waiting, seen = [(value, True)], set()
    while waiting:
        access = found, aligned = waiting.pop()
        if access in seen or not found.type.shape:
            continue
        seen.add(access)
        if found in args and not aligned:
            return False
        if found.owner is not None and not found.owner.name in ROOTS:
            waiting += [(operand, aligned and found.owner.name not in MOVING)
                        for operand in found.owner.operands]
    return True


def _vectors(emitter: Emitter, shape: tuple[int, ...], axis: int | None, lanes: int,
             tiles: int) -> int:
    """Number of vectors of a row of each tile, which are a piece; 0 if they do not fit.

    Parts of rows are slower than the tile iteration by iteration (perf/NOTES.md).
    """
    if axis is None or lanes == 1:
        return 0
    free = min(MAX_VECTORS, emitter.target.vector_unit.registers * FREE_REGISTERS // 3 // tiles)
    count = shape[axis] // lanes
    return count if count <= free else 0


def _places(emitter: Emitter, coordinates: Coordinates, axis: int, lanes: int,
            together: int) -> Iterator[Coordinates]:
    for number in range(together):
        first = emitter.writer.add(coordinates[axis].name, str(number * lanes))
        emitter.align(first)
        yield (*coordinates[:axis], Lanes(first, 1), *coordinates[axis + 1:])


# sums of rows -----------------------------------------------------------------------------------
def _sum_of(arg: Value, value: Value, emitter: Emitter) -> Op | None:
    """The reduction of which each iteration adds the result to arg, and nothing else reads both."""
    owner = value.owner
    for reduced in () if owner is None else owner.operands:
        found = reduced.owner
        if (found is not None and found.name == "reduce" and reduced is not arg
                and owner.name == COMBINED[found.attrs["kind"]] and arg in owner.operands
                and emitter.plan.is_used_once(arg) and emitter.plan.is_used_once(reduced)
                and emitter.plan.is_used_once(value)):
            return found
    return None


def _sums_of_rows(emitter: Emitter, op: Op, sums: Sequence[Op], counted: Counted) -> bool:
    """Carry the lanes of each row's sums through all iterations."""
    region, = op.regions
    args, (axis, *axes) = region.args[1:], [s.attrs["axis"] for s in sums]
    tiles = [s.x for s in sums]
    shape = tiles[0].type.shape
    if any(a != axis for a in axes) or any(tile.type.shape != shape for tile in tiles) or any(
            not _is_own(tile, frozenset(args)) for tile in tiles):
        return False
    lane_axis, lanes = emitter.lanes_of(tiles, reduced=axis)
    if lane_axis != axis or lanes == 1:
        return False
    rows = [RowOfLanes(emitter, tile, Reduction(s), axis, lanes)
            for tile, s in zip(tiles, sums)]
    buffers = [emitter.buffer(arg.type) if arg.type.shape else None for arg in args]

    def row(coordinates: Coordinates) -> None:
        with emitter.inside(lanes):
            first = [one for r in rows for one in r.first]

            def body(names: Sequence[str]) -> list[str]:
                def following() -> list[str]:
                    _run_scalars(emitter, region)
                    made, left = [], list(names)
                    for r in rows:
                        made += r.accumulated(coordinates, left[:len(r.first)])
                        left = left[len(r.first):]
                    return made
                return in_two_versions(emitter, region, following, [type_ for type_, _ in first])
            last = counted(first, body)
            found = []
            for r in rows:
                found.append(r.combined(last[:len(r.first)]))
                last = last[len(r.first):]
        for arg, initial, result, s, own, buffer in zip(args, op.initial, op.results, sums, found,
                                                        buffers):
            dtype = arg.type.dtype
            before = emitter.at(initial, coordinates if initial.type.shape else ()).name
            name = combine(emitter, COMBINED[s.attrs["kind"]], dtype, [before, own], 1)
            if buffer is None:
                emitter.known.scalars[result] = name
            else:
                emitter.keep(arg, coordinates, uniform(name), buffer)

    emitter.prepare(list(op.initial), args[0].type.shape, None)
    emitter.nest(args[0].type.shape, None, 1, row)
    emitter.known.buffers.update((result, buffer) for result, buffer in zip(op.results, buffers)
                                 if buffer is not None)
    return True
