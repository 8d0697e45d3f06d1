"""Native code in a process whose free pages are far apart, as where a GPU's driver reserves memory."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, mmap
import numpy as np
import blocknumba as bn

NOTHING, PRIVATE, ANONYMOUS, NORESERVE = 0, 2, 0x20, 0x4000
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserved(size):
    found = libc.mmap(None, size, NOTHING, PRIVATE | ANONYMOUS | NORESERVE, -1, 0)
    return 0 if found == ctypes.c_void_p(-1).value else found

@bn.jit(device="cpu")
def cosines(x, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[r] = bn.cos(x[r]) + 0.3

def launch(dtype):
    x, out = np.linspace(0, 3, 64, dtype=dtype), np.zeros(64, dtype)
    cosines[1](x, out, B=64)
    np.testing.assert_allclose(out, np.cos(x) + 0.3, rtol=1e-5)

launch(np.float32)  # loads all libraries
SPACE = 1 << 40
low = reserved(SPACE)
size = 1 << 46
while size >= 1 << 30:  # what is free below, but for what Python needs
    if not reserved(size):
        size //= 2
while size >= mmap.PAGESIZE:  # what is free above
    found = reserved(size)
    if found < low:
        if found:
            libc.munmap(found, size)
        size //= 2
for number in range(1, 200):  # pages that are 4 GiB apart: the next ones that the system gives
    libc.munmap(low + SPACE - (number << 32), mmap.PAGESIZE)
launch(np.float64)
print("right")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how a system gives memory is of that system")
def test_sections_of_a_kernel_are_near_each_other():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          timeout=300, check=False)

    assert done.stdout == "right\n", done.stderr
