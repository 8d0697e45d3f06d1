"""Pass: a program is partitioned over the blocks of a cluster, each of which computes shards.

Every dot is partitioned by its rows.  A tile that is computed from a dot exists in shards only.  A
tile that a dot is computed from is made in shards, whole, or both, as it is used.

Worked example, 2 blocks: c[m, n] = a[m, k] @ b[k, n] with tiles of (128, 64) and (64, 32).

    backwards from the store of c:  c, a: axis 0,  b: whole,  arange(128) of m: axis 0
    in each block:                  m = rank * 64 + arange(64);  a: (64, 64),  b: (64, 32)

Only cta_rank differs among the blocks.  Both load the same b, so multicast.py lets each fetch half
of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.clusters.axes import (
    ROWS, Axis, NotPartitionable, axes_of_operands, axis_of_result, sharded_span,
)
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, TERMINATOR, WRITES, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.remarks import NOT_PARTITIONED, Remark
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ir.uses import carried, controls, is_loop
from blocknumba.tile_ir.ops.create import arange
from blocknumba.tile_ir.ops.debug import print_
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.views import elements
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.cse import cse, hoist_invariants
from blocknumba.tile_ir.passes.dce import dce


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards that a block computes.

    axes: per value that is needed, its shard axes; None for the whole value.
    writes: per op that writes, the shard axis of the written tile.
    """

    axes: Mapping[Value, tuple[Axis, ...]]
    writes: Mapping[Op, int]

    def axis(self, value: Value) -> Axis:
        """The only shard axis of a value that a loop carries, or that a branch yields."""
        (axis,) = self.axes[value]
        return axis


def shards_of(fn: Function) -> Shards:
    """The shards that a block of a program computes.

    Errors: NotPartitionable.
    """
    search = _Search(fn, sharded_results(fn))
    search.run()
    return Shards({value: tuple(axes) for value, axes in search.wanted.items()}, search.writes)


# forwards: values that are computed from dots --------------------------------------------------
def sharded_results(fn: Function) -> dict[Value, int]:
    """Per value that is computed from dots, its shard axis.

    Errors: NotPartitionable.
    """
    found: dict[Value, int] = {}
    known = -1
    while known < len(found):  # until no loop carries more
        known = len(found)
        _forwards(fn.body, found)
    return found


def _forwards(region: Region, found: dict[Value, int]) -> None:
    for op in region.ops:
        for inner in op.regions:
            _forwards(inner, found)
        given = {index: found[v] for index, v in enumerate(op.operands) if v in found}
        if is_loop(op):
            own = carried(op)
            for arg, result, *sources in zip(own.args, op.results, own.initial, own.following,
                                             strict=True):
                _join(found, (arg, result), sources)
        elif op.regions:
            yields = [inner.terminator.operands for inner in op.regions]
            for result, *sources in zip(op.results, *yields, strict=True):
                _join(found, (result,), sources)
        elif op.opdef is dot:
            if given:
                axis_of_result(op, given)
            _note(found, op.result, len(op.result.type.shape) + ROWS)
        elif given and not op.opdef.has(TERMINATOR):
            axis = axis_of_result(op, given)
            for result in op.results:
                _note(found, result, axis)


def _join(found: dict[Value, int], values: Iterable[Value], sources: Iterable[Value]) -> None:
    for source in sources:
        if source in found:
            for value in values:
                _note(found, value, found[source])


def _note(found: dict[Value, int], value: Value, axis: int) -> None:
    if found.setdefault(value, axis) != axis:
        raise NotPartitionable(f"{value.hint or 'a tile'} is sharded along two axes")


# backwards: values that these need -------------------------------------------------------------
class _Search:
    """Finds the values that the effects of a function need, and their shard axes."""

    def __init__(self, fn: Function, sharded: Mapping[Value, int]):
        self._fn = fn
        self._sharded = sharded
        self._same_axis: dict[Value, tuple[Value, ...]] = {}  # carried or yielded together
        self._waiting: list[tuple[Value, Axis]] = []
        self.wanted: dict[Value, dict[Axis, None]] = {}
        self.writes: dict[Op, int] = {}

    def run(self) -> None:
        """Fill wanted and writes."""
        loops = []
        for op in walk(self._fn.body):
            if is_loop(op):
                loops.append(op)
                self._want(controls(op), None)
                self._note_carried(op)
            elif op.regions:
                self._want(op.operands, None)
                yields = [inner.terminator.operands for inner in op.regions]
                self._same_axis.update(zip(op.results, zip(*yields, strict=True), strict=True))
            elif op.opdef.has(WRITES):
                self._want_written(op)
            elif op.opdef is print_:
                raise NotPartitionable("every block would print")
            elif op.opdef.has(EFFECT):
                self._want(op.operands, None)
        self._drain()
        for loop in loops:  # also carried values whose results nobody needs
            for result in loop.results:
                if result not in self.wanted:
                    self._want((result,), self._sharded.get(result))
                    self._drain()

    def _note_carried(self, loop: Op) -> None:
        own = carried(loop)
        for together in zip(own.initial, own.args, own.following, loop.results, strict=True):
            _, arg, _, result = together
            self._same_axis[arg] = self._same_axis[result] = together

    def _want_written(self, op: Op) -> None:
        given = {index: self._sharded[value] for index, value in enumerate(op.operands)
                 if value in self._sharded}
        if not given:
            raise NotPartitionable(f"{op.name} does not depend on a dot: every block would do it")
        axis = self.writes[op] = axis_of_result(op, given)
        for value, own_axis in zip(op.operands, axes_of_operands(op, axis), strict=True):
            self._want((value,), own_axis)

    def _want(self, values: Iterable[Value], axis: Axis) -> None:
        for value in values:
            if self._sharded.get(value, axis) != axis:
                raise NotPartitionable(f"{value.hint or 'a tile'} is needed whole")
            axes = self.wanted.setdefault(value, {})
            if axis not in axes:
                if axes and value in self._same_axis:
                    name = value.hint or "a tile"
                    raise NotPartitionable(f"{name} is carried whole and sharded")
                axes[axis] = None
                self._waiting.append((value, axis))

    def _drain(self) -> None:
        while self._waiting:
            value, axis = self._waiting.pop()
            op = value.owner
            if value in self._same_axis:
                self._want(self._same_axis[value], axis)
            elif op is not None and axis is None:
                self._want(op.operands, None)
            elif op is not None:
                for operand, own_axis in zip(op.operands, axes_of_operands(op, axis), strict=True):
                    self._want((operand,), own_axis)


FEATURES = frozenset(("multicast", "wgmma"))
MAX_BLOCKS = 8  # of a cluster, on every GPU.  Source: CUDA Programming Guide, "Clusters"
MIN_ROWS = 64  # of a dot, in one block.  Source: PTX ISA, "wgmma.mma_async"


@declared(reads=("ops",), writes=("ops",))
def partition_blocks(fn: Function, options: LayoutOptions) -> Function:
    """Let each block of a cluster compute some rows of a program's dots, and share operands.

    The blocks run the same control flow.  They differ in which shard of a tile they compute: the
    first index of a sharded arange is cta_rank times the size of a shard.
    """
    if options.num_ctas == 1:
        return fn
    reason = refusal(fn, options)
    if reason:
        return fn.remarked([Remark.of(NOT_PARTITIONED, fn.loc, reason=reason)])
    partitioned = _Partitioner(shards_of(fn), blocks_for(fn, options)).function(fn)
    return dce(cse(hoist_invariants(partitioned)))


def refusal(fn: Function, options: LayoutOptions) -> str:
    """Reason why a program cannot be partitioned over a cluster; empty if it can."""
    missing = sorted(FEATURES - options.features)
    if missing:
        return f"the target has no {missing[0]}"
    if not any(op.opdef is dot for op in walk(fn.body)):
        return "blocks share operands of dots, and there are none"
    if blocks_for(fn, options) == 1:
        return f"fewer than {2 * MIN_ROWS} rows of a dot cannot be partitioned"
    if any(op.opdef is load and attribute(op, "volatile") for op in walk(fn.body)):
        return "what is loaded is volatile"
    if not options.arrays_are_disjoint or _order_matters(fn):
        return "what one block writes, others could read or write"
    try:
        shards_of(fn)
    except NotPartitionable as error:
        return str(error)
    return ""


def _order_matters(fn: Function) -> bool:
    """Whether an array that is written is also loaded, or written by two ops."""
    arrays, loaded, written = origins(fn), set(), set()
    for op in walk(fn.body):
        touched = {name for value in op.operands for name in arrays.get(value, ())}
        if op.opdef is load:
            loaded |= touched
        elif op.opdef.has(WRITES):
            if written & touched:
                return True
            written |= touched
    return bool(loaded & written)


def blocks_for(fn: Function, options: LayoutOptions) -> int:
    """The number of blocks that have enough rows, a power of two; at most num_ctas."""
    rows = min(op.result.type.shape[ROWS] for op in walk(fn.body) if op.opdef is dot)
    return min(options.num_ctas, MAX_BLOCKS, max(rows // MIN_ROWS, 1))


class _Partitioner(Rebuilder):
    """Re-emits a function as one block of a cluster runs it."""

    def __init__(self, wanted: Shards, blocks: int):
        super().__init__()
        self._wanted, self._blocks = wanted, blocks
        self._shards: dict[tuple[Value, int], Value] = {}

    def function(self, fn: Function) -> Function:
        """The function that each block runs."""
        types, hints = [arg.type for arg in fn.body.args], [arg.hint for arg in fn.body.args]
        self.builder.loc = fn.loc
        with self.builder.region(*types, hints=hints) as (body, args):
            for old, new in zip(fn.body.args, args, strict=True):
                self[old] = new
            self._rank = self.builder.emit(cta_rank, blocks=self._blocks, hint="rank")
            self.ops(fn.body.ops)
        return fn.with_body(body, cluster=self._blocks)

    def op(self, op: Op) -> None:
        """Copies of one op, one for each shard axis of its results that is needed."""
        self.builder.loc = op.loc
        if is_loop(op):
            self._loop(op)
        elif op.regions:
            self._choice(op)
        elif op.opdef.has(WRITES):
            self._shard(op, self._wanted.writes[op])
        elif op.opdef.has(EFFECT | TERMINATOR):
            super().op(op)
        else:
            wanted = [axes for v in op.results for axes in self._wanted.axes.get(v, ())]
            for axis in dict.fromkeys(wanted):
                if axis is None:
                    super().op(op)
                else:
                    self._shard(op, axis)

    def _shard(self, op: Op, axis: int) -> None:
        """Emit the shard of one op's results along an axis."""
        if op.opdef is arange:
            made = self._arange_shard(op)
        else:
            attrs = dict(op.attrs)
            if "shape" in attrs:
                attrs["shape"] = self._type(op.result, axis).shape
            operands = [self._value(operand, own_axis) for operand, own_axis
                        in zip(op.operands, axes_of_operands(op, axis), strict=True)]
            if op.opdef is elements:
                self._shard_span(op, axis, operands, attrs)
            made = self.builder.emit(op.opdef, *operands, **attrs)
        self._bind(op.results, (axis,) * len(op.results), made)

    def _arange_shard(self, op: Op) -> Value:
        """The shard of an arange: rank * size + arange(size)."""
        emit, size = self.builder.emit, attribute(op, "size") // self._blocks
        first = emit(OPS["mul"], self._rank, self.builder.constant(size, int32))
        within = emit(arange, start=attribute(op, "start"), size=size)
        return emit(OPS["add"], within, emit(OPS["splat"], first, shape=(size,)))

    def _shard_span(self, op: Op, axis: int, operands: list[Value], attrs: dict) -> None:
        """Let the span along an axis of `elements` be a shard of it: rank * size further on."""
        number = sharded_span(op, axis)
        if number is None:
            return
        emit, sizes, start = self.builder.emit, list(attrs["sizes"]), operands[1 + number]
        sizes[number] //= self._blocks
        attrs["sizes"] = tuple(sizes)
        first = emit(OPS["mul"], self._rank, self.builder.constant(sizes[number], int32))
        first = emit(OPS["cast"], first, dtype=start.type.dtype.name)
        operands[1 + number] = emit(OPS["add"], start, first)

    # control flow ------------------------------------------------------------------------------
    def _loop(self, loop: Op) -> None:
        """Emit a loop that carries shards."""
        (region,), own = loop.regions, carried(loop)
        axes = [self._wanted.axis(arg) for arg in own.args]

        def along(values: Sequence[Value]) -> list[Axis]:
            """Axes of values that end with the carried ones; bounds and counters are whole."""
            return [None] * (len(values) - len(axes)) + axes

        of_args, yielded = along(region.args), region.terminator.operands
        types, hints = map(self._type, region.args, of_args), [arg.hint for arg in region.args]
        with self.builder.region(*types, hints=hints) as (copy, args):
            self._bind(region.args, of_args, args)
            self._run(region, map(self._value, yielded, along(yielded)))
        self._emit(loop, map(self._value, loop.operands, along(loop.operands)), [copy],
                   loop.results, axes)

    def _choice(self, op: Op) -> None:
        """Emit an `if` that yields shards."""
        kept_indices = [i for i, value in enumerate(op.results) if value in self._wanted.axes]
        kept = [op.results[i] for i in kept_indices]
        axes, regions = [self._wanted.axis(value) for value in kept], []
        for region in op.regions:
            yielded = [region.terminator.values[i] for i in kept_indices]
            with self.builder.region() as (copy, _):
                self._run(region, map(self._value, yielded, axes))
            regions.append(copy)
        self._emit(op, map(self._value, op.operands, [None]), regions, kept, axes)

    def _run(self, region: Region, yielded: Iterable[Value]) -> None:
        """Emit the ops of a region, then its terminator; `yielded` is consumed after the ops."""
        self.ops(region.ops[:-1])
        self.builder.loc = region.terminator.loc
        self.builder.emit(region.terminator.opdef, *yielded)

    def _emit(self, op: Op, operands: Iterable[Value], regions: Sequence[Region],
              results: Sequence[Value], axes: Sequence[Axis]) -> None:
        """Emit a control op whose results are shards of the results that are kept."""
        types, attrs = tuple(map(self._type, results, axes)), dict(op.attrs)
        if "result_types" in attrs:
            attrs["result_types"] = types
        self.builder.loc = op.loc
        made = self.builder.emit(op.opdef, *operands, regions=regions, types=types, **attrs)
        self._bind(results, axes, made)

    # values and their shards -------------------------------------------------------------------
    def _value(self, value: Value, axis: Axis) -> Value:
        """The new value for an old one, or for its shard along an axis."""
        return self[value] if axis is None else self._shards[value, axis]

    def _type(self, value: Value, axis: Axis) -> TileType:
        """The type of a shard."""
        shape = list(value.type.shape)
        if axis is not None:
            shape[axis] //= self._blocks
        return value.type.shaped(tuple(shape))

    def _bind(self, olds: Sequence[Value], axes: Sequence[Axis],
              news: Value | Sequence[Value] | None) -> None:
        """Let new values stand for the shards of old ones."""
        made = (news,) if isinstance(news, Value) else news or ()
        for old, axis, new in zip(olds, axes, made, strict=True):
            new.hint = new.hint or old.hint
            if axis is None:
                self[old] = new
            else:
                self._shards[old, axis] = new
