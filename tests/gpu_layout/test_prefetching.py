"""Products of pipelined loops whose operands are read a part ahead: the same bits, and no waits."""

import re
from dataclasses import replace

import emulated_gpu
import ml_dtypes
import numpy as np
import pytest
from tensor_core_kernels import tile_of

import blocknumba as bn
from blocknumba.emulator.errors import RaceError
from blocknumba.emulator.module import Module
from blocknumba.gpu_layout import pipelining
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.passes.map_dots import map_dots
from blocknumba.gpu_layout.pipelining import pipelining_of

OPTIONS = LayoutOptions(arrays_are_disjoint=True)
BFLOAT16, FLOAT8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
PAD = 32  # rows and columns of arrays beyond what is multiplied: keeps strides aligned


@bn.jit
def product(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr, SUM: bn.constexpr,
            PRECISION: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), SUM)
    for k in bn.spans(a.shape[1], BK):
        acc = bn.dot(a[m, k], b[k, n], acc, precision=PRECISION)
    out[m, n] = acc


def numbers(shape, dtype, seed):
    """Numbers whose sums of products round, except of integers."""
    chosen = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return chosen.integers(-128, 128, shape).astype(dtype)
    return chosen.standard_normal(shape).astype(dtype)


def operands(dtype, rounds_of, by_columns, depth):
    """a, b and how they lie: the depth is masked in the last round, arrays are parts of others."""
    step = -(-max(depth, 1) // rounds_of) * rounds_of + PAD
    a = numbers((64, step), dtype, 1)[:, :depth]
    stored = numbers((64, step) if by_columns else (step, 64), dtype, 2)
    return a, stored[:, :depth].T if by_columns else stored[:depth]


def run(a, b, sums, monkeypatch, ahead=True, kernel=product, target="sm_80", **keywords):
    """The output of the kernel, and what was compiled; ahead: whether operands are read ahead."""
    with monkeypatch.context() as patched:
        if not ahead:
            patched.setattr(pipelining, "prefetch_of", lambda *_: None)
        out = np.full((a.shape[0], b.shape[1]), 77, sums)
        own = bn.jit(kernel.python_function)
        compiled = emulated_gpu.launch(own, (1, 1), (a, b, out), keywords, target)
    return out, compiled


KINDS = {
    "float16": (np.float16, np.float32, bn.float32, "ieee", 32),
    "float16 sums": (np.float16, np.float16, bn.float16, "ieee", 32),
    "bfloat16": (BFLOAT16, np.float32, bn.float32, "ieee", 64),
    "tf32": (np.float32, np.float32, bn.float32, "tf32", 16),
    "int8": (np.int8, np.int32, bn.int32, "ieee", 64),
    "float64": (np.float64, np.float64, bn.float64, "ieee", 16),
}


@pytest.mark.parametrize("by_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_operands_read_ahead_give_the_same_bits(kind, stages, by_columns, monkeypatch):
    dtype, out_dtype, sums, precision, step = KINDS[kind]
    # a mask along the depth that cuts words apart is not for asynchronous copies
    tail = 16 if np.dtype(dtype).itemsize < 4 else 3
    for depth in (tail, step, step + tail, 3 * step, 6 * step - tail):
        a, b = operands(dtype, step, by_columns, depth)
        keywords = {"BM": 64, "BN": 64, "BK": step, "SUM": sums, "PRECISION": precision,
                    "num_stages": stages}

        out, compiled = run(a, b, out_dtype, monkeypatch, **keywords)
        expected, plain = run(a, b, out_dtype, monkeypatch, ahead=False, **keywords)

        assert " shared_part " in compiled.asm["gpu"]
        assert " shared_part " not in plain.asm["gpu"]
        assert out.tobytes() == expected.tobytes()
