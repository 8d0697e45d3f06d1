"""Memory-bound kernels next to their peers: pytest perf/bench_memory.py (GPU, perf extra)."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("cupy")

from measure import CLOCK, gpu_timer, interleaved  # noqa: E402
from memory_cases import CASES, SUBJECT  # noqa: E402

ROUNDS, REPEATS = 20, 10


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("name", CASES)
def test_memory_bound_kernel(benchmark, name):
    case = CASES[name]()
    case.check()
    samples = interleaved(case.runs, gpu_timer(), ROUNDS, REPEATS)
    CLOCK.replay(benchmark, samples, SUBJECT)
    benchmark.extra_info["bytes moved"] = case.bytes_moved
