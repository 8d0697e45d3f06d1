"""Kernels that are drawn from seeds give on every device what NumPy gives."""

from __future__ import annotations

import os
import secrets

import pytest
from kernel_fuzzer import GeneratedKernel, check, failure_text
from numpy_functions import FUNCTIONS
from numpy_tiles import Tile
from shortening import shortened

from blocknumba.emulator import Module

TESTS, PER_TEST = 4, 4  # kernel_fuzzer.py runs thousands
DEVICES = {"interpreter": PER_TEST, "cpu": PER_TEST // 2, "emulator": PER_TEST // 2}  # kernels


def first_seed(test: int) -> int:
    """The first seed of a test: FUZZ_SEED and on, or others every time."""
    given = os.environ.get("FUZZ_SEED")
    return secrets.randbits(40) if given is None else int(given) + test * PER_TEST


@pytest.mark.parametrize("test", range(TESTS))
def test_generated_kernels_give_what_numpy_gives(test, record_property):
    first = first_seed(test)
    record_property("measured", f"generated kernels {first} to {first + PER_TEST - 1}")

    for number in range(PER_TEST):
        devices = tuple(name for name, count in DEVICES.items() if number < count)
        failures = check(first + number, devices).failures
        for seed, problem in failures.items():
            pytest.fail(failure_text(seed, problem, devices), pytrace=False)


@pytest.mark.gpu(not_emulated="the test above runs other seeds of it in the emulator")
def test_generated_kernels_give_on_a_gpu_what_numpy_gives():
    first = first_seed(TESTS)
    for seed in range(first, first + 20):
        for problem in check(seed, ("gpu",)).failures.values():
            pytest.fail(failure_text(seed, problem, ("gpu",)), pytrace=False)


def test_kernels_are_compiled_alone(monkeypatch):
    monkeypatch.setattr(Module, "launch", None)

    assert not check(1, ("compiler",)).failures
    assert check(1, ("emulator",)).failures


def test_the_same_seed_is_the_same_kernel():
    assert GeneratedKernel.of(1) == GeneratedKernel.of(1)
    assert GeneratedKernel.of(1).source != GeneratedKernel.of(2).source


def test_a_wrong_element_is_found_and_the_kernel_shortened(monkeypatch):
    """NumPy gives the wrong one here: a maximum of the first tile alone."""
    monkeypatch.setitem(FUNCTIONS, "maximum", lambda x, y: Tile(x.array))
    sources = {seed: GeneratedKernel.of(seed).source for seed in range(300)}
    found = (seed for seed in sorted(sources, key=lambda seed: len(sources[seed]))
             if "= bn.maximum(" in sources[seed])  # short ones first: each try takes a while
    seed = next(seed for seed in found if check(seed, ("interpreter",)).failures)

    text = failure_text(seed, check(seed, ("interpreter",)).failures[seed], ("interpreter",))

    short = text.partition("shortened:")[2]
    assert "bn.maximum(" in short
    assert len(short.splitlines()) < len(text.splitlines()) / 3


def test_source_is_shortened_to_the_lines_that_count():
    source = "a = 1\nfor i in x:\n    b = a\n    if b:\n        c = b\nd = c"

    short = shortened(source, lambda text: "c = b" in text and "a = 1" in text)

    assert short == "a = 1\nc = b"
