"""`compiled.stats.advice`: habits of NumPy's and CUDA's that are slow, and what to write."""

from __future__ import annotations

from html import unescape

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl

VECTOR = "f32[::1]:16, f32[::1]:16"
MATRIX = "f32[:,::1]:16, f32[:,::1]:16"


@bn.jit
def element_of_each_program(x, y):
    i = bn.program_id(0)
    y[i] = x[i] * 2


@bn.jit
def few_elements(x, y):
    i = bn.block(0, 32)
    y[i] = x[i] * 2


@bn.jit
def loop_of_one_program(x, y):
    for i in bn.spans(x.shape[0], 1024):
        y[i] = x[i] * 2


@bn.jit
def loop_over_elements(x, y):
    n = bn.program_id(0)
    for i in range(n * 1000, n * 1000 + 1000):
        y[i] = x[i] * 2


@bn.jit
def double_constant(x, y):
    i = bn.block(0, 1024)
    y[i] = x[i] * np.float64(1.1)


@bn.jit
def column(x, y):
    rows = bn.span(0, 1024)
    y[rows, bn.program_id(0)] = x[rows, bn.program_id(0)] * 2


@bn.jit
def row(x, y):
    columns = bn.span(0, 1024)
    y[bn.program_id(0), columns] = x[bn.program_id(0), columns] * 2


@bn.jit
def as_it_should_be(x, y):
    for i in bn.grid_spans(x.shape[0], 1024):
        y[i] = x[i] * 2


@bn.jit
def gathered(x, y):
    i = bn.block(0, 1024)
    y[i] = x[(x[i] * 100).astype(np.int32)]


@bn.jit
def wrapped(x, y):
    i = bn.block(0, 1024)
    y[i] = x[i.index * 7 % x.shape[0]]


@bn.jit
def whole_rows(x, y):
    columns = bn.span(0, 65536)
    values = x[bn.program_id(0), columns]
    y[bn.program_id(0), columns] = (values - values.mean()) / values.std()


@bn.jit
def product(x, y):
    m, n = bn.block(0, 64), bn.block(1, 64)
    y[m, n] = x[m, bn.span(0, 64)] @ x[bn.span(0, 64), n]


CASES = [
    (element_of_each_program, VECTOR, ["a program's largest tile has size 1: "]),
    (few_elements, VECTOR, ["a program's largest tile has size 32: "]),
    (loop_of_one_program, VECTOR, ["one program does all of the loop: "]),
    (loop_over_elements, VECTOR, ["the loop moves one element at a time: "]),
    (double_constant, VECTOR, ["float64, which no array has: "]),
    (column, MATRIX, ["elements of x are not side by side", "elements of y are not side by side"]),
    (row, "f32[:,:], f32[:,::1]:16", ["pass np.ascontiguousarray(x)"]),
    (as_it_should_be, VECTOR, []),
    (gathered, VECTOR, []),
    (wrapped, VECTOR, []),
    (row, MATRIX, []),
]
OF_GPUS = [
    (row, "f32[:,::1], f32[:,::1]:16",
     ["rows of x begin at no multiple of 16 bytes"]),
    (whole_rows, MATRIX, [" bytes of values go through memory"]),
    (product, MATRIX, ["exact products of float32 use no tensor cores: "]),
]


def arrays(signature: str) -> list[np.ndarray]:
    """Arrays of a signature's dtypes and strides."""
    made = []
    for text in signature.split(", "):
        array = np.ones((2048,) if "," not in text else (1024, 2048), np.float32)
        made.append(array[:, ::2] if "[:,:]" in text else array)
    return made


@pytest.mark.parametrize("kernel,signature,expected", CASES, ids=[
    f"{case[0].__name__} {case[1]}" for case in CASES])
def test_the_cpu_s_stats_tell_what_is_slow(kernel, signature, expected):
    compiled = kernel[1](*arrays(signature))

    check(compiled.stats, expected)


@pytest.mark.parametrize("kernel,signature,expected", OF_GPUS, ids=[
    case[0].__name__ for case in OF_GPUS])
def test_a_gpu_s_stats_tell_what_is_slow_there(kernel, signature, expected):
    check(bn.compile(kernel, signature, target="sm_90a").stats, expected)


@triton.jit
def one_program_by_elements(x, y):
    for i in range(2048):
        tl.store(y + i, tl.load(x + i) * 2)


@triton.jit
def small_tiles(x, y):
    i = tl.program_id(0) * 32 + tl.arange(0, 32)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def strided(x, y):
    i = tl.arange(0, 128)
    tl.store(y + i, tl.load(x + 3 * i) * tl.full((128,), 2, tl.float64))


def test_advice_on_a_kernel_of_triton_s_dialect_is_in_triton_s_words():
    stats = [kernel[1](*arrays(signature)).stats for kernel, signature in (
        (one_program_by_elements, VECTOR), (small_tiles, VECTOR),
        (strided, "f32[:,:], f32[::1]:16"))]

    check(stats[0], ["by tl.program_id(0)", "add tl.arange(0, 1024)"])
    check(stats[1], ["take larger ones, tl.arange(0, 1024)"])
    check(stats[2], ["x.to(tl.float32), keeps float32", "pass x.contiguous()"])
    assert not any("bn." in line or "np." in line for each in stats for line in each.advice)


def check(stats, expected: list[str]) -> None:
    """Compare the advice, and see that all of it is printed."""
    assert len(stats.advice) == len(expected), stats.advice
    assert all(part in line for part, line in zip(expected, stats.advice))
    assert all(line in str(stats) and line in unescape(stats._repr_html_())
               for line in stats.advice)
