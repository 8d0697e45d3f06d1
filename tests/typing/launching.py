"""Kernels built from plain functions and run on NumPy arrays by the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir import types
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, ScalarArgument
from blocknumba.tile_ir.ir.verifier import verify  # noqa: E402
from blocknumba.typing.context import Options
from blocknumba.typing.frontend import build


def argument_of(value: object) -> Argument | None:
    """What a launch makes of an argument; None for a compile-time constant."""
    if isinstance(value, np.ndarray):
        steps = [step // value.itemsize for step in value.strides]
        strides = tuple(step if step in (0, 1) else None for step in steps)
        return ArrayArgument(types.dtype_of(value.dtype), strides, (None,) * value.ndim, 16)
    if isinstance(value, np.generic):
        return ScalarArgument(types.dtype_of(value.dtype))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return ScalarArgument(types.float64 if isinstance(value, float) else types.int32, weak=True)


def kernel_of(function: Callable, options: Options = Options(), constants: dict | None = None,
              **arguments: object) -> Function:
    """The verified tile IR of a function for these arguments."""
    described = {name: argument_of(value) for name, value in arguments.items()}
    known = {name: arguments[name] for name, argument in described.items() if argument is None}
    given = {name: argument for name, argument in described.items() if argument is not None}
    kernel = build(function, given, {**known, **(constants or {})}, options)
    verify(kernel)
    return kernel


def launch(function: Callable, grid: int | tuple[int, ...] = 1, constants: dict | None = None,
           **arguments: object) -> None:
    """Run a function as a kernel; the arrays are changed in place."""
    kernel = kernel_of(function, constants=constants, **arguments)
    grid = grid if isinstance(grid, tuple) else (grid,)
    names = {parameter.argument for parameter in kernel.parameters}
    run(kernel, (*grid, *(1,) * (3 - len(grid))),
        {name: value for name, value in arguments.items() if name in names})


def op_names(kernel: Function) -> list[str]:
    """The names of all ops of a kernel, in order."""
    return [op.name for op in walk(kernel.body)]
