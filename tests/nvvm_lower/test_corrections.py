"""No PTX that we hand to an assembler has an instruction that it gets wrong."""

import pytest

import blocknumba as bn
from blocknumba.nvvm_lower.ptx.corrections import corrected


@bn.jit
def negated(x, out):
    r = bn.span(0, 64)
    out[r] = (-x[r]).to(bn.int64) + bn.abs(x[r] * -1)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100"])
def test_negations_of_16_bits_are_done_in_32(target):
    ptx = bn.compile(negated, "i16[::1]:16, i64[::1]:16", target=target).asm["ptx"]

    assert "neg.s32" in ptx
    assert "neg.s16" not in ptx and "abs.s16" not in ptx


def test_other_text_stays():
    text = b"neg.s32 %r1, %r2; abs.f16 %h1, %h2; add.s16 %rs1, %rs2, %rs3;"
    assert corrected(text) == text
