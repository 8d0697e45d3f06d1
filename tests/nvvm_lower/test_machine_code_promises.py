"""Promises about machine code, one small kernel each; no GPU is needed."""

import re
from collections import Counter

import pytest

import blocknumba as bn
import blocknumba.triton as triton

tl = triton.language
TARGET = "sm_90a"
ROWS = ("*fp32:16", "*fp32:16")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.x]+)", re.MULTILINE)


def instructions(kernel, signature, constants, num_warps=4):
    """How often the machine code has each instruction, modifiers and all."""
    compiled = bn.compile(kernel, signature, constants, target=TARGET, num_warps=num_warps)
    return Counter(_INSTRUCTION.findall(compiled.asm["sass"]))


def starting(found, *beginnings):
    """How many instructions start so."""
    return sum(count for name, count in found.items() if name.startswith(beginnings))


@triton.jit
def add_rows(x, rows, out, N: tl.constexpr):
    c = tl.arange(0, N)
    row = tl.load(rows + tl.program_id(0))
    value = tl.load(x + tl.program_id(0) * N + c).to(out.dtype.element_ty)
    tl.atomic_add(out + row * N + c, value, sem="relaxed")


@pytest.mark.parametrize("source, to, instruction, elements", [
    ("bf16", "fp32", "REDG.E.ADD.F32x4", 4), ("fp16", "fp16", "REDG.E.ADD.F16x8", 8),
    ("bf16", "bf16", "REDG.E.ADD.BF16", 8)])
def test_atomics_that_nothing_reads_are_vectors_of_16_bytes(source, to, instruction, elements):
    found = instructions(add_rows, (f"*{source}:16", "*i32:16", f"*{to}:16"), {"N": 4096})

    assert starting(found, instruction) == starting(found, "RED") == 4096 // 128 // elements
    assert starting(found, "ATOM") == 0


@triton.jit
def divide_row(x, out, n, N: tl.constexpr):
    c = tl.program_id(0) * N + tl.arange(0, N)
    row = tl.load(x + c)
    tl.store(out + c, row / tl.sum(row, 0) / n)


@bn.jit
def divide_row_exactly(x, out, N: bn.constexpr):
    c = bn.program_id(0) * N + bn.arange(N)
    row = x[c]
    out[c] = row / bn.sum(row)


def test_tritons_division_of_a_row_calls_nothing():
    found = instructions(divide_row, (*ROWS, "fp32"), {"N": 4096})

    assert starting(found, "CALL") == 0
    assert starting(found, "MUFU") <= 2  # a reciprocal for each of the two numbers


def test_exact_division_of_a_row_has_one_cold_branch():
    found = instructions(divide_row_exactly, ("f32[::1]:16", "f32[::1]:16"), {"N": 4096})

    assert starting(found, "CALL") == 1
    assert starting(found, "MUFU.RCP") <= 3  # of the quick way and the cold one: none an element


@triton.jit
def gate(a, b, out, N: tl.constexpr):
    c = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(a + c).to(tl.float32)
    tl.store(out + c, tl.sigmoid(x).to(b.dtype.element_ty) * tl.load(b + c))


@pytest.mark.parametrize("dtype, suffix", [("bf16", ".BF16_V2"), ("fp16", "")])
def test_products_of_16_bits_are_done_in_pairs(dtype, suffix):
    found = instructions(gate, (f"*{dtype}:16",) * 3, {"N": 4096})

    # the assembler shares them between two pipes; one HFMA2.MMA of float16 may be a constant
    pairs = starting(found, f"HMUL2{suffix}") + found[f"HFMA2.MMA{suffix}"]
    assert 0 <= pairs - 4096 // 128 // 2 <= (1 if not suffix else 0)
    assert starting(found, "CALL") == 0


@triton.jit
def add_under_lock(x, out, locks, N: tl.constexpr):
    c, lock = tl.arange(0, N), tl.program_id(0) % 64
    row = tl.load(x + tl.program_id(0) * N + c)
    while tl.atomic_cas(locks + lock, 0, 1) == 1:
        pass
    tl.store(out + lock * N + c, tl.load(out + lock * N + c) + row)
    tl.debug_barrier()
    tl.atomic_xchg(locks + lock, 0)


def test_a_lock_costs_one_fence_of_the_device_for_each_atomic():
    found = instructions(add_under_lock, (*ROWS, "*i32:16"), {"N": 4096}, num_warps=8)

    # two on each way through: the loop's first attempt stands before it
    assert starting(found, "ATOMG") == 3
    assert sum(count for name, count in found.items()
               if name.startswith("MEMBAR") and name.endswith("GPU")) == 3


@triton.jit
def scale_small_ints(q, s, out, N: tl.constexpr):
    c = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + c, (((tl.load(q + c) >> 4) & 15) * tl.load(s + c)).to(tl.float16))


def test_small_ints_meet_halves_without_float64():
    found = instructions(scale_small_ints, ("*i32:16", "*fp16:16", "*fp16:16"), {"N": 1024})

    assert not [name for name in found if name.startswith("D") or "F64" in name]


@triton.jit
def widen(x, out, N: tl.constexpr):
    c = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + c, tl.load(x + c).to(out.dtype.element_ty))


def test_a_bfloat16_is_widened_by_one_instruction():
    found = instructions(widen, ("*bf16:16", "*fp32:16"), {"N": 2048})

    # a shift, which may be a product, or a mask; a few are of the addresses
    assert starting(found, "PRMT", "IMAD.MOV") == 0
    assert 16 <= starting(found, "IMAD.U32", "SHF", "LOP3") <= 16 + 3


@pytest.mark.parametrize("source", ["i8", "u8"])
@pytest.mark.parametrize("to, of_16", [("fp32", 32), ("fp16", 16), ("bf16", 40)])
def test_8_bit_integers_become_floats_without_a_conversion(source, to, of_16):
    found = instructions(widen, (f"*{source}:16", f"*{to}:16"), {"N": 2048})

    assert starting(found, "I2F") == 0
    assert starting(found, "PRMT", "FADD", "HADD2", "F2FP") == of_16


@bn.jit
def convert(x, out, N: bn.constexpr):
    c = bn.program_id(0) * N + bn.arange(N)
    out[c] = x[c].astype(out.dtype)


@pytest.mark.parametrize("kernel, to, packed, moved", [
    (convert, "i8", 8, 0), (convert, "u8", 8, 0), (convert, "i16", 8, 0), (widen, "i8", 8, 4)])
def test_floats_become_narrow_integers_without_comparisons(kernel, to, packed, moved):
    """One instruction limits and packs two; Triton has 8 bits of what is limited to 16."""
    found = instructions(kernel, ("*fp32:16", f"*{to}:16"), {"N": 2048})

    assert starting(found, "VIMNMX", "IMNMX") == 0
    assert starting(found, "I2IP", "F2IP") == packed
    assert starting(found, "PRMT") == moved
