"""Launches from functions that Numba compiles, on device arrays."""

import ctypes
import threading

import numpy as np
import pytest
from numba import njit, prange
from own_maps import own_map

import blocknumba as bn
from blocknumba.dispatch.launch.driver import require_driver

cuda = pytest.importorskip("numba.cuda")
MANY = require_driver("test").device_count > 1
INVALID_CONTEXT, INVALID_VALUE = 201, 1


@pytest.fixture
def add(compiler):
    """A kernel that nothing was compiled of."""
    @bn.jit
    def add(x, out, n, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = x[r] + n
    return add


@pytest.fixture
def launch(add):
    @njit
    def launch(x, out, n):
        add[x.shape[0] // 8, 2](x, out, n, B=128)
    return launch


def device_array(*shape, dtype=np.float32):
    return cuda.device_array(shape, dtype)


def compiled_for_the_gpu(compiler) -> int:
    return sum(specialization.target is not None for _, specialization, _ in compiler.compilations)


def test_the_driver_gets_pointers_extents_strides_and_numbers(stub, launch):
    arrays = device_array(64), device_array(64)
    views = [bn.device(array) for array in arrays]
    for n in (3, 3, 5, 1, 2**40):
        launch(*views, n)

    pointers = [array.device_ctypes_pointer.value for array in arrays]
    assert [list(one.parameters[:7:3]) for one in stub.launches] == [
        [*pointers, n] for n in (3, 3, 5, 1, 2**40)]
    assert {(*one.grid, *one.block, one.stream) for one in stub.launches} == {
        (8, 2, 1, 128, 1, 1, 0)}
    assert {tuple(one.parameters[1:3]) for one in stub.launches} == {(64, 1)}


def test_versions_are_compiled_for_what_differs_as_from_python(stub, launch, compiler):
    x, out = device_array(64), device_array(64)
    for n in (3, 3, 5, 16, 1, 48):
        launch(bn.device(x), bn.device(out), n)
    from_njit = compiled_for_the_gpu(compiler)
    launch(bn.device(x[1:33]), bn.device(out), 3)

    assert from_njit == 3
    assert compiled_for_the_gpu(compiler) == 4
    assert len(stub.launches) == 7


def test_a_known_version_is_launched_without_python(stub, launch, monkeypatch):
    views = bn.device(device_array(64)), bn.device(device_array(64))
    launch(*views, 3)
    monkeypatch.setattr("blocknumba.dispatch.njit.site.Site.launch", None)
    launch(*views, 3)

    assert len(stub.launches) == 2


def test_streams_are_those_of_the_launch_else_of_the_arrays(stub, add):
    @njit
    def run(x, out, stream):
        add[(1, 1), stream](x, out, 1, 128)
        add[1](x, out, 1, 128, stream=stream + 1)
        add[1](x, out, 1, 128)

    class Ordered:
        """An array with work on a stream."""

        def __init__(self, array, stream):
            self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": stream}

    x, out = device_array(64), device_array(64)
    for _ in range(2):
        run(bn.device(Ordered(x, 7)), bn.device(Ordered(out, 7)), 0x500)
    assert [one.stream for one in stub.launches] == [0x500, 0x501, 7] * 2

    before = len(stub.launches)
    for _ in range(2):
        run(bn.device(Ordered(x, 7)), bn.device(Ordered(out, 9)), 0x500)
    assert [one.stream for one in stub.launches[before:]] == [0x500, 0x501, 7] * 2
    assert stub.waits == [(7, 9), (9, 7)] * 2


def test_arrays_that_share_memory_get_code_for_that(stub, launch, compiler):
    memory = device_array(128)
    x, out, over = (bn.device(memory[:64]), bn.device(memory[64:]), bn.device(memory[32:96]))
    for arrays in ((x, out), (x, over), (x, out), (x, over)):
        launch(*arrays, 3)

    kinds = [specialization.disjoint for _, specialization, _ in compiler.compilations[-2:]]
    assert kinds == [True, False]


def test_a_thread_without_a_context_gets_one(stub, launch):
    views = bn.device(device_array(64)), bn.device(device_array(64))
    launch(*views, 3)
    thread = threading.Thread(target=launch, args=(*views, 3))
    thread.start()
    thread.join()

    assert [one.device for one in stub.launches] == [0, 0]


def test_the_drivers_refusal_is_an_error_of_ours(stub, add, launch):
    views = bn.device(device_array(64)), bn.device(device_array(64))
    launch(*views, 3)
    stub.fail_next(INVALID_VALUE)
    launch(*views, 3)  # refused once, launched again by Python

    @njit
    def wrong(x, out):
        add[1, 65536](x, out, 1, 128)

    with pytest.raises(bn.errors.BlockValueError, match="given 65536 programs along axis 1"):
        wrong(*views)
    assert len(stub.launches) == 2


def test_launches_in_prange(stub, add):
    @njit(parallel=True)
    def run(x, out):
        for n in prange(20):
            add[1](x, out, n, 128)

    views = bn.device(device_array(64)), bn.device(device_array(64))
    run(*views)

    assert sorted(one.parameters[6] for one in stub.launches) == list(range(20))


@pytest.mark.skipif(not MANY, reason="one device")
def test_launches_go_to_the_device_of_the_arrays(stub, launch):
    with cuda.gpus[1]:
        views = bn.device(device_array(64)), bn.device(device_array(64))
    for _ in range(2):
        launch(*views, 3)
    with cuda.gpus[1]:
        launch(*views, 3)

    assert [one.device for one in stub.launches] == [1, 1, 1]


def test_arrays_of_several_places_are_a_mistake(launch):
    with pytest.raises(Exception, match="argument x is in host memory and argument out is on dev"):
        launch(np.zeros(64, np.float32), bn.device(device_array(64)), 3)


def test_host_arrays_are_no_device_arrays():
    with pytest.raises(bn.errors.BlockTypeError, match="accepted an array in GPU memory"):
        bn.device(np.zeros(4))
    with pytest.raises(bn.errors.BlockTypeError, match="accepted an array in GPU memory"):
        bn.device(4)


def test_device_arrays_tell_their_shape():
    @njit
    def told(x):
        return x.shape, x.ndim, x.size

    assert told(bn.device(device_array(4, 6))) == ((4, 6), 2, 24)


def test_tensor_maps_are_encoded_once_for_the_arrays_that_they_describe(stub, compiler):
    compiler.maps = (own_map("x", (1, 0), (64, 128), 128),)

    @bn.jit
    def scale(x, out, B: bn.constexpr):
        """Never compiled: the test's compiler makes it."""

    @njit
    def run(x, out):
        scale[1](x, out, B=64)

    arrays = [device_array(256, 320, dtype=np.float16) for _ in range(3)]
    one, other, out = map(bn.device, arrays)
    for x in (one, other, one, one, other):
        run(x, out)

    described = [ctypes.string_at(launch.addresses[10], 128) for launch in stub.launches[-2:]]
    assert [int.from_bytes(text[24:32], "little") for text in described] == [one.pointer,
                                                                             other.pointer]
    assert stub.encoded_maps == 2
    assert len(stub.launches) == 5
