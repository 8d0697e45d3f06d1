"""The front end uses Numba and changes nothing in it."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
from launching import kernel_of

import blocknumba as bn

from blocknumba.typing.dialect import dialect
from blocknumba.typing.numba_ir.bytecode import source_of


def mixed(x, out):
    r = bn.span(0, 4)
    out[r] = x[r] * 2 + 1.5


def test_plain_numba_types_as_before():
    kernel_of(mixed, x=np.zeros(4, np.float32), out=np.zeros(4, np.float32))

    @numba.njit
    def plain(x):
        return x * 2.0

    plain(np.float32(1))

    assert str(plain.nopython_signatures[0].return_type) == "float64"


def test_the_language_is_imported_without_numba():
    code = "import sys, blocknumba.language; print('numba' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"


def test_numba_ir_is_made_once_and_not_changed():
    source = source_of(mixed, dialect("numpy"))
    before = [str(s) for block in source.blocks.values() for s in block.body]

    kernel_of(mixed, x=np.zeros(4, np.float32), out=np.zeros(4, np.float32))

    assert source_of(mixed, dialect("numpy")) is source
    assert [str(s) for block in source.blocks.values() for s in block.body] == before
