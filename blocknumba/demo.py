"""Three kernels, checked against NumPy on whatever device there is: `python -m blocknumba demo`."""

from __future__ import annotations

import argparse

import numpy as np

import blocknumba as bn

from blocknumba.cpu_lower.target import host
from blocknumba.dispatch.launch.driver import find_driver
from blocknumba.settings import SETTINGS

SHADES = " .:-=+*#%@"  # darkest first
PICTURE_ROWS, PICTURE_COLUMNS = 16, 34


@bn.jit
def add(x, y, out, BLOCK: bn.constexpr):
    """out = x + y"""
    r = bn.block(0, BLOCK)
    out[r] = x[r] + y[r]


@bn.jit
def softmax(x, y, BLOCK: bn.constexpr):
    """y[i] = softmax(x[i]), one program a row."""
    i = bn.program_id(0)
    columns = bn.span(0, BLOCK)
    row = bn.load(x.at[i, columns], other=float("-inf")).to(bn.float32)
    powers = bn.exp(row - bn.max(row, axis=0))
    y[i, columns] = powers / bn.sum(powers, axis=0)


@bn.jit
def blur(picture, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """out = the mean of the 3 x 3 pixels around each one; outside the picture is black."""
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    total = bn.zeros((ROWS, COLUMNS), bn.int32)
    for down in bn.static_range(-1, 2):
        for right in bn.static_range(-1, 2):
            total += picture[rows + down, columns + right].to(bn.int32)
    out[rows, columns] = total // 9


def main() -> None:
    """Run the demo and print it.  Errors: AssertionError when a result is not NumPy's."""
    print(f"blocknumba demo on {_device()}\n")
    generator = np.random.default_rng(0)
    _show_add(generator)
    _show_softmax(generator)
    _show_blur()


def add_arguments(_: argparse.ArgumentParser) -> None:
    """The demo takes no arguments."""


def run(_: argparse.Namespace) -> int:
    """Run the demo; the exit status."""
    main()
    return 0


def _device() -> str:
    """Name of the device that kernels of NumPy arrays run on."""
    driver = find_driver()
    if SETTINGS.interpret:
        return "the interpreter: BLOCKNUMBA_INTERPRET is set"
    if driver is None:
        return f"the CPU, natively: no CUDA device was found; {host()}"
    return driver.device_name(driver.current_device())


def _show_add(generator: np.random.Generator) -> None:
    x, y = generator.standard_normal((2, 10_007), np.float32)
    out = np.zeros_like(x)
    add[bn.cdiv(x.size, 1024)](x, y, out, BLOCK=1024)
    np.testing.assert_array_equal(out, x + y)
    _report("add", "10007 float32 elements, 1024 a program", "equal to NumPy")


def _show_softmax(generator: np.random.Generator) -> None:
    x = generator.standard_normal((64, 781)).astype(np.float16)
    y = np.zeros_like(x)
    softmax[len(x)](x, y, BLOCK=1024)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=2**-10, atol=2**-24)
    error = np.abs(y - expected).max()
    _report("softmax", "64 rows of 781 float16, one a program",
            f"within {error:.0e} of NumPy in float64")


def _show_blur() -> None:
    picture = _picture()
    out = np.zeros_like(picture)
    blur[bn.cdiv(PICTURE_ROWS, 8), bn.cdiv(PICTURE_COLUMNS, 32)](picture, out, ROWS=8, COLUMNS=32)
    np.testing.assert_array_equal(out, _blurred(picture))
    _report("blur", f"{PICTURE_ROWS} x {PICTURE_COLUMNS} uint8 pixels, 8 x 32 a program",
            "equal to NumPy")
    print("\n  the picture" + " " * (PICTURE_COLUMNS - 7) + "blurred")
    for before, after in zip(picture, out):
        print(f"  {_shaded(before)}    {_shaded(after)}".rstrip())


def _picture() -> np.ndarray:
    """A bright disk and a dim square, (PICTURE_ROWS, PICTURE_COLUMNS) uint8."""
    i, j = np.indices((PICTURE_ROWS, PICTURE_COLUMNS))
    disk = (2 * (i - 7.5)) ** 2 + (j - 11) ** 2 < 100
    square = (abs(i - 7.5) < 5) & (abs(j - 26.5) < 6)
    return (255 * disk + 130 * square).astype(np.uint8)


def _blurred(picture: np.ndarray) -> np.ndarray:
    """Expected result of the kernel blur."""
    rows, columns = picture.shape
    padded = np.pad(picture.astype(np.int32), 1)
    total = sum(padded[i:i + rows, j:j + columns] for i in range(3) for j in range(3))
    return (total // 9).astype(np.uint8)


def _shaded(pixels: np.ndarray) -> str:
    return "".join(SHADES[pixel * len(SHADES) // 256] for pixel in pixels.tolist())


def _report(kernel: str, work: str, result: str) -> None:
    print(f"  {kernel:9}{work:40}{result}")
