"""The pass that overlaps the two chained dots of a loop, as in attention.

The second dot of an iteration reads what is computed from the first, so within one iteration the
tensor cores wait for the softmax between them.  Rotating the loop by half an iteration lets the
second dot of iteration i-1 run beside the first of iteration i:

    as written    tensor cores   dot1[0]             dot2[0]  dot1[1]             dot2[1]
                  other units             softmax[0]                   softmax[1]

    rotated       tensor cores   dot1[0]             dot1[1]  dot2[0]     dot1[2]  dot2[1]
                  other units             softmax[0]          softmax[1]           softmax[2]
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import ONE_ELEMENT, pin, wgmma, wgmma_wait
from blocknumba.gpu_layout.async_copies.residency import (
    chained_dot_registers, programs_to_share, register_limit,
)
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, PURE, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.types import int64
from blocknumba.tile_ir.ir.uses import Uses, carried, controls
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.memory import load, offset
from blocknumba.tile_ir.ops.reduce import reduce
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def rotate_dots(fn: Function, options: LayoutOptions) -> Function:
    """Start the first dot of iteration i while the second dot of iteration i-1 runs.

    The loop is one like that of attention: s = a @ b[i]; acc = f(acc) + g(s) @ c[i].  Its first
    dot and all that depends on it are peeled off before the loop, its second dot after it:

        s = a @ b[0];  p, acc = g(s), f(acc)
        for i in 1 ..:  start s = a @ b[i];  start acc += p @ c[i-1]
                        wait for s;  g(s), except its last cast;  wait for acc;  p, acc = ...
        acc += p @ c[last]

    The operand that the second dot reads from registers is written while no dot is in flight, as
    wgmma requires.   Source: FlashAttention-3, arXiv 2407.08608, section 3.2.
    """
    programs = programs_to_share(fn, options)
    if programs:  # the others keep the tensor cores busy
        return fn.with_body(fn.body, resident_programs=programs)
    uses = Uses(fn)
    loops = {
        op: found
        for op in walk(fn.body)
        if (found := _match(op, uses)) is not None
        and found.registers(options) <= register_limit(options)
    }
    if not loops:
        return fn
    need = max(found.registers(options) for found in loops.values())
    rotated = _Rotator(loops).function(fn)
    return rotated.with_body(rotated.body, dot_registers=need)


@dataclass(frozen=True, slots=True)
class _ChainedDots:
    """The chained dots of a loop that can be rotated, and the ops around them.

    first, second: wgmma ops; first_wait, second_wait: the waits for them.
    cast_op: the cast that produces the operand that the second dot reads from registers.
    accumulator: the loop-carried argument that the second dot adds to, after `scaling` ops.
    fetch: the ops that load operand b of the second dot.
    fetch_only: those of them that nothing else uses.
    advanced: the loop-carried pointers that they use, each with the `offset` that advances it by
        the same count in every iteration.
    """

    first: Op
    first_wait: Op
    second: Op
    second_wait: Op
    cast_op: Op
    accumulator: Value
    scaling: tuple[Op, ...]
    fetch: tuple[Op, ...]
    fetch_only: tuple[Op, ...]
    advanced: dict[Value, Op]

    @property
    def deferred(self) -> set[Op]:
        """The ops that are left out of the first half of an iteration."""
        return {self.second, self.second_wait, self.cast_op, *self.scaling, *self.fetch_only}

    def registers(self, options: LayoutOptions) -> int:
        """The registers of a thread that both accumulators and the operand between them need."""
        sums = self.first.result.type.size, self.second.result.type.size
        return chained_dot_registers(*sums, options.num_warps)


def _match(loop: Op, index: Uses) -> _ChainedDots | None:
    """The chained dots of a loop; None if it cannot be rotated."""
    step = constant_of(loop.step) if loop.name == "for" else None
    if step is None or step <= 0 or any(op.regions for op in loop.regions[0].ops):
        return None
    (region,) = loop.regions
    effects = [op for op in region.ops if op.opdef.has(EFFECT | WRITES)]
    if [op.opdef for op in effects] != [wgmma, wgmma_wait] * 2:
        return None
    first, first_wait, second, second_wait = effects
    uses = _LoopUses(region, index)
    cast_op = uses.owner(second.a)
    position = uses.yielded_index(second_wait.result)
    if cast_op is None or cast_op.opdef is not cast or position is None:
        return None
    accumulator = carried(loop).args[position]
    scaling = uses.between(accumulator, second.acc)
    fetch, fetch_only = _fetch(loop, uses, second)
    advanced = _advanced(loop, fetch)
    if (
        accumulator in first.operands
        or not fetch
        or advanced is None
        or any(user not in (*scaling, second) for user in uses.of(accumulator, *scaling))
        or uses.of(cast_op.result) != {second}
    ):
        return None
    return _ChainedDots(first, first_wait, second, second_wait, cast_op, accumulator, scaling,
                        fetch, fetch_only, advanced)


def _fetch(loop: Op, uses: _LoopUses, second: Op) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """The ops that load operand b of a dot, and those of them that nothing else uses.

    Empty where it takes more than a load and pure ops, or where the load has other users.
    """
    (region,), needed = loop.regions, {second.b}
    fetch = []
    for op in reversed(region.ops):
        if not needed.isdisjoint(op.results):
            fetch.append(op)
            needed.update(op.operands)
    fetch_only = uses.only_for(second.b, second)
    if any(not op.opdef.has(PURE) and (op.opdef is not load or op not in fetch_only)
           for op in fetch):
        return (), ()
    return tuple(reversed(fetch)), fetch_only


def _advanced(loop: Op, fetch: tuple[Op, ...]) -> dict[Value, Op] | None:
    """The loop-carried arguments that ops use, with the ops that advance them.

    None if one of them does not advance by the same offset in every iteration.
    """
    values, inside = carried(loop), set(loop.regions[0].ops)
    used = {value for op in fetch for value in op.operands}
    found = {}
    for arg, following in zip(values.args, values.following, strict=True):
        if arg in used:
            op = following.owner
            if op not in inside or op.opdef is not offset or op.pointer is not arg:
                return None
            if op.count.owner in inside or op.count in loop.regions[0].args:
                return None
            found[arg] = op
    return found


class _LoopUses:
    """Uses of values in the region of a loop without nested regions."""

    def __init__(self, region: Region, uses: Uses):
        self._region = region
        self._uses = uses
        self._inside = {value for op in region.ops for value in op.results} | set(region.args)

    def owner(self, value: Value) -> Op | None:
        """The op of the region that produces a value."""
        return value.owner if value in self._inside else None

    def of(self, *values: Value | Op) -> set[Op]:
        """The users of values of the region, or of the results of its ops."""
        found: set[Op] = set()
        for value in values:
            for used in value.results if isinstance(value, Op) else (value,):
                found.update(self._uses.users(used))
        return found

    def yielded_index(self, value: Value) -> int | None:
        """The index of a value among those yielded; None if it has any other use."""
        end = self._region.terminator
        if self.of(value) != {end} or end.operands.count(value) != 1:
            return None
        return end.operands.index(value)

    def between(self, source: Value, target: Value) -> tuple[Op, ...]:
        """The ops on the paths from source to target, in order."""
        reached, found = {source}, []
        for op in self._region.ops:
            if not reached.isdisjoint(op.operands) and op.results and not op.opdef.has(EFFECT):
                reached.update(op.results)
                found.append(op)
        needed = {target}
        for op in reversed(tuple(found)):
            if needed.isdisjoint(op.results):
                found.remove(op)
            else:
                needed.update(op.operands)
        return tuple(found)

    def only_for(self, value: Value, user: Op) -> tuple[Op, ...]:
        """The ops that only one operand of one op depends on, in order."""
        wanted, needed = [], {value}
        for op in reversed(self._region.ops):
            if not needed.isdisjoint(op.results) and self.of(op) <= {user, *wanted}:
                wanted.append(op)
                needed.update(op.operands)
        return tuple(reversed(wanted))


class _Rotator(Rebuilder):
    """Rebuilder of a function with some of its loops rotated."""

    def __init__(self, loops: dict[Op, _ChainedDots]):
        super().__init__(folding=False)
        self._loops = loops
        self._scratch: Value | None = None

    def op(self, op: Op) -> None:
        """Emit one op again, or a loop rotated."""
        if op not in self._loops:
            super().op(op)
            return
        for old, new in zip(op.results, self._choice(op, self._loops[op]), strict=True):
            new.hint = new.hint or old.hint
            self[old] = new

    def _choice(self, loop: Op, dots: _ChainedDots) -> Values:
        """The rotated loop if it has an iteration, else its initial values."""
        emit, types = self.builder.emit, tuple(value.type for value in loop.results)
        start, stop, step = (self[value] for value in controls(loop))
        initial = [self[value] for value in loop.initial]
        self._scratch = emit(shared_allocate, dtype="int32", shape=(1,), layout=ONE_ELEMENT)
        with self.builder.region() as (rotated, _):
            emit(OPS["yield"], *self._rotated(loop, dots, (start, stop, step), initial))
        with self.builder.region() as (unchanged, _):
            emit(OPS["yield"], *initial)
        self.builder.loc = loop.loc
        any_iteration = emit(OPS["lt"], start, stop)
        made = emit(OPS["if"], any_iteration, regions=(rotated, unchanged), types=types,
                    result_types=types)
        return made if isinstance(made, tuple) else (made,)

    def _rotated(
        self, loop: Op, dots: _ChainedDots, bounds: tuple[Value, Value, Value], initial: list[Value]
    ) -> list[Value]:
        """First half of the first iteration; the loop; second half of the last iteration."""
        emit = self.builder.emit
        start, stop, step = bounds
        (region,), position = loop.regions, carried(loop).args.index(dots.accumulator)
        self._enter(region, start, initial)
        self._first_half(region, dots, None)
        state = self._state(loop, dots, position)
        second = emit(OPS["add"], start, step)
        types = [value.type for value in (second, *state)]
        with self.builder.region(*types, hints=[arg.hint for arg in region.args]) as (body, args):
            index, *carried_in, operand_a = args
            self._enter(region, index, carried_in)
            before = emit(OPS["sub"], index, step)
            self._first_half(region, dots, (before, operand_a))
            emit(OPS["yield"], *self._state(loop, dots, position))
        self.builder.loc = loop.loc
        *left, operand_a = emit(
            OPS["for"], second, stop, step, *state, regions=(body,), types=tuple(types[1:]),
            **loop.attrs,
        )
        self[dots.accumulator] = left[position]
        last = self._last(loop, dots, bounds, initial)
        begun = self._second_dot(region, dots, last, operand_a, left[position])
        left[position] = emit(wgmma_wait, begun, pending=0)
        return left

    def _enter(self, region: Region, index: Value, values: list[Value]) -> None:
        for old, new in zip(region.args, (index, *values), strict=True):
            self[old] = new

    def _first_half(
        self, region: Region, dots: _ChainedDots, earlier: tuple[Value, Value] | None
    ) -> None:
        """An iteration up to its second dot, beside the second dot of the previous iteration.

        earlier: the index of the previous iteration, and operand a of its second dot; None in the
            first iteration.
        """
        emit, scaled = self.builder.emit, self[dots.accumulator]
        begun = None
        deferred = dots.deferred
        for op in region.ops[:-1]:
            self.builder.loc = op.loc
            if op is dots.first_wait:
                pending = int(begun is not None)
                self[op.result] = emit(wgmma_wait, self[op.value], pending=pending)
            elif op not in deferred:
                self.op(op)
            if op is dots.first and earlier is not None:
                index, operand_a = earlier
                before = {arg: self._back(self[arg], op) for arg, op in dots.advanced.items()}
                before[region.args[0]] = index
                begun = self._second_dot(region, dots, before, operand_a, scaled)
        if begun is not None:
            self._wait_for_second(region, dots, begun)
        for op in (*dots.scaling, dots.cast_op):
            self.op(op)

    def _second_dot(
        self, region: Region, dots: _ChainedDots, iteration: dict[Value, Value], operand_a: Value,
        scaled: Value
    ) -> Value:
        """Start the second dot of the iteration that has these index and pointers."""
        with self.apart([*region.args, *(value for op in dots.fetch for value in op.results)]):
            for arg, value in iteration.items():
                self[arg] = value
            self.ops(dots.fetch)
            operand = self[dots.second.b]
        self.builder.loc = dots.second.loc
        return self.builder.emit(wgmma, operand_a, operand, scaled, **dots.second.attrs)

    def _wait_for_second(self, region: Region, dots: _ChainedDots, begun: Value) -> None:
        """Wait for the second dot after all uses of the scores, before its operand is written."""
        emit, wide = self.builder.emit, dots.cast_op.x
        made = [op for op in region.ops if op.opdef is reduce and op.x is wide]
        emit(pin, self[made[0].result if made else wide], self._scratch)
        self[dots.accumulator] = emit(wgmma_wait, begun, pending=0)
        self[wide] = emit(wgmma_wait, self[wide], pending=0)

    def _state(self, loop: Op, dots: _ChainedDots, position: int) -> list[Value]:
        """The loop-carried values of the rotated loop: those of the loop, and operand a."""
        state = [self[value] for value in carried(loop).following[:position]]
        state.append(self[dots.second.acc])
        state += [self[value] for value in carried(loop).following[position + 1 :]]
        return [*state, self[dots.cast_op.result]]

    def _back(self, pointers: Value, advance: Op) -> Value:
        """The pointers of the previous iteration."""
        emit = self.builder.emit
        return emit(offset, pointers, emit(OPS["neg"], self[advance.count]))

    def _last(
        self, loop: Op, dots: _ChainedDots, bounds: tuple[Value, Value, Value], initial: list[Value]
    ) -> dict[Value, Value]:
        """The index and the pointers of the last iteration of a loop that has one."""
        emit, (start, stop, step) = self.builder.emit, bounds
        dtype = start.type.dtype
        before_stop = emit(OPS["sub"], emit(OPS["sub"], stop, self.builder.constant(1, dtype)),
                           start)
        # never negative: start is known to lie within the array
        steps = emit(OPS["maximum"], emit(OPS["floordiv"], before_stop, step),
                      self.builder.constant(0, dtype))
        last = {loop.regions[0].args[0]: emit(OPS["add"], start, emit(OPS["mul"], steps, step))}
        for arg, value in zip(carried(loop).args, initial, strict=True):
            if arg in dots.advanced:
                count = self[dots.advanced[arg].count]
                wide = emit(OPS["cast"], steps, dtype=int64.name)
                if count.type.shape:
                    wide = emit(OPS["splat"], wide, shape=count.type.shape)
                count = emit(OPS["cast"], count, dtype=int64.name)
                last[arg] = emit(offset, value, emit(OPS["mul"], count, wide))
        return last
