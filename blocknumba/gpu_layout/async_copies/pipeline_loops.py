"""Pass: software pipelining with cp.async, and increments of a loop's scalar pointers.

A ring of S = 3 slots.  Loads begin S - 1 iterations early:

    before the loop   copy 0 -> slot 0, copy 1 -> slot 1
    iteration 0       wait 0   barrier   copy 2 -> slot 2   compute with slot 0
    iteration 1       wait 1   barrier   copy 3 -> slot 0   compute with slot 1
    iteration 2       wait 2   barrier   copy 4 -> slot 1   compute with slot 2

Where the wgmma of iterations overlap (overlap.py), the tensor cores are at work meanwhile:

    iteration 1   wait 1   barrier   begin wgmma 1   wait for wgmma 0   barrier   copy 3 -> slot 0

Such copies have no branch around them, so that their addresses are computed before that wait.
Beyond the last iteration they copy zeros.

Scalar pointers of loads that grow by the same amount in every iteration are carried by the loop
and incremented, not computed again (`reads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from blocknumba.gpu_layout.async_copies.ops import (
    async_copy, async_copy_commit, async_copy_wait, buffer_view, fence_async, shared_slice,
    shared_tile, slot, wgmma_wait,
)
from blocknumba.gpu_layout.async_copies.overlap import result_of
from blocknumba.gpu_layout.async_copies.pipelining import (
    EarlyLoad, Pipeline, Prefetch, pipelining_of,
)
from blocknumba.gpu_layout.async_copies.reads import increments, ops_for, scalar_pointers
from blocknumba.gpu_layout.ops import barrier, shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.function import Function, Op, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.remarks import NOT_EARLY, Remark
from blocknumba.tile_ir.ir.types import DTYPES, int32
from blocknumba.tile_ir.ir.uses import carried
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce

@declared(reads=("ops",), writes=("ops",))
def pipeline_loops(fn: Function, options: LayoutOptions) -> Function:
    """Begin loads of loops iterations early, as asynchronous copies to rings in shared memory.

    With rings of S slots, iteration k waits for its own tiles and begins the loads of iteration
    k + S - 1, into the slot that iteration k - 1 read.  The barrier at the start of an iteration
    has two purposes: all threads are done with that slot, and each sees what the others copied.
    Every iteration commits one group of copies, an empty one beyond the end of the loop, so that
    the number of pending groups is always the same.

    Where iterations overlap, iteration k begins its wgmma before it waits for those of k - 1, and
    loads after that.  A barrier of its own says that no wgmma reads that slot.

    Where operands of a dot are read ahead, iteration k waits for the tiles of iteration k + 1
    before its last k slice, when all of its own tiles are in registers.  So the loads of iteration
    k + S go to the slot that iteration k itself read.
    """
    found = pipelining_of(fn, options)
    fn = fn.remarked(Remark.of(NOT_EARLY, op.loc, reason=reason)
                     for op, reason in found.reasons.items())
    if not found.pipelines:
        return fn
    return dce(_Pipeliner(found.pipelines).function(fn))


@dataclass(frozen=True, slots=True)
class _Iteration:
    """An iteration whose loads are to begin.

    counter: the loop's counter.  exists: scalar bool, whether the loop has this iteration.
    sources: the values that the addresses of its loads are computed from: carried values, and
    pointers with a constant increment.
    """

    counter: Value
    exists: Value
    sources: Values

    @property
    def values(self) -> Values:
        return self.counter, self.exists, *self.sources

    @staticmethod
    def of(values: Values) -> _Iteration:
        """The iteration that has these values."""
        return _Iteration(values[0], values[1], values[2:])


@dataclass(frozen=True, slots=True)
class _State:
    """The values that a pipelined loop carries besides its own.

    slots: the index of the slot that the iteration reads and, last, of the slot that is free.
    ahead: the iteration whose loads begin next.
    fragments: the operands of the dot's first k slice, if they are read ahead.
    """

    slots: Values
    ahead: _Iteration
    fragments: Values

    @property
    def values(self) -> Values:
        return *self.slots, *self.ahead.values, *self.fragments

    def of(self, values: Values) -> _State:
        """The same state with other values."""
        start, end = len(self.slots), len(values) - len(self.fragments)
        return _State(values[:start], _Iteration.of(values[start:end]), values[end:])


class _Pipeliner(Rebuilder):
    """Re-emits a function with pipelined loops, which are not nested."""

    def __init__(self, pipelines: list[Pipeline]):
        super().__init__()
        self._pipelines = {pipeline.loop: pipeline for pipeline in pipelines}
        self._loads = {early.load: early for p in pipelines for early in p.loads}
        self._stages = {op for early in self._loads.values() for op in early.stages}
        self._dots = {p.prefetch.dot: p for p in pipelines if p.prefetch is not None}
        self._late_waits = {wait: p for p in pipelines for wait in p.late_waits}
        self._rings: dict[EarlyLoad, Values] = {}
        self._ring_of: dict[Op, Value] = {}
        self._increments: Mapping[Value, Value] = {}
        self._state: _State | None = None

    def op(self, op: Op) -> None:
        """A copy of one op; pipelined loops, their loads and dots are rewritten."""
        if op in self._pipelines:
            self._loop(self._pipelines[op])
        elif op in self._loads:
            self._use_slot(self._loads[op])
        elif op in self._dots:
            self._do_dot(self._dots[op], op)
        elif op in self._late_waits:
            self._wait_late(self._late_waits[op], op)
        elif op not in self._stages:
            super().op(op)

    # the loop -----------------------------------------------------------------------------------
    def _loop(self, pipeline: Pipeline) -> None:
        emit, loop = self.builder.emit, pipeline.loop
        for early in pipeline.loads:
            self._allocate(early, pipeline.stages)
        # earlier contents of these bytes have been read
        emit(barrier)
        state = self._begin_first(pipeline)
        values = (*(self[value] for value in carried(loop).initial), *state.values)
        made = (self._entered if pipeline.late_waits else self._loop_of)(pipeline, state, values)
        for old, new in zip(loop.results, made, strict=False):
            new.hint = new.hint or old.hint
            self[old] = new

    def _loop_of(self, pipeline: Pipeline, state: _State, values: Values) -> Values:
        """The loop itself, from initial values."""
        loop = pipeline.loop
        region = self._body(pipeline, state)
        self.builder.loc = loop.loc
        bounds = (self[value] for value in (loop.start, loop.stop, loop.step))
        attrs = {name: attr for name, attr in loop.attrs.items() if name != "num_stages"}
        made = self.builder.emit(loop.opdef, *bounds, *values, regions=(region,), **attrs)
        return made if isinstance(made, tuple) else (made,)

    def _entered(self, pipeline: Pipeline, state: _State, values: Values) -> Values:
        """The loop if it has iterations, and the wait for the wgmma of the last one.

        Accumulators that come by both ways would be copied to common registers before that wait,
        and ptxas would wait for each wgmma (its messages C7514 and C7515).
        """
        emit, loop = self.builder.emit, pipeline.loop
        exists, number = self._has_iterations(loop), len(loop.results)
        with self.builder.region() as (entered, _):
            made = list(self._loop_of(pipeline, state, values)[:number])
            for wait in pipeline.late_waits:
                index = loop.results.index(result_of(wait, loop))
                made[index] = emit(wgmma_wait, made[index], pending=0)
            emit(async_copy_wait, pending=0)  # zeros, beyond the last iteration
            emit(OPS["yield"], *made)
        with self.builder.region() as (nothing, _):
            emit(OPS["yield"], *values[:number])
        types = tuple(value.type for value in made)
        found = emit(OPS["if"], exists, regions=(entered, nothing), result_types=types)
        return found if isinstance(found, tuple) else (found,)

    def _begin_first(self, pipeline: Pipeline) -> _State:
        """Begin the loads of the first iterations."""
        is_ahead = pipeline.prefetch is not None
        first = ahead = self._first_iteration(pipeline)
        begun = pipeline.stages if is_ahead else pipeline.stages - 1
        for number in range(begun):
            ahead = self._begin(pipeline, ahead, self._slot_index(number))
        if not is_ahead:
            return _State((self._slot_index(0), self._slot_index(begun)), ahead, ())
        self._wait(pipeline, begun - 1)
        fragments = self._first_fragments(pipeline.prefetch, first.exists)
        return _State((self._slot_index(0),), ahead, fragments)

    def _body(self, pipeline: Pipeline, state: _State):
        """The region of a loop that also carries its state."""
        emit, (old,) = self.builder.emit, pipeline.loop.regions
        types = [value.type for value in (*old.args, *state.values)]
        hints = [arg.hint for arg in old.args] + ["slot", "free"][:len(state.slots)]
        with self.builder.region(*types, hints=hints) as (region, args):
            self._state = state.of(args[len(old.args):])
            self.builder.loc = pipeline.loop.loc
            if pipeline.prefetch is None:
                self._wait(pipeline, pipeline.stages - 2)
                if not pipeline.late_waits:
                    self._begin_next_iteration(pipeline)
            for arg, value in zip(old.args, args, strict=False):
                self[arg] = value
            self.ops(old.ops[:-1])
            end = old.terminator
            self.builder.loc = end.loc
            slots = self._state.slots
            after = self._next_slot(slots[0], pipeline.stages), *slots[:-1]
            emit(end.opdef, *self.operands(end), *replace(self._state, slots=after).values)
        return region

    def _wait_late(self, pipeline: Pipeline, op: Op) -> None:
        """Wait for wgmma of the iteration before; after the last, begin loads into its slot."""
        emit = self.builder.emit
        self.builder.loc = op.loc
        self[op.result] = emit(wgmma_wait, self[op.value], pending=len(pipeline.late_waits))
        if op is pipeline.late_waits[-1]:
            emit(barrier)
            self._begin_next_iteration(pipeline)

    def _wait(self, pipeline: Pipeline, pending: int) -> None:
        """Wait until all threads see the tiles of all groups of loads but the `pending` latest."""
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

    def _use_slot(self, early: EarlyLoad) -> None:
        """Let this iteration's slots stand for the staged tiles; read the tile if needed."""
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

    def _slot_index(self, number: int) -> Value:
        return self.builder.constant(number, int32)

    def _next_slot(self, index: Value, copies: int) -> Value:
        """The index of the slot after a slot."""
        emit = self.builder.emit
        following = emit(OPS["add"], index, self._slot_index(1))
        wraps = emit(OPS["eq"], following, self._slot_index(copies))
        return emit(OPS["select"], wraps, self._slot_index(0), following)

    # a dot in k slices --------------------------------------------------------------------------
    def _do_dot(self, pipeline: Pipeline, dot: Op) -> None:
        """Do the dot of an iteration; the operands of its first k slice have been read before.

        The operands of the next k slice are read before a slice is multiplied; before the last
        slice, those of the next iteration's first slice.  Then this iteration's slot is free.
        """
        prefetch, (index,) = pipeline.prefetch, self._state.slots
        self.builder.loc = dot.loc
        acc = self[dot.acc]
        for k_slice in range(1, prefetch.k_slices):
            acc = self._do_k_slice(dot, prefetch, acc, self._read_k_slice(prefetch, k_slice, index))
        self._wait(pipeline, pipeline.stages - 2)
        counter = self[pipeline.loop.regions[0].args[0]]
        following = self.builder.emit(
            OPS["select"], self._is_followed(pipeline.loop, counter),
            self._next_slot(index, pipeline.stages), index)
        fragments = self._read_k_slice(prefetch, 0, following)
        self._begin_next_iteration(pipeline)
        self.builder.loc = dot.loc
        self[dot.result] = self._do_k_slice(dot, prefetch, acc, fragments)

    def _do_k_slice(self, dot: Op, prefetch: Prefetch, acc: Value, following: Values) -> Value:
        """Add the k slice whose operands have been read to acc; following: the next operands."""
        result = self.builder.emit(dot.opdef, *self._state.fragments, acc,
                                   hint=dot.result.hint, **prefetch.attrs)
        self._state = replace(self._state, fragments=following)
        return result

    def _read_k_slice(self, prefetch: Prefetch, k_slice: int, index: Value) -> Values:
        """Read the operands of a k slice of a dot from a slot."""
        return tuple(
            self.builder.emit(shared_slice, self._buffer(operand, index),
                              **prefetch.slice_attrs(number, k_slice))
            for number, operand in enumerate((prefetch.dot.a, prefetch.dot.b)))

    def _buffer(self, operand: Value, index: Value) -> Value:
        """The buffer of a dot's operand in a slot."""
        op = operand.owner
        if op.opdef is buffer_view:
            return self.builder.emit(buffer_view, self._buffer(op.buffer, index), **op.attrs)
        return self.builder.emit(slot, self._ring_of[op], index)

    def _first_fragments(self, prefetch: Prefetch, exists: Value) -> Values:
        """Read the operands of the first iteration's first k slice; zeros without iterations."""
        emit, index = self.builder.emit, self._slot_index(0)
        types = tuple(map(prefetch.slice_type, range(2)))
        with self.builder.region() as (reads, _):
            emit(OPS["yield"], *self._read_k_slice(prefetch, 0, index))
        with self.builder.region() as (nothing, _):
            zeros = (emit(OPS["cast"], index, dtype=tile.dtype.name) for tile in types)
            emit(OPS["yield"], *(emit(OPS["splat"], zero, shape=tile.shape)
                                 for zero, tile in zip(zeros, types)))
        return emit(OPS["if"], exists, regions=(reads, nothing), result_types=types)

    # iterations ahead ---------------------------------------------------------------------------
    def _begin_next_iteration(self, pipeline: Pipeline) -> None:
        """Begin the loads of the iteration ahead, into the free slot."""
        state = self._state
        ahead = self._begin(pipeline, state.ahead, state.slots[-1], bool(pipeline.late_waits))
        self._state = replace(state, ahead=ahead)

    def _begin(self, pipeline: Pipeline, iteration: _Iteration, index: Value,
               in_line: bool = False) -> _Iteration:
        """Begin the loads of an iteration, into a slot; return the iteration after it."""
        loop, addresses, advance = pipeline.loop, pipeline.addresses, pipeline.advance
        own, emit = carried(loop), self.builder.emit
        sources = (*(own.args[number] for number in addresses.carried), *self._increments)
        results = (value for op in (*addresses.ops, *advance.ops) for value in op.results)
        with self.apart((*loop.regions[0].args, *results)):
            self[loop.regions[0].args[0]] = iteration.counter
            for old, new in zip(sources, iteration.sources, strict=True):
                self[old] = new
            if in_line:
                self._copies_in_line(pipeline, iteration.exists, index)
            else:
                self.ops(advance.ops)
                self._copies(pipeline, iteration.exists, index)
            following = (
                *(self[own.following[number]] for number in addresses.carried),
                *(emit(OPS["offset"], self[pointer], increment)
                  for pointer, increment in self._increments.items()))
        return self._next_iteration(loop, iteration, following)

    def _copies(self, pipeline: Pipeline, exists: Value, index: Value) -> None:
        """Begin the copies of an iteration, if it exists, and commit them as a group."""
        emit = self.builder.emit
        known = {*pipeline.advance.ops, *(pointer.owner for pointer in self._increments)}
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

    def _copies_in_line(self, pipeline: Pipeline, exists: Value, index: Value) -> None:
        """As _copies, without a branch; an iteration that does not exist copies zeros.

        So ptxas computes addresses and masks while it waits for tensor cores, and the next ones
        after the copies, in the same registers.
        """
        known = {pointer.owner for pointer in self._increments}
        read = [value for early in pipeline.loads for value in early.pointer_and_mask]
        first = [op for op in ops_for(pipeline.loop.regions[0], read, lambda _: True)
                 if op not in known]
        self.ops(first)
        for early in pipeline.loads:
            self._copy(early, index, exists)
        self.builder.loc = pipeline.loop.loc
        self.builder.emit(async_copy_commit)
        self.ops([op for op in pipeline.advance.ops if op not in first])

    def _copy(self, early: EarlyLoad, index: Value, exists: Value | None = None) -> None:
        """Begin the copies of one load; exists: whether it copies, else zeros."""
        self.builder.loc = early.load.loc
        pointer, *mask = (self[value] for value in early.pointer_and_mask)
        if exists is not None:
            all_of_it = self.builder.emit(OPS["splat"], exists, shape=pointer.type.shape)
            mask = [self.builder.emit(OPS["and"], *mask, all_of_it) if mask else all_of_it]
        for ring in self._rings[early]:
            buffer = self.builder.emit(slot, ring, index)
            self.builder.emit(async_copy, pointer, buffer, *mask)

    def _first_iteration(self, pipeline: Pipeline) -> _Iteration:
        """The first iteration of a loop."""
        loop, addresses = pipeline.loop, pipeline.addresses
        counter = loop.regions[0].args[0]
        self.builder.loc = loop.loc
        start, exists = self[loop.start], self._has_iterations(loop)
        initial = carried(loop).initial
        self._increments = increments(self, loop, scalar_pointers(addresses.ops))
        self[counter] = start
        self.ops(ops_for(loop.regions[0], self._increments))
        sources = (*(self[initial[number]] for number in addresses.carried),
                   *(self[pointer] for pointer in self._increments))
        return _Iteration(start, exists, sources)

    def _has_iterations(self, loop: Op) -> Value:
        emit, start, stop = self.builder.emit, self[loop.start], self[loop.stop]
        return emit(OPS["select"], self._counts_up(loop), emit(OPS["lt"], start, stop),
                    emit(OPS["gt"], start, stop))

    def _next_iteration(self, loop: Op, iteration: _Iteration, following: Values) -> _Iteration:
        """The iteration after one."""
        emit, step = self.builder.emit, self[loop.step]
        is_followed = self._is_followed(loop, iteration.counter)
        return _Iteration(emit(OPS["add"], iteration.counter, step),
                          emit(OPS["and"], iteration.exists, is_followed), following)

    def _is_followed(self, loop: Op, counter: Value) -> Value:
        """Whether the iteration of a counter, if it exists, is not the last.

        The distance to the stop and the size of the step fit into unsigned integers, so the
        comparison is right even where counter + step overflows.
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
        """A scalar integer reinterpreted as unsigned."""
        dtype = value.type.dtype
        if not dtype.is_signed:
            return value
        return self.builder.emit(OPS["cast"], value, dtype=DTYPES[f"u{dtype}"].name)
