"""The verifier: invariants of functions, of all levels of the IR and of a given one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import TERMINATOR, OpTable
from blocknumba.tile_ir.ir.types import TileType, ViewType

Problem = str


@dataclass(frozen=True, slots=True)
class Level:
    """Invariants of one stage of compilation, besides those of all stages.

    name: of the level, for messages.
    of_value, of_op: checks that return the problem of a value or an op, or None.
    """

    name: str
    of_value: tuple[Callable[[Value], Problem | None], ...] = ()
    of_op: tuple[Callable[[Op], Problem | None], ...] = ()


def _without_layout(value: Value) -> Problem | None:
    return None if value.type.layout is None else f"{value.type} has a layout already"


ANY_LEVEL = Level("any level")
TILE = Level("tile level", of_value=(_without_layout,))


@dataclass(frozen=True, slots=True)
class RegionSpec:
    """Signature of one region of an op: its arguments, its terminator and what that yields."""

    args: tuple[TileType, ...]
    terminator: str
    results: tuple[TileType, ...]


def _types(values: tuple[Value, ...]) -> tuple[TileType, ...]:
    return tuple(value.type for value in values)


def _if(op: Op) -> list[RegionSpec]:
    return [RegionSpec((), "yield", _types(op.results))] * 2


def _for(op: Op) -> list[RegionSpec]:
    start, *_ = types = _types(op.operands)
    return [RegionSpec((start, *types[3:]), "yield", types[3:])]


def _loop(op: Op) -> list[RegionSpec]:
    carried = _types(op.operands)
    return [RegionSpec(carried, "continue_if", carried)]


# The regions of each op that has some; other packages add those of their ops.
REGIONS = OpTable[Callable[[Op], list[RegionSpec]]]("regions", {
    "if": _if, "for": _for, "loop": _loop})


def verify(fn: Function, level: Level = ANY_LEVEL) -> None:
    """Assert that a function is well formed, and keeps the invariants of its level.

    A failure is a mistake of ours, not of the user: the message lists every problem.
    """
    found = list(problems(fn, level))
    assert not found, f"{fn.name} is not well formed at {level.name}:\n" + "\n".join(found)


def problems(fn: Function, level: Level = ANY_LEVEL) -> Iterator[Problem]:
    """The problems of a function, one line each."""
    if len(fn.parameters) != len(fn.body.args):
        yield f"{len(fn.parameters)} parameters for {len(fn.body.args)} arguments"
    for parameter, arg in zip(fn.parameters, fn.body.args, strict=False):
        if not arg.type.is_scalar or arg.type.is_pointer != parameter.is_pointer:
            yield f"parameter {parameter.argument}: {arg.type} for a {parameter.kind}"
        if (parameter.kind == "tensor_map") != (parameter.tensor_map is not None):
            yield f"parameter {parameter.argument}: {parameter.kind} of {parameter.tensor_map}"
    yield from _Checker(level).body(fn.body)


class _Checker:
    """Walks a function; keeps the values that are defined, and those that are visible."""

    def __init__(self, level: Level):
        self._level = level
        self._defined: set[Value] = set()
        self._visible: set[Value] = set()

    def body(self, body: Region) -> Iterator[Problem]:
        yield from self._region(body, RegionSpec(_types(body.args), "return", ()), "the kernel")

    def _region(self, region: Region, spec: RegionSpec, where: str) -> Iterator[Problem]:
        if _types(region.args) != spec.args:
            yield f"{where}: region takes {_written(region.args)}, not {_listed(spec.args)}"
        if not region.ops or region.terminator.name != spec.terminator:
            yield f"{where}: region does not end in {spec.terminator}"
        own = set(region.args)
        yield from self._define(region.args, where)
        for op in region.ops:
            yield from self._op(op, op is region.ops[-1])
            own.update(op.results)
        yielded = region.ops[-1].operands[spec.terminator == "continue_if":] if region.ops else ()
        if _types(yielded) != spec.results:
            yield f"{where}: region yields {_written(yielded)}, not {_listed(spec.results)}"
        self._visible -= own

    def _op(self, op: Op, is_last: bool) -> Iterator[Problem]:
        where = f"{op.name} at {op.loc}"
        for number, value in enumerate(op.operands):
            if value not in self._visible:
                yield f"{where}: operand {number} ({value.type}) is not defined there"
        if op.opdef.has(TERMINATOR) != is_last:
            yield f"{where}: {'a region must end in a terminator' if is_last else 'not at the end'}"
        yield from _typed(op, where)
        yield from self._regions(op, where)
        for value in op.results:
            if value.owner is not op:
                yield f"{where}: a result is not its own"
        yield from self._define(op.results, where)
        for check in self._level.of_op:
            if problem := check(op):
                yield f"{where}: {problem}"

    def _regions(self, op: Op, where: str) -> Iterator[Problem]:
        specs = REGIONS[op.name](op) if op.name in REGIONS else []
        if len(specs) != len(op.regions):
            yield f"{where}: {len(op.regions)} regions, not {len(specs)}"
        for region, spec in zip(op.regions, specs, strict=False):
            yield from self._region(region, spec, where)

    def _define(self, values: tuple[Value, ...], where: str) -> Iterator[Problem]:
        for value in values:
            if value in self._defined:
                yield f"{where}: {value.type} {value.hint} is defined twice"
            if isinstance(value.type.dtype, ViewType) and (
                    value.owner is None or value.owner.regions):
                yield f"{where}: {value.type} crosses a region: only what it is made of can"
            for check in self._level.of_value:
                if problem := check(value):
                    yield f"{where}: {problem}"
        self._defined.update(values)
        self._visible.update(values)


def _typed(op: Op, where: str) -> Iterator[Problem]:
    """Problems of an op's operands and attributes, and of the types of its results."""
    count, opdef = len(op.operands), op.opdef
    if count < opdef.required or count > len(opdef.operands) and not opdef.variadic:
        yield f"{where}: {count} operands"
        return
    unknown = set(op.attrs) - set(opdef.attributes)
    missing = set(opdef.attributes) - set(op.attrs) - set(opdef.defaults)
    if unknown or missing:
        yield f"{where}: unknown attributes {sorted(unknown)}, missing {sorted(missing)}"
        return
    try:
        types = opdef.infer(*_types(op.operands), **op.attrs)
    except BlockError as error:
        yield f"{where}: {error.message}"
        return
    except Exception as error:  # type rules trust attributes to be of their types
        yield f"{where}: {type(error).__name__}: {error}"
        return
    types = () if types is None else types if isinstance(types, tuple) else (types,)
    # layouts of results are chosen, not inferred
    inferred = [(t.dtype, t.shape) for t in types]
    if inferred != [(value.type.dtype, value.type.shape) for value in op.results]:
        yield f"{where}: returns {_listed(types)}, not {_written(op.results)}"


def _written(values: tuple[Value, ...]) -> str:
    return _listed(_types(values))


def _listed(types: tuple[TileType, ...]) -> str:
    return f"({', '.join(map(str, types))})"
