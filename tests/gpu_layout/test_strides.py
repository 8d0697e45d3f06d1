"""Pointers of pipelined loops with a constant increment are carried, not computed."""

import emulated_gpu
import numpy as np
import pytest
from tensor_core_kernels import tile_of

import blocknumba as bn
from blocknumba.gpu_layout.async_copies.pipeline_loops import pipeline_loops
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.uses import is_loop

OPTIONS = LayoutOptions(arrays_are_disjoint=True)
SIZE = 256


@bn.jit
def steps(x, out, first, stop, step, stride, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(first, stop, step, num_stages=3):
        acc += bn.load(x + (i * stride + i + B) + bn.arange(0, B))
    bn.store(out + bn.arange(0, B), acc)


@bn.jit
def backwards(x, out, first, stop, step, stride, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(first, stop, step, num_stages=3):
        acc += bn.load(x + (8 - i) * stride + bn.arange(0, B))
    bn.store(out + bn.arange(0, B), acc)


@bn.jit
def squares(x, out, first, stop, step, stride, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(first, stop, step, num_stages=3):
        acc += bn.load(x + i * i * stride + bn.arange(0, B))
    bn.store(out + bn.arange(0, B), acc)


@bn.jit
def narrow(x, out, first, stop, step, stride, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(first, stop, step, num_stages=3):
        wrapped = bn.cast(bn.cast(i * 100, bn.uint8), bn.int32)
        acc += bn.load(x + wrapped * stride + bn.arange(0, B))
    bn.store(out + bn.arange(0, B), acc)


INDEX = {
    steps: lambda i, stride: i * stride + i + SIZE,
    backwards: lambda i, stride: (8 - i) * stride,
    squares: lambda i, stride: i * i * stride,
    narrow: lambda i, stride: i * 100 % 256 * stride,
}


@pytest.mark.parametrize("bounds", [(0, 7, 1), (1, 8, 3), (6, 0, -2), (3, 3, 1), (2, 3, 5)],
                         ids=str)
@pytest.mark.parametrize("kernel", INDEX, ids=lambda kernel: kernel.__name__)
def test_what_is_loaded_is_the_same(kernel, bounds):
    stride = 16
    x = np.random.default_rng(3).standard_normal(8192).astype(np.float32)
    out = np.full(SIZE, 77, np.float32)
    expected = np.zeros(SIZE, np.float32)
    for i in range(*bounds):
        start = INDEX[kernel](i, stride)
        expected += x[start:][:SIZE]

    emulated_gpu.launch(bn.jit(kernel.python_function), (1,),
                        (x, out, *bounds, stride), {"B": SIZE}, "sm_80")

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kernel, expected", [(steps, 1), (backwards, 1), (squares, 0),
                                              (narrow, 0)], ids=str)
def test_pointers_are_carried_that_go_on_by_the_same(kernel, expected):
    types = ("f32[::1]:16",) * 2 + ("i32",) * 4
    fn = pipeline_loops(tile_of(kernel, types, {"B": SIZE}), OPTIONS)
    (loop,) = filter(is_loop, walk(fn.body))

    pointers = [arg for arg in loop.regions[0].args if arg.type.is_pointer]

    assert len(pointers) == expected
    inside = {op.name for op in walk(loop.regions[0])}
    assert ("mul" in inside) == (not expected)
