"""Counts of elements do not wrap: LLVM sees constant distances between the vectors of a row."""

import re

import numpy as np
from native_kernels import NativeKernel

import blocknumba as bn
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import assembly_text


@bn.jit(device="cpu")
def products(a, x, out, R: bn.constexpr, K: bn.constexpr):
    r, total = bn.block(0, R), bn.zeros((R, K), bn.float32)
    for k in bn.spans(a.shape[1], K):
        total += a[r, k] * x[k][None, :]
    out[r] = bn.sum(total, 1)


def test_addresses_of_a_row_share_a_register():
    native = NativeKernel(products, ("f32[:,::1]", "f32[::1]", "f32[::1]"), {"R": 4, "K": 256})
    code = assembly_text(native.lowered.llvm_ir, host())
    extended = len(re.findall(r"\bmovslq\b|\bcltq\b", code))
    assert extended < 40, "an index of each vector is extended by itself"  # 64 of them were

    a, x = np.random.default_rng().standard_normal((2, 9, 700), np.float32)
    out = np.full(9, np.nan, np.float32)
    native.run((3,), a=a, x=x[0], out=out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ x[0], rtol=1e-4, atol=1e-4)
