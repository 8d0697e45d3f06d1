"""The pass that begins loads of loops rounds before their tiles are needed."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_ops import (
    async_copy,
    async_copy_commit,
    async_copy_wait,
    buffer_view,
    fence_async,
    shared_part,
    shared_tile,
    slot,
)
from blocknumba.gpu_layout.ops import barrier, shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipelining import EarlyLoad, Pipeline, pipelining_of
from blocknumba.gpu_layout.prefetching import Prefetch
from blocknumba.tile_ir.carried import carried
from blocknumba.tile_ir.ir import Function, Op, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.types import DTYPES, int32


@declared(reads=("ops",), writes=("ops",))
def pipeline_loops(fn: Function, options: LayoutOptions) -> Function:
    """Loads of loops begin rounds early, as asynchronous copies to rings in shared memory.

    With rings of S copies, round k waits for its own tiles and has the loads of round k + S - 1
    begun.  These go where round k - 1 read from: the barrier at the start of a round says that all
    threads are done with that, and lets them see what the others copied for this one.  There is one
    group of copies for every round, an empty one where the loop does not get there, so that the
    number of groups that may still be under way is always the same.
    """
    pipelines = pipelining_of(fn, options).pipelines
    if not pipelines:
        return fn
    return dce(_Pipeliner(pipelines).function(fn))


BEGIN = "middle"  # "top", "middle" or "late"


def _begins_late(pipeline: Pipeline) -> bool:
    return pipeline.prefetch is not None and BEGIN != "top"


@dataclass(frozen=True, slots=True)
class _Round:
    """A round whose loads are to begin.

    counter: the loop's.  exists: scalar bool, whether the loop gets there.
    carried: the carried values that the places of its loads are computed by.
    """

    counter: Value
    exists: Value
    carried: Values

    @property
    def values(self) -> Values:
        return self.counter, self.exists, *self.carried

    @staticmethod
    def of(values: Values) -> _Round:
        """The round that has these values."""
        return _Round(values[0], values[1], tuple(values[2:]))


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
        self._slot: Value | None = None
        self._ahead: _Round | None = None
        self._fragments: Values = ()

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
        round_ = first = self._first(pipeline)
        begun = pipeline.stages - (not _begins_late(pipeline))
        for place in range(begun):
            round_ = self._begin(pipeline, round_, self._index(place))
        fragments = self._first_parts(pipeline, first.exists, begun)
        own = carried(loop).initial
        state = self._index(0), self._index(pipeline.stages - 1), *round_.values, *fragments
        values = (*(self[value] for value in own), *state)
        region = self._body(pipeline, state)
        self.builder.loc = loop.loc
        bounds = (self[value] for value in loop.operands[:3])
        attrs = {name: attr for name, attr in loop.attrs.items() if name != "num_stages"}
        made = emit(loop.opdef, *bounds, *values, regions=(region,), **attrs)
        for old, new in zip(loop.results, made, strict=False):
            new.hint = new.hint or old.hint
            self[old] = new

    def _body(self, pipeline: Pipeline, state: Values):
        """The region of a loop that carries on where it is in its rings, and the round ahead."""
        emit, (old,) = self.builder.emit, pipeline.loop.regions
        types = [arg.type for arg in old.args] + [value.type for value in state]
        hints = [arg.hint for arg in old.args] + ["slot", "free"]
        with self.builder.region(*types, hints=hints) as (region, args):
            own, (index, free, *ahead) = args[:len(old.args)], args[len(old.args):]
            count = len(ahead) - (2 if pipeline.prefetch is not None else 0)
            self._ahead, self._fragments = _Round.of(ahead[:count]), tuple(ahead[count:])
            self.builder.loc = pipeline.loop.loc
            if pipeline.prefetch is None:
                self._await(pipeline)
            if not _begins_late(pipeline):
                self._ahead = self._begin(pipeline, self._ahead, free)
            self._slot = index
            for arg, value in zip(old.args, own, strict=True):
                self[arg] = value
            self.ops(old.ops[:-1])
            end = old.terminator
            self.builder.loc = end.loc
            after = self._after(index, pipeline.stages)
            emit(end.opdef, *self.operands(end), after, index, *self._ahead.values,
                 *self._fragments)
        return region

    def _await(self, pipeline: Pipeline, later: int | None = None) -> None:
        """Wait until the tiles of a round are there, for all threads.

        later: of how many rounds after it the loads have begun too.
        """
        emit = self.builder.emit
        emit(async_copy_wait, pending=pipeline.stages - 2 if later is None else later)
        if pipeline.is_read_by_engines:
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
        emit, result = self.builder.emit, early.load.result
        self.builder.loc = early.load.loc
        slots = [emit(slot, ring, self._slot, hint=result.hint) for ring in self._rings[early]]
        of_layout = dict(zip(early.layouts, slots, strict=True))
        for op in early.stages:
            self[op.result] = of_layout[op.result.type.layout]
        if not early.is_read:
            return
        tile = emit(shared_tile, slots[0], hint=result.hint)
        if early.other is not None:
            tile = emit(OPS["select"], self[early.load.operands[1]], tile, self[early.other])
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
        prefetch, acc = pipeline.prefetch, self[product.operands[2]]
        self.builder.loc = product.loc
        for part in range(1, prefetch.parts):
            fragments = self._read(prefetch, part, self._slot)
            acc = self._multiplied(prefetch, acc, product.result.hint)
            self._fragments = fragments
        self._await(pipeline)
        if BEGIN == "middle":
            self._begin_late(pipeline)
        counter = self[pipeline.loop.regions[0].args[0]]
        following = self.builder.emit(
            OPS["select"], self._is_followed(pipeline.loop, counter),
            self._after(self._slot, pipeline.stages), self._slot)
        fragments = self._read(prefetch, 0, following)
        if BEGIN == "late":
            self._begin_late(pipeline)
        self.builder.loc = product.loc
        self[product.result] = self._multiplied(prefetch, acc, product.result.hint)
        self._fragments = fragments

    def _begin_late(self, pipeline: Pipeline) -> None:
        """Begin the loads of the round that goes to the slot of this one."""
        changed = (pipeline.loop.regions[0].args[0], *carried(pipeline.loop).args,
                   *(value for op in (*pipeline.addresses.ops, *pipeline.advance.ops)
                     for value in op.results))
        with self.apart(changed):
            self._ahead = self._begin(pipeline, self._ahead, self._slot)

    def _multiplied(self, prefetch: Prefetch, acc: Value, hint: str) -> Value:
        """acc and the product of the fragments that have been read."""
        return self.builder.emit(prefetch.product.opdef, *self._fragments, acc, hint=hint,
                                 **prefetch.attrs)

    def _read(self, prefetch: Prefetch, part: int, index: Value) -> Values:
        """The operands of a part of a product, from a slot."""
        return tuple(
            self.builder.emit(shared_part, self._buffer(operand, index),
                              **prefetch.place(place, part))
            for place, operand in enumerate(prefetch.product.operands[:2]))

    def _buffer(self, operand: Value, index: Value) -> Value:
        """An operand of a product in a slot."""
        op = operand.owner
        if op.opdef is buffer_view:
            return self.builder.emit(buffer_view, self._buffer(op.operands[0], index), **op.attrs)
        return self.builder.emit(slot, self._ring_of[op], index)

    def _first_parts(self, pipeline: Pipeline, exists: Value, begun: int) -> Values:
        """The operands of the first part of the first round, if there is one."""
        emit, prefetch = self.builder.emit, pipeline.prefetch
        if prefetch is None:
            return ()
        self._await(pipeline, begun - 1)
        with self.builder.region() as (reads, _):
            emit(OPS["yield"], *self._read(prefetch, 0, self._index(0)))
        types = tuple(map(prefetch.held, range(2)))
        with self.builder.region() as (nothing, _):
            zeros = (self.builder.constant(0.0 if tile.dtype.is_float else 0, tile.dtype)
                     for tile in types)
            emit(OPS["yield"], *(emit(OPS["splat"], zero, shape=tile.shape)
                                 for zero, tile in zip(zeros, types)))
        return emit(OPS["if"], exists, regions=(reads, nothing), result_types=types)

    # the rounds ahead ---------------------------------------------------------------------------
    def _begin(self, pipeline: Pipeline, round_: _Round, index: Value) -> _Round:
        """Begin the loads of a round, which go to a slot; give the round after it."""
        emit, loop = self.builder.emit, pipeline.loop
        own = carried(loop)
        self[loop.regions[0].args[0]] = round_.counter
        for place, value in zip(pipeline.addresses.carried, round_.carried, strict=True):
            self[own.args[place]] = value
        self.ops(pipeline.advance.ops)
        with self.builder.region() as (begins, _):
            advanced = set(pipeline.advance.ops)
            self.ops([op for op in pipeline.addresses.ops if op not in advanced])
            for early in pipeline.loads:
                self._copy(early, index)
            emit(OPS["yield"])
        with self.builder.region() as (nothing, _):
            emit(OPS["yield"])
        self.builder.loc = loop.loc
        emit(OPS["if"], round_.exists, regions=(begins, nothing), result_types=())
        emit(async_copy_commit)
        following = tuple(self[own.following[place]] for place in pipeline.addresses.carried)
        return self._next(loop, round_, following)

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
        self.builder.loc = loop.loc
        start, stop, _ = (self[value] for value in loop.operands[:3])
        exists = emit(OPS["select"], self._counts_up(loop), emit(OPS["lt"], start, stop),
                      emit(OPS["gt"], start, stop))
        initial = carried(loop).initial
        return _Round(start, exists,
                      tuple(self[initial[place]] for place in pipeline.addresses.carried))

    def _next(self, loop: Op, round_: _Round, following: Values) -> _Round:
        """The round after one."""
        emit, step = self.builder.emit, self[loop.operands[2]]
        is_followed = self._is_followed(loop, round_.counter)
        return _Round(emit(OPS["add"], round_.counter, step),
                      emit(OPS["and"], round_.exists, is_followed), following)

    def _is_followed(self, loop: Op, counter: Value) -> Value:
        """Whether the round of a counter, if it exists, is not the last.

        The distance to the stop, if there is one, fits into an unsigned integer, and so does the
        step; so nothing is wrong where counter + step overflows.
        """
        emit = self.builder.emit
        _, stop, step = (self[value] for value in loop.operands[:3])
        up = self._counts_up(loop)
        zero = self.builder.constant(0, step.type.dtype)
        distance = emit(OPS["select"], up, emit(OPS["sub"], stop, counter),
                        emit(OPS["sub"], counter, stop))
        size = emit(OPS["select"], up, step, emit(OPS["sub"], zero, step))
        return emit(OPS["gt"], self._unsigned(distance), self._unsigned(size))

    def _counts_up(self, loop: Op) -> Value:
        step = self[loop.operands[2]]
        return self.builder.emit(OPS["gt"], step, self.builder.constant(0, step.type.dtype))

    def _unsigned(self, value: Value) -> Value:
        """The bits of a scalar integer, counted from 0."""
        dtype = value.type.dtype
        if not dtype.is_signed:
            return value
        return self.builder.emit(OPS["cast"], value, dtype=DTYPES[f"u{dtype}"].name)
