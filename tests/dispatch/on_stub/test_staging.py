"""Host arrays on a machine with a GPU."""

import numpy as np
import pytest
from stub_libraries import CupyArray, TorchTensor

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import BlockValueError, LaunchError


def make_copy():
    @jit
    def copy(x, out):
        """Never compiled: the test's compiler makes it."""

    return copy


def device_array(launch, first: int, dtype, rank: int) -> np.ndarray:
    """The array whose parameters start at `first`, in the stub's device memory."""
    pointer, *sizes = np.array(launch.parameters[first:first + 1 + 2 * rank], np.uint64)
    shape = [int(size) for size in sizes[:rank]]
    strides = np.array(sizes[rank:], np.uint64).astype(np.int64) * np.dtype(dtype).itemsize
    reach = sum((n - 1) * max(0, int(s)) for n, s in zip(shape, strides))
    behind = sum((n - 1) * min(0, int(s)) for n, s in zip(shape, strides))
    size = reach - behind + np.dtype(dtype).itemsize
    memory = (np.ctypeslib.ctypes.c_char * size).from_address(int(pointer) + behind)
    return np.ndarray(shape, dtype, memory, -behind, tuple(strides))


def run_copy(stub, rank: int, dtype=np.float32):
    """Make launches copy the first array to the second, doubled."""
    def kernel(launch):
        x = device_array(launch, 0, dtype, rank)
        device_array(launch, 1 + 2 * rank, dtype, rank)[...] = 2 * x

    stub.on_launch(kernel)


def test_numpy_arrays_go_to_the_gpu_and_results_come_back(stub, compiler):
    run_copy(stub, 2)
    x, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)

    make_copy()[1](x, out)

    assert stub.launches[0].parameters[0] != x.ctypes.data
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("view", [
    lambda a: a[::2, 1:7:2], lambda a: a[::-1], lambda a: a[:, ::-3], lambda a: a.T,
    lambda a: a[2:3, ::2]], ids=["steps", "backwards", "both", "transposed", "row"])
def test_views_keep_their_strides(stub, compiler, view):
    run_copy(stub, 2)
    x = view(np.arange(48, dtype=np.float32).reshape(6, 8))
    base = np.full((6, 8), -1, np.float32)
    out, untouched = view(base), base.copy()

    make_copy()[1](x, out)

    np.testing.assert_array_equal(out, 2 * x)
    view(untouched)[...] = 2 * x
    np.testing.assert_array_equal(base, untouched)


def test_only_stored_arrays_are_copied_back(stub, compiler):
    copies = stub.copies
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)

    make_copy()[1](x, out)

    assert stub.copies - copies == 3


def test_the_same_array_twice_is_one_copy(stub, compiler):
    copies = stub.copies
    run_copy(stub, 1)
    x = np.arange(4, dtype=np.float32)

    make_copy()[1](x, x)

    assert stub.copies - copies == 2
    assert stub.launches[0].parameters[0] == stub.launches[0].parameters[3]
    np.testing.assert_array_equal(x, [0, 2, 4, 6])


def test_overlapping_views_overlap_on_the_gpu(stub, compiler):
    base = np.arange(8, dtype=np.float32)
    x, out = base[:6], base[2:]

    make_copy()[1](x, out)

    parameters = stub.launches[0].parameters
    assert parameters[3] - parameters[0] == 8


def test_the_alignment_of_addresses_is_kept(stub, compiler):
    base = np.zeros(64, np.float32)
    x = base[1:33]

    make_copy()[1](x, x)

    assert stub.launches[0].parameters[0] % 256 == x.ctypes.data % 256


def test_host_and_device_arrays_mix(stub, compiler):
    run_copy(stub, 1)
    x, out = np.arange(4, dtype=np.float32), CupyArray(np.zeros(4, np.float32))

    make_copy()[1](x, out)
    make_copy()[1](out, result := np.zeros(4, np.float32))

    np.testing.assert_array_equal(out.host, [0, 2, 4, 6])
    np.testing.assert_array_equal(result, [0, 4, 8, 12])


def test_torch_cpu_tensors_are_host_arrays(stub, compiler):
    run_copy(stub, 1)
    x, out = (TorchTensor(np.arange(4, dtype=np.float32), device=None) for _ in range(2))

    for _ in range(2):
        make_copy()[1](x, out)

    np.testing.assert_array_equal(out.host, [0, 2, 4, 6])


def test_empty_host_arrays_copy_nothing(stub, compiler):
    copies = stub.copies
    x = np.zeros((0, 3), np.float32)

    make_copy()[1](x, x)

    assert stub.copies == copies
    assert list(stub.launches[0].parameters[:3]) == [0, 0, 3]


def test_read_only_arrays_can_be_read_but_not_stored_to(stub, compiler):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    copy = make_copy()

    copy[1](x, out)
    with pytest.raises(BlockValueError, match="copy: argument out is read-only"):
        copy[1](out, x)

    assert len(compiler.compilations) == 1


def test_a_kernel_that_fails_while_it_runs_is_an_error_that_names_it(stub, compiler):
    stub.on_launch(lambda launch: stub.fail_next(700))
    x = np.ones(4, np.float32)

    with pytest.raises(LaunchError, match="^copy: cuStreamSynchronize"):
        make_copy()[1](x, x)
