"""Dots of warpgroups against NumPy, in the emulator, and their machine code."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hopper import kernel, numbers, pointer

from blocknumba.emulator import ProxyFenceError
from blocknumba.gpu_layout.dots.wgmma import accumulator_layout, operand_layout
from blocknumba.gpu_layout.layouts.shared import swizzled, widest_swizzle
from blocknumba.tile_ir.ir.types import dtype_of


@dataclass(frozen=True)
class Case:
    """acc + a @ b, computed by one program.

    shape: (M, N, K).   dtypes: of a, b and the accumulators.
    a_minor, b_minor: the contiguous axis of a (M, K) and b (K, N).
    swizzles: of both buffers, the widest possible by default.
    source: where a is: "shared" or "registers".   from_zero: acc is the constant 0.
    """

    shape: tuple[int, int, int]
    dtypes: tuple[str, str, str] = ("float16", "float16", "float32")
    a_minor: int = 1
    b_minor: int = 0
    swizzles: tuple[int | None, int | None] = (None, None)
    num_warps: int = 4
    source: str = "shared"
    from_zero: bool = False

    def layouts(self):
        """Of a and b in shared memory."""
        m, n, k = self.shape
        found = []
        for shape, minor, dtype, swizzle in zip(
                ((m, k), (k, n)), (self.a_minor, self.b_minor), self.dtypes, self.swizzles):
            bits = dtype_of(dtype).bits
            found.append(swizzled(shape, minor, bits,
                                  swizzle or widest_swizzle(shape[minor], bits)))
        return found

    def arrays(self):
        """a, b and acc, in C order."""
        m, n, k = self.shape
        return [numbers(shape, dtype, seed) for seed, (shape, dtype) in enumerate(zip(
            ((m, k), (k, n), (m, n)), self.dtypes))]

    def expected(self):
        """acc + a @ b: the numbers are such that it is exact."""
        wide = np.int64 if self.dtypes[2] == "int32" else np.float64
        a, b, acc = (array.astype(wide) for array in self.arrays())
        return (a @ b + acc * (not self.from_zero)).astype(self.dtypes[2])


def multiplying(case, fenced=True):
    """The kernel of a case: operands come through registers to shared memory."""
    m, n, k = case.shape
    acc_layout = accumulator_layout((m, n), case.num_warps)

    def body(w, a_pointer, b_pointer, acc_pointer, out):
        if case.source == "registers":
            a = w.load(w.addresses(a_pointer, operand_layout(
                (m, k), dtype_of(case.dtypes[0]), case.num_warps), k))
        else:
            a = w.staged(a_pointer, (m, k), case.dtypes[0], case.layouts()[0])
        b = w.staged(b_pointer, (k, n), case.dtypes[1], case.layouts()[1])
        if fenced:
            w.fence_async()
        w.barrier(scope="program")
        acc = (w.zeros(case.dtypes[2], acc_layout) if case.from_zero
               else w.load(w.addresses(acc_pointer, acc_layout, n)))
        begun = w.wgmma(a, b, acc, num_warps=case.num_warps)
        w.store(w.addresses(out, acc_layout, n), w.wgmma_wait(begun, pending=0))

    names = zip((*case.dtypes, case.dtypes[2]), ("a", "b", "acc", "out"))
    return kernel(case.num_warps, [(dtype, pointer(name)) for dtype, name in names], body)


def check(case):
    out = np.zeros(case.shape[:2], dtype_of(case.dtypes[2]).numpy)

    multiplying(case).launch(*case.arrays(), out)

    np.testing.assert_array_equal(out, case.expected())


SIXTEEN = [("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"),
           ("float16", "float16", "float16")]
EIGHT = [(a, b, "float32") for a in ("float8_e4m3fn", "float8_e5m2")
         for b in ("float8_e4m3fn", "float8_e5m2")]
INTEGERS = [(a, b, "int32") for a in ("int8", "uint8") for b in ("int8", "uint8")]
TF32 = [("float32", "float32", "float32")]


@pytest.mark.parametrize("b_minor", [0, 1])
@pytest.mark.parametrize("a_minor", [0, 1])
@pytest.mark.parametrize("dtypes", SIXTEEN, ids=str)
def test_16_bit_operands_may_be_contiguous_along_either_axis(dtypes, a_minor, b_minor):
    check(Case((64, 32, 64), dtypes, a_minor, b_minor))


@pytest.mark.parametrize("swizzles", [(a, b) for a in (32, 64, 128) for b in (32, 64, 128)],
                         ids=str)
@pytest.mark.parametrize("minors", [(1, 0), (0, 1)], ids=["k", "mn"])
def test_operands_may_have_any_swizzle(minors, swizzles):
    check(Case((128, 128, 128), SIXTEEN[0], *minors, swizzles))


@pytest.mark.parametrize("dtypes", EIGHT + INTEGERS + TF32, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 8])
def test_other_operands_are_contiguous_along_k(dtypes, depth):
    check(Case((64, 16, depth * 256 // dtype_of(dtypes[0]).bits), dtypes))


@pytest.mark.parametrize("columns", [8, 16, 32, 64, 128, 256])
def test_a_dot_may_have_8_to_256_columns(columns):
    check(Case((64, columns, 16)))


@pytest.mark.parametrize("minors", [(1, 0), (0, 1)], ids=["k", "mn"])
@pytest.mark.parametrize("shape, num_warps", [
    ((128, 16, 32), 4), ((256, 16, 32), 4), ((128, 16, 32), 8), ((256, 32, 32), 8),
    ((64, 32, 32), 8), ((64, 128, 32), 8), ((128, 128, 32), 16), ((64, 512, 16), 8),
    ((64, 512, 16), 4)], ids=str)
def test_warpgroups_share_rows_then_columns(shape, num_warps, minors):
    check(Case(shape, SIXTEEN[0], *minors, num_warps=num_warps))


@pytest.mark.parametrize("dtypes", SIXTEEN + EIGHT[:1] + INTEGERS[:1] + TF32, ids=str)
@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("source", ["shared", "registers"])
def test_the_first_operand_may_be_in_registers_and_the_sum_may_start_at_zero(
        source, from_zero, dtypes):
    check(Case((128, 16, 2 * 256 // dtype_of(dtypes[0]).bits), dtypes, source=source,
               from_zero=from_zero))


@pytest.mark.parametrize("shape, num_warps", [((128, 16, 32), 8), ((256, 16, 64), 8),
                                              ((64, 64, 32), 8)], ids=str)
def test_registers_of_several_warpgroups_are_multiplied(shape, num_warps):
    check(Case(shape, num_warps=num_warps, source="registers"))


def test_what_threads_wrote_must_be_fenced_before_the_tensor_cores_read_it():
    case = Case((64, 16, 16))

    with pytest.raises(ProxyFenceError):
        multiplying(case, fenced=False).launch(*case.arrays(), case.expected())


def test_a_sum_that_starts_at_zero_reads_no_accumulators():
    case = Case((64, 64, 64), from_zero=True)

    built = multiplying(case)

    first, *others = re.findall(r"HGMMA\.\S+ .*", built.sass)
    assert "RZ, !UPT" in first and len(others) == 3
    assert not any("!UPT" in line for line in others)


@pytest.mark.parametrize("dtypes, instruction", [
    (SIXTEEN[0], "HGMMA.64x64x16.F32"), (SIXTEEN[1], "HGMMA.64x64x16.F32.BF16"),
    (SIXTEEN[2], "HGMMA.64x64x16.F16"), (TF32[0], "HGMMA.64x64x8.F32.TF32"),
    (EIGHT[0], "QGMMA.64x64x32.F32.E4M3.E4M3"), (INTEGERS[0], "IGMMA.64x64x32.S8.S8")], ids=str)
@pytest.mark.parametrize("source", ["shared", "registers"])
def test_every_kind_is_one_instruction_for_32_bytes_of_k(dtypes, instruction, source):
    depth = 4 * 256 // dtype_of(dtypes[0]).bits

    built = multiplying(Case((128, 64, depth), dtypes, num_warps=8, source=source))

    assert len(re.findall(rf"\b{re.escape(instruction)}\b", built.sass)) == 4
    assert built.assembled.warnings == ()
    assert built.assembled.spill_bytes == built.assembled.stack_bytes == 0


@pytest.mark.parametrize("steps", [2, 4])
@pytest.mark.parametrize("columns", [8, 32])
@pytest.mark.parametrize("dtypes", [SIXTEEN[0], SIXTEEN[2], TF32[0], EIGHT[0], INTEGERS[0]], ids=str)
def test_the_assembler_drops_no_instruction_of_a_small_dot(dtypes, columns, steps):
    depth = steps * 256 // dtype_of(dtypes[0]).bits

    built = multiplying(Case((64, columns, depth), dtypes))

    assert len(re.findall(r"\b[HQI]GMMA\.", built.sass)) == steps
