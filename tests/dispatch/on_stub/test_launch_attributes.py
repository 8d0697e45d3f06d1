"""Attributes of launches, and the two functions of the driver that launch."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from stub_libraries import CupyArray

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import LaunchError, ResourceError


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


@pytest.fixture
def scale():
    @jit
    def scale(x, out, n, B: constexpr):
        """Never compiled: the test's compiler makes it."""

    return scale


@pytest.fixture
def arrays():
    return CupyArray(np.zeros(12, np.float32)), CupyArray(np.zeros(12, np.float32))


class CupyError(RuntimeError):
    """CuPy's CUDADriverError."""

    def __init__(self, status: int):
        super().__init__(status)
        self.status = status


@pytest.fixture
def through_cupy(monkeypatch) -> list:
    """CuPy's launchKernel; its calls."""
    launch, calls = ctypes.CDLL("libcuda.so.1").cuLaunchKernel, []
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]

    def launch_kernel(*arguments: int) -> None:
        calls.append(arguments)
        if status := launch(*arguments):
            raise CupyError(status)

    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.api.driver", SimpleNamespace(
        launchKernel=launch_kernel, CUDADriverError=CupyError))
    return calls


def launch_cold_warm_and_bound(kernel, arrays, grid=3, **options) -> None:
    """Cold, warm and bound."""
    for _ in range(2):
        kernel[grid](*arrays, 7, B=64, **options)
    kernel.bind(grid, *arrays, 7, B=64, **options)()


@pytest.mark.parametrize("options, cooperative, dependent", [
    ({}, 0, 0), ({"launch_cooperative_grid": True}, 1, 0), ({"launch_pdl": True}, 0, 1),
    ({"launch_cooperative_grid": True, "launch_pdl": True}, 1, 1)], ids=str)
@pytest.mark.parametrize("cluster", [1, 2, 8])
def test_the_driver_is_told_what_the_kernel_needs(stub, compiler, scale, arrays, options,
                                                  cooperative, dependent, cluster):
    compiler.cluster = cluster

    launch_cold_warm_and_bound(scale, arrays, (3, 2), **options)

    told = [(*launch.cluster, launch.cooperative, launch.dependent, *launch.grid)
            for launch in stub.launches]
    assert told == [(cluster, 1, 1, cooperative, dependent, 3 * cluster, 2, 1)] * 3


def test_launches_of_several_kinds_take_turns(stub, compiler, scale, arrays):
    for _ in range(2):
        for cooperative in (False, True):
            scale[1](*arrays, 7, B=64, launch_cooperative_grid=cooperative)

    assert [launch.cooperative for launch in stub.launches] == [0, 1, 0, 1]


def test_cupys_launch_is_used_where_there_is_one(stub, compiler, through_cupy, scale, arrays):
    launch_cold_warm_and_bound(scale, arrays)

    assert len(through_cupy) == len(stub.launches) == 3
    assert len({bytes(launch)[:type(launch).addresses.offset] for launch in stub.launches}) == 1
    assert list(stub.launches[0].grid) == [3, 1, 1]


def test_cupys_launch_has_no_attributes(stub, compiler, through_cupy, scale, arrays):
    launch_cold_warm_and_bound(scale, arrays, launch_cooperative_grid=True)

    assert [launch.cooperative for launch in stub.launches] == [1, 1, 1]
    assert through_cupy == []


@pytest.mark.parametrize("kind", ["cold", "warm", "bound"])
@pytest.mark.parametrize("status, error", [(701, ResourceError), (1, LaunchError)])
def test_a_launch_that_cupy_refuses_is_an_error_of_ours(stub, compiler, through_cupy, scale,
                                                        arrays, kind, status, error):
    if kind != "cold":
        scale[3](*arrays, 7, B=64)
    bound = scale.bind(3, *arrays, 7, B=64)
    stub.fail_next(status)

    with pytest.raises(error, match=r"scale: launch of \(3, 1, 1\) programs failed"):
        bound() if kind == "bound" else scale[3](*arrays, 7, B=64)


def test_errors_in_cupys_launch_that_are_not_the_drivers_pass_through(stub, compiler, through_cupy,
                                                                      scale, arrays, monkeypatch):
    def interrupted(*_: int) -> None:
        raise RuntimeError("not the driver's")

    monkeypatch.setattr(sys.modules["cupy_backends.cuda.api.driver"], "launchKernel", interrupted)

    with pytest.raises(RuntimeError, match="not the driver's"):
        scale[3](*arrays, 7, B=64)
