"""Copies by threads that go on while they compute, in the emulator, and their machine code."""

import re

import numpy as np
import pytest
from hopper import kernel, numbers, pointer
from layouts_with_copies import replicated

from blocknumba.emulator import RaceError
from blocknumba.gpu_layout.layouts.shared import in_order, swizzled, widest_swizzle
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.types import dtype_of

SHAPE = (32, 64)


def copying(dtype="float16", vector=8, shared=None, masked=False, waits=True, layout=None):
    """A kernel that copies x to out through shared memory; rows from `rows` on are left out.

    vector: neighbours of a row in one thread.
    """
    bits = dtype_of(dtype).bits

    def body(w, x, out, rows):
        held = layout or w.rows(SHAPE, vector)
        buffer = w.buffer(dtype, SHAPE, shared or swizzled(SHAPE, 1, bits, widest_swizzle(64, bits)))
        masks = [w.rows_below(rows, held)] if masked else []
        w.async_copy(w.addresses(x, held, SHAPE[1]), buffer, *masks)
        w.async_copy_commit()
        if waits:
            w.async_copy_wait(pending=0)
        w.barrier(scope="program")
        read = w.rows(SHAPE)
        w.store(w.addresses(out, read, SHAPE[1]), w.shared_read(buffer, layout=read))

    return kernel(4, [(dtype, pointer("x")), (dtype, pointer("out")),
                      ("int32", Parameter("value", "rows"))], body)


def check(built, dtype, rows=SHAPE[0]):
    x, out = numbers(SHAPE, dtype, 3), numbers(SHAPE, dtype, 4)
    expected = x.copy()
    expected[rows:] = 0

    built.launch(x, out, rows)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype, vector, size", [
    ("float16", 8, 16), ("float16", 4, 8), ("float16", 2, 4), ("float32", 4, 16),
    ("float32", 1, 4), ("int8", 16, 16), ("int8", 4, 4), ("float64", 1, 8), ("float64", 2, 16)])
def test_neighbours_are_copied_together(dtype, vector, size, masked):
    built = copying(dtype, vector, masked=masked)

    check(built, dtype, 19 if masked else SHAPE[0])
    cache = ".cg" if size == 16 else ".ca"
    read_size = r", %r\d+" if masked else ""
    found = re.findall(rf"cp\.async\{cache}\.shared\.global \[%r\d+\], \[%rd\d+\], {size}{read_size};",
                       built.ptx)
    assert len(found) == 32 * 64 * dtype_of(dtype).bytes // size // 128
    assert f"LDGSTS.E{'.BYPASS' * (size == 16)}" in built.sass


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype, vector", [("float16", 1), ("int8", 1), ("int8", 2)])
def test_what_is_narrower_than_4_bytes_goes_through_registers(dtype, vector, masked):
    built = copying(dtype, vector, masked=masked)

    check(built, dtype, 7 if masked else SHAPE[0])
    assert ".shared.global" not in built.ptx


def test_elements_that_are_apart_in_shared_memory_are_copied_apart():
    built = copying("float32", 4, swizzled(SHAPE, 0, 32, 128))

    check(built, "float32")
    assert len(re.findall(r"cp\.async\.ca\.shared\.global", built.ptx)) == 16


def test_of_threads_that_hold_copies_one_copies():
    built = copying("float32", layout=replicated(SHAPE, 4), shared=in_order(replicated(SHAPE, 4)))

    check(built, "float32")
    assert re.search(r"@\w+ cp\.async", built.ptx)


def test_a_copy_that_is_not_waited_for_is_found():
    x, out = numbers(SHAPE, "float16"), numbers(SHAPE, "float16")

    with pytest.raises(RaceError):
        copying(waits=False).launch(x, out, SHAPE[0])
