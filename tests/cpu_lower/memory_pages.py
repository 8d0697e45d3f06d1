"""Arrays at the end of what a process may read."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np


def before_a_forbidden_page(count: int, dtype: np.dtype) -> np.ndarray:
    """An array whose last byte is that of a page, before one that cannot be read."""
    page = mmap.PAGESIZE
    whole = -(-count * dtype.itemsize // page) * page
    memory = mmap.mmap(-1, whole + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + whole), page, 0) == 0
    return np.frombuffer(memory, dtype, count, whole - count * dtype.itemsize)
