"""Launches that are captured in CUDA graphs."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def add_one(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + 1


@pytest.mark.gpu(emulated="test_the_captured_kernel_runs_on_an_emulated_gpu")
@pytest.mark.parametrize("kind", ["warm", "bound", "cold"])
def test_a_captured_launch_runs_when_the_graph_does(kind):
    cupy = pytest.importorskip("cupy")
    kernel = bn.jit(add_one.python_function)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x, out = cupy.zeros(64, np.float32), cupy.zeros(64, np.float32)
        launch = (kernel.bind(1, x, out, B=64) if kind == "bound"
                  else lambda: kernel[1](x, out, B=64))
        if kind == "warm":
            launch()
        out[:] = -1
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
        before = out.get(stream=stream)

        x[:] = 6
        graph.launch(stream)

        assert (before == -1).all()
        assert (out.get(stream=stream) == 7).all()


def test_the_captured_kernel_runs_on_an_emulated_gpu():
    x, out = np.full(64, 6, np.float32), np.full(64, -1, np.float32)

    emulated_gpu.launch(add_one, 1, (x, out), {"B": 64})

    assert (out == 7).all()


@pytest.mark.gpu(emulated="test_the_captured_kernel_runs_on_an_emulated_gpu")
def test_do_bench_times_launches_in_a_cuda_graph():
    cupy = pytest.importorskip("cupy")
    x, out = cupy.zeros(1 << 22, np.float32), cupy.zeros(1 << 22, np.float32)

    times = bn.testing.do_bench_cudagraph(
        lambda: add_one[bn.cdiv(x.size, 1024)](x, out, B=1024), rep=5, return_mode="all")

    # 32 MiB take longer than 4 us at any GPU's bandwidth, and shorter than 1 ms
    assert len(times) > 1 and all(0.004 < ms < 1 for ms in times)
    assert bool((out == 1).all())
