"""A kernel of Triton's dialect in a notebook whose cell has a command: its source was not found."""

import linecache

import numpy as np

import blocknumba.triton as triton
import blocknumba.triton.language as tl

CELL = """\
%matplotlib inline

@triton.jit
def halves(x, out, n):
    half = 0.5
    for i in range(n):
        tl.store(out + i, tl.load(x + i) * half)
"""


def test_a_kernel_is_found_beside_commands_of_a_notebook():
    file = "<cell with a command>"
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(keepends=True), file)
    scope = {"triton": triton, "tl": tl}
    exec(compile(CELL.replace("%matplotlib inline", "pass"), file, "exec"), scope)
    x, out = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)

    scope["halves"][(1,)](x, out, 4)

    np.testing.assert_array_equal(out, x / 2)
