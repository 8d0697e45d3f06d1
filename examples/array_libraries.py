"""The array libraries that are present: every example runs on each of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class ArrayLibrary:
    """One way to hold arrays.

    name: what it is called.
    array: NumPy array -> a writable array of this library with the same elements.
    numpy: array of this library -> NumPy array.
    is_narrow: whether it has bfloat16 and floats of 8 bits.
    """

    name: str
    array: Callable[[np.ndarray], Any]
    numpy: Callable[[Any], np.ndarray]
    is_narrow: bool = False

    def __str__(self) -> str:
        return self.name


NUMPY = ArrayLibrary("numpy", np.array, np.asarray, is_narrow=True)


def present() -> list[ArrayLibrary]:
    """NumPy, and every GPU library that is installed and sees a GPU."""
    return [NUMPY, *(library for make in (_cupy, _torch, _numba) if (library := make()))]


def run(check: Callable[[ArrayLibrary], None]) -> None:
    """Run check on every library that is present, and say so."""
    name = Path(check.__code__.co_filename).stem
    for library in present():
        check(library)
        print(f"{name}: {library}: equal to NumPy")


def strides(array: Any) -> tuple[int, ...]:
    """The strides of an array of any library, in elements."""
    if hasattr(array, "stride"):
        return array.stride()
    return tuple(stride // array.dtype.itemsize for stride in array.strides)


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _cupy() -> ArrayLibrary | None:
    if not _installed("cupy"):
        return None
    import cupy
    if not cupy.cuda.is_available():
        return None
    return ArrayLibrary("cupy", cupy.array, cupy.asnumpy)


def _torch() -> ArrayLibrary | None:
    if not _installed("torch"):
        return None
    import torch
    if not torch.cuda.is_available():
        return None

    def tensor(array: np.ndarray) -> Any:
        bits = np.ascontiguousarray(array).view(f"i{array.itemsize}")
        return torch.tensor(bits, device="cuda").view(getattr(torch, array.dtype.name))

    def numpy(given: Any) -> np.ndarray:
        name = str(given.dtype).removeprefix("torch.")
        bits = given.contiguous().view(getattr(torch, f"int{8 * given.itemsize}")).cpu().numpy()
        return bits.view(getattr(ml_dtypes, name, name))

    return ArrayLibrary("torch", tensor, numpy, is_narrow=True)


def _numba() -> ArrayLibrary | None:
    if not _installed("numba_cuda"):
        return None
    from numba import cuda
    if not cuda.is_available():
        return None
    return ArrayLibrary("numba", lambda array: cuda.to_device(np.array(array)),
                        lambda array: array.copy_to_host())
