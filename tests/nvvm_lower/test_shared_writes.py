"""Tiles written to shared memory matrix by matrix, in the emulator."""

import numpy as np
import pytest
from hopper import kernel, numbers, pointer

from blocknumba.gpu_layout.dots.wgmma import accumulator_layout
from blocknumba.gpu_layout.layouts.shared import in_order, swizzled
from blocknumba.tile_ir.ir.types import dtype_of

SHAPE = (64, 128)


def through(shared, dtype="float16", num_warps=4, shape=SHAPE, layout=None):
    """A kernel that copies x to out: written from accumulators to shared memory, read in rows."""
    written = layout or accumulator_layout(shape, num_warps)

    def body(w, x, out):
        buffer = w.buffer(dtype, shape, shared)
        w.shared_write(buffer, w.load(w.addresses(x, written, shape[1])))
        w.barrier(scope="program")
        rows = w.rows(shape)
        w.store(w.addresses(out, rows, shape[1]), w.shared_read(buffer, layout=rows))

    return kernel(num_warps, [(dtype, pointer("x")), (dtype, pointer("out"))], body)


def check(built, dtype="float16", shape=SHAPE):
    x, out = numbers(shape, dtype), np.zeros(shape, dtype_of(dtype).numpy)

    built.launch(x, out)

    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("minor_axis", [0, 1])
def test_accumulators_of_16_bits_are_written_matrix_by_matrix(minor_axis, swizzle):
    built = through(swizzled(SHAPE, minor_axis, 16, swizzle))

    check(built)
    assert built.sass.count("STSM.16") == 64 * 128 // (4 * 64) // 4
    assert ("STSM.16.MT88.4" in built.sass) == (minor_axis == 0)
    assert "STS." not in built.sass


@pytest.mark.parametrize("shape, num_warps", [((64, 8), 4), ((64, 16), 4), ((128, 32), 8),
                                              ((64, 64), 8)], ids=str)
def test_small_tiles_are_written_by_fewer_matrices(shape, num_warps):
    minor_bytes = min(128, 2 * shape[1])
    built = through(swizzled(shape, 1, 16, minor_bytes if minor_bytes >= 32 else 0),
                    num_warps=num_warps, shape=shape)

    check(built, shape=shape)
    assert "STSM.16" in built.sass


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_other_elements_are_written_by_threads(dtype):
    bits = dtype_of(dtype).bits

    built = through(swizzled(SHAPE, 1, bits, 128), dtype)

    check(built, dtype)
    assert "STSM" not in built.sass


def test_rows_are_written_by_threads():
    layout = accumulator_layout(SHAPE, 4)
    built = kernel(4, [("float16", pointer("x"))], lambda w, x: w.shared_write(
        w.buffer("float16", SHAPE, in_order(layout)),
        w.load(w.addresses(x, w.rows(SHAPE, 8), SHAPE[1]))))

    assert "STSM" not in built.sass
    assert "STS.128" in built.sass
