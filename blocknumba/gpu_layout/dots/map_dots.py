"""The pass that lowers dots to mma.sync or FMA, and its choice of orders.

An order says which bits of an index (row, column or depth of a tile) go into which bits of an
instruction.  All orders compute the same dot: the order of the depth only has to be the same for
both operands, that of rows and columns the same in the accumulator.  So they are chosen such that
operands are read from shared memory by wide accesses without bank conflicts.

- Natural orders suit ldmatrix, which reads 16-bit elements along either axis, and elements of
  other sizes along the depth only.
- Where ldmatrix cannot read an operand, a thread should hold neighbours in memory, which then go
  to different instructions, and the lanes of an instruction should read different 16-byte chunks.
- An instruction takes 64-bit elements from consecutive registers.  What one wide access reads
  should be neighbours in the fragment too, else it is moved once more.  Narrower elements are
  packed or rounded anyway, so their order costs nothing.

Example: columns of b, 8 to an instruction, where memory is contiguous along the columns.  Lane i of
an instruction takes the i-th of its columns.

    order ()            instruction 0: columns 0 1 2 ..  7    lane i reads column i, then 8 + i
                        instruction 1: columns 8 9 10 .. 15
    order (1, 2, 3, 0)  instruction 0: columns 0 2 4 .. 14    lane i reads columns 2i and 2i + 1
                        instruction 1: columns 1 3 5 .. 15    by one access of two elements
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.dots.fma import accumulator_layout
from blocknumba.gpu_layout.dots.mma import (
    COLUMNS, NATURAL, WORD_BITS, MmaPlan, Order, Orders, FragmentedTile, instruction_for, mma_plan,
    warp_grid,
)
from blocknumba.gpu_layout.dots.operands import (
    Root, StagingRebuilder, computed_from, contiguous_axis, root_of,
)
from blocknumba.gpu_layout.dots.ops import fma_dot, mma
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import move_cost
from blocknumba.gpu_layout.layouts.registers import REGISTER, log2
from blocknumba.gpu_layout.layouts.shared import (
    BANK_BYTES, VECTOR_BYTES, SharedAccess, access, ldmatrix_access, swizzled, widest_swizzle,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.function import Attr, Function, Op, OpDef, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.types import float16
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.dot import dot, is_ieee_float32
from blocknumba.tile_ir.passes.contract import declared

LANE_ROWS = 3  # bits of the index of a row that are lanes
LANE_DEPTHS = 2  # bits of the index along the depth that are lanes


@dataclass(frozen=True, slots=True)
class Source:
    """The layout that an operand is read from.

    layout: in shared memory or, if it is computed from another dot, in registers.
    is_along_depth: whether neighbours in shared memory are neighbours along the depth.
    fixed: whether its rows (of b: columns) keep the natural order.
    """

    layout: LinearLayout
    is_along_depth: bool = True
    fixed: bool = False


def best_orders(
    plan: Callable[[Orders], MmaPlan], a: Source, b: Source, element_bits: int
) -> Orders:
    """The orders in which reading both operands costs least; the natural ones among equals.

    plan: returns the plan of the dot with given orders.
    """
    of_rows, of_columns, depth = plan(NATURAL).extents
    found: dict[Orders, float] = {}
    for depths in _depth_orders(log2(depth), element_bits):
        rows = min(
            _side_orders(of_rows, a, element_bits),
            key=lambda order: _cost(plan((order, (), depths)).a, a, element_bits),
        )
        columns = min(
            _side_orders(of_columns, b, element_bits),
            key=lambda order: _cost(plan(((), order, depths)).b, b, element_bits),
        )
        orders = rows, columns, depths
        found[orders] = operands_cost(plan(orders), a, b, element_bits)
    return min(found, key=found.get)


def operands_cost(plan: MmaPlan, a: Source, b: Source, element_bits: int) -> float:
    """Issue slots of one warp to bring both operands of a dot into registers."""
    return _cost(plan.a, a, element_bits) + _cost(plan.b, b, element_bits)


def _depth_orders(bits: int, element_bits: int) -> tuple[Order, ...]:
    """Candidates for the depth: lanes along its lowest bits, or one bit above those."""
    in_word = log2(max(1, 8 * BANK_BYTES // element_bits))
    if bits < in_word + LANE_DEPTHS + 1:
        return ((),)
    lowest = (*range(in_word), in_word + 1, in_word + 2)
    return (), _completed(lowest, bits)


def _side_orders(extent: int, source: Source, element_bits: int) -> tuple[Order, ...]:
    """Candidates for rows or columns.

    If memory is contiguous along the depth, lanes should read different chunks.  If it is
    contiguous across the depth, the neighbours that one access reads go to several instructions,
    and lanes lie along the bits above.
    """
    bits = log2(extent)
    if source.fixed or bits < LANE_ROWS:
        return ((),)
    if source.is_along_depth:
        return (), _completed((1, 2, 0), bits), _completed((2, 0, 1), bits)
    limit = min(log2(8 * VECTOR_BYTES // element_bits), bits - LANE_ROWS)
    across = (_completed((i, i + 1, i + 2), bits) for i in range(1, limit + 1))
    return (), *across


def _completed(lowest: tuple[int, ...], bits: int) -> Order:
    """An order of all bits that starts with the lowest given ones."""
    return (*lowest, *(bit for bit in range(bits) if bit not in lowest))


def _cost(tile: FragmentedTile, source: Source, element_bits: int) -> float:
    """Issue slots of one warp to bring in an operand: instructions, wavefronts and moves."""
    layout = tile.layout
    if REGISTER in dict(source.layout.ins):
        return move_cost(source.layout, layout, element_bits)
    by_ldmatrix = ldmatrix_access(layout, source.layout, element_bits)
    if by_ldmatrix is not None:
        instructions = 1 << by_ldmatrix.addresses.bits(REGISTER)
        return instructions * (1 + by_ldmatrix.matrices * by_ldmatrix.degree)
    read = access(layout, source.layout, element_bits)
    return len(read.groups) + read.wavefronts + _misplaced_words(tile, read)


def _misplaced_words(tile: FragmentedTile, read: SharedAccess) -> int:
    """Words that are not read into the registers that the instruction takes them from."""
    words = read.element_bits // WORD_BITS
    if words <= 1 or tile.size == 1:
        return 0
    misplaced = (group for group in read.groups
                 if group != tuple(range(group[0], group[0] + read.vector)))
    return words * sum(map(len, misplaced))


@declared(reads=("ops",), writes=("ops",))
def map_dots(fn: Function, options: LayoutOptions) -> Function:
    """Lower every dot that is left to mma, or to fma_dot for IEEE float32.

    Operands are staged in shared memory, contiguous along the axis that is contiguous in global
    memory, transposed or not.  An operand a that is computed from another dot stays in registers.
    """
    if not any(op.opdef is dot for op in walk(fn.body)):
        return fn
    if "fp8_mma" not in options.features:
        fn = rebuild(fn, _widen, folding=False)
    return _with_mapped_dots(fn, _Planning(fn, options).mapped)


def _widen(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
    """Replace a dot of 8-bit floats by one of float16, which represents them exactly."""
    if op.opdef is not dot or op.a.type.dtype.bits != 8:
        return None
    if not op.a.type.dtype.is_float:
        return None
    a, b, acc = rebuilder[op.a], rebuilder[op.b], rebuilder[op.acc]
    wide = (rebuilder.builder.emit(cast, value, dtype=float16.name) for value in (a, b))
    return (rebuilder.builder.emit(dot, *wide, acc, hint=op.result.hint),)


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand that is read from shared memory.

    root: the value that is staged there.  layout: in which the operand reads these bytes.
    is_along_depth: whether neighbours there are neighbours along the depth.
    """

    root: Root
    layout: LinearLayout
    is_along_depth: bool

    @property
    def stored(self) -> LinearLayout:
        """The layout of the root."""
        return self.root.stored(self.layout)

    def source(self, fixed: bool) -> Source:
        """The layout that the operand is read from; fixed: as of Source."""
        return Source(self.layout, self.is_along_depth, fixed)


@dataclass(frozen=True, slots=True)
class _MappedDot:
    """The op that replaces a dot.

    opdef, attrs: mma or fma_dot, and its attributes.
    operands: a and b; None for one that stays in registers.
    """

    opdef: OpDef
    attrs: Mapping[str, Attr]
    operands: tuple[_Operand | None, _Operand | None]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A candidate mma for a dot: its plan and its attributes."""

    plan: MmaPlan
    attrs: Mapping[str, Attr]


def _orientations(op: Op, whole_rows: bool) -> tuple[bool, ...]:
    """The candidates for `swapped` of mma_plan.

    The longer side of instructions (16) lies along the rows, unless there are too few.  Where both
    are possible, only 64-bit elements make a difference (see the module's docstring).
    """
    *_, rows, columns = op.result.type.shape
    if whole_rows or columns <= COLUMNS:
        return (False,)
    if rows <= COLUMNS:
        return (True,)
    return (False, True) if op.a.type.dtype.bits > WORD_BITS else (False,)


def _with_mapped_dots(fn: Function, mapped: Mapping[Op, _MappedDot]) -> Function:
    """A function with its dots replaced."""

    def rewrite(rebuilder: StagingRebuilder, op: Op) -> tuple[Value] | None:
        new = mapped.get(op)
        if new is None:
            return None
        values = [
            rebuilder[value] if operand is None else rebuilder.buffer(operand.root, operand.stored)
            for value, operand in zip((op.a, op.b), new.operands, strict=True)
        ]
        builder, acc = rebuilder.builder, rebuilder[op.acc]
        return (builder.emit(new.opdef, *values, acc, hint=op.result.hint, **new.attrs),)

    placed = (operand for new in mapped.values() for operand in new.operands)
    staged = [(operand.root, operand.stored) for operand in placed if operand is not None]
    return StagingRebuilder(rewrite, staged).function(fn)


class _Planning:
    """The choice of the op that replaces each dot of a function.

    mapped: by dot.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._options = options
        self._infos = AxisInfos(fn)
        dots = [op for op in walk(fn.body) if op.opdef is dot]
        by_mma = {op for op in dots if not is_ieee_float32(op)}
        self._producers = {op: computed_from(op.a, by_mma) for op in by_mma}
        self._plans: dict[Op, MmaPlan] = {}
        self.mapped = {
            op: self._by_mma(op) if op in by_mma else self._by_fma(op) for op in dots
        }

    def _by_mma(self, op: Op) -> _MappedDot:
        """A dot by mma."""
        producer, feeds_dot = self._producers[op], op in self._producers.values()
        whole_rows = feeds_dot or producer is not None
        first = None if producer is not None else self._operand(op.a, -1)
        second = self._operand(op.b, -2)
        producer_layout = None if producer is None else self._plans[producer].layout
        sources = (
            Source(producer_layout, fixed=True) if first is None else first.source(whole_rows),
            second.source(feeds_dot),
        )
        choice = min(
            (self._choice(op, swapped, whole_rows, sources)
             for swapped in _orientations(op, whole_rows)),
            key=lambda choice: operands_cost(choice.plan, *sources, op.a.type.dtype.bits),
        )
        self._plans[op] = choice.plan
        return _MappedDot(mma, choice.attrs, (first, second))

    def _choice(self, op: Op, swapped: bool, whole_rows: bool,
                sources: tuple[Source, Source]) -> _Choice:
        """The best mma for a dot in one orientation."""
        a, b, acc = op.a.type, op.b.type, op.acc.type
        *batch, rows, columns = acc.shape
        num_warps = self._options.num_warps
        kinds = (b.dtype, a.dtype) if swapped else (a.dtype, b.dtype)
        instruction = instruction_for(*kinds, acc.dtype, a.shape[-1], self._options.features)
        assert instruction is not None, f"no instruction for {a.dtype} and {b.dtype}"
        sides = (COLUMNS, instruction.rows) if swapped else (instruction.rows, COLUMNS)
        extents = (batch[0] if batch else 1, rows, columns)
        warps = warp_grid(num_warps, extents, (1, *sides), whole_rows)

        def plan(orders: Orders) -> MmaPlan:
            return mma_plan(instruction, acc.shape, a.shape[-1], warps, num_warps, swapped, orders)

        orders = best_orders(plan, *sources, a.dtype.bits)
        attrs = {"instruction": str(instruction), "warps": warps, "num_warps": num_warps,
                 "precision": attribute(op, "precision"), "swapped": swapped,
                 **dict(zip(("rows", "columns", "depths"), orders))}
        return _Choice(plan(orders), attrs)

    def _by_fma(self, op: Op) -> _MappedDot:
        """A dot by fused multiply-adds."""
        a, acc = op.a.type, op.acc.type
        operands = self._operand(op.a, -1), self._operand(op.b, -2)
        vector = VECTOR_BYTES // a.dtype.bytes
        vectors = tuple(1 if operand.is_along_depth else vector for operand in operands)
        layout = accumulator_layout(acc.shape, self._options.num_warps, vectors)
        return _MappedDot(fma_dot, {"layout": layout}, operands)

    def _operand(self, value: Value, depth: int) -> _Operand:
        """Operand a or b in shared memory, contiguous along the axis that it was loaded along.

        depth: its contracted axis, counted from the end.
        """
        bits, shape = value.type.dtype.bits, value.type.shape
        depth_axis = len(shape) + depth
        minor = contiguous_axis(value, self._infos, depth_axis)
        layout = swizzled(shape, minor, bits, widest_swizzle(shape[minor], bits))
        return _Operand(root_of(value), layout, minor == depth_axis)
