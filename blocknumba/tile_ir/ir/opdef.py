"""Declarations of ops, and the tables of what each stage knows of them.

One OpDef per op in one registry, OPS, declared by its type rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Op, OpDef, Traits, Types
from blocknumba.tile_ir.ir.types import ANY, DType, TileType, bool_


# Traits: what a pass may assume of an op that it does not know; sets, joined by |.
NO_TRAITS: Traits = frozenset()
# no effect but its results; equal operands give equal results
PURE: Traits = frozenset(("pure",))
# element i of the result depends on element i of the operands only
ELEMENTWISE: Traits = frozenset(("elementwise",))
# pure, but for some operands it raises or does not end: it is not done where the program does not
PARTIAL: Traits = frozenset(("partial",))
TERMINATOR: Traits = frozenset(("terminator",))  # ends a region
READS: Traits = frozenset(("reads",))  # reads global memory
WRITES: Traits = frozenset(("writes",))  # writes global memory
EFFECT: Traits = frozenset(("effect",))  # must happen, in order with other effects (print, assert)
# pure, but done where it is written, if at all: it is not moved, merged or computed again
PLACED: Traits = frozenset(("placed",))
CONTROL: Traits = frozenset(("control",))  # runs its regions
# the result has the elements of its operand, all and no others, repeated or along other axes, but
# in the same order along each
REARRANGES: Traits = frozenset(("rearranges",))

OPS: dict[str, OpDef] = {}
Entry = TypeVar("Entry")


class OpTable(dict[str, Entry]):
    """Table of what one stage knows of ops, by their names: at most one entry for each.

    what: an entry, for people: "code for GPUs".  Called with ops it is a decorator:

        code = OpTable("code for GPUs")
        @code(load, store)
        def _(...): ...
    """

    def __init__(self, what: str, entries: Mapping[str, Entry] = {}):
        super().__init__(entries)
        self.what = what
        OP_TABLES.append(self)

    def __call__(self, *ops: OpDef | str) -> Callable[[Entry], Entry]:
        """Decorator: the entry of ops; names are for modules that the ops' own imports."""

        def declare(entry: Entry) -> Entry:
            for op_ in ops:
                self.enter(op_, entry)
            return entry

        return declare

    def enter(self, op_: OpDef | str, entry: Entry) -> None:
        """Enter what is known of an op."""
        name = op_ if isinstance(op_, str) else op_.name
        assert name is op_ or OPS[name] is op_, f"{name} is another op"
        assert name not in self, f"{self.what} of {name} twice"
        self[name] = entry


OP_TABLES: list[OpTable] = []  # all of them


def op(traits: Traits = NO_TRAITS) -> Callable[[Callable[..., Types]], OpDef]:
    """Declare an op by its type rule.

    The rule takes the operands' types by position and the attributes by keyword, and returns
    the result type, a tuple of them, or None.  A trailing underscore of its name is dropped.
    """

    def declare(rule: Callable[..., Types]) -> OpDef:
        positional, keyword, variadic = [], {}, False
        required = 0
        for parameter in inspect.signature(rule).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                keyword[parameter.name] = parameter.default
                continue
            positional.append(parameter.name)
            repeats = parameter.kind is parameter.VAR_POSITIONAL
            variadic = variadic or repeats
            required += parameter.default is parameter.empty and not repeats
        defaults = {k: d for k, d in keyword.items() if d is not inspect.Parameter.empty}
        return register(OpDef(rule.__name__.rstrip("_"), tuple(positional), required, variadic,
                              tuple(keyword), defaults, traits, inspect.getdoc(rule) or "", rule))

    return declare


def register(opdef: OpDef) -> OpDef:
    assert opdef.name not in OPS, f"two ops named {opdef.name}"
    OPS[opdef.name] = opdef
    return opdef


_FREEDOMS = {
    "contract": "a product and the sum that it goes into may be rounded once, together",
    "approximate": "of float32, the GPU's instruction does, to a few units in the last place"}


def elementwise(name: str, operands: str, numpy: Callable, domain: frozenset[DType], doc: str,
                *, result: DType | None = None, freedom: str = "") -> OpDef:
    """Declare one row of the elementwise table.

    operands: names, separated by spaces; all have one type, and so has the result unless its
    dtype is given.  domain: the dtypes accepted.
    freedom: name of a bool attribute, of _FREEDOMS, that is False by default; True lets machine
    code be less exact, and the numerics are one of the results that it may have.
    """
    names = tuple(operands.split())
    accepted = ", ".join(sorted(map(str, domain)))

    def infer(*types: TileType, **freedoms: bool) -> TileType:
        first = types[0]
        require(all(t == first for t in types), "{}: given {}, accepted operands of one type",
                name, " and ".join(map(str, types)))
        require(first.dtype in domain, "{}: given {}, accepted {}", name, first.dtype, accepted)
        return first if result is None else first.of(result)

    note = f"{doc}\n\n{', '.join(names)}: tiles of one shape and dtype ({accepted})."
    if result is not None:
        note += f"  The result is {result}."
    if freedom:
        note += f"  {freedom}: {_FREEDOMS[freedom]}."
    free = (freedom,) if freedom else ()
    evaluate = (lambda *x, **freedoms: numpy(*x)) if freedom else numpy
    return register(OpDef(name, names, len(names), False, free, dict.fromkeys(free, False),
                          PURE | ELEMENTWISE, note, infer, evaluate=evaluate))


def predicate(name: str, operands: str, numpy: Callable, doc: str,
              domain: frozenset[DType] = ANY) -> OpDef:
    """Declare an elementwise op whose result is a bool."""
    return elementwise(name, operands, numpy, domain, doc, result=bool_)


def attribute(op_: Op, name: str) -> object:
    """An attribute of an op, or its default."""
    return op_.attrs[name] if name in op_.attrs else op_.opdef.defaults[name]


def may_write(op: Op) -> bool:
    """Whether an op may write global memory, as the user's own PTX may that has effects."""
    return op.opdef.has(WRITES) or "pure" in op.opdef.attributes and not attribute(op, "pure")


def may_wait(op: Op) -> bool:
    """Whether an op may see what another program writes while both run."""
    return op.opdef.has(READS) and (op.opdef.has(WRITES) or bool(op.attrs.get("volatile")))
