"""Prints of native code: each element is passed to Python, which writes the line.

Native code calls `blocknumba_print(printer, program, print, operand, index, bits)`, whose first
argument is the handle of the launch's Printer, in slot 1 of its arguments.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from llvmlite import binding

from blocknumba.tile_ir.ir.types import DTYPES
from blocknumba.tile_ir.ops.debug import print_line


PRINT = "blocknumba_print"
FIRST_SLOT = 2  # of the parameters: the record of failures and the printer come before


@dataclass(frozen=True, slots=True)
class PrintOp:
    """A print op, as far as its lines need it.

    operands: (dtype's name, shape) of each.
    """

    prefix: str
    hexadecimal: bool
    operands: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Printer:
    """The prints of one launch."""

    ops: Sequence[PrintOp]
    grid: tuple[int, int, int]
    output: TextIO

    def line(self, program: int, number: int, operand: int, index: int, bits: int) -> str:
        """The line of one element.  index: in C order; bits: of the element, zero-extended."""
        op, (x, y, _) = self.ops[number], self.grid
        ids = program % x, program // x % y, program // (x * y)
        if not op.operands:
            return print_line(ids, op.prefix)
        name, shape = op.operands[operand]
        dtype = DTYPES[name]
        element = np.frombuffer((bits & (1 << 64) - 1).to_bytes(8, "little")[:dtype.bytes],
                                dtype.numpy)[0]
        position = tuple(map(int, np.unravel_index(index, shape))) if shape else ()
        return print_line(ids, op.prefix, position, shape, element,
                          operand if len(op.operands) > 1 else None, op.hexadecimal)


_PRINTERS: dict[int, Printer] = {}
_HANDLES = itertools.count(1)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32,
                  ctypes.c_int32, ctypes.c_int64)
def _print(handle: int | None, *element: int) -> None:
    printer = _PRINTERS.get(handle or 0)
    if printer is not None:
        print(printer.line(*element), file=printer.output)


@functools.cache
def declare_symbol() -> None:
    """Let native code that is loaded from now on find the function that it calls."""
    binding.add_symbol(PRINT, ctypes.cast(_print, ctypes.c_void_p).value)


@contextmanager
def printing(ops: Sequence[PrintOp], grid: tuple[int, int, int],
             output: TextIO | None = None) -> Iterator[int]:
    """The handle of the printer of one launch, while it runs."""
    if not ops:
        yield 0
        return
    handle = next(_HANDLES)
    _PRINTERS[handle] = Printer(ops, grid, output or sys.stdout)
    try:
        yield handle
    finally:
        del _PRINTERS[handle]
