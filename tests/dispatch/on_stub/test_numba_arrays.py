"""Numba's device arrays and streams."""

import numpy as np
import pytest

import blocknumba as bn

cuda = pytest.importorskip("numba.cuda")


@bn.jit
def add(x, y, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + y[r]


@pytest.fixture
def arrays():
    return [cuda.to_device(np.arange(1000, dtype=np.float32)) for _ in range(3)]


def test_device_arrays_are_passed_by_their_pointers_cold_and_warm(stub, arrays):
    stub.expect_parameters(6)
    for _ in range(2):
        add[8](*arrays, B=128)

    pointers = [array.device_ctypes_pointer.value for array in arrays]
    for launch in stub.launches:
        assert list(launch.parameters[:6:2]) == pointers
        assert list(launch.parameters[1:6:2]) == [1000] * 3


def test_empty_device_arrays_are_passed(stub):
    empty = cuda.device_array((0,), np.float32)
    for _ in range(2):
        add[1](empty, empty, empty, B=128)

    assert len(stub.launches) == 2


def test_numbas_streams_are_streams(stub, arrays):
    stream = cuda.stream()
    for _ in range(2):
        add[8, stream](*arrays, B=128)

    assert [launch.stream for launch in stub.launches] == [int(stream.handle)] * 2
