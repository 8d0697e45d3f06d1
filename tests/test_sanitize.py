"""The samples of sanitize.py exist, and its summaries are read."""

from __future__ import annotations

import pytest
from sanitize import ROOT, SAMPLES, errors_in


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_script_of_a_sample_exists(sample):
    assert (ROOT / SAMPLES[sample].split()[0]).exists()


@pytest.mark.parametrize("text, errors", [
    ("========= ERROR SUMMARY: 0 errors", 0),
    ("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)", 2),
    ("========= ERROR SUMMARY: 3 errors\n========= ERROR SUMMARY: 1 error", 4),
    ("Segmentation fault", None)])
def test_the_errors_of_a_summary_are_counted(text, errors):
    assert errors_in(text) == errors
