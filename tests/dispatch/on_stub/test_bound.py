"""Launches that repeat: bound ones, what surrounds a launch, and what a warm launch leaves out."""

import numpy as np
import pytest
from stub_libraries import CURRENT, DEVICES, CupyArray, TorchTensor

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import BlockValueError, ResourceError

VALUE = 1


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


def make_scale():
    @jit
    def scale(x, out, n, B: constexpr):
        """Never compiled: the test's compiler makes it."""
        return VALUE

    return scale


@pytest.fixture(params=[CupyArray, TorchTensor])
def arrays(request):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    return request.param(values), request.param(np.zeros_like(values))


def fields(launch) -> tuple:
    """All that a launch is."""
    return (launch.kernel, launch.stream, launch.device, *launch.grid, *launch.block,
            launch.shared, *launch.parameters[:11])


def test_a_bound_launch_is_the_launch(stub, compiler, arrays):
    scale = make_scale()
    compiled = scale[5, 2](*arrays, 7, B=64)
    bound = scale.bind((5, 2), *arrays, 7, B=64)
    assert len(stub.launches) == 1

    results = [bound(), bound()]

    first, *others = map(fields, stub.launches)
    assert others == [first, first]
    assert results == [compiled, compiled]


def test_a_bound_launch_goes_to_the_stream_that_is_current_then(stub, compiler, arrays,
                                                                monkeypatch):
    bound = make_scale().bind(1, *arrays, 7, B=64)

    for stream in (0x10, 0x20):
        monkeypatch.setattr(CURRENT, "cupy", stream)
        monkeypatch.setattr(CURRENT, "torch", stream)
        bound()
    bound(stream=0x30)

    assert [launch.stream for launch in stub.launches] == [0x10, 0x20, 0x30]


def test_a_bound_launch_goes_to_the_stream_that_it_was_bound_to(stub, compiler, arrays):
    bound = make_scale().bind(1, *arrays, 7, B=64, stream=0x40)

    bound()
    bound(stream=0x50)

    assert [launch.stream for launch in stub.launches] == [0x40, 0x50]


def test_a_bound_launch_sees_that_a_global_changed(stub, compiler, arrays, monkeypatch):
    bound = make_scale().bind(1, *arrays, 7, B=64)
    bound()
    monkeypatch.setitem(globals(), "VALUE", 2)

    bound()

    assert len(compiler.compilations) == 2
    assert len(stub.launches) == 2


def test_an_empty_bound_grid_launches_nothing(stub, compiler, arrays):
    bound = make_scale().bind((0, 5), *arrays, 7, B=64)

    bound()

    assert stub.launches == []


def test_host_arrays_can_be_bound_and_are_copied_each_time(stub, compiler):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    bound = make_scale().bind(1, x, out, 7, B=64)
    copies = stub.copies

    bound()
    bound()

    assert len(stub.launches) == 2
    assert stub.copies > copies


def test_a_bound_launch_that_the_driver_refuses_is_an_error(stub, compiler, arrays):
    bound = make_scale().bind(1, *arrays, 7, B=64)
    stub.fail_next(701)

    with pytest.raises(ResourceError, match="scale: launch of"):
        bound()


def test_a_warm_launch_neither_allocates_nor_waits(stub, compiler, arrays):
    scale = make_scale()
    bound = scale.bind(1, *arrays, 7, B=64)
    scale[1](*arrays, 7, B=64)
    before = stub.allocations, stub.synchronizations, len(stub.waits), stub.copies, stub.loads

    for _ in range(3):
        scale[1](*arrays, 7, B=64)
        bound()

    assert (stub.allocations, stub.synchronizations, len(stub.waits), stub.copies,
            stub.loads) == before
    assert len(stub.launches) == 7


def test_hooks_see_every_launch_before_and_after(stub, compiler, arrays):
    scale, seen = make_scale(), []

    def hook(event):
        seen.append(("before", event.kernel, event.grid, event.stream, event.arguments["n"],
                     len(stub.launches)))
        return lambda: seen.append(("after", len(stub.launches)))

    scale[1](*arrays, 7, B=64)
    bound = scale.bind(4, *arrays, 9, B=64)
    scale.add_launch_hook(hook)
    scale[2](*arrays, 8, B=64, stream=0x60)
    bound()
    scale.remove_launch_hook(hook)
    scale[1](*arrays, 7, B=64)

    assert seen == [("before", "scale", (2, 1, 1), 0x60, 8, 1), ("after", 2),
                    ("before", "scale", (4, 1, 1), None, 9, 2), ("after", 3)]
    assert len(stub.launches) == 4


def test_removing_a_hook_that_is_not_there_is_an_error():
    with pytest.raises(BlockValueError, match="scale: given a hook that was not added"):
        make_scale().remove_launch_hook(print)


@pytest.mark.skipif(DEVICES < 2, reason="needs two devices")
def test_a_bound_launch_runs_on_the_device_of_its_arrays(stub, compiler):
    values = np.zeros((3, 4), np.float32)
    bound = make_scale().bind(1, CupyArray(values, 1), CupyArray(values, 1), 7, B=64)

    bound()

    assert [launch.device for launch in stub.launches] == [1]
