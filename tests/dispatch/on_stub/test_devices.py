"""Machines with more than one GPU."""

import numpy as np
import pytest
from stub_libraries import CURRENT, DEVICES, CupyArray, TorchTensor

from blocknumba.dispatch.launch.driver import find_driver  # noqa: E402
from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import BlockValueError

pytestmark = pytest.mark.skipif(DEVICES < 2, reason="one device")


def make_copy():
    @jit
    def copy(x, out):
        """Never compiled: the test's compiler makes it."""

    return copy


@pytest.mark.parametrize("make", [CupyArray, TorchTensor], ids=["cupy", "torch"])
def test_a_launch_goes_to_the_device_of_its_arrays(stub, compiler, make):
    copy = make_copy()
    with find_driver().on_device(0):
        for device in (0, 1, 0, 1):
            x = make(np.zeros(4, np.float32), device)
            copy[1](x, x)

        assert find_driver().current_device() == 0
    assert [launch.device for launch in stub.launches] == [0, 1, 0, 1]
    assert len(compiler.compilations) == 1


def test_torch_launches_go_to_the_current_stream_of_the_arrays_device(stub, compiler,
                                                                      monkeypatch):
    monkeypatch.setattr(CURRENT, "torch", 0x300)
    x = TorchTensor(np.zeros(4, np.float32), device=1)
    copy = make_copy()

    for _ in range(2):
        copy[1](x, x)

    assert [launch.stream for launch in stub.launches] == [0x301] * 2


def test_arrays_of_two_devices_are_an_error(stub, compiler):
    x, out = (CupyArray(np.zeros(4, np.float32), device) for device in (0, 1))

    with pytest.raises(BlockValueError,
                       match="copy: argument x is on device 0 and argument out on device 1"):
        make_copy()[1](x, out)


def test_host_arrays_go_to_the_current_device(stub, compiler):
    x = np.zeros(4, np.float32)

    with find_driver().on_device(1):
        make_copy()[1](x, x)

    assert stub.launches[0].device == 1


def test_a_launch_without_arrays_goes_to_the_current_device(stub, compiler):
    @jit
    def count(n):
        """Never compiled: the test's compiler makes it."""

    for device in (0, 1, 0):
        with find_driver().on_device(device):
            count[1](7)

    assert [launch.device for launch in stub.launches] == [0, 1, 0]


def test_arrays_that_only_their_pointer_places_go_to_its_device(stub, compiler):
    cuda = pytest.importorskip("numba.cuda")
    copy = make_copy()

    for device in (0, 1, 0, 1):
        with find_driver().on_device(device):
            x = cuda.device_array(4, np.float32)
        with find_driver().on_device(0):
            copy[1](x, x)

    assert [launch.device for launch in stub.launches] == [0, 1, 0, 1]
