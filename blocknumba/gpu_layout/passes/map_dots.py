"""The pass that says how every product of tiles is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout import multiply_add
from blocknumba.gpu_layout.coalescing import Accesses
from blocknumba.gpu_layout.dot_operands import (
    Root,
    StagingRebuilder,
    contiguous_axis,
    is_computed_from,
    loaded,
    root_of,
)
from blocknumba.gpu_layout.dot_ops import fma_dot, mma
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.mma import COLUMNS, instruction_for, matrix_plan, share_warps
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.registers import in_rows, transpose
from blocknumba.gpu_layout.shared import VECTOR_BYTES, access, best_shared, matrix_access
from blocknumba.gpu_layout.swizzle import swizzled, widest_swizzle
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir import Attr, Function, Op, Value, walk
from blocknumba.tile_ir.opdef import OpDef, attribute
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.types import float16, float32


@declared(reads=("ops",), writes=("ops",))
def map_dots(fn: Function, options: LayoutOptions) -> Function:
    """Every dot becomes a product by matrix instructions, or by plain arithmetic for IEEE float32.

    What the products multiply is put into shared memory, the way it lies in global memory,
    transposed or not.  A first operand that is computed from another product stays in registers.
    """
    if not any(op.opdef is dot for op in walk(fn.body)):
        return fn
    if "fp8_mma" not in options.features:
        fn = rebuild(fn, _widen, folding=False)
    return _with_products(fn, _Planning(fn, options).products)


def _widen(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
    """A dot of 8-bit floats as one of float16, which holds them exactly."""
    if op.opdef is not dot or op.operands[0].type.dtype.bits != 8:
        return None
    if not op.operands[0].type.dtype.is_float:
        return None
    a, b, acc = rebuilder.operands(op)
    wide = (rebuilder.builder.emit(cast, value, dtype=float16.name) for value in (a, b))
    return (rebuilder.builder.emit(dot, *wide, acc, hint=op.result.hint),)


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand that is read from shared memory: its root, and the root's layout there."""

    root: Root
    layout: LinearLayout


@dataclass(frozen=True, slots=True)
class _Product:
    """What becomes of a dot.

    operands: a and b; None for one that stays in registers.
    """

    opdef: OpDef
    attrs: Mapping[str, Attr]
    operands: tuple[_Operand | None, _Operand | None]


def _with_products(fn: Function, products: Mapping[Op, _Product]) -> Function:
    """A function with products in place of its dots."""

    def rewrite(rebuilder: StagingRebuilder, op: Op) -> tuple[Value] | None:
        product = products.get(op)
        if product is None:
            return None
        *operands, acc = op.operands
        values = [
            rebuilder[value] if operand is None else rebuilder.buffer(operand.root, operand.layout)
            for value, operand in zip(operands, product.operands, strict=True)
        ]
        builder, acc = rebuilder.builder, rebuilder[acc]
        return (builder.emit(product.opdef, *values, acc, hint=op.result.hint, **product.attrs),)

    placed = (operand for product in products.values() for operand in product.operands)
    staged = [(operand.root, operand.layout) for operand in placed if operand is not None]
    return StagingRebuilder(rewrite, staged).function(fn)


class _Planning:
    """Decides what becomes of every dot of a function.

    products: by dot.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._options = options
        self._infos = AxisInfos(fn)
        self._accesses = Accesses(fn, options)
        dots = {op for op in walk(fn.body) if op.opdef is dot}
        self._chained = {op for op in dots if is_computed_from(op.operands[0], dots)}
        self._feeding = {
            op for op in dots
            if any(is_computed_from(other.operands[0], {op}) for other in self._chained)
        }
        self.products = {op: self._matrix(op) or self._arithmetic(op) for op in dots}

    def _matrix(self, op: Op) -> _Product | None:
        """A dot by matrix instructions; None if there is none for it."""
        a, b, acc = (value.type for value in op.operands)
        precision = attribute(op, "precision")
        if a.dtype == float32 and precision == "ieee":
            return None
        in_rows_of_warp = op in self._chained or op in self._feeding
        *batch, rows, columns = acc.shape
        swapped = rows <= COLUMNS < columns and not in_rows_of_warp
        kinds = (b.dtype, a.dtype) if swapped else (a.dtype, b.dtype)
        instruction = instruction_for(*kinds, acc.dtype, a.shape[-1], self._options.features)
        assert instruction is not None, f"no instruction for {a.dtype} and {b.dtype}"
        num_warps = self._options.num_warps
        sides = (COLUMNS, instruction.rows) if swapped else (instruction.rows, COLUMNS)
        extents = (batch[0] if batch else 1, rows, columns)
        warps = share_warps(num_warps, extents, (1, *sides), in_rows_of_warp)
        plan = matrix_plan(instruction, acc.shape, a.shape[-1], warps, num_warps, swapped)
        first = None if op in self._chained else self._operand(op, 0, plan.a.layout, True)
        attrs = {"instruction": str(instruction), "warps": warps, "num_warps": num_warps,
                 "precision": precision, "swapped": swapped}
        return _Product(mma, attrs, (first, self._operand(op, 1, plan.b.layout, True)))

    def _arithmetic(self, op: Op) -> _Product:
        """A dot by multiplications and additions."""
        a, b, acc = op.operands
        vector = VECTOR_BYTES // a.type.dtype.bytes
        vectors = tuple(
            1 if self._minor_axis(op, place) == k_axis else vector
            for place, k_axis in ((0, -1), (1, -2))
        )
        layout = multiply_add.accumulator_layout(acc.type.shape, self._options.num_warps, vectors)
        plan = multiply_add.multiply_add_plan(layout, a.type.shape[-1])
        operands = (self._operand(op, 0, plan.a, False), self._operand(op, 1, plan.b, False))
        return _Product(fma_dot, {"layout": layout}, operands)

    def _minor_axis(self, op: Op, place: int) -> int:
        """The axis, -1 or -2, that operand a or b is contiguous along; K if nothing is known."""
        value = op.operands[place]
        axis = contiguous_axis(value, self._infos)
        return (-1, -2)[place] if axis is None else axis - len(value.type.shape)

    def _operand(self, op: Op, place: int, reader: LinearLayout, by_matrices: bool) -> _Operand:
        """Operand a or b in the shared layout that suits how it is read.

        by_matrices: whether ldmatrix may read it.
        """
        value = op.operands[place]
        bits, shape = value.type.dtype.bits, value.type.shape
        minor = self._minor_axis(op, place) % len(shape)
        shared = swizzled(shape, minor, bits, widest_swizzle(shape[minor], bits))
        if not by_matrices or matrix_access(reader, shared, bits) is None:
            computed = best_shared(self._writer(value), reader, bits)
            shared = min(shared, computed,
                         key=lambda layout: access(reader, layout, bits).wavefronts)
        root = root_of(value)
        return _Operand(root, root.stored(shared))

    def _writer(self, value: Value) -> LinearLayout:
        """The layout in which an operand probably is before it is put into shared memory."""
        source = loaded(value)
        if source is None:
            return in_rows(value.type.shape, self._options.num_warps)
        return transpose(self._accesses.layout(source.value.owner), source.axes)
