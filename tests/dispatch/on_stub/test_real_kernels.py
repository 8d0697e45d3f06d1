"""Kernels that our compiler made, given to the stub driver: what is packed is what they take."""

import ctypes

import numpy as np
import pytest
from stub_libraries import CupyArray, TorchTensor

import blocknumba as bn
from blocknumba.tile_ir import interpreter

pytest.importorskip("cuda.bindings.nvvm")


@bn.jit
def scale(x, out, factor, shift, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """out = x * factor + shift"""
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[rows, columns] = x[rows, columns] * factor + shift


def interpret_launches(stub, kernel):
    """Make launches run the tile IR of the code last compiled, on what the driver was given."""
    def run(launch):
        (*_, compiled) = kernel._compiled.values()
        given = dict(zip(compiled.machine.parameters, launch.parameters))
        arguments = {}
        for name, argument in compiled.specialization.arguments:
            if hasattr(argument, "rank"):
                arguments[name] = _array(name, argument, given)
                continue
            word = next(w for p, w in given.items() if p.argument == name)
            dtype = argument.dtype.numpy
            arguments[name] = np.frombuffer(int(word).to_bytes(8, "little"), dtype)[0]
        interpreter.run(compiled.tile, tuple(launch.grid), arguments)

    stub.on_launch(run)


def _array(name, argument, given) -> np.ndarray:
    """The array of an argument, in the stub's device memory; constant strides are not passed."""
    words = {(p.kind, p.axis): int(word) for p, word in given.items() if p.argument == name}
    shape = [words["extent", axis] & 0xFFFFFFFF for axis in range(argument.rank)]
    strides = [words.get(("stride", axis), argument.strides[axis]) for axis in range(argument.rank)]
    strides = [int(np.uint32(s & 0xFFFFFFFF).astype(np.int32)) for s in strides]
    item = argument.dtype.bytes
    behind = sum((n - 1) * min(0, s) for n, s in zip(shape, strides)) * item
    ahead = sum((n - 1) * max(0, s) for n, s in zip(shape, strides)) * item
    memory = (ctypes.c_char * (ahead - behind + item)).from_address(
        words["pointer", None] + behind)
    return np.ndarray(shape, argument.dtype.numpy, memory, -behind, [s * item for s in strides])


@pytest.mark.parametrize("view", [
    lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[3:, 1:2]],
    ids=["whole", "transposed", "steps", "column"])
@pytest.mark.parametrize("library", [lambda a: a, CupyArray], ids=["host", "device"])
def test_results_are_right(stub, view, library):
    kernel = bn.jit(scale.python_function)
    interpret_launches(stub, kernel)
    x = view(np.arange(20 * 33, dtype=np.float32).reshape(20, 33))
    if library is CupyArray and not (x.flags.c_contiguous or x.flags.f_contiguous):
        x = np.ascontiguousarray(x)
    out = np.zeros_like(x)
    here, there = library(x), library(out)
    grid = bn.cdiv(x.shape[0], 8), bn.cdiv(x.shape[1], 16)

    for factor, shift in ((3, 0.5), (5, 2.0), (5, 2.0)):
        stub.expect_parameters(len(kernel.warmup(
            here, there, factor, shift, ROWS=8, COLUMNS=16).machine.parameters))
        kernel[grid](here, there, factor, shift, ROWS=8, COLUMNS=16)

        found = there.host if library is CupyArray else out
        np.testing.assert_array_equal(found, x * np.float32(factor) + np.float32(shift))


@pytest.mark.parametrize("library", [CupyArray, TorchTensor])
def test_device_arrays_are_copied_for_a_run_on_the_cpu(stub, library):
    x = library(np.arange(12, dtype=np.float32).reshape(3, 4))
    out = library(np.zeros((3, 4), np.float32))
    untouched = x.host.copy()

    scale[1, 1](x, out, 3, 0.5, ROWS=4, COLUMNS=4, interpret=True)

    assert stub.launches == []
    np.testing.assert_array_equal(out.host, x.host * 3 + 0.5)
    np.testing.assert_array_equal(x.host, untouched)


def test_host_and_device_arrays_mix_in_a_run_on_the_cpu(stub):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = CupyArray(np.zeros((3, 4), np.float32))

    scale[1, 1](x, out, 3, 0.5, ROWS=4, COLUMNS=4, interpret=True)

    np.testing.assert_array_equal(out.host, x * 3 + 0.5)


def test_the_same_device_array_twice_is_one_array_on_the_cpu(stub):
    x = CupyArray(np.arange(12, dtype=np.float32).reshape(3, 4))
    expected = x.host * 3 + 0.5

    scale[1, 1](x, x, 3, 0.5, ROWS=4, COLUMNS=4, interpret=True)

    np.testing.assert_array_equal(x.host, expected)


def test_a_changed_global_is_seen_by_the_warm_path(stub, monkeypatch):
    kernel = bn.jit(fill_with_global)
    interpret_launches(stub, kernel)
    out = CupyArray(np.zeros(16, np.float32))
    stub.expect_parameters(2)

    for value in (1, 1, 2, 2, 1):
        monkeypatch.setitem(globals(), "VALUE", value)
        compiled = kernel[1](out)
        stub_value = f"value={value}"
        assert stub_value in compiled.asm["tile"]


VALUE = 1


def fill_with_global(out):
    out[bn.span(0, 16)] = VALUE
