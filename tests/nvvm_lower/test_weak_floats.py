"""The machine code of kernels whose arguments are Python floats."""

import re

import pytest

import blocknumba as bn


@bn.jit
def scale(x, out, a, BLOCK: bn.constexpr):
    for r in bn.grid_spans(x.shape[0], BLOCK):
        out[r] = x[r] * a + a


@bn.jit
def scale_twice(x, out, a, BLOCK: bn.constexpr):
    for r in bn.grid_spans(x.shape[0], BLOCK):
        out[r] = x[r] * (a * 1.44269) + bn.where(x[r] > a, a, 0.0)


def doubles(kernel, dtype: str, target: str) -> list[str]:
    """The instructions on doubles, one word each."""
    compiled = bn.compile(kernel, (f"{dtype}[::1]:16",) * 2 + ("float",), {"BLOCK": 1024},
                          target=target)
    return re.findall(r"^\s*([a-z]\S*f64\S*)", compiled.asm["ptx"], re.MULTILINE)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_float_is_converted_once_for_a_kernel_on_float32(target):
    assert doubles(scale, "f32", target) == ["ld.param.f64", "cvt.rn.f32.f64"]


def test_what_is_computed_of_a_float_alone_is_computed_once():
    found = doubles(scale_twice, "f32", "sm_90a")

    assert sorted(found) == ["cvt.rn.f32.f64"] * 2 + ["ld.param.f64", "mul.rn.f64"]


def test_a_kernel_on_float64_converts_nothing():
    assert not [word for word in doubles(scale, "f64", "sm_90a") if word.startswith("cvt")]
