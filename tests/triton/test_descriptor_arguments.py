"""Host descriptors as arguments: an array of which a kernel reads and writes boxes."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError
from blocknumba.triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def moved(source, target, out, ROWS: tl.constexpr):
    row, column = tl.program_id(0) * source.block_shape[0], tl.program_id(1) * 16
    tile = source.load([row, column])
    target.store([row, column], tile * 2)
    if tl.program_id(0) == 0 and tl.program_id(1) == 0:
        tl.store(out, source.shape[0])
        tl.store(out + 1, source.strides[0])
        tl.store(out + 2, ROWS)


def run(x, y, padding="zero", **options):
    out = np.full(3, -1, np.int64)
    source = TensorDescriptor.from_tensor(x, [8, 16], padding)
    target = TensorDescriptor.from_tensor(y, [8, 16])
    grid = triton.cdiv(x.shape[0], 8), triton.cdiv(x.shape[1], 16)
    moved[grid](source, target, out, ROWS=x.shape[0], **options)
    return out


@pytest.mark.parametrize("options", [{}, {"interpret": True}])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_boxes_are_read_and_written_within_the_array(dtype, options):
    memory = np.zeros((21, 48), dtype)
    x = (np.random.default_rng().standard_normal((20, 40)) * 10).astype(dtype)
    y = memory[:20, :40]

    out = run(x, y, **options)

    np.testing.assert_array_equal(y, x * 2)
    assert not memory[20].any() and not memory[:, 40:].any()
    np.testing.assert_array_equal(out, [20, 40, 20])


def test_another_box_is_other_code_and_the_same_is_not():
    x, y = np.ones((16, 32), np.float32), np.zeros((16, 32), np.float32)

    def launch(rows):
        return moved[(1, 1)](TensorDescriptor.from_tensor(x, [rows, 16]),
                             TensorDescriptor.from_tensor(y, [rows, 16]),
                             np.zeros(3, np.int64), ROWS=1)

    assert launch(8) is launch(8) is not launch(16)
    np.testing.assert_array_equal(y[:, :16], 2)


@pytest.mark.parametrize("options", [{}, {"interpret": True}])
def test_the_dtype_of_a_descriptor_is_that_of_its_elements(options):
    @triton.jit
    def converted(source, target):
        if source.dtype == tl.float16:  # a question that compilation answers
            target.store([0, 0], source.load([0, 0]).to(target.dtype) + 1)

    x, y = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    converted[(1,)](TensorDescriptor.from_tensor(x, [16, 16]),
                    TensorDescriptor.from_tensor(y, [16, 16]), **options)

    np.testing.assert_array_equal(y, 2)


def test_elements_outside_are_what_the_padding_says():
    @triton.jit
    def corner(source, out):
        i = tl.arange(0, 8)
        at = i[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out + at, source.load([4, 8]))

    x, out = np.ones((6, 12), np.float32), np.zeros((8, 16), np.float32)
    wanted = np.full((8, 16), np.nan)
    wanted[:2, :4] = 1

    corner[(1,)](TensorDescriptor.from_tensor(x, [8, 16], "nan"), out)
    np.testing.assert_array_equal(out, wanted)
    corner[(1,)](TensorDescriptor.from_tensor(x, [8, 16]), out)
    np.testing.assert_array_equal(out, np.nan_to_num(wanted))


def test_a_part_of_an_array_is_described():
    x, y = np.arange(64 * 32, dtype=np.float32).reshape(64, 32), np.zeros((8, 16), np.float32)
    part = TensorDescriptor(x, [8, 16], [128, 1], [8, 16])

    moved[(1, 1)](part, TensorDescriptor.from_tensor(y, [8, 16]), np.zeros(3, np.int64), ROWS=8)

    np.testing.assert_array_equal(y, 2 * x[::4, :16][:8])


@triton.jit
def product(a, b, c, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, depth, K):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(tl.float16))


def test_operands_of_products_come_through_the_copy_engine():
    source = triton.compiler.ASTSource(
        product, {"a": "tensordesc<fp16[128,64]>", "b": "tensordesc<fp16[64, 128]>",
                  "c": "tensordesc<fp16[128,128]>", "depth": "i32"},
        {"M": 128, "N": 128, "K": 64})

    compiled = triton.compile(source, target="cuda:90", options={"num_warps": 4})

    assert "cp.async.bulk.tensor.2d" in compiled.asm["ptx"]
    assert "wgmma" in compiled.asm["ptx"]


def test_a_product_of_descriptors_computes():
    random = np.random.default_rng()
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((40, 72), (72, 56)))
    c = np.full((40, 56), np.nan, np.float16)

    product[(2, 2)](TensorDescriptor.from_tensor(a, [32, 16]),
                    TensorDescriptor.from_tensor(b, [16, 32]),
                    TensorDescriptor.from_tensor(c, [32, 32]), 72, 32, 32, 16)

    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, wanted, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("arguments, message", [
    (lambda x: (x, [4, 8], [8, 1], [4]), "8 strides|1 extents"),
    (lambda x: (x, [4, 8], [8, 1], [3, 8]), "boxes of \\(3, 8\\), accepted powers of two"),
    (lambda x: (x, [4, 8], [8, 2], [4, 8]), "accepted a last one of 1"),
    (lambda x: (x, [4, 8], [6, 1], [4, 8]), "accepted multiples of 16"),
    (lambda x: (x, [4, 0], [8, 1], [4, 8]), "accepted extents from 1"),
    (lambda x: (x, [4, 8], [8, 1], [4, 8], "one"), "padding 'one', accepted zero and nan"),
    (lambda x: (x.astype(np.int32), [4, 8], [8, 1], [4, 8], "nan"), "of int32, accepted it of"),
    (lambda x: ("text", [4, 8], [8, 1], [4, 8]), "'text', accepted an array"),
    (lambda x: (x, [], [], []), "rank 0, accepted 1 to 5")])
def test_what_cannot_be_described_is_refused(arguments, message):
    with pytest.raises(BlockError, match=f"TensorDescriptor: given.* ({message})"):
        TensorDescriptor(*arguments(np.ones((4, 8), np.float32)))
