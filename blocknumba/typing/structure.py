"""From basic blocks to structured control flow, without copying a block.

Every block is emitted once.  A branch becomes an `if` whose arms run up to the blocks that other
paths reach too; it yields which of them comes next, as one flag per block, and their phis'
values.  Those blocks follow, each within an `if` on its flag unless it is the only one left.  A
loop is the same, its header being one of the blocks that may come next: `break`, `continue`,
`return` and `else` need no case of their own.
"""

from __future__ import annotations

import heapq
import linecache
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from numba.core import ir

from blocknumba.errors import Loc, UnsupportedError
from blocknumba.tile_ir.ir.function import Region, Value
from blocknumba.tile_ir.ir.types import TileType, bool_

from blocknumba.typing.numba_ir.graph import Graph, Label, Loop
from blocknumba.typing.numba_ir.ssa import phis
from blocknumba.typing.numba_types import flatten, unflatten
from blocknumba.typing.translate import Counted, Translator

RETURN = -1  # the label of what follows every return
_BOOL = TileType(bool_)


@dataclass(slots=True)
class _Exit:
    """One exit of a piece of code.

    flag: whether it is taken: True when it is the only one, else a scalar bool.
    values: the run-time values that the phis of its target take, in order.
    """

    flag: Value | bool
    values: list[Value]


@dataclass(slots=True)
class _Exits:
    """The exits of a piece of code, by the label they lead to."""

    of: dict[Label, _Exit] = field(default_factory=dict)

    @classmethod
    def one(cls, target: Label, values: list[Value]) -> _Exits:
        return cls({target: _Exit(True, values)})


class Structurer:
    """Emits the blocks of a function in SSA form through a translator."""

    def __init__(self, translator: Translator, blocks: dict[int, ir.Block], graph: Graph):
        self._translator, self._blocks, self._graph = translator, blocks, graph
        self._context = translator.context
        self._phis = {label: phis(blocks[label]) for label in graph.order}
        self._inside: list[Loop] = []

    def emit(self) -> None:
        """Emit the whole function but for its return."""
        self._tree(self._graph.entry)

    # blocks -----------------------------------------------------------------------------------
    def _tree(self, label: Label) -> _Exits:
        """Emit a block and those that it dominates, within the innermost loop."""
        pending: list[tuple[int, Label]] = []
        exits = self._run(label, pending)
        while pending:
            _, target = heapq.heappop(pending)
            exit_ = exits.of.pop(target, None)
            if exit_ is None:
                continue
            if not exits.of:
                self._bind(target, exit_.values)
                exits = self._run(target, pending)
            else:
                exits = self._guarded(target, exit_, exits)
        return exits

    def _run(self, label: Label, pending: list[tuple[int, Label]]) -> _Exits:
        """Emit a block whose phis are bound, and what only it leads to.

        pending: receives the blocks that must follow, as several exits lead there.
        """
        while True:
            if label in self._graph.loops and not self._is_entered(label):
                return self._loop(self._graph.loops[label], pending)
            self._translator.statements(self._blocks[label])
            for child in self._graph.children[label]:
                if self._is_here(child) and len(self._graph.entries(child)) > 1:
                    heapq.heappush(pending, (self._graph.index[child], child))
            last = self._blocks[label].body[-1]
            if isinstance(last, ir.Branch):
                return self._branch(label, last)
            if not isinstance(last, ir.Jump):
                self._translator.leave(last)
                return _Exits.one(RETURN, [])
            target = last.target
            values = self._incoming(label, target)
            if not self._is_own(label, target):
                return _Exits.one(target, values)
            self._bind(target, values)
            label = target

    def _edge(self, source: Label, target: Label) -> _Exits:
        """Emit what an edge leads to when nothing else leads there."""
        values = self._incoming(source, target)
        if not self._is_own(source, target):
            return _Exits.one(target, values)
        self._bind(target, values)
        return self._tree(target)

    def _is_own(self, source: Label, target: Label) -> bool:
        """Whether target can be emitted as part of source."""
        return (self._is_here(target) and not self._graph.is_back_edge(source, target)
                and len(self._graph.entries(target)) == 1)

    def _is_here(self, label: Label) -> bool:
        return not self._inside or label in self._inside[-1].body

    def _is_entered(self, header: Label) -> bool:
        return any(loop.header == header for loop in self._inside)

    # if ---------------------------------------------------------------------------------------
    def _branch(self, label: Label, last: ir.Branch) -> _Exits:
        condition = self._translator.condition(last)
        loc = self._context.builder.loc
        arms = []
        for target in (last.truebr, last.falsebr):
            self._context.builder.loc = loc
            with self._context.builder.region() as (region, _):
                exits = self._edge(label, target)
            arms.append((region, exits))
        self._context.builder.loc = loc
        return self._join(condition, arms)

    def _guarded(self, target: Label, exit_: _Exit, others: _Exits) -> _Exits:
        """Emit a block on its flag; the other exits pass by."""
        if len(others.of) == 1:
            next(iter(others.of.values())).flag = True
        with self._context.builder.region() as (then, _):
            self._bind(target, exit_.values)
            reached = self._tree(target)
        return self._join(exit_.flag, [(then, reached), (Region((), ()), others)])

    def _join(self, condition: Value, arms: list[tuple[Region, _Exits]]) -> _Exits:
        """Emit an `if` of two arms; the exits of either."""
        targets = sorted({t for _, exits in arms for t in exits.of}, key=self._rank)
        columns = _Columns([{id(v) for op in region.ops for v in op.results} for region, _ in arms])
        result = _Exits()
        for target in targets:
            sides = [exits.of.get(target) for _, exits in arms]
            flag: Value | bool | int = True
            if len(targets) > 1:
                flags = [side.flag if side else False for side in sides]
                flag = self._flag(condition, columns, flags)
            given = next(side for side in sides if side)
            values = [columns.add([side.values[i] if side else None for side in sides])
                      for i in range(len(given.values))]
            result.of[target] = _Exit(flag, values)
        results = self._emit_if(condition, arms, columns)
        for exit_ in result.of.values():
            exit_.flag = _resolved(exit_.flag, results)
            exit_.values = [_resolved(value, results) for value in exit_.values]
        return result

    def _flag(self, condition: Value, columns: _Columns, sides: list) -> object:
        if sides == [True, False]:
            return condition
        if sides == [False, True]:
            return self._context.emit("invert", condition)
        return columns.add(sides)

    def _emit_if(self, condition: Value, arms: list[tuple[Region, _Exits]], columns: _Columns):
        types = columns.types()
        builder = self._context.builder
        for side, (region, _) in enumerate(arms):
            with builder.region() as (tail, _):
                self._context.emit("yield", *(self._filled(row[side], of)
                                              for row, of in zip(columns.rows, types)))
            region.ops += tail.ops
        if not types and all(len(region.ops) == 1 for region, _ in arms):
            return ()
        return _as_tuple(self._context.emit("if", condition, result_types=tuple(types),
                                            regions=tuple(region for region, _ in arms)))

    def _filled(self, value: Value | bool | None, of: TileType) -> Value:
        if isinstance(value, bool):
            return self._context.constant(value, bool_)
        if value is None:
            return self._context.emit("undefined", dtype=str(of.dtype), shape=of.shape)
        return value

    # loop -------------------------------------------------------------------------------------
    def _loop(self, loop: Loop, pending: list[tuple[int, Label]]) -> _Exits:
        counted = self._translator.counted(loop, self._blocks, self._graph)
        if counted is not None:
            exits = self._for(loop, counted)
        else:
            exits = self._while(loop)
        for label in loop.body:
            for child in self._graph.children[label]:
                if child not in loop.body and self._is_here(child):
                    heapq.heappush(pending, (self._graph.index[child], child))
        return exits

    def _while(self, loop: Loop) -> _Exits:
        """A loop that goes on while the exit back to its header is taken."""
        header, builder, loc = loop.header, self._context.builder, self._context.builder.loc
        initial = self._values_of_phis(header)
        with builder.region(*(v.type for v in initial)) as (region, carried):
            self._translator.note_counters(self._blocks[header], initial, carried)
            self._bind(header, carried)
            exits = self._body(loop, header)
            back = exits.of.pop(header)
            if not exits.of:
                raise UnsupportedError("this loop never ends", loc=self._start_of(loop))
            slots, outside = _Slots(back.values), {}
            for target in sorted(exits.of, key=self._rank):
                exit_, is_last = exits.of[target], len(outside) + 1 == len(exits.of)
                flag = None if is_last else slots.add(exit_.flag)
                outside[target] = (flag, [slots.add(value) for value in exit_.values])
            builder.loc = loc
            self._context.emit("continue_if", back.flag, *slots.values)
        extra = [Value(v.type) for v in slots.values[len(initial):]]
        region.args += tuple(extra)
        start = initial + [self._filled(None, v.type) for v in extra]
        results = _as_tuple(self._context.emit("loop", *start, regions=(region,)))
        return self._after(outside, results)

    def _start_of(self, loop: Loop) -> Loc:
        """Location of a while loop: the nearest `while` at or above its first statement."""
        header = self._blocks[loop.header].loc
        locations = [s.loc.location for label in loop.body for s in self._blocks[label].body
                  if s.loc.activation is header.activation]
        first = min(locations, key=lambda location: location.line, default=header.location)
        for line in range(first.line, 0, -1):
            text = linecache.getline(first.file, line)
            if text.lstrip().startswith("while"):
                start = len(text) - len(text.lstrip())
                return replace(first, line=line, column=start, end_column=len(text.rstrip()))
        return first

    def _after(self, outside: dict[Label, tuple[int | None, list[int]]],
               results: tuple[Value, ...]) -> _Exits:
        """The exits of a loop in terms of its results; the last flag is what is left."""
        exits, taken = _Exits(), []
        for target, (flag, values) in outside.items():
            if flag is not None:
                taken.append(results[flag])
                chosen: Value | bool = results[flag]
            else:
                chosen = self._none_of(taken) if taken else True
            exits.of[target] = _Exit(chosen, [results[index] for index in values])
        return exits

    def _none_of(self, flags: list[Value]) -> Value:
        any_of = flags[0]
        for flag in flags[1:]:
            any_of = self._context.emit("or", any_of, flag)
        return self._context.emit("invert", any_of)

    def _for(self, loop: Loop, counted: Counted) -> _Exits:
        """A loop over a range that is left at its header only."""
        header, builder, loc = loop.header, self._context.builder, self._context.builder.loc
        branch = self._blocks[header].body[-1]
        over = counted.over
        # the op counts by itself
        self._phis[header] = [phi for phi in self._phis[header]
                              if phi.target.name != counted.counter]
        initial = self._values_of_phis(header)
        types = (over.start.type, *(v.type for v in initial))
        with builder.region(*types) as (region, (index, *carried)):
            self._bind(header, carried)
            self._translator.enter_counted(self._blocks[header], counted, index)
            self._inside.append(loop)
            exits = self._edge(header, branch.truebr)
            self._inside.pop()
            builder.loc = loc
            self._context.emit("yield", *exits.of[header].values)
        results = _as_tuple(self._context.emit("for", over.start, over.stop, over.step, *initial,
                                               regions=(region,), **over.hints.given))
        self._bind(header, results)
        return _Exits.one(branch.falsebr, self._incoming(header, branch.falsebr))

    def _body(self, loop: Loop, header: Label) -> _Exits:
        self._inside.append(loop)
        exits = self._tree(header)
        self._inside.pop()
        return exits

    # phis -------------------------------------------------------------------------------------
    def _incoming(self, source: Label, target: Label) -> list[Value]:
        return self._translator.incoming(self._phis[target], source)

    def _bind(self, label: Label, values: Iterable[Value]) -> None:
        rest = iter(values)
        for phi in self._phis[label]:
            self._translator.bind(phi, unflatten(self._translator.types[phi.target.name], rest))

    def _values_of_phis(self, label: Label) -> list[Value]:
        return [leaf for phi in self._phis[label]
                for leaf in flatten(self._translator.env[phi.target.name])]

    def _rank(self, label: Label) -> int:
        return len(self._graph.order) if label == RETURN else self._graph.index[label]


class _Columns:
    """The results of an `if`: rows of what each arm yields for one."""

    def __init__(self, defined: list[set[int]]):
        self.rows: list[list[Value | bool | None]] = []
        self._defined = defined
        self._known: dict[tuple, int] = {}

    def add(self, row: list[Value | bool | None]) -> Value | int | bool:
        """The index of a result with this row, or the value itself when no result is needed."""
        values = [v for v in row if isinstance(v, Value)]
        is_flag = any(isinstance(v, bool) for v in row)
        if values and not is_flag and all(v is values[0] for v in values):
            if not any(id(values[0]) in defined for defined in self._defined):
                return values[0]
        key = tuple(v if v is None or isinstance(v, bool) else id(v) for v in row)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(row)
        return _Index(self._known[key])

    def types(self) -> list[TileType]:
        """The type of each result."""
        return [next((v.type for v in row if isinstance(v, Value)), _BOOL) for row in self.rows]


def _as_tuple(results: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return (results,) if isinstance(results, Value) else results


class _Index(int):
    """The index of a result that is not emitted yet."""


def _resolved(value: object, results: tuple[Value, ...]) -> object:
    return results[value] if isinstance(value, _Index) else value


class _Slots:
    """The values that a loop carries, each once."""

    def __init__(self, values: list[Value]):
        self.values = list(values)
        self._index = {id(v): i for i, v in reversed(list(enumerate(values)))}

    def add(self, value: Value) -> int:
        """The slot of a value, a new one if it is not carried yet."""
        if id(value) not in self._index:
            self._index[id(value)] = len(self.values)
            self.values.append(value)
        return self._index[id(value)]


