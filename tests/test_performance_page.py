"""The page of measured performance says what perf/results has."""

import math
from pathlib import Path

import pytest
import report
from report_results import Measured, mean, product_bytes

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_the_page_is_what_the_results_make():
    """`python perf/report.py` writes it, and its pictures."""
    assert (DOCS / "performance.md").read_text() == report.page()


def test_ratios_of_rounds_go_before_the_ratio_of_times():
    case = Measured("add", {"blocknumba": 2.0, "Triton": 3.0, "Torch": 4.0}, ratios={"Triton": 1.4})

    assert (case.ratio("Triton"), case.ratio("Torch"), case.ratio("CuPy")) == (1.4, 2.0, None)


def test_what_is_not_exact_has_no_ratio():
    case = Measured("add", {"blocknumba": 2.0, "Triton": 3.0}, unfit=frozenset({"Triton"}))

    assert case.ratio("Triton") is None


@pytest.mark.parametrize("name, expected", [
    ("f16 1024^3, B by columns", 3 * 2 * 1024**2),
    ("int8 16 x 32 x 64, B by rows", 16 * 64 + 64 * 32 + 4 * 16 * 32),
])
def test_a_product_moves_its_operands_and_its_result(name, expected):
    assert product_bytes(name) == expected


def test_a_cap_bounds_each_ratio_of_a_mean():
    assert math.isclose(mean([1.0, 50.0], cap=4), 2.0)


@pytest.mark.parametrize("value, text", [(1234.4, "1234"), (0.012341, "0.01234"),
                                         (226.04, "226.0"), (math.nan, "-"), (None, "-")])
def test_numbers_have_significant_digits(value, text):
    assert report.number(value) == text
