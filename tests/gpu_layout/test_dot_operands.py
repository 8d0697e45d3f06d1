"""The axis along which operands of dots are contiguous in shared memory."""

import pytest
from tensor_core_kernels import tile_of

import blocknumba as bn

from blocknumba.gpu_layout.dots.operands import contiguous_axis
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ops.dot import dot

ROW_MAJOR, COLUMN_MAJOR = "f16[:,::1]:16", "f16[::1,:]:16"
BYTES = "i8[:,::1]:16"


def plain(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    out[m, n] = x[m, k] @ w[k, n]


def converted(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    out[m, n] = x[m, k] @ (w[k, n] * 2).to(bn.float16)


def transposed(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    out[m, n] = x[m, k] @ (w.T[n, k].to(bn.float16) * 2).T


def made_up(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    out[m, n] = x[m, k] @ bn.full((BK, BN), w[0, 0].to(bn.float16))


@pytest.mark.parametrize("kernel, w, axis", [
    (plain, ROW_MAJOR, 1), (plain, COLUMN_MAJOR, 0), (converted, BYTES, 1),
    (transposed, ROW_MAJOR, 1), (transposed, COLUMN_MAJOR, 0), (made_up, ROW_MAJOR, 0)],
    ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_operand_lies_the_way_that_what_it_is_computed_from_is_in_memory(kernel, w, axis):
    fn = tile_of(bn.jit(kernel), (ROW_MAJOR, w, ROW_MAJOR), {"BM": 64, "BN": 64, "BK": 32})
    (dot_op,) = (op for op in walk(fn.body) if op.opdef is dot)

    found = contiguous_axis(dot_op.operands[1], AxisInfos(fn), 0)

    assert found == axis
