"""Tuning on a machine with a GPU: on the stub a launch takes 1 us for each of its programs."""

import numpy as np
import pytest
from stub_libraries import CupyArray

import blocknumba as bn

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.dispatch.tune import autotune as autotune_module, timing
from blocknumba.errors import AutotuneError


@pytest.fixture(autouse=True)
def small_and_forgetful(monkeypatch):
    """No cache on disk, and no L2 cache to flush."""
    monkeypatch.setattr(autotune_module, "user_cache", lambda: None)
    monkeypatch.setattr(timing, "FLUSH_BYTES", 256)


def make_tuned(**options):
    @jit
    def increment(out, B: bn.constexpr):
        """Never compiled: the test's compiler makes it."""

    configs = [bn.Config({"B": size}) for size in (8, 32, 16)]
    return bn.autotune(configs, warmup=0.2, rep=0.5, **options)(increment)


def grid(meta):
    return bn.cdiv(320, meta["B"])


def increment_on_stub(stub, seen):
    """Make launches add 1 to the array that they are given; its address is added to seen."""
    def kernel(launch):
        pointer, size = launch.parameters[0], launch.parameters[1]
        memory = (np.ctypeslib.ctypes.c_char * (4 * size)).from_address(pointer)
        np.frombuffer(memory, np.float32)[...] += 1
        seen.append((pointer, launch.grid[0]))

    stub.on_launch(kernel)


def test_a_device_array_is_tuned_on_copies(stub, compiler):
    seen = []
    increment_on_stub(stub, seen)
    x = CupyArray(np.zeros(320, np.float32))
    kernel = make_tuned()

    kernel[grid](x)

    assert (x.host == 1).all()
    assert [row.configuration for row in kernel.timings] == ["B=32", "B=16", "B=8"]
    assert [row.timing.median_ms for row in kernel.timings] == pytest.approx([0.01, 0.02, 0.04])
    assert [launch for launch in seen if launch[0] == x.data.ptr] == [(x.data.ptr, 10)]


def test_a_host_array_is_tuned_on_copies(stub, compiler):
    increment_on_stub(stub, [])
    x = np.zeros(320, np.float32)
    kernel = make_tuned()

    kernel[grid](x)

    assert (x == 1).all() and str(kernel.best_config) == "B=32"


def test_copies_are_restored_before_each_run(stub, compiler):
    values = set()

    def kernel(launch):
        memory = (np.ctypeslib.ctypes.c_char * 4).from_address(launch.parameters[0])
        value = np.frombuffer(memory, np.float32)
        values.add(float(value[0]))
        value[...] += 1

    stub.on_launch(kernel)
    x = np.full(320, 7, np.float32)

    make_tuned(restore_value=["out"])[grid](CupyArray(x))

    assert values == {7.0}


def test_a_launch_that_fails_is_a_configuration_that_fails(stub, compiler):
    increment_on_stub(stub, [])
    x = np.zeros(320, np.float32)
    kernel = make_tuned(pre_hook=lambda nargs, reset_only=False: (
        stub.fail_next(701) if nargs.get("B") == 32 else None))

    kernel[grid](CupyArray(x))

    assert str(kernel.best_config) == "B=16"
    assert kernel.timings[-1].timing.reason == (
        "ResourceError: increment: launch of (10, 1, 1) programs failed: "
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: as asked")


def test_a_kernel_that_spills_more_than_it_may_is_not_measured(stub, compiler, monkeypatch):
    kernel = make_tuned(prune_configs_by={"max_spills": -1})

    with pytest.raises(AutotuneError, match="spills 0 bytes per thread, accepted -1"):
        kernel[grid](CupyArray(np.zeros(320, np.float32)))


def test_do_bench_records_events_around_runs(stub, compiler):
    increment_on_stub(stub, [])
    x = CupyArray(np.zeros(320, np.float32))

    @jit
    def increment(out):
        """Never compiled: the test's compiler makes it."""

    times = bn.testing.do_bench(lambda: increment[25](x), warmup=0.1, rep=0.5, return_mode="all")

    assert times == pytest.approx([0.025] * 20, rel=1e-3)
