"""Host time of one launch of 4 arguments: pytest perf/bench_launch.py (GPU, perf extra)."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("cupy")

from launch_cases import SUBJECTS, measure_launches  # noqa: E402
from measure import CLOCK  # noqa: E402


@pytest.fixture(scope="module")
def samples():
    return measure_launches()


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_launch(benchmark, samples, subject):
    CLOCK.replay(benchmark, samples, subject)
