"""The samples of sanitize.py exist, and its summaries are read."""

from __future__ import annotations

import pytest
from sanitize import EXAMPLES, ROOT, SAMPLES, errors_in


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sample_is_an_example_with_a_check(name):
    assert "\ndef check(" in (ROOT / "examples" / f"{name}.py").read_text()


def test_other_samples_are_scripts_of_ours():
    scripts = {arguments[0] for arguments in SAMPLES.values()} - {"-c"}
    assert scripts and all((ROOT / script).exists() for script in scripts)


@pytest.mark.parametrize("text, errors", [
    ("========= ERROR SUMMARY: 0 errors", 0),
    ("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)", 2),
    ("========= ERROR SUMMARY: 3 errors\n========= ERROR SUMMARY: 1 error", 4),
    ("Segmentation fault", None)])
def test_the_errors_of_a_summary_are_counted(text, errors):
    assert errors_in(text) == errors
