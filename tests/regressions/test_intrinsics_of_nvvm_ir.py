"""Code calls no intrinsic of LLVM that NVVM IR lacks: CUDA 13.0 checks and refuses llvm.trunc."""

import re

import pytest

import blocknumba as bn

# NVVM IR Specification, "Intrinsic Functions": those of LLVM's that are supported
SUPPORTED = {"sqrt", "fma", "floor", "ceil", "fabs", "minnum", "maxnum", "assume"}


@bn.jit
def rounded(x, out):
    r = bn.span(0, 64)
    v = x[r]
    out[r] = (bn.trunc(v) + bn.floor(v) + bn.ceil(v) + bn.rint(v) + bn.fma(v, v, v)
              + bn.abs(v) + bn.fmin(v, bn.fmax(bn.sqrt(v), bn.copysign(v, -v))))


@pytest.mark.parametrize("signature", ["f32[::1]:16, f32[::1]:16", "f64[::1]:16, f64[::1]:16"])
def test_intrinsics_are_those_of_the_specification(signature):
    text = bn.compile(rounded, signature, target="sm_90a").asm["nvvm"]

    assert set(re.findall(r"@llvm\.(\w+)\.", text)) - {"nvvm"} <= SUPPORTED
