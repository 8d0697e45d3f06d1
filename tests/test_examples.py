"""The examples: right on every array library that is present, and runnable as scripts."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from array_libraries import present

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples"
# run by tests/pytorch and tests/clusters
NOT_HERE = {"array_libraries", "torch_modules", "dask_spread", "two_gpus"}
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_HERE)


@pytest.mark.parametrize("library", present(), ids=str)
@pytest.mark.parametrize("example", EXAMPLES)
def test_example_agrees_with_numpy_in_both_dialects(example, library):
    importlib.import_module(example).check(library)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs_as_a_script(example, tmp_path):
    script = [sys.executable, FOLDER / f"{example}.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"{example}: numpy: equal to NumPy" in result.stdout
