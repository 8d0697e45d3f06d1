"""Preparation of a region for the interpreter: the action of each op, and the values it kills."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blocknumba.tile_ir.interpreter.affine import Tile, Uniform, as_uniform, dense
from blocknumba.tile_ir.interpreter.rules import RULES
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE
from blocknumba.tile_ir.ops.numerics import Wide

Action = Callable[..., Tile | tuple[Tile, ...] | None]

# ops whose results never share memory with their operands
_COPYING = frozenset(("reduce", "arg_reduce", "store", "atomic_rmw", "atomic_cas", "print"))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op, ready to run.

    run: (machine, *tiles) -> its results.
    dead: the values of this region that no later op uses.
    """

    op: Op
    run: Action
    dead: tuple[Value, ...]


def plan(region: Region) -> dict[Region, tuple[Step, ...]]:
    """The steps of a region and of those within it."""
    plans: dict[Region, tuple[Step, ...]] = {}
    own = {*region.args, *(v for op in region.ops for v in op.results)}
    later = set(region.terminator.operands)
    spare = _unshared(region)
    steps = []
    for op in reversed(region.ops[:-1]):
        reads = {*op.operands, *(v for inner in op.regions for o in walk(inner)
                                 for v in o.operands)}
        dead = {value for value in (*reads, *op.results) if value in own and value not in later}
        later |= reads
        for inner in op.regions:
            plans.update(plan(inner))
        steps.append(Step(op, _action(op, dead & spare), tuple(dead)))
    plans[region] = tuple(reversed(steps))
    return plans


def _unshared(region: Region) -> set[Value]:
    """Results of this region's ops that own their array, and of which no op makes a view."""
    users: defaultdict[Value, list[Op]] = defaultdict(list)
    for op in walk(region):
        for value in op.operands:
            users[value].append(op)
    return {op.result for op in region.ops if _takes_out(op)
            and all(_takes_out(user) or user.name in _COPYING for user in users[op.result])}


def _takes_out(op: Op) -> bool:
    """Whether the op is evaluated by a function that can write its result into an array."""
    return isinstance(op.opdef.evaluate, np.ufunc | Wide)


def _action(op: Op, spare: set[Value]) -> Action:
    """The action of an op: (machine, *tiles) -> its results.

    spare: operands whose arrays the result may take over.
    """
    execute, evaluate, attrs = op.opdef.execute, op.opdef.evaluate, op.attrs
    if execute is not None:
        return lambda machine, *tiles: execute(machine, op, *tiles)
    assert evaluate is not None, f"{op.name} has no NumPy numerics"
    if op.opdef.has(ELEMENTWISE) and op.result.type.shape:
        on_arrays = _elementwise(op, spare)
    else:
        def on_arrays(*tiles: Tile) -> np.ndarray | tuple[np.ndarray, ...]:
            return evaluate(*map(dense, tiles), **attrs)

    rule = RULES.get(op.name)
    if rule is None:
        return lambda machine, *tiles: on_arrays(*tiles)

    def by_rule(machine: object, *tiles: Tile) -> Tile | tuple[Tile, ...]:
        result = rule(op, *tiles)
        return on_arrays(*tiles) if result is None else result

    return by_rule


def _elementwise(op: Op, spare: set[Value]) -> Callable[..., Tile]:
    """Evaluation of an elementwise op on tiles, without repeating uniform operands."""
    evaluate, attrs, shape = op.opdef.evaluate, op.attrs, op.result.type.shape
    same = [i for i, v in enumerate(op.operands)
            if v in spare and _takes_out(op) and v.type == op.result.type]

    def on_arrays(*tiles: Tile) -> Tile:
        uniform = [as_uniform(tile) for tile in tiles]
        if all(uniform):
            return Uniform(evaluate(*[u.element for u in uniform], **attrs), shape)
        arrays = [u.thin() if u else dense(tile) for u, tile in zip(uniform, tiles)]
        for position in same:
            array = arrays[position]
            # what a rule made dense may be a read-only view
            if (len(array) == max(map(len, arrays)) and not uniform[position]
                    and array.flags.writeable):
                return evaluate(*arrays, out=array)
        return evaluate(*arrays, **attrs)

    return on_arrays
