"""Scalar functions on every element next to numba-cuda's kernels of threads (GPU).

    pytest perf/bench_map.py        with pytest-benchmark
    python perf/bench_map.py        a table: microseconds, and the median of the ratios of rounds
"""

import pytest

pytest.importorskip("numba.cuda")

from scalar_function_cases import CASES, FAST, PEER, SUBJECT, cases  # noqa: E402
from measure import CLOCK, gpu_timer, interleaved, median_ratio, medians  # noqa: E402

ROUNDS, REPEATS = 20, 5


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("name", CASES)
def test_scalar_function(benchmark, name):
    case = CASES[name]()
    case.check()
    samples = interleaved(case.runs, gpu_timer(), ROUNDS, REPEATS)
    CLOCK.replay(benchmark, samples, SUBJECT)
    benchmark.extra_info["tiles and blocks"] = str(case.chosen)


if __name__ == "__main__":
    for title, compared in cases():
        compared.check()
        taken = interleaved(compared.runs, gpu_timer(), ROUNDS, REPEATS)
        for who, seconds in medians(taken).items():
            print(f"{title}: {who}: {1e6 * seconds:.0f} us with {compared.chosen[who]}")
        for suffix in ("", FAST):
            ratio = median_ratio(taken, PEER + suffix, SUBJECT + suffix)
            print(f"{title}: {PEER} / {SUBJECT}{suffix}: {ratio:.3f}")
