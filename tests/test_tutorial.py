"""The tutorial: each step runs, and compares itself with NumPy; pictures are left out."""

import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "tutorial"
STEPS = sorted(FOLDER.glob("step_*.py"))


class Anything:
    """A figure, an axis or whatever else a picture is made of: every call gives another one."""

    def __getattr__(self, name: str) -> "Anything":
        return self

    def __call__(self, *arguments: object, **keywords: object) -> "Anything":
        return self

    def __iter__(self):
        return iter((self, self))


@pytest.fixture
def no_pictures(monkeypatch):
    pyplot = ModuleType("matplotlib.pyplot")
    pyplot.__getattr__ = lambda name: Anything()
    matplotlib = ModuleType("matplotlib")
    matplotlib.pyplot = pyplot
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)


def test_there_are_seven_steps():
    assert [step.stem.split("_")[1] for step in STEPS] == list("1234567")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.stem)
def test_a_step_of_the_tutorial_agrees_with_numpy(step, no_pictures, monkeypatch):
    monkeypatch.chdir(FOLDER)  # where the data is looked for from

    names = runpy.run_path(str(step))

    assert {"np", "bn"} <= set(names)
