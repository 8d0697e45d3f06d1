"""Scalars of a loop that grow by the same from round to round, so that they need not be computed.

As of analysis/affine.py, this holds as long as index arithmetic does not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from blocknumba.gpu_layout.async_copies.ops import (
    async_copy, async_copy_commit, async_copy_wait, buffer_view, fence_async, shared_slice,
    shared_tile, slot,
)
from blocknumba.gpu_layout.async_copies.pipelining import (
    EarlyLoad, Pipeline, Prefetch, pipelining_of,
)
from blocknumba.gpu_layout.async_copies.reads import ops_for
from blocknumba.gpu_layout.ops import barrier, shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.carried import carried
from blocknumba.tile_ir.ir.function import Function, Op, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.remarks import NOT_EARLY, Remark
from blocknumba.tile_ir.ir.types import DTYPES, int32
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce

_SUMS = ("add", "sub", "offset")


def scalar_pointers(ops: Iterable[Op]) -> tuple[Value, ...]:
    """The scalar pointers among the results of ops that tiles of pointers are made of by others."""
    ops = tuple(ops)
    used = {value for op in ops if op.results[0].type.shape for value in op.operands}
    return tuple(value for op in ops for value in op.results
                 if value in used and value.type.is_pointer and value.type.is_scalar)


def increments(rebuilder: Rebuilder, loop: Op, values: Iterable[Value]) -> Mapping[Value, Value]:
    """By how much values of a loop grow from round to round, emitted before the loop.

    A `for`; of pointers, in elements.  Values that do not grow by the same are left out.
    """
    finder = _Increments(rebuilder, loop)
    found = {value: finder.of(value) for value in values}
    return {value: growth for value, growth in found.items() if growth is not None}


class _Increments:
    """Takes the arithmetic of a loop's scalars apart."""

    def __init__(self, rebuilder: Rebuilder, loop: Op):
        self._rebuilder = rebuilder
        self._inside = set(loop.regions[0].ops)
        self._counter, *self._carried = loop.regions[0].args
        self._step = rebuilder[loop.step]

    def of(self, value: Value) -> Value | None:
        """The growth of a value that varies."""
        op, dtype = value.owner, value.type.dtype
        if not value.type.is_pointer and not (dtype.is_signed and dtype.bits >= int32.bits):
            return None  # these may wrap around
        if value is self._counter:
            return self._step
        if op not in self._inside or not (op.name in _SUMS or op.name == "mul"):
            return None
        left, right = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
        if self._varies(left) and self._varies(right):
            return None if op.name == "mul" else self._sum(op, self.of(left), self.of(right))
        varying, other = (left, right) if self._varies(left) else (right, left)
        growth, emit = self.of(varying), self._rebuilder.builder.emit
        if growth is None or op.name in ("add", "offset"):
            return growth
        if op.name == "mul":
            return emit(OPS["mul"], growth, self._rebuilder[other])
        zero = self._rebuilder.builder.constant(0, growth.type.dtype)
        return growth if varying is left else emit(OPS["sub"], zero, growth)

    def _sum(self, op: Op, left: Value | None, right: Value | None) -> Value | None:
        """The growth of the sum or difference of two values that grow."""
        if left is None or right is None or left.type != right.type:
            return None
        return self._rebuilder.builder.emit(OPS["sub" if op.name == "sub" else "add"], left, right)

    def _varies(self, value: Value) -> bool:
        return (value is self._counter or value in self._carried or value.owner in self._inside)


@declared(reads=("ops",), writes=("ops",))
def pipeline_loops(fn: Function, options: LayoutOptions) -> Function:
    """Loads of loops begin rounds early, as asynchronous copies to rings in shared memory.

    With rings of S copies, round k waits for its own tiles and has the loads of round k + S - 1
    begun.  These go where round k - 1 read from: the barrier at the start of a round says that all
    threads are done with that, and lets them see what the others copied for this one.  There is one
    group of copies for every round, an empty one where the loop does not get there, so that the
    number of groups that may still be under way is always the same.

    Where operands of a product are read ahead, round k waits for the tiles of round k + 1: before
    the last part of its product, when all other parts of its own tiles are in registers.  So the
    loads of round k + S go where round k itself read from.
    """
    found = pipelining_of(fn, options)
    fn = fn.remarked(Remark.of(NOT_EARLY, op.loc, reason=reason)
                     for op, reason in found.reasons.items())
    if not found.pipelines:
        return fn
    return dce(_Pipeliner(found.pipelines).function(fn))


@dataclass(frozen=True, slots=True)
class _Round:
    """A round whose loads are to begin.

    counter: the loop's.  exists: scalar bool, whether the loop gets there.
    sources: what the places of its loads are computed by: carried values, and pointers that grow
    by the same from round to round.
    """

    counter: Value
    exists: Value
    sources: Values

    @property
    def values(self) -> Values:
        return self.counter, self.exists, *self.sources

    @staticmethod
    def of(values: Values) -> _Round:
        """The round that has these values."""
        return _Round(values[0], values[1], values[2:])


@dataclass(frozen=True, slots=True)
class _State:
    """What a pipelined loop carries besides its own values.

    slots: the one that the round reads and, last, the one that loads may begin to fill.
    ahead: the round whose loads are the next to begin.
    fragments: the operands of the first part of the round's product, if they are read ahead.
    """

    slots: Values
    ahead: _Round
    fragments: Values

    @property
    def values(self) -> Values:
        return *self.slots, *self.ahead.values, *self.fragments

    def of(self, values: Values) -> _State:
        """The same things of other values."""
        start, end = len(self.slots), len(values) - len(self.fragments)
        return _State(values[:start], _Round.of(values[start:end]), values[end:])


class _Pipeliner(Rebuilder):
    """Re-emits a function with pipelined loops, of which none is in another."""

    def __init__(self, pipelines: list[Pipeline]):
        super().__init__()
        self._pipelines = {pipeline.loop: pipeline for pipeline in pipelines}
        self._loads = {early.load: early for p in pipelines for early in p.loads}
        self._stages = {op for early in self._loads.values() for op in early.stages}
        self._products = {p.prefetch.product: p for p in pipelines if p.prefetch is not None}
        self._rings: dict[EarlyLoad, Values] = {}
        self._ring_of: dict[Op, Value] = {}
        self._growths: Mapping[Value, Value] = {}
        self._state: _State | None = None

    def op(self, op: Op) -> None:
        """A copy of one op; of a pipelined loop, and of its loads, their new form."""
        if op in self._pipelines:
            self._loop(self._pipelines[op])
        elif op in self._loads:
            self._take(self._loads[op])
        elif op in self._products:
            self._multiply(self._products[op], op)
        elif op not in self._stages:
            super().op(op)

    # the loop -----------------------------------------------------------------------------------
    def _loop(self, pipeline: Pipeline) -> None:
        emit, loop = self.builder.emit, pipeline.loop
        for early in pipeline.loads:
            self._allocate(early, pipeline.stages)
        # what was in these bytes before has been read
        emit(barrier)
        state = self._start(pipeline)
        values = (*(self[value] for value in carried(loop).initial), *state.values)
        region = self._body(pipeline, state)
        self.builder.loc = loop.loc
        bounds = (self[value] for value in (loop.start, loop.stop, loop.step))
        attrs = {name: attr for name, attr in loop.attrs.items() if name != "num_stages"}
        made = emit(loop.opdef, *bounds, *values, regions=(region,), **attrs)
        for old, new in zip(loop.results, made, strict=False):
            new.hint = new.hint or old.hint
            self[old] = new

    def _start(self, pipeline: Pipeline) -> _State:
        """Begin the loads of the first rounds."""
        is_ahead = pipeline.prefetch is not None
        first = ahead = self._first(pipeline)
        begun = pipeline.stages if is_ahead else pipeline.stages - 1
        for place in range(begun):
            ahead = self._begin(pipeline, ahead, self._index(place))
        if not is_ahead:
            return _State((self._index(0), self._index(begun)), ahead, ())
        self._await(pipeline, begun - 1)
        fragments = self._first_parts(pipeline.prefetch, first.exists)
        return _State((self._index(0),), ahead, fragments)

    def _body(self, pipeline: Pipeline, state: _State):
        """The region of a loop that carries on its state."""
        emit, (old,) = self.builder.emit, pipeline.loop.regions
        types = [value.type for value in (*old.args, *state.values)]
        hints = [arg.hint for arg in old.args] + ["slot", "free"][:len(state.slots)]
        with self.builder.region(*types, hints=hints) as (region, args):
            self._state = state.of(args[len(old.args):])
            self.builder.loc = pipeline.loop.loc
            if pipeline.prefetch is None:
                self._await(pipeline, pipeline.stages - 2)
                self._begin_next(pipeline)
            for arg, value in zip(old.args, args, strict=False):
                self[arg] = value
            self.ops(old.ops[:-1])
            end = old.terminator
            self.builder.loc = end.loc
            slots = self._state.slots
            after = self._after(slots[0], pipeline.stages), *slots[:-1]
            emit(end.opdef, *self.operands(end), *replace(self._state, slots=after).values)
        return region

    def _await(self, pipeline: Pipeline, pending: int) -> None:
        """Wait until all threads can see what the loads have brought, but for the last groups."""
        emit = self.builder.emit
        emit(async_copy_wait, pending=pending)
        if pipeline.is_read_by_async_proxy:
            emit(fence_async)
        emit(barrier)

    def _allocate(self, early: EarlyLoad, copies: int) -> None:
        tile = early.load.result.type
        self.builder.loc = early.load.loc
        of_layout = {
            layout: self.builder.emit(shared_allocate, dtype=str(tile.dtype), shape=tile.shape,
                                      layout=layout, copies=copies, hint=early.load.result.hint)
            for layout in early.layouts}
        self._rings[early] = tuple(of_layout.values())
        self._ring_of |= {op: of_layout[op.result.type.layout] for op in early.stages}

    def _take(self, early: EarlyLoad) -> None:
        """The tile of this round: the slots that it is in, and itself if it is needed."""
        emit, result, index = self.builder.emit, early.load.result, self._state.slots[0]
        self.builder.loc = early.load.loc
        slots = [emit(slot, ring, index, hint=result.hint) for ring in self._rings[early]]
        of_layout = dict(zip(early.layouts, slots, strict=True))
        for op in early.stages:
            self[op.result] = of_layout[op.result.type.layout]
        if not early.is_read:
            return
        tile = emit(shared_tile, slots[0], hint=result.hint)
        if early.other is not None:
            tile = emit(OPS["select"], self[early.load.mask], tile, self[early.other])
        self[result] = tile

    def _index(self, place: int) -> Value:
        return self.builder.constant(place, int32)

    def _after(self, index: Value, copies: int) -> Value:
        """The slot after a slot."""
        emit = self.builder.emit
        following = emit(OPS["add"], index, self._index(1))
        wraps = emit(OPS["eq"], following, self._index(copies))
        return emit(OPS["select"], wraps, self._index(0), following)

    # a product part by part ---------------------------------------------------------------------
    def _multiply(self, pipeline: Pipeline, product: Op) -> None:
        """The product of a round, of which the operands of the first part have been read.

        Those of the next part are read before a part is multiplied; after the last one of the
        round comes the first one of the next round.  Then nothing of this round is read any more.
        """
        prefetch, (index,) = pipeline.prefetch, self._state.slots
        self.builder.loc = product.loc
        acc = self[product.acc]
        for part in range(1, prefetch.parts):
            acc = self._part(product, prefetch, acc, self._read(prefetch, part, index))
        self._await(pipeline, pipeline.stages - 2)
        counter = self[pipeline.loop.regions[0].args[0]]
        following = self.builder.emit(
            OPS["select"], self._is_followed(pipeline.loop, counter),
            self._after(index, pipeline.stages), index)
        fragments = self._read(prefetch, 0, following)
        self._begin_next(pipeline)
        self.builder.loc = product.loc
        self[product.result] = self._part(product, prefetch, acc, fragments)

    def _part(self, product: Op, prefetch: Prefetch, acc: Value, following: Values) -> Value:
        """acc and the part whose operands have been read; following: those of the next part."""
        result = self.builder.emit(product.opdef, *self._state.fragments, acc,
                                   hint=product.result.hint, **prefetch.attrs)
        self._state = replace(self._state, fragments=following)
        return result

    def _read(self, prefetch: Prefetch, part: int, index: Value) -> Values:
        """The operands of a part of a product, from a slot."""
        return tuple(
            self.builder.emit(shared_slice, self._buffer(operand, index),
                              **prefetch.place(place, part))
            for place, operand in enumerate((prefetch.product.a, prefetch.product.b)))

    def _buffer(self, operand: Value, index: Value) -> Value:
        """An operand of a product in a slot."""
        op = operand.owner
        if op.opdef is buffer_view:
            return self.builder.emit(buffer_view, self._buffer(op.buffer, index), **op.attrs)
        return self.builder.emit(slot, self._ring_of[op], index)

    def _first_parts(self, prefetch: Prefetch, exists: Value) -> Values:
        """The operands of the first part of the first round; zeros if there is no round."""
        emit, index = self.builder.emit, self._index(0)
        types = tuple(map(prefetch.held, range(2)))
        with self.builder.region() as (reads, _):
            emit(OPS["yield"], *self._read(prefetch, 0, index))
        with self.builder.region() as (nothing, _):
            zeros = (emit(OPS["cast"], index, dtype=tile.dtype.name) for tile in types)
            emit(OPS["yield"], *(emit(OPS["splat"], zero, shape=tile.shape)
                                 for zero, tile in zip(zeros, types)))
        return emit(OPS["if"], exists, regions=(reads, nothing), result_types=types)

    # the rounds ahead ---------------------------------------------------------------------------
    def _begin_next(self, pipeline: Pipeline) -> None:
        """Begin the loads of the round ahead, which go to the slot that is free."""
        state = self._state
        ahead = self._begin(pipeline, state.ahead, state.slots[-1])
        self._state = replace(state, ahead=ahead)

    def _begin(self, pipeline: Pipeline, round_: _Round, index: Value) -> _Round:
        """Begin the loads of a round, which go to a slot; give the round after it."""
        loop, places, advance = pipeline.loop, pipeline.addresses, pipeline.advance
        own, emit = carried(loop), self.builder.emit
        sources = (*(own.args[place] for place in places.carried), *self._growths)
        results = (value for op in (*places.ops, *advance.ops) for value in op.results)
        with self.apart((*loop.regions[0].args, *results)):
            self[loop.regions[0].args[0]] = round_.counter
            for old, new in zip(sources, round_.sources, strict=True):
                self[old] = new
            self.ops(advance.ops)
            self._copies(pipeline, round_.exists, index)
            following = (
                *(self[own.following[place]] for place in places.carried),
                *(emit(OPS["offset"], self[pointer], growth)
                  for pointer, growth in self._growths.items()))
        return self._next(loop, round_, following)

    def _copies(self, pipeline: Pipeline, exists: Value, index: Value) -> None:
        """Begin the copies of a round, if it exists."""
        emit = self.builder.emit
        known = {*pipeline.advance.ops, *(pointer.owner for pointer in self._growths)}
        with self.builder.region() as (begins, _):
            self.ops([op for op in pipeline.addresses.ops if op not in known])
            for early in pipeline.loads:
                self._copy(early, index)
            emit(OPS["yield"])
        with self.builder.region() as (nothing, _):
            emit(OPS["yield"])
        self.builder.loc = pipeline.loop.loc
        emit(OPS["if"], exists, regions=(begins, nothing), result_types=())
        emit(async_copy_commit)

    def _copy(self, early: EarlyLoad, index: Value) -> None:
        """Begin the copies of one load."""
        self.builder.loc = early.load.loc
        pointer, *mask = (self[value] for value in early.places)
        for ring in self._rings[early]:
            buffer = self.builder.emit(slot, ring, index)
            self.builder.emit(async_copy, pointer, buffer, *mask)

    def _first(self, pipeline: Pipeline) -> _Round:
        """The first round of a loop."""
        emit, loop = self.builder.emit, pipeline.loop
        addresses, (counter, *_) = pipeline.addresses, loop.regions[0].args
        self.builder.loc = loop.loc
        start, stop, _ = (self[value] for value in (loop.start, loop.stop, loop.step))
        exists = emit(OPS["select"], self._counts_up(loop), emit(OPS["lt"], start, stop),
                      emit(OPS["gt"], start, stop))
        initial = carried(loop).initial
        self._growths = increments(self, loop, scalar_pointers(addresses.ops))
        self[counter] = start
        self.ops(ops_for(loop.regions[0], self._growths))
        return _Round(start, exists, (*(self[initial[place]] for place in addresses.carried),
                                      *(self[pointer] for pointer in self._growths)))

    def _next(self, loop: Op, round_: _Round, following: Values) -> _Round:
        """The round after one."""
        emit, step = self.builder.emit, self[loop.step]
        is_followed = self._is_followed(loop, round_.counter)
        return _Round(emit(OPS["add"], round_.counter, step),
                      emit(OPS["and"], round_.exists, is_followed), following)

    def _is_followed(self, loop: Op, counter: Value) -> Value:
        """Whether the round of a counter, if it exists, is not the last.

        The distance to the stop, if there is one, fits into an unsigned integer, and so does the
        step; so nothing is wrong where counter + step overflows.
        """
        emit = self.builder.emit
        _, stop, step = (self[value] for value in (loop.start, loop.stop, loop.step))
        up = self._counts_up(loop)
        zero = self.builder.constant(0, step.type.dtype)
        distance = emit(OPS["select"], up, emit(OPS["sub"], stop, counter),
                        emit(OPS["sub"], counter, stop))
        size = emit(OPS["select"], up, step, emit(OPS["sub"], zero, step))
        return emit(OPS["gt"], self._unsigned(distance), self._unsigned(size))

    def _counts_up(self, loop: Op) -> Value:
        step = self[loop.step]
        return self.builder.emit(OPS["gt"], step, self.builder.constant(0, step.type.dtype))

    def _unsigned(self, value: Value) -> Value:
        """The bits of a scalar integer, counted from 0."""
        dtype = value.type.dtype
        if not dtype.is_signed:
            return value
        return self.builder.emit(OPS["cast"], value, dtype=DTYPES[f"u{dtype}"].name)
