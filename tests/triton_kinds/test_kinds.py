"""Kernels of every kind that public Triton code has, in plain Triton: on all executors.

    SUITE_OF_KINDS=all python -m pytest tests/triton_kinds      the emulator runs each, not a third
"""

import os

import emulated_gpu
from triton_kinds import memory, numbers, rows, tiles  # noqa: F401  they declare cases
import pytest
from triton_kinds.case import CASES


STRIDE = 1 if os.environ.get("SUITE_OF_KINDS") == "all" else 3
EMULATED = sorted(CASES)[::STRIDE]


@pytest.mark.parametrize("name", CASES)
def test_on_the_cpu(name):
    CASES[name].check(lambda kernel, grid, *arguments, **named:
                      kernel[grid](*arguments, device="cpu", **named))


@pytest.mark.parametrize("name", CASES)
def test_in_the_interpreter(name):
    CASES[name].check(lambda kernel, grid, *arguments, **named:
                      kernel[grid](*arguments, interpret=True, **named))


@pytest.mark.parametrize("name", EMULATED)
def test_emulated(name):
    CASES[name].check(lambda kernel, grid, *arguments, **named:
                      emulated_gpu.launch(kernel, grid, arguments, named, "sm_90a"))


@pytest.mark.gpu(emulated="test_emulated")
@pytest.mark.parametrize("name", CASES)
def test_on_a_gpu(name):
    CASES[name].check(lambda kernel, grid, *arguments, **named: kernel[grid](*arguments, **named))


def test_there_are_enough():
    assert len(CASES) >= 40
