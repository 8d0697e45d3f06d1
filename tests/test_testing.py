"""Benchmarks: how long functions take, and reports of it."""

import csv
import math
import subprocess
import sys
import time

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.tune import timing
from blocknumba.dispatch.tune.timing import Budget, time_on_host
from blocknumba.errors import BlockValueError, LaunchError


class Clock:
    """A host clock that only `wait` moves."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def wait(self, ms: float) -> None:
        self.now += ms / 1e3


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", clock.perf_counter)
    return clock


def test_a_budget_says_how_often_to_run(clock):
    runs = []

    def run():
        runs.append(clock.now)
        clock.wait(2.0)

    times = time_on_host(run, Budget(warmup_ms=6.5, rep_ms=20.5))

    assert len(runs) == 3 + 10
    assert times == pytest.approx([2.0] * 10)


def test_a_slow_function_runs_twice(clock):
    times = time_on_host(lambda: clock.wait(1000.0), Budget())

    assert times == pytest.approx([1000.0])


def test_what_comes_before_a_run_is_not_timed(clock):
    times = time_on_host(lambda: clock.wait(1.0), Budget(1, 3.5), lambda: clock.wait(50.0))

    assert times == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("choice, expected", [
    ({}, 2.5), ({"return_mode": "min"}, 1.0), ({"return_mode": "max"}, 4.0),
    ({"return_mode": "median"}, 2.5), ({"return_mode": "all"}, [1.0, 2.0, 3.0, 4.0]),
    ({"quantiles": [0.5]}, 2.5), ({"quantiles": (0.5, 0.0, 1.0)}, [2.5, 1.0, 4.0])], ids=str)
def test_do_bench_returns_what_is_asked_for(clock, choice, expected):
    waits = iter([2.5, 1.0, 2.0, 3.0, 4.0])

    measured = bn.testing.do_bench(lambda: clock.wait(next(waits)), warmup=1, rep=10.5,
                                   device="cpu", **choice)

    assert measured == pytest.approx(expected)


def test_do_bench_times_a_kernel_on_the_cpu():
    @bn.jit(interpret=True)
    def fill(x, B: bn.constexpr):
        x[bn.block(0, B)] = 1.0

    x = np.zeros(64, np.float32)

    measured = bn.testing.do_bench(lambda: fill[1](x, 64), warmup=1, rep=1, device="cpu")

    assert 0 < measured < 1000 and (x == 1).all()


def test_gradients_are_dropped_before_each_run(clock):
    class Tensor:
        grad = 1

    tensor = Tensor()

    def run():
        assert tensor.grad is None
        tensor.grad = 1
        clock.wait(1.0)

    assert bn.testing.do_bench(run, 1, 3.5, [tensor], device="cpu") == pytest.approx(1.0)


@pytest.mark.parametrize("wrong, message", [
    ({"return_mode": "mode"},
     "do_bench: given return_mode 'mode', accepted min, max, mean, median, all"),
    ({"device": "tpu"}, "do_bench: given device 'tpu', accepted cpu, gpu")])
def test_do_bench_refuses_what_it_does_not_know(wrong, message):
    with pytest.raises(BlockValueError) as raised:
        bn.testing.do_bench(lambda: None, **wrong)

    assert raised.value.message == message


def test_graphs_need_a_gpu(monkeypatch):
    monkeypatch.setattr("blocknumba.dispatch.launch.driver.find_driver", lambda: None)

    with pytest.raises(LaunchError, match="do_bench_cudagraph: no CUDA device was found"):
        bn.testing.do_bench_cudagraph(lambda: None)


@bn.jit
def double(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * 2


@pytest.mark.gpu(emulated="test_the_timed_kernel_runs_on_an_emulated_gpu")
def test_do_bench_times_a_kernel_on_the_gpu():
    cuda = pytest.importorskip("numba.cuda")
    x = cuda.to_device(np.ones(1 << 22, np.float32))
    out = cuda.device_array_like(x)

    times = bn.testing.do_bench(lambda: double[bn.cdiv(x.size, 1024)](x, out, 1024),
                                warmup=2, rep=5, return_mode="all")

    # 32 MiB take longer than 4 us at any GPU's bandwidth, and shorter than 1 ms
    assert len(times) > 1 and all(0.004 < ms < 1 for ms in times)
    assert (out.copy_to_host() == 2).all()


def test_the_timed_kernel_runs_on_an_emulated_gpu():
    x = np.ones(3000, np.float32)
    out = np.zeros_like(x)

    emulated_gpu.launch(double, bn.cdiv(x.size, 1024), (x, out, 1024), {})

    assert (out == 2).all()


def benchmark(**changes) -> bn.testing.Benchmark:
    given = {"x_names": ["n"], "x_vals": [1, 10], "line_arg": "provider",
             "line_vals": ["a", "b"], "line_names": ["A", "B"], "plot_name": "speed",
             "args": {"scale": 2}, "ylabel": "GB/s", "styles": [("blue", "-"), ("red", "--")]}
    return bn.testing.Benchmark(**given | changes)


def measure(n, provider, scale):
    y = float(n * scale)
    return y if provider == "a" else (y + 1, y, y + 2)


def test_a_report_measures_every_line_at_every_x():
    results = bn.testing.perf_report(benchmark())(measure).run()

    assert results.columns == ("n", "A", "B")
    assert results.rows == [(1, 2.0, 3.0), (10, 20.0, 21.0)]


def test_a_report_is_printed_as_a_table(capsys):
    bn.testing.perf_report(benchmark())(measure).run(print_data=True)

    assert capsys.readouterr().out == """\
speed (GB/s):
n   A   B
1   2   3
10  20  21

"""


def test_a_report_is_saved_as_csv_and_as_a_plot(tmp_path):
    pytest.importorskip("matplotlib")

    bn.testing.perf_report(benchmark())(measure).run(save_path=tmp_path / "new")

    with open(tmp_path / "new" / "speed.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["n", "A", "B", "B-min", "B-max"], ["1", "2.0", "3.0", "2.0", "4.0"],
                    ["10", "20.0", "21.0", "20.0", "22.0"]]
    assert (tmp_path / "new" / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_has_the_labels_scales_and_styles_of_the_benchmark():
    pytest.importorskip("matplotlib")
    results = bn.testing.perf_report(benchmark(x_log=True, xlabel="size"))(measure).run()

    (axes,) = results.plot().axes

    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("size", "GB/s", "speed")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert [(line.get_color(), line.get_linestyle()) for line in axes.get_lines()] == [
        ("blue", "-"), ("red", "--")]


def test_several_names_share_a_value_or_take_one_each():
    def area(m, n, provider, scale):
        return m * n * scale

    results = bn.testing.perf_report(benchmark(x_names=["m", "n"], x_vals=[3, (2, 5)]))(area).run()

    assert results.rows == [(3, 3, 18.0, 18.0), (2, 5, 20.0, 20.0)]


def test_several_benchmarks_give_a_list():
    report = bn.testing.perf_report([benchmark(), benchmark(x_vals=[2])])(measure)

    first, second = report.run()

    assert (len(first.rows), len(second.rows)) == (2, 1)


def test_a_line_without_a_value_is_a_gap():
    results = bn.testing.perf_report(benchmark(line_vals=["a"], line_names=["A"], styles=None))(
        lambda **_: None).run()

    assert math.isnan(results.rows[0][1])


@pytest.mark.parametrize("changes, message", [
    ({"line_names": ["A"]},
     "Benchmark: given 1 line_names, accepted 2, one for each of line_vals"),
    ({"x_vals": [(1, 2)]}, "Benchmark: given (1, 2) in x_vals, accepted one value for each of n"),
])
def test_a_wrong_benchmark_says_what_is_wrong(changes, message):
    with pytest.raises(BlockValueError) as raised:
        benchmark(**changes)

    assert raised.value.message == message


def test_benchmarking_is_imported_when_it_is_asked_for():
    code = ("import sys, blocknumba as bn; loaded = {'blocknumba.testing', "
            "'blocknumba.dispatch.tune.autotune', 'matplotlib'}; print(loaded & set(sys.modules));"
            "print(bn.testing.do_bench.__name__, bn.autotune.__name__)")

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\ndo_bench autotune\n"


def test_the_host_clock_sees_real_time():
    assert 1.0 <= bn.testing.do_bench(lambda: time.sleep(0.001), 1, 3, device="cpu") < 100
