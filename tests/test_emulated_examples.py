"""The examples' machine code, run by the emulator on NumPy arrays."""

import importlib
from functools import partial

import attention
import digits
import emulated_gpu
import matmul
import numpy as np
import pytest
from array_libraries import NUMPY

import blocknumba as bn

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.device import Device
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.nvvm_lower.target import Target

EXAMPLES = ("vector_add", "softmax", "layernorm", "sums", "transpose", "photograph",
            "gather_rows", "histogram", "fractals", "scan")
TILE = {"BM": 64, "BN": 64, "BK": 32}
AMPERE, HOPPER = "sm_80", "sm_90a"
BLACKWELL = ("sm_100", "sm_120")
# on Blackwell, whose PTX has instructions and parameters of its own: those that run quickly
QUICK = ("softmax", "layernorm", "sums", "gather_rows", "histogram")
QUICK_PARTS = ("matmul", "matmul, pointers", "attention, pointers", "check_float8", "check_mx")


def product(*arguments):
    """A part of matmul.check_products, with arguments as of check_product."""
    return lambda: matmul.check_product(NUMPY, *arguments)


def attention_of(start, D, length, causal):
    """A part of attention.check."""
    return lambda: attention.check_dtype(NUMPY, np.float16, start, 2e-3, ((D, length, causal),))


# Examples that are too much to be emulated as a whole
PARTS = {
    "matmul": product(matmul.launch, np.float16, matmul.EVEN),
    "matmul, transposed": product(matmul.launch, np.float16, matmul.EVEN, True),
    "matmul, small M": product(matmul.launch, np.float16, matmul.SMALL_M),
    "matmul, small M, transposed": product(matmul.launch, np.float16, matmul.SMALL_M, True),
    "matmul, odd": product(matmul.launch, np.float16, matmul.ODD),
    "matmul, float32": product(matmul.launch, np.float32, matmul.EVEN),
    "matmul, float64": lambda: matmul.check_product(
        NUMPY, partial(matmul.launch, SUM=bn.float64), np.float64, matmul.EVEN),
    "matmul, pointers": product(matmul.launch_pointers, np.float16, matmul.EVEN),
    **{check.__name__: partial(check, NUMPY) for check in matmul.CHECKS
       if check is not matmul.check_products},
    "attention": attention_of(attention.launch, 64, 100, False),
    "attention, causal": attention_of(attention.launch, 64, 70, True),
    "attention, wide heads": attention_of(attention.launch, 128, 64, True),
    "attention, pointers": attention_of(attention.launch_pointers, 64, 100, True),
    "a step of digits": partial(digits.check_step, NUMPY),
}


@pytest.fixture
def emulated(monkeypatch):
    """Makes every launch one on the emulated GPU of a target, and gives the list of their code.

    Tiles that the compiler would choose are TILE: many of them, which are emulated quickly.
    """
    def emulate(target: str) -> list[Compiled]:
        device, launched = Device(target, Target.parse(target), multiprocessors=2), []

        def launch(kernel, grid, *arguments, **named) -> None:
            named |= {formal.name: TILE[formal.name] for formal in kernel.signature.formals
                      if formal.has_default and formal.default is bn.auto}
            launched.append(emulated_gpu.launch(kernel, grid, arguments, named, target))

        monkeypatch.setattr(bn, "current_device", lambda: device)
        monkeypatch.setattr(Kernel, "__getitem__",
                            lambda kernel, grid: partial(launch, kernel, grid))
        return launched
    return emulate


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_machine_code_of_an_example_agrees_with_numpy(name, emulated):
    emulated(HOPPER)

    importlib.import_module(name).check(NUMPY)


@pytest.mark.parametrize("target", [AMPERE, HOPPER])
@pytest.mark.parametrize("part", PARTS)
def test_the_machine_code_of_products_agrees_with_numpy(part, target, emulated):
    emulated(target)

    PARTS[part]()


@pytest.mark.parametrize("name", [*QUICK, *QUICK_PARTS])
def test_the_machine_code_for_blackwell_agrees_with_numpy(name, emulated):
    emulated(BLACKWELL[(*QUICK, *QUICK_PARTS).index(name) % 2])

    PARTS[name]() if name in PARTS else importlib.import_module(name).check(NUMPY)


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("start", [matmul.launch, matmul.launch_pointers])
def test_hopper_multiplies_what_the_copy_engine_fetches_in_both_dialects(start, turned, emulated):
    launched = emulated(HOPPER)

    matmul.check_product(NUMPY, start, np.float16, matmul.EVEN, turned)

    (stats,) = [compiled.stats for compiled in launched]
    assert [access.way for access in stats.accesses] == ["TMA"] * 3
    assert [product.way for product in stats.products] == ["wgmma"]
