"""Counters of `while` loops in 32 bits, where their tests say that they fit.

    count = 0
    while x <= 4 and count < limit:      limit has 32 bits, so count + 1 does not wrap in 32
        count += 1

Numba types count as int64, which takes two instructions of a GPU for each sum and each comparison,
and half of the lanes of a CPU's vectors.  Only the variable that lives from one iteration to the
next is narrowed: what is computed of it has the type that it had, and Numba's code casts.

The IR is Numba's, in SSA form and typed.  Both of its compilers have classes for it, with the same
names.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from numba.core import types
from numba.core.analysis import CFGraph, compute_cfg_from_blocks

_WIDE, _NARROW = types.int64, types.int32
_CONSTANTS = frozenset(("Const", "Global", "FreeVar"))  # names of classes of nodes
_STEPS = {operator.add: 1, operator.iadd: 1, operator.sub: -1, operator.isub: -1}
# a comparison -> the same one with its sides exchanged; and the side of the right one that the left
# one is on (1: below it), and their least distance, where it holds
_EXCHANGED = {operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge,
              operator.ge: operator.le}
_DISTANCES = {operator.lt: (1, 1), operator.le: (1, 0), operator.gt: (-1, 1), operator.ge: (-1, 0)}


def narrow_counters(blocks: Mapping[int, object], typemap: dict[str, types.Type]) -> None:
    """Give the counters of typed blocks 32 bits, in the types of their variables."""
    found = _Definitions(blocks, typemap)
    for name in [name for name, (_, value) in found.of.items() if _operation(value) == "phi"]:
        if typemap[name] == _WIDE and _fits(found, name):
            del typemap[name]  # Numba refuses a second type for a name
            typemap[name] = _NARROW


def _fits(found: _Definitions, counter: str) -> bool:
    """Whether all that a variable is made of has 32 bits, in one step more than its tests allow."""
    open_, seen = [counter], set()
    while open_:
        name = found.source(open_.pop())
        if name in seen or _within(found.range(name)):
            continue
        seen.add(name)
        label, value = found.of.get(name, (None, None))
        if _operation(value) == "phi":
            if not all(hasattr(each, "name") for each in value.incoming_values):
                return False  # a path on which it has no value
            open_.extend(each.name for each in value.incoming_values)
        elif (step := found.step(value)) is not None:
            origin, amount = step
            if not any(map(_within, found.limits_of_sum(origin, amount, label))):
                return False
            open_.append(origin)
        else:
            return False
    return True


def _within(limits: tuple[int, int] | None) -> bool:
    return limits is not None and _NARROW.minval <= limits[0] and limits[1] <= _NARROW.maxval


class _Definitions:
    """Definitions of variables in SSA form.

    of: name -> the block that assigns it, and what is assigned; of those with one assignment.
    """

    def __init__(self, blocks: Mapping[int, object], typemap: Mapping[str, types.Type]):
        self._blocks, self._typemap = blocks, typemap
        assigned = [(statement.target.name, (label, statement.value))
                    for label, block in blocks.items() for statement in block.body
                    if type(statement).__name__ == "Assign"]
        times = Counter(name for name, _ in assigned)
        self.of = {name: what for name, what in assigned if times[name] == 1}

    def source(self, name: str) -> str:
        """The variable that a variable is a copy of."""
        while type(value := self._value(name)).__name__ == "Var":
            name = value.name
        return name

    def range(self, name: str) -> tuple[int, int] | None:
        """Least and greatest value that a variable can have by what it is; None if not known."""
        value = self._constant(name)
        if type(value) is int:
            return value, value
        of = self._typemap.get(name)
        if isinstance(of, types.IntegerLiteral):
            return of.literal_value, of.literal_value
        return (of.minval, of.maxval) if isinstance(of, types.Integer) else None

    def step(self, value: object) -> tuple[str, int] | None:
        """A variable and the constant whose sum a value is; None for others."""
        if _operation(value) not in ("binop", "inplace_binop") or value.fn not in _STEPS:
            return None
        limits = self.range(self.source(value.rhs.name))
        if limits is None or limits[0] != limits[1]:
            return None
        return self.source(value.lhs.name), _STEPS[value.fn] * limits[0]

    def limits_of_sum(self, name: str, amount: int, label: int) -> Iterator[tuple[int, int]]:
        """Limits of a variable plus an amount in a block, on the side that it moves to: what each
        test that leads to the block says."""
        for operation, other in self._tests(name, label):
            side, distance = _DISTANCES[operation]
            limits = self.range(other)
            if limits is not None and side * amount > 0:
                reached = limits[side > 0] - side * distance + amount
                yield reached, reached

    def _tests(self, name: str, label: int) -> Iterator[tuple[object, str]]:
        """Comparisons of a variable with others that hold wherever a block runs."""
        for at in self._graph.dominators()[label]:
            before = [each for each, _ in self._graph.predecessors(at)]
            end = self._blocks[before[0]].body[-1] if len(before) == 1 else None
            if type(end).__name__ != "Branch" or not end.truebr == at != end.falsebr:
                continue
            compared = self._condition(end.cond.name)
            if _operation(compared) == "binop" and compared.fn in _DISTANCES:
                left, right = map(self.source, (compared.lhs.name, compared.rhs.name))
                if left == name:
                    yield compared.fn, right
                if right == name:
                    yield _EXCHANGED[compared.fn], left

    def _condition(self, name: str) -> object:
        """The test of a branch, as the code has it: Numba asks for its truth."""
        value = self._value(self.source(name))
        while _operation(value) == "call" and self._is_bool(value.func.name):
            value = self._value(self.source(value.args[0].name))
        return value

    def _is_bool(self, name: str) -> bool:
        return self._constant(self.source(name)) is bool

    def _constant(self, name: str) -> object:
        value = self._value(name)
        return value.value if type(value).__name__ in _CONSTANTS else None

    def _value(self, name: str) -> object:
        return self.of.get(name, (None, None))[1]

    @cached_property
    def _graph(self) -> CFGraph:
        return compute_cfg_from_blocks(self._blocks)


def _operation(value: object) -> str:
    return getattr(value, "op", "")
