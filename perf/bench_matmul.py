"""Products next to their peers: pytest perf/bench_matmul.py (GPU, perf extra)."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import attention_cases  # noqa: E402
import matmul_cases  # noqa: E402
from measure import CLOCK  # noqa: E402
from product_cases import SUBJECT  # noqa: E402

CASES = {**{f"matmul {name}": make for name, make in matmul_cases.CASES.items()},
         **{f"attention {name}": make for name, make in attention_cases.CASES.items()}}


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("name", CASES)
def test_product(benchmark, name):
    case = CASES[name]()
    errors = case.errors()
    assert case.wrong(errors) == []
    CLOCK.replay(benchmark, case.samples(), SUBJECT)
    benchmark.extra_info |= {"operations": case.operations, "errors": errors}
