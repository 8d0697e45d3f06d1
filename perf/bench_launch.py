"""Host time of one launch by its number of arguments: pytest perf/bench_launch.py (GPU)."""

from functools import cache

import pytest

pytest.importorskip("torch")
pytest.importorskip("cupy")

from launch_cases import BOUND, SUBJECTS, measure_launches  # noqa: E402
from launch_kernels import ARGUMENTS  # noqa: E402
from measure import CLOCK  # noqa: E402

measured = cache(measure_launches)


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("subject", (*SUBJECTS, BOUND))
@pytest.mark.parametrize("count", ARGUMENTS)
def test_launch(benchmark, count, subject):
    CLOCK.replay(benchmark, measured(count), subject)
