"""What reaches the driver when a kernel is launched."""

import struct
import threading

import numpy as np
import pytest
from stub_libraries import CURRENT, CupyArray, InterfaceArray, TorchTensor

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import BlockTypeError, BlockValueError, LaunchError, ResourceError


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


def make_scale():
    @jit
    def scale(x, out, n, factor, B: constexpr):
        """Never compiled: the test's compiler makes it."""

    return scale


@pytest.fixture
def arrays():
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    return CupyArray(values), CupyArray(np.zeros_like(values))


def words(*values) -> list[int]:
    return [value & 0xFFFFFFFFFFFFFFFF for value in values]


def float_bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def test_a_launch_packs_pointers_extents_strides_and_numbers(stub, compiler, arrays):
    x, out = arrays

    make_scale()[(5, 2)](x, out, 7, 0.5, B=64)

    (launch,) = stub.launches
    assert list(launch.grid) == [5, 2, 1]
    assert list(launch.block) == [128, 1, 1]
    pointers_and_sizes = [x.data.ptr, 3, 4, 4, 1, out.data.ptr, 3, 4, 4, 1]
    assert list(launch.parameters[:10]) == words(*pointers_and_sizes)
    assert launch.parameters[10] == 7
    assert launch.parameters[11] == float_bits(0.5)


def test_the_second_launch_of_a_call_signature_is_packed_in_the_same_way(stub, compiler, arrays):
    x, out = arrays
    scale = make_scale()

    for _ in range(3):
        scale[4](x, out, 5, 1.5, B=64)

    first, *others = [bytes(launch)[:type(launch).addresses.offset] for launch in stub.launches]
    assert others == [first, first]
    assert len(compiler.compilations) == 1


def test_negative_ints_are_packed_in_twos_complement_cold_and_warm(stub, compiler, arrays):
    scale = make_scale()

    for _ in range(2):
        scale[4](*arrays, -5, 1.5, B=64)

    for launch in stub.launches:
        assert launch.parameters[10] & 0xFFFFFFFF == 2**32 - 5


def test_new_values_and_new_arrays_reach_the_kernel(stub, compiler, arrays):
    x, out = arrays
    scale = make_scale()
    scale[4](x, out, 7, 0.5, B=64)
    scale[4](x, out, 7, 0.5, B=64)

    other = CupyArray(np.ones((3, 4), np.float32))
    scale[4](other, out, 9, 2.5, B=64)

    parameters = stub.launches[-1].parameters
    assert parameters[0] == other.data.ptr
    assert parameters[10] == 9
    assert parameters[11] == float_bits(2.5)
    assert len(compiler.compilations) == 1


def test_new_shapes_reach_the_kernel_without_a_compilation(stub, compiler):
    scale = make_scale()
    for rows in (3, 5, 3):
        x = CupyArray(np.zeros((rows, 4), np.float32))
        scale[1](x, x, 7, 0.5, B=64)

    assert [launch.parameters[1] for launch in stub.launches] == [3, 5, 3]
    assert len(compiler.compilations) == 1


@pytest.mark.parametrize("make", [CupyArray, TorchTensor])
def test_new_strides_reach_the_kernel_cold_and_warm(stub, compiler, make):
    scale, square = make_scale(), np.zeros((4, 4), np.float32)
    out = make(square)

    for _ in range(2):
        for values in (square, square.T):
            scale[1](make(values), out, 7, 0.5, B=64)

    assert [list(launch.parameters[3:5]) for launch in stub.launches] == [[4, 1], [1, 4]] * 2


def test_tensors_on_the_host_and_on_the_gpu_take_turns(stub, compiler):
    scale, values = make_scale(), np.zeros(4, np.float32)

    for device in (0, None, 0, None):
        x, out = TorchTensor(values, device), TorchTensor(values, device)
        copies = stub.copies
        scale[1](x, out, 7, 0.5, B=64)
        assert (stub.copies > copies) == (device is None)

    assert len(stub.launches) == 4


def test_negative_strides_are_packed_in_twos_complement(stub, compiler):
    x = InterfaceArray(np.arange(8, dtype=np.int16)[::-1])

    make_scale()[1](x, x, 7, 0.5, B=64)

    assert list(stub.launches[0].parameters[:3]) == words(x.host.ctypes.data, 8, -1)


@pytest.mark.parametrize("dtype, value", [
    (np.int8, -3), (np.uint16, 65535), (np.int64, -2**40), (np.uint64, 2**63 + 5),
    (np.float16, 65504.0), (np.float64, 1e300), (np.bool_, True), (np.float32, -0.0)])
def test_numpy_scalars_are_packed_exactly_cold_and_warm(stub, compiler, arrays, dtype, value):
    x, out = arrays
    scale = make_scale()
    given = dtype(value)

    for _ in range(2):
        scale[1](x, out, 7, given, B=64)

    for launch in stub.launches:
        packed = int(launch.parameters[11]).to_bytes(8, "little")[:given.nbytes]
        assert packed == given.tobytes()


@pytest.mark.parametrize("declared, given, expected", [
    ("float16", 42.0, np.float16(42)), ("float16", -65500.0, np.float16(-65500.0)),
    ("float64", 0.1, np.float64(0.1)), ("float32", 3, np.float32(3)),
    ("int64", 2**40, np.int64(2**40)), ("uint64", 2**63 + 5, np.uint64(2**63 + 5)),
    ("uint16", np.int64(7), np.uint16(7)), ("int8", -128, np.int8(-128)),
    ("bool_", True, np.bool_(True)), ("uint32", np.array(5, np.uint8), np.uint32(5))])
def test_numbers_are_packed_in_the_declared_dtype_cold_and_warm(stub, compiler, declared, given,
                                                                expected):
    def scale(x, factor):
        """Never compiled."""
    scale.__annotations__["factor"] = f"bn.{declared}"
    scale, x = jit(scale), CupyArray(np.zeros(4, np.float32))

    for _ in range(2):
        scale[1](x, given)

    for launch in stub.launches:
        packed = int(launch.parameters[3]).to_bytes(8, "little")[:expected.nbytes]
        assert packed == expected.tobytes()


def test_bfloat16_numbers_are_packed_as_their_bits(stub, compiler, arrays):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    scale = make_scale()

    for _ in range(2):
        scale[1](*arrays, 7, ml_dtypes.bfloat16(1.5), B=64)

    assert [launch.parameters[11] for launch in stub.launches] == [0x3FC0] * 2


@pytest.mark.parametrize("declared, valid, value, error", [
    ("int8", 127, 128, BlockValueError), ("uint16", 0, -1, BlockValueError),
    ("float16", 1.0, 1e6, BlockValueError), ("float32", 1.0, 1e300, BlockValueError),
    ("int32", 1, 1.5, BlockTypeError),
    ("bool_", True, 1, BlockTypeError)])
def test_a_number_out_of_the_declared_range_is_an_error_also_when_warm(stub, compiler, declared,
                                                                       valid, value, error):
    def scale(x, factor):
        """Never compiled."""
    scale.__annotations__["factor"] = declared
    scale, x = jit(scale), CupyArray(np.zeros(4, np.float32))
    scale[1](x, valid)

    with pytest.raises(error, match="scale: argument factor: given"):
        scale[1](x, value)


def test_a_python_float_is_packed_with_all_its_bits_and_compiled_once(stub, compiler, arrays):
    scale, given = make_scale(), (0.1, 1e300, -0.0, 0.0, float("inf"))

    for value in given:
        scale[1](*arrays, 7, value, B=64)

    assert [launch.parameters[11] for launch in stub.launches] == [*map(float_bits, given)]
    assert len(compiler.compilations) == 1


@pytest.mark.parametrize("given", [3, 0.1, np.float32(0.1), np.float64(0.1), np.int8(-3)])
def test_numbers_annotated_as_floats_are_packed_as_doubles_cold_and_warm(stub, compiler, given):
    @jit
    def scale(x, factor: float):
        """Never compiled."""
    x = CupyArray(np.zeros(4, np.float32))

    for _ in range(2):
        scale[1](x, given)

    assert [launch.parameters[3] for launch in stub.launches] == [float_bits(float(given))] * 2


@pytest.mark.parametrize("declared", ["float", "float64"])
def test_an_int_beyond_all_floats_is_an_error_also_when_warm(stub, compiler, declared):
    def scale(x, factor):
        """Never compiled."""
    scale.__annotations__["factor"] = declared
    scale, x = jit(scale), CupyArray(np.zeros(4, np.float32))
    scale[1](x, 1)

    with pytest.raises(BlockValueError, match=r"scale: argument factor: given 2\*\*1328 or more"):
        scale[1](x, 10**400)


def test_an_int_beyond_64_bits_is_an_error_also_when_warm(stub, compiler, arrays):
    scale = make_scale()
    scale[1](*arrays, 7, 1.0, B=64)

    with pytest.raises(BlockValueError, match="argument n: given 18446744073709551616"):
        scale[1](*arrays, 2**64, 1.0, B=64)


def test_options_set_the_block_and_compile_anew(stub, compiler, arrays):
    scale = make_scale()

    for num_warps in (1, 4, 8, 4):
        scale[1](*arrays, 7, 1.0, B=64, num_warps=num_warps)

    assert [launch.block[0] for launch in stub.launches] == [32, 128, 256, 128]
    assert len(compiler.compilations) == 3


def test_a_grid_function_sees_arguments_and_options(stub, compiler, arrays):
    scale = make_scale()
    seen = []

    def grid(meta):
        seen.append(meta)
        return meta["n"] // meta["B"], meta["num_warps"]

    for _ in range(2):
        scale[grid](*arrays, 640, 1.0, B=64, num_warps=8)

    assert [list(launch.grid) for launch in stub.launches] == [[10, 8, 1]] * 2
    assert seen[0].keys() == seen[1].keys()
    assert seen[1]["x"] is arrays[0]


def test_a_grid_with_a_zero_launches_nothing_but_checks_the_arguments(stub, compiler, arrays):
    scale = make_scale()
    for grid in (0, (0,), (4, 0), (0, 1, 3)):
        scale[grid](*arrays, 7, 1.0, B=64)
    with pytest.raises(BlockTypeError, match="argument n: given 'seven'"):
        scale[0](*arrays, "seven", 1.0, B=64)

    assert stub.launches == []


def test_an_empty_array_may_have_a_null_pointer(stub, compiler):
    x = InterfaceArray(np.zeros((0, 3), np.float32))

    make_scale()[1](x, x, 7, 1.0, B=64)

    assert list(stub.launches[0].parameters[:5]) == [0, 0, 3, 3, 1]


def test_more_than_48_kib_of_shared_memory_is_asked_for_once(stub, compiler, arrays):
    compiler.shared_bytes = 100 * 1024
    scale = make_scale()

    scale[1](*arrays, 7, 1.0, B=64)
    scale[1](*arrays, 7, 1.0, B=64)

    assert stub.shared_limit == 100 * 1024
    assert [launch.shared for launch in stub.launches] == [100 * 1024] * 2
    assert stub.loads == 1


def test_a_refused_launch_is_an_error_that_names_the_kernel(stub, compiler, arrays):
    scale = make_scale()
    scale[1](*arrays, 7, 1.0, B=64)

    stub.fail_next(701)
    with pytest.raises(ResourceError, match=r"scale: launch of \(3, 1, 1\) programs failed"):
        scale[3](*arrays, 7, 1.0, B=64)


def test_a_refused_first_launch_is_an_error_that_names_the_kernel(stub, compiler, arrays):
    stub.fail_next(700)
    with pytest.raises(LaunchError, match="^scale: launch of"):
        make_scale()[3](*arrays, 7, 1.0, B=64)


def test_threads_do_not_mix_their_arguments(stub, compiler):
    scale = make_scale()
    seen, lock = [], threading.Lock()

    def kernel(launch):
        with lock:
            seen.append((launch.parameters[0], launch.parameters[6]))

    stub.on_launch(kernel)
    arrays = [CupyArray(np.zeros(16, np.float32)) for _ in range(8)]

    def work(number):
        for _ in range(50):
            scale[1](arrays[number], arrays[number], 101 + 2 * number, 1.0, B=64)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    expected = {(array.data.ptr, 101 + 2 * number) for number, array in enumerate(arrays)}
    assert len(seen) == 400
    assert set(seen) == expected
    assert len(compiler.compilations) == 1


def test_a_launch_goes_to_the_current_stream_of_the_arrays_library(stub, compiler, arrays,
                                                                   monkeypatch):
    scale = make_scale()
    monkeypatch.setattr(CURRENT, "cupy", 0x111)
    scale[1](*arrays, 7, 1.0, B=64)
    monkeypatch.setattr(CURRENT, "cupy", 0x222)
    scale[1](*arrays, 7, 1.0, B=64)

    tensor = TorchTensor(np.zeros(4, np.float32))
    monkeypatch.setattr(CURRENT, "torch", 0x333)
    scale[1](tensor, tensor, 7, 1.0, B=64)
    scale[1](tensor, tensor, 7, 1.0, B=64)

    assert [launch.stream for launch in stub.launches] == [0x111, 0x222, 0x333, 0x333]
    assert stub.waits == []


class NumbaStream:
    def __cuda_stream__(self):
        return (0, 0x444)


class CupyStream:
    ptr = 0x555


class TorchStream:
    cuda_stream = 0x666


@pytest.mark.parametrize("stream, handle", [
    (NumbaStream(), 0x444), (CupyStream(), 0x555), (TorchStream(), 0x666), (0x777, 0x777)])
def test_a_stream_can_be_given_in_the_brackets_and_by_keyword(stub, compiler, arrays, stream,
                                                              handle):
    scale = make_scale()

    for _ in range(2):
        scale[(1,), stream](*arrays, 7, 1.0, B=64)
        scale[1](*arrays, 7, 1.0, B=64, stream=stream)

    assert [launch.stream for launch in stub.launches] == [handle] * 4


def test_two_ints_in_the_brackets_are_a_grid(stub, compiler, arrays):
    make_scale()[8, 128](*arrays, 7, 1.0, B=64)

    assert list(stub.launches[0].grid) == [8, 128, 1]


def test_a_launch_waits_for_the_stream_that_an_array_says_it_is_written_on(stub, compiler):
    x = InterfaceArray(np.zeros(4, np.float32), stream=0x10)
    out = InterfaceArray(np.zeros(4, np.float32), stream=0x20)

    make_scale()[1](x, out, 7, 1.0, B=64)

    (launch,) = stub.launches
    assert launch.stream == 0x10
    assert stub.waits == [(0x10, 0x20), (0x20, 0x10)]


def test_arrays_of_two_libraries_are_ordered_on_both_streams(stub, compiler, monkeypatch):
    monkeypatch.setattr(CURRENT, "cupy", 0x111)
    monkeypatch.setattr(CURRENT, "torch", 0x333)
    x, out = CupyArray(np.zeros(4, np.float32)), TorchTensor(np.zeros(4, np.float32))

    make_scale()[1](x, out, 7, 1.0, B=64)

    assert stub.launches[0].stream == 0x111
    assert stub.waits == [(0x111, 0x333), (0x333, 0x111)]


def test_none_specialises_and_takes_no_parameter(stub, compiler, arrays):
    scale, array = make_scale(), CupyArray(np.zeros(4, np.float32))

    for factor in (array, None, array, None):
        scale[1](*arrays, 7, factor, B=64)

    assert len(stub.launches) == 4
    assert [constants for _, _, constants in compiler.compilations] == [
        {"B": 64}, {"factor": None, "B": 64}]


def test_arrays_that_share_memory_get_code_of_their_own_cold_and_warm(stub, compiler):
    scale = make_scale()
    memory = CupyArray(np.zeros(64, np.float32))
    x, near, far = (CupyView(memory, start) for start in (0, 4, 8))

    seen = []
    for out in (far, x, far, x, near, far):
        compiled = scale[1](x, out, 7, 1.0, B=64)
        seen.append(compiled.specialization.disjoint)

    assert seen == [True, False, True, False, False, True]
    assert len(compiler.compilations) == 2


class CupyView(CupyArray):
    """Eight elements of another array, from a given one."""

    def __init__(self, memory: CupyArray, start: int):
        self.host = memory.host[start:start + 8]
        self.data = type(memory.data)(memory.data.ptr + 4 * start, 0)
