"""Functions whose Numba IR is kept: as many as there is a limit for."""

import gc
import weakref

from blocknumba.typing.dialect import NUMPY_NAME, dialect
from blocknumba.typing.numba_ir.bytecode import MAX_SOURCES, source_of


def made() -> object:
    """A function like no other."""
    return lambda x: x


def test_functions_are_freed_that_were_read_long_ago():
    first = made()
    source_of(first, dialect(NUMPY_NAME))
    known = weakref.ref(first)
    del first

    for _ in range(MAX_SOURCES):
        source_of(made(), dialect(NUMPY_NAME))
    gc.collect()

    assert known() is None
