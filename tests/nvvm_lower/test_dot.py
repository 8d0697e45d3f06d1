"""Products of matrices in machine code: results, instructions, registers, bank conflicts."""

import re

import numpy as np
import pytest
from dot_oracle import KINDS, assert_close, error_bound, exact_dot
from products import DotKernel, built

TRANSPOSED = [(False, False), (False, True), (True, False), (True, True)]
HALF = ("float16", "float16", "float32")
SINGLE = ("float32", "float32", "float32")
DOUBLE = ("float64", "float64", "float64")


def joined(factors, axis):
    """The iterations side by side along the depth, as one matrix."""
    return np.concatenate(list(factors), axis=axis)


def check(case, target="sm_80", num_warps=4, seed=0):
    """Run a dot in the emulator, compare with the exact one; returns the counters."""
    operands = case.operands(seed)

    found, report = built(case, target, num_warps).run(operands)

    a, b = joined(operands[0], -1), joined(operands[1], -2)
    expected = exact_dot(a, b, operands[2], case.precision)
    bound = error_bound(a, b, operands[2], case.precision)
    rounding = np.abs(expected) * np.finfo(found.dtype).eps if found.dtype.kind == "f" else 0
    assert_close(found, expected, bound + rounding)
    return report


# results ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_every_kind_of_dot_in_either_order(kind, turned):
    check(DotKernel((32, 64), 32, kind[:3], kind[3], turned))


@pytest.mark.parametrize("target", ["sm_86", "sm_89", "sm_90a", "sm_120"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0][:6] in ("float8", "float6")],
                         ids="-".join)
def test_kinds_whose_instructions_differ_between_targets(kind, target):
    check(DotKernel((32, 32), 64, kind[:3], kind[3], (False, True)), target)


@pytest.mark.parametrize("inner", [1, 2, 8, 64])
@pytest.mark.parametrize("columns", [1, 4, 32])
@pytest.mark.parametrize("rows", [1, 8, 64])
def test_extents_below_those_of_an_instruction(rows, columns, inner):
    for dtypes in (HALF, SINGLE, ("int8", "uint8", "int32"), DOUBLE):
        check(DotKernel((rows, columns), inner, dtypes), num_warps=2)


@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
@pytest.mark.parametrize("shape, inner", [((64, 32), 32), ((16, 64), 8), ((2, 16, 32), 16),
                                          ((8, 64), 4), ((64, 8), 2), ((4, 2, 1), 1)], ids=str)
def test_doubles_by_the_instructions_of_hopper(shape, inner, turned):
    check(DotKernel(shape, inner, DOUBLE, turned=turned), "sm_90a")


@pytest.mark.parametrize("num_warps", [1, 2, 8, 16])
@pytest.mark.parametrize("shape", [(16, 16), (64, 8), (128, 128), (2, 32, 16), (8, 16, 16),
                                   (16, 1, 4)], ids=str)
def test_any_number_of_warps_shares_any_shape(shape, num_warps):
    for dtypes in (HALF, SINGLE):
        check(DotKernel(shape, 16, dtypes, turned=(True, False)), num_warps=num_warps)


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_sums_that_a_loop_carries(precision):
    check(DotKernel((32, 32), 16, SINGLE, precision, iterations=4))
    check(DotKernel((2, 16, 32), 32, HALF, iterations=3))


@pytest.mark.parametrize("depth", [1, 2, 4, 16, 32])
def test_int8_sums_are_exact_however_they_are_cut(depth):
    case = DotKernel((32, 32), depth, ("int8", "int8", "int32"), iterations=128 // depth)
    operands = [np.full_like(x, 127) for x in case.operands()]

    found, _ = built(case).run(operands)

    assert (found == 128 * 127 * 127 + 127).all()


def test_from_hopper_on_one_instruction_rounds_an_element_to_tf32():
    case = DotKernel((16, 16), 16, SINGLE, "tf32")
    a, b, acc = (np.zeros_like(x) for x in case.operands())
    a[0, :4, 0] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf, np.nan]  # two ties
    b[0, 0] = 1
    kernel = built(case, "sm_90a", num_warps=1)

    found, _ = kernel.run([a, b, acc])

    rows = [1, 1 + 2.0**-9, np.inf, np.nan] + [0] * 12
    np.testing.assert_array_equal(found, np.repeat(np.float32(rows)[:, None], 16, axis=1))
    assert len(opcodes(kernel.sass, "F2FP.TF32")) == 2 * 16 * 16 // 32
    assert not opcodes(kernel.sass, "FSETP")  # as cvt.rna.tf32 would need, through one predicate


def test_tf32x3_takes_infinities_and_nan_as_they_are():
    case = DotKernel((16, 16), 16, SINGLE, "tf32x3")
    a, b, acc = case.operands()
    b[0, 5] = 0
    a[0, 1, 3], a[0, 2, 5], a[0, 3, 5] = np.inf, np.nan, np.inf
    b[0, 7, 2], a[0, 4, 7], a[0, 5, 7] = -np.inf, 0, np.inf

    found, _ = built(case).run([a, b, acc])

    with np.errstate(invalid="ignore"):
        expected = a[0].astype(np.float64) @ b[0].astype(np.float64) + acc
    known = np.isfinite(expected)
    np.testing.assert_array_equal(found[~known], expected[~known])
    assert np.isfinite(found[known]).all() and known.sum() > 100


def test_tf32x3_takes_numbers_that_tf32_rounds_to_infinity_as_finite():
    case = DotKernel((16, 16), 16, SINGLE, "tf32x3")
    a, b, acc = (np.zeros_like(x) for x in case.operands())
    largest = np.finfo(np.float32).max
    a[0, 0, 0], a[0, 1, 1], b[0, 0], b[0, 1] = largest, -largest, 0.25, 2

    found, _ = built(case).run([a, b, acc])

    np.testing.assert_allclose(found[0], largest / 4, rtol=2.0**-11)
    np.testing.assert_array_equal(found[1], -np.inf)


# sums of tensor cores alone are off by 2e-6, and by 3e-5 where all products are positive
@pytest.mark.parametrize("is_positive, bound", [(False, 1e-7), (True, 8e-7)])
def test_sums_of_tf32x3_are_rounded_not_truncated(is_positive, bound):
    case = DotKernel((16, 16), 16, SINGLE, "tf32x3", iterations=128)
    operands = case.operands(seed=1)
    if is_positive:
        operands = [abs(x) for x in operands]

    found, _ = built(case, num_warps=1).run(operands)

    a, b = joined(operands[0], -1), joined(operands[1], -2)
    size = exact_dot(abs(a), abs(b), abs(operands[2]))
    assert (abs(found - exact_dot(a, b, operands[2])) <= bound * size).all()


def test_tensor_cores_add_up_two_steps_of_tf32x3_from_zero():
    kernel = built(DotKernel((32, 64), 32, SINGLE, "tf32x3"))

    instructions = re.findall(r"HMMA\.1688\.F32\.TF32 .*;", kernel.sass)
    steps = (32 // 16) * (64 // 8) * (32 // 8) // 4  # of each warp
    assert len(instructions) == 3 * steps
    assert len([line for line in instructions if line.endswith("RZ ;")]) == steps // 2
    added = len(opcodes(kernel.sass, "FADD"))
    split = (2 * 4 + 2 * 2) * (32 // 8)  # words of operands, of 32 by 16 sums
    assert added == 4 * steps // 2 + split


# instructions -----------------------------------------------------------------------------------
INSTRUCTIONS = {"float16": "HMMA", "bfloat16": "HMMA", "float32": "HMMA", "int8": "IMMA",
                "float64": "DMMA", "float8_e4m3fn": "HMMA|QMMA"}
MATRIX_KINDS = [kind for kind in KINDS if kind[0] == kind[1] and kind[0] in INSTRUCTIONS
                and (kind[0], kind[3]) != ("float32", "ieee")]


def opcodes(sass, name):
    return re.findall(rf"\b{name}[.\w]*", sass)


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_120"])
@pytest.mark.parametrize("kind", MATRIX_KINDS, ids="-".join)
def test_tensor_cores_multiply(kind, target):
    kernel = built(DotKernel((64, 64), 32, kind[:3], kind[3]), target)

    assert opcodes(kernel.sass, INSTRUCTIONS[kind[0]])
    assert not opcodes(kernel.sass, "FFMA|DFMA|IDP")
    assert kernel.assembled.spill_bytes == 0


@pytest.mark.parametrize("target, name, size", [
    ("sm_80", "DMMA.884", 8 * 8 * 4), ("sm_90a", "DMMA.16x8x16", 16 * 8 * 16)])
def test_doubles_are_multiplied_by_the_largest_instruction(target, name, size):
    kernel = built(DotKernel((64, 64), 32, DOUBLE), target)

    assert opcodes(kernel.sass, "DMMA") == [name] * (64 * 64 * 32 // size // 4)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
def test_doubles_are_multiplied_where_they_were_read(turned, target):
    kernel = built(DotKernel((64, 64), 16, DOUBLE, turned=turned, iterations=4), target)

    loop = kernel.sass[kernel.sass.index("LDS"):kernel.sass.rindex("DMMA")]
    assert not opcodes(loop, "MOV|IMAD.MOV")
    assert kernel.assembled.spill_bytes == 0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
def test_ieee_float32_is_multiplied_and_added_with_one_rounding(target):
    kernel = built(DotKernel((64, 64), 16, SINGLE), target)

    assert len(opcodes(kernel.sass, "FFMA")) == 64 * 64 * 16 // 128
    assert not opcodes(kernel.sass, "HMMA|FADD")
    assert kernel.assembled.spill_bytes == 0


@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
def test_16_bit_operands_are_read_by_ldmatrix_transposed_or_not(turned):
    kernel = built(DotKernel((64, 64), 64, turned=turned))

    loads = opcodes(kernel.sass, "LDSM")
    # of each warp: 64 x 32 elements of one operand and 64 x 32 of the other, 16 x 16 a load
    assert len(loads) == 2 * (64 // 16) * (32 // 16)
    assert all(".4" in load for load in loads)
    assert len([load for load in loads if ".MT" in load]) == (
        8 * (turned[0] + (not turned[1])))


@pytest.mark.parametrize("dtypes, precision", [(("int8",) * 2 + ("int32",), "ieee"),
                                               (SINGLE, "tf32")], ids=str)
def test_operands_of_other_sizes_are_read_by_ldmatrix_where_rows_lie_along_the_depth(dtypes,
                                                                                    precision):
    kernel = built(DotKernel((64, 64), 64, dtypes, precision, turned=(False, True)))

    assert opcodes(kernel.sass, "LDSM")
    assert kernel.assembled.spill_bytes == 0


@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
@pytest.mark.parametrize("kind", [HALF + ("ieee",), SINGLE + ("ieee",), SINGLE + ("tf32",),
                                  DOUBLE + ("ieee",)], ids="-".join)
def test_there_are_no_bank_conflicts(kind, turned):
    report = check(DotKernel((64, 64), 32, kind[:3], kind[3], turned))

    assert report.bank_conflicts == 0


@pytest.mark.parametrize("turned", TRANSPOSED, ids=str)
def test_there_are_no_bank_conflicts_of_the_instructions_of_hopper(turned):
    report = check(DotKernel((64, 64), 32, DOUBLE, turned=turned), "sm_90a")

    assert report.bank_conflicts == 0


@pytest.mark.parametrize("dtypes", [("int8", "int8", "int32"),
                                    ("float8_e5m2",) * 2 + ("float32",)], ids=str)
def test_there_are_no_bank_conflicts_where_rows_lie_along_the_depth(dtypes):
    report = check(DotKernel((64, 64), 64, dtypes, turned=(False, True)), "sm_90a")

    assert report.bank_conflicts == 0


def test_two_programs_of_128_by_128_sums_fit_the_registers_of_a_multiprocessor():
    kernel = built(DotKernel((128, 128), 32, iterations=4), num_warps=8, min_blocks=2)

    assert kernel.assembled.spill_bytes == 0
    assert kernel.assembled.registers <= 65536 // (2 * 256)


def test_between_its_dots_a_loop_only_reads_operands():
    kernel = built(DotKernel((64, 64), 64, iterations=4))

    loop = kernel.sass[kernel.sass.index("LDSM"):kernel.sass.rindex("HMMA")]
    assert {name.partition(".")[0] for name in opcodes(loop, "[A-Z]{3,}")} == {"LDSM", "HMMA"}
    assert len(opcodes(kernel.sass, "HMMA")) == 64 // 16 * (64 // 16) * (64 // 8) // 4
