"""Every instruction answers what an H100 answered, within the error that the PTX ISA states."""

from pathlib import Path

import numpy as np
import pytest
from recorded_cases import cases

from blocknumba.emulator import Module

RECORDED = Path(__file__).parent / "data" / "recorded.npz"


@pytest.fixture(scope="module")
def recorded():
    """What record.py wrote on a GPU."""
    with np.load(RECORDED) as arrays:
        yield arrays


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_an_instruction_answers_what_the_gpu_answered(case, recorded):
    assert case.name in recorded, "no GPU has answered this case: run record.py on one"
    expected = recorded[case.name].view(case.output.dtype)
    agrees = case.agrees(case.emulate(), expected)
    assert agrees.all(), f"{int((~agrees).sum())} elements differ"


def test_the_emulator_knows_every_recorded_instruction():
    unknown = {case.name: found for case in cases()
               if (found := Module.parse(case.text).unknown_instructions())}
    assert unknown == {}


def test_names_of_cases_are_unique():
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
