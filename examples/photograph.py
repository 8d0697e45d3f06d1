"""Blur and sharpen a photograph: a stencil of nine weights, outside the picture is black."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import NUMPY, ArrayLibrary, run

PHOTOGRAPH = Path(__file__).parent / "data" / "china.jpg"
BLUR = tuple(weight / 16 for weight in (1, 2, 1, 2, 4, 2, 1, 2, 1))
SHARPEN = (0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0)
ROWS, COLUMNS = 8, 64


@bn.jit
def stencil(image, out, WEIGHTS: bn.constexpr, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """out[i, j] = sum of WEIGHTS times the 3 x 3 pixels around image[i, j], rounded.

    image, out: (height, width, channels) uint8; WEIGHTS: nine floats, row by row.
    """
    rows, columns, channel = bn.block(0, ROWS), bn.block(1, COLUMNS), bn.program_id(2)
    total = bn.zeros((ROWS, COLUMNS), bn.float32)
    for down in bn.static_range(3):
        for right in bn.static_range(3):
            pixels = image[rows + (down - 1), columns + (right - 1), channel]
            total += WEIGHTS[3 * down + right] * pixels.to(bn.float32)
    out[rows, columns, channel] = bn.clamp(total + 0.5, 0.0, 255.0)


@bn.jit
def stencil_pointers(image, out, height, width, channels, WEIGHTS: tl.constexpr,
                     ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The same in Triton's dialect."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    channel = tl.program_id(2)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for down in tl.static_range(3):
        for right in tl.static_range(3):
            y, x = i + (down - 1), j + (right - 1)
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixels = tl.load(image + (y * width + x) * channels + channel, mask=inside, other=0)
            total += WEIGHTS[3 * down + right] * pixels.to(tl.float32)
    rounded = tl.clamp(total + 0.5, 0.0, 255.0).to(tl.uint8)
    tl.store(out + (i * width + j) * channels + channel, rounded, mask=(i < height) & (j < width))


def filtered(library: ArrayLibrary, photograph: np.ndarray, weights: tuple[float, ...],
             pointers: bool = False) -> np.ndarray:
    """The photograph under a stencil, by the kernel in either dialect."""
    height, width, channels = photograph.shape
    grid = bn.cdiv(height, ROWS), bn.cdiv(width, COLUMNS), channels
    image, out = library.array(photograph), library.array(np.zeros_like(photograph))
    kernel, sizes = (stencil_pointers, photograph.shape) if pointers else (stencil, ())
    kernel[grid](image, out, *sizes, WEIGHTS=weights, ROWS=ROWS, COLUMNS=COLUMNS)
    return library.numpy(out)


def reference(photograph: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    """The same in NumPy; exact, since the weights are sixteenths and pixels have eight bits."""
    height, width, _ = photograph.shape
    padded = np.pad(photograph.astype(np.float32), ((1, 1), (1, 1), (0, 0)))
    total = sum(weight * padded[i // 3:i // 3 + height, i % 3:i % 3 + width]
                for i, weight in enumerate(weights))
    return np.clip(total + 0.5, 0, 255).astype(np.uint8)


def check(library: ArrayLibrary) -> None:
    """Both filters, in both dialects, equal NumPy on every pixel of the photograph."""
    photograph = np.asarray(Image.open(PHOTOGRAPH))
    for weights in (BLUR, SHARPEN):
        expected = reference(photograph, weights)
        for pointers in (False, True):
            picture = filtered(library, photograph, weights, pointers)
            np.testing.assert_array_equal(picture, expected)


if __name__ == "__main__":
    run(check)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    for name, weights in (("blurred", BLUR), ("sharpened", SHARPEN)):
        picture = filtered(NUMPY, np.asarray(Image.open(PHOTOGRAPH)), weights)
        Image.fromarray(picture).save(folder / f"{name}.png")
        print(f"wrote {folder / name}.png")
