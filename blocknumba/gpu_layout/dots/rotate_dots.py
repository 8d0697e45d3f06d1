"""The pass that lets two products of a loop, the second of what the first gave, overlap."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import ONE_ELEMENT, pin, wgmma, wgmma_wait
from blocknumba.gpu_layout.async_copies.residency import (
    RESIDENT_PROGRAMS, chained_dot_registers, register_limit, shares_multiprocessor,
)
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.carried import carried, controls
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, PURE, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.types import int64
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.memory import load, offset
from blocknumba.tile_ir.ops.reduce import reduce
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def rotate_dots(fn: Function, options: LayoutOptions) -> Function:
    """In a loop with two products, round i begins the first while the second of round i-1 runs.

    The loop is one like that of attention: s = a @ b[i]; acc = f(acc) + g(s) @ c[i].  Its first
    product and all that is made of it are peeled off before the loop, its second product after it:

        s = a @ b[0];  p, acc = g(s), f(acc)
        for i in 1 ..:  begin s = a @ b[i];  begin acc += p @ c[i-1]
                        wait for s;  g(s), but for the last step;  wait for acc;  p, acc = ...
        acc += p @ c[last]

    What the second product reads in registers is made while no product is under way, as the
    hardware demands.   Source: FlashAttention-3, arXiv 2407.08608, section 3.2.
    """
    if shares_multiprocessor(fn, options):  # other programs multiply meanwhile
        return fn.with_body(fn.body, resident_programs=RESIDENT_PROGRAMS)
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
class _Products:
    """The parts of a loop that can be rotated.

    first, second: wgmma ops; first_wait, second_wait: the waits for them.
    narrow: the cast that makes what the second product reads in registers.
    accumulator: the argument that the second product adds to, once `late` ops have scaled it.
    fetch: the ops that bring the second operand of the second product.
    only_fetch: those of them that do nothing else.
    walking: the arguments that they use, each with the op that makes it of itself for the next
        round, by the same offset in every round.
    """

    first: Op
    first_wait: Op
    second: Op
    second_wait: Op
    narrow: Op
    accumulator: Value
    late: tuple[Op, ...]
    fetch: tuple[Op, ...]
    only_fetch: tuple[Op, ...]
    walking: dict[Value, Op]

    @property
    def delayed(self) -> set[Op]:
        """What is not done in the course of a round's first half."""
        return {self.second, self.second_wait, self.narrow, *self.late, *self.only_fetch}

    def registers(self, options: LayoutOptions) -> int:
        """The registers of a thread that hold both, and what one leaves to the other."""
        results = self.first.result.type, self.second.result.type
        return chained_dot_registers(*results, options.num_warps)


def _match(loop: Op, index: Uses) -> _Products | None:
    """The products of a loop, if it can be rotated."""
    step = constant_of(loop.step) if loop.name == "for" else None
    if step is None or step <= 0 or any(op.regions for op in loop.regions[0].ops):
        return None
    (region,) = loop.regions
    effects = [op for op in region.ops if op.opdef.has(EFFECT | WRITES)]
    if [op.opdef for op in effects] != [wgmma, wgmma_wait] * 2:
        return None
    first, first_wait, second, second_wait = effects
    uses = _LoopUses(region, index)
    narrow = uses.owner(second.a)
    place = uses.place_handed_on(second_wait.result)
    if narrow is None or narrow.opdef is not cast or place is None:
        return None
    accumulator = carried(loop).args[place]
    late = uses.between(accumulator, second.acc)
    fetch, only_fetch = _fetch(loop, uses, second)
    walking = _walking(loop, fetch)
    if (
        accumulator in first.operands
        or not fetch
        or walking is None
        or any(user not in (*late, second) for user in uses.of(accumulator, *late))
        or uses.of(narrow.result) != {second}
    ):
        return None
    return _Products(first, first_wait, second, second_wait, narrow, accumulator, late, fetch,
                     only_fetch, walking)


def _fetch(loop: Op, uses: _LoopUses, second: Op) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """The ops that bring the second operand of a product, and those of them that do only that.

    Nothing where more than a load and pure ops is needed, or the load is for others too.
    """
    (region,), needed = loop.regions, {second.b}
    fetch = []
    for op in reversed(region.ops):
        if not needed.isdisjoint(op.results):
            fetch.append(op)
            needed.update(op.operands)
    only_fetch = uses.only_for(second.b, second)
    if any(not op.opdef.has(PURE) and (op.opdef is not load or op not in only_fetch)
           for op in fetch):
        return (), ()
    return tuple(reversed(fetch)), only_fetch


def _walking(loop: Op, fetch: tuple[Op, ...]) -> dict[Value, Op] | None:
    """The carried arguments that ops use, with the ops that advance them; None if one does not
    advance by the same offset in every round."""
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
    """Who uses what in the region of a loop that holds no other region."""

    def __init__(self, region: Region, uses: Uses):
        self._region = region
        self._uses = uses
        self._inside = {value for op in region.ops for value in op.results} | set(region.args)

    def owner(self, value: Value) -> Op | None:
        """The op of the region that makes a value."""
        return value.owner if value in self._inside else None

    def of(self, *values: Value | Op) -> set[Op]:
        """The ops that use values of the region, or results of its ops."""
        found: set[Op] = set()
        for value in values:
            for used in value.results if isinstance(value, Op) else (value,):
                found.update(self._uses.users(used))
        return found

    def place_handed_on(self, value: Value) -> int | None:
        """The place of a value that the next round gets and that nothing else uses."""
        end = self._region.terminator
        if self.of(value) != {end} or end.operands.count(value) != 1:
            return None
        return end.operands.index(value)

    def between(self, source: Value, target: Value) -> tuple[Op, ...]:
        """The ops that make target of source, in order."""
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
        """The ops that are there for one operand of one op, in order."""
        wanted, needed = [], {value}
        for op in reversed(self._region.ops):
            if not needed.isdisjoint(op.results) and self.of(op) <= {user, *wanted}:
                wanted.append(op)
                needed.update(op.operands)
        return tuple(reversed(wanted))


class _Rotator(Rebuilder):
    """Re-emits a function with some of its loops rotated."""

    def __init__(self, loops: dict[Op, _Products]):
        super().__init__(folding=False)
        self._loops = loops
        self._scratch: Value | None = None

    def op(self, op: Op) -> None:
        """A copy of one op, or of a loop its rotated form."""
        if op not in self._loops:
            super().op(op)
            return
        for old, new in zip(op.results, self._choice(op, self._loops[op]), strict=True):
            new.hint = new.hint or old.hint
            self[old] = new

    def _choice(self, loop: Op, parts: _Products) -> Values:
        """The rotated loop where there is a round, else what the loop begins with."""
        emit, types = self.builder.emit, tuple(value.type for value in loop.results)
        start, stop, step = (self[value] for value in controls(loop))
        initial = [self[value] for value in loop.initial]
        self._scratch = emit(shared_allocate, dtype="int32", shape=(1,), layout=ONE_ELEMENT)
        with self.builder.region() as (some, _):
            emit(OPS["yield"], *self._rotated(loop, parts, (start, stop, step), initial))
        with self.builder.region() as (none, _):
            emit(OPS["yield"], *initial)
        self.builder.loc = loop.loc
        any_round = emit(OPS["lt"], start, stop)
        made = emit(OPS["if"], any_round, regions=(some, none), types=types, result_types=types)
        return made if isinstance(made, tuple) else (made,)

    def _rotated(
        self, loop: Op, parts: _Products, bounds: tuple[Value, Value, Value], initial: list[Value]
    ) -> list[Value]:
        """First half of the first round; the loop; second half of the last round."""
        emit = self.builder.emit
        start, stop, step = bounds
        (region,), place = loop.regions, carried(loop).args.index(parts.accumulator)
        self._enter(region, start, initial)
        self._first_half(region, parts, None)
        state = self._state(loop, parts, place)
        second = emit(OPS["add"], start, step)
        types = [value.type for value in (second, *state)]
        with self.builder.region(*types, hints=[arg.hint for arg in region.args]) as (body, args):
            index, *carried_in, narrowed = args
            self._enter(region, index, carried_in)
            before = emit(OPS["sub"], index, step)
            self._first_half(region, parts, (before, narrowed))
            emit(OPS["yield"], *self._state(loop, parts, place))
        self.builder.loc = loop.loc
        *left, narrowed = emit(
            OPS["for"], second, stop, step, *state, regions=(body,), types=tuple(types[1:]),
            **loop.attrs,
        )
        self[parts.accumulator] = left[place]
        last = self._last(loop, parts, bounds, initial)
        begun = self._second_product(region, parts, last, narrowed, left[place])
        left[place] = emit(wgmma_wait, begun, pending=0)
        return left

    def _enter(self, region: Region, index: Value, values: list[Value]) -> None:
        for old, new in zip(region.args, (index, *values), strict=True):
            self[old] = new

    def _first_half(
        self, region: Region, parts: _Products, earlier: tuple[Value, Value] | None
    ) -> None:
        """A round up to its second product; meanwhile that of the round before, if there is one.

        earlier: the index of that round, and what its product reads in registers.
        """
        emit, scaled = self.builder.emit, self[parts.accumulator]
        begun = None
        delayed = parts.delayed
        for op in region.ops[:-1]:
            self.builder.loc = op.loc
            if op is parts.first_wait:
                pending = int(begun is not None)
                self[op.result] = emit(wgmma_wait, self[op.value], pending=pending)
            elif op not in delayed:
                self.op(op)
            if op is parts.first and earlier is not None:
                index, narrowed = earlier
                before = {arg: self._back(self[arg], op) for arg, op in parts.walking.items()}
                before[region.args[0]] = index
                begun = self._second_product(region, parts, before, narrowed, scaled)
        if begun is not None:
            self._wait_for_second(region, parts, begun)
        for op in (*parts.late, parts.narrow):
            self.op(op)

    def _second_product(
        self, region: Region, parts: _Products, round_: dict[Value, Value], narrowed: Value,
        scaled: Value
    ) -> Value:
        """Begin the second product of a round: of that with these counter and pointers."""
        with self.apart([*region.args, *(value for op in parts.fetch for value in op.results)]):
            for arg, value in round_.items():
                self[arg] = value
            self.ops(parts.fetch)
            operand = self[parts.second.b]
        self.builder.loc = parts.second.loc
        return self.builder.emit(wgmma, narrowed, operand, scaled, **parts.second.attrs)

    def _wait_for_second(self, region: Region, parts: _Products, begun: Value) -> None:
        """Wait behind all that the scores are for, before anything is made for a product."""
        emit, wide = self.builder.emit, parts.narrow.x
        made = [op for op in region.ops if op.opdef is reduce and op.x is wide]
        emit(pin, self[made[0].result if made else wide], self._scratch)
        self[parts.accumulator] = emit(wgmma_wait, begun, pending=0)
        self[wide] = emit(wgmma_wait, self[wide], pending=0)

    def _state(self, loop: Op, parts: _Products, place: int) -> list[Value]:
        """What a round hands to the next one, and the first operand of its second product."""
        state = [self[value] for value in carried(loop).following[:place]]
        state.append(self[parts.second.acc])
        state += [self[value] for value in carried(loop).following[place + 1 :]]
        return [*state, self[parts.narrow.result]]

    def _back(self, pointers: Value, advance: Op) -> Value:
        """Where pointers were a round before."""
        emit = self.builder.emit
        return emit(offset, pointers, emit(OPS["neg"], self[advance.count]))

    def _last(
        self, loop: Op, parts: _Products, bounds: tuple[Value, Value, Value], initial: list[Value]
    ) -> dict[Value, Value]:
        """The counter and the pointers of the last round of a loop that has one."""
        emit, (start, stop, step) = self.builder.emit, bounds
        dtype = start.type.dtype
        before_stop = emit(OPS["sub"], emit(OPS["sub"], stop, self.builder.constant(1, dtype)),
                           start)
        # never negative: start is known to lie within the array
        rounds = emit(OPS["maximum"], emit(OPS["floordiv"], before_stop, step),
                      self.builder.constant(0, dtype))
        last = {loop.regions[0].args[0]: emit(OPS["add"], start, emit(OPS["mul"], rounds, step))}
        for arg, value in zip(carried(loop).args, initial, strict=True):
            if arg in parts.walking:
                count = self[parts.walking[arg].count]
                wide = emit(OPS["cast"], rounds, dtype=int64.name)
                if count.type.shape:
                    wide = emit(OPS["splat"], wide, shape=count.type.shape)
                count = emit(OPS["cast"], count, dtype=int64.name)
                last[arg] = emit(offset, value, emit(OPS["mul"], count, wide))
        return last
