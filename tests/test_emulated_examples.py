"""The examples' machine code, run by the emulator on NumPy arrays."""

import importlib

import emulated_gpu
import pytest
from array_libraries import NUMPY

from blocknumba.dispatch.kernel import Kernel

EXAMPLES = ("vector_add", "softmax", "layernorm", "sums", "transpose", "photograph",
            "gather_rows", "histogram")


@pytest.fixture
def emulated(monkeypatch):
    """Every launch goes to the emulated GPU."""
    monkeypatch.setattr(Kernel, "__getitem__", lambda kernel, grid: lambda *arguments, **named:
                        emulated_gpu.launch(kernel, grid, arguments, named))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_machine_code_of_an_example_agrees_with_numpy(name, emulated):
    importlib.import_module(name).check(NUMPY)
