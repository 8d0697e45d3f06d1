"""Scalar functions, written outside of the language, on the elements of tiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from blocknumba.errors import BlockValueError, require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PARTIAL, PURE, op
from blocknumba.tile_ir.ir.types import DTYPES, DType, TileType, bool_

_SPELLING = re.compile(r"function ([\w.]+)\(([\w, ]*)\): ([\w, ]+)")


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that a scalar function may raise.

    code: its number, from 1.  message: the exception in words.  file, line, function: where.
    """

    code: int
    message: str
    file: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A scalar function as NVVM IR.

    modules: texts of the module that defines it, and of those that it needs.
    symbol: of the function `i32 symbol(results*, parameters...)`, which returns the code of what
        it raises, or 0.  A bool is an i8; several results are a struct, or an array of one type.
    raises: what it may raise.
    """

    modules: tuple[str, ...]
    symbol: str
    raises: tuple[Raised, ...] = ()


@dataclass(frozen=True, slots=True)
class HostCode:
    """A scalar function as LLVM IR for this processor.

    module: text of the module that defines it and all that it calls but Numba's own library.
    symbol: of the function `i32 symbol(results*, exception*, parameters...)`; results as of
        DeviceCode.
    """

    module: str
    symbol: str


class ScalarBody(Protocol):
    """The code of a scalar function, for whoever executes tile IR."""

    def run(self, operands: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """The results for operands of shape (count,); elements that raise are 0."""

    def first_raised(self, operands: Sequence[np.ndarray],
                     count: int) -> tuple[int, Raised] | None:
        """The index of the first element that raises, and what; None where none does."""

    @property
    def is_known(self) -> bool:
        """Whether its code depends on nothing but the function and what its code reads."""

    def host_code(self) -> HostCode:
        """LLVM IR for this processor."""

    def device_code(self, target: str, lineinfo: bool = False) -> DeviceCode:
        """NVVM IR for a target, such as "sm_90a"."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function from scalars to scalars, an attribute of the op `map`.

    name: tells it from the other functions of a kernel.
    parameters, results: dtypes.
    body: its code; None in a kernel that was read from text, which names its functions only.
    """

    name: str
    parameters: tuple[DType, ...]
    results: tuple[DType, ...]
    body: ScalarBody | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        parameters, results = (", ".join(map(str, dtypes))
                               for dtypes in (self.parameters, self.results))
        return f"function {self.name}({parameters}): {results}"

    @staticmethod
    def of(text: str) -> ScalarFunction | None:
        """The function that str wrote, without its code; None for another text."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            return None
        parameters, results = (tuple(DTYPES.get(name) for name in names.split(", ") if name)
                               for names in (match[2], match[3]))
        return None if None in (*parameters, *results) else ScalarFunction(match[1], parameters,
                                                                           results)

    def require_body(self) -> ScalarBody:
        """The code.

        Errors: BlockValueError where there is only a name.
        """
        require(self.body is not None, "map: given {}, which this text only names, accepted a "
                "function of a kernel that was compiled in this process", self.name,
                error=BlockValueError)
        return self.body


@op(PURE | PARTIAL | ELEMENTWISE)
def map_(mask, *tiles, function) -> tuple[TileType, ...]:
    """The results of function for the elements of tiles where mask is true; elsewhere 0.

    mask: bool tile or scalar; tiles: of its shape, of the dtypes of the function's parameters.
    function: a ScalarFunction; one result for each of its results.  It is called once or more for
    an element, never where mask is false.  The results of an element for which it raises are 0;
    with debug=True that stops the kernel.
    Errors: other dtypes than the parameters'; several shapes.
    """
    require(mask.dtype == bool_, "map: mask must be bool, got {}", mask)
    dtypes = tuple(tile.dtype for tile in tiles)
    require(dtypes == function.parameters, "map: given {}, accepted {} for {}",
            ", ".join(map(str, dtypes)), ", ".join(map(str, function.parameters)), function.name)
    require(all(tile.shape == mask.shape for tile in tiles), "map: given {}, accepted one shape",
            " and ".join(map(str, (mask, *tiles))))
    return tuple(mask.of(dtype) for dtype in function.results)


def mapped(function: ScalarFunction, mask: np.ndarray,
           operands: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of the op, shape (programs, *tile shape).

    mask, operands: of such shapes; the first axis has length 1 where all programs agree.
    """
    mask, *operands = np.broadcast_arrays(mask, *operands)
    chosen = [operand[mask] for operand in operands]
    found = function.require_body().run(chosen, int(mask.sum()))
    results = []
    for dtype, values in zip(function.results, found, strict=True):
        result = np.zeros(mask.shape, dtype.numpy)
        result[mask] = values
        results.append(result)
    return tuple(results)
