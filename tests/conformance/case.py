"""A case of an op: a kernel, what it is given, and what it must give; nothing of who runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, OpDef, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import PointerType, TileType, dtype_of


@dataclass(frozen=True)
class Case:
    """One run of a kernel and its result.

    op: the op it is about; title: what sets it apart from others of the op.
    arguments: arrays and scalars by name; arrays named in expected are written.
    expected: the arrays afterwards; ulps: how far floats may be off, in units in the last place;
    absolute: how far they may be off besides.
    signed_zeros: whether 0.0 and -0.0 must be told apart.
    """

    op: str
    title: str
    function: Function
    arguments: Mapping[str, object]
    expected: Mapping[str, np.ndarray]
    grid: tuple[int, int, int] = (1, 1, 1)
    ulps: int = 0
    absolute: float = 0.0
    signed_zeros: bool = field(default=True)

    def __str__(self) -> str:
        return f"{self.op}-{self.title}"

    def copies(self) -> dict[str, np.ndarray]:
        """The arrays among the arguments, to run a kernel on."""
        return {name: np.array(value, order="C") for name, value in self.arguments.items()
                if isinstance(value, np.ndarray)}


def one_op_kernel(opdef: OpDef, tiles: list[np.ndarray], attrs: Mapping[str, object]) -> Function:
    """Load operands a0, a1, ...; the op; store its results to out0, out1, ...

    tiles: the operands, whose shapes and dtypes make the operands' types.
    """
    builder = Builder(folding=False)
    types = [TileType(dtype_of(tile.dtype), tile.shape) for tile in tiles]
    results = opdef.infer(*types, **attrs)
    results = results if isinstance(results, tuple) else (results,)
    pointers = [TileType(PointerType(t.dtype)) for t in (*types, *results)]
    with builder.region(*pointers) as (body, arguments):
        values = [_loaded(builder, pointer, kind.shape)
                  for pointer, kind in zip(arguments, types)]
        found = builder.emit(opdef, *values, **attrs)
        found = found if isinstance(found, tuple) else (found,)
        for pointer, value in zip(arguments[len(types):], found):
            _store(builder, pointer, value)
        builder.emit(OPS["return"])
    names = [*(f"a{i}" for i in range(len(types))), *(f"out{i}" for i in range(len(results)))]
    return Function(opdef.name, tuple(Parameter("pointer", n) for n in names), body)


def _addresses(builder: Builder, pointer: Value, size: int) -> Value:
    """Pointers to consecutive elements, a tile of rank 1."""
    first = builder.emit(OPS["splat"], pointer, shape=(size,))
    return builder.emit(OPS["offset"], first, builder.emit(OPS["arange"], start=0, size=size))


def _loaded(builder: Builder, pointer: Value, shape: tuple[int, ...]) -> Value:
    if not shape:
        return builder.emit(OPS["load"], pointer)
    flat = builder.emit(OPS["load"], _addresses(builder, pointer, int(np.prod(shape))))
    return flat if len(shape) == 1 else builder.emit(OPS["reshape"], flat, shape=shape)


def _store(builder: Builder, pointer: Value, value: Value) -> None:
    if not value.type.shape:
        builder.emit(OPS["store"], pointer, value)
        return
    size = value.type.size
    flat = value if len(value.type.shape) == 1 else builder.emit(OPS["reshape"], value,
                                                                 shape=(size,))
    builder.emit(OPS["store"], _addresses(builder, pointer, size), flat)


def one_op_case(name: str, title: str, tiles: list[np.ndarray], expected: list[np.ndarray], *,
                ulps: int = 0, absolute: float = 0.0, signed_zeros: bool = True,
                **attrs: object) -> Case:
    """A case of one op on arrays: expected are its results."""
    arguments = {f"a{i}": tile.ravel() for i, tile in enumerate(tiles)}
    outputs = {f"out{i}": array.ravel() for i, array in enumerate(expected)}
    arguments |= {name: np.zeros_like(array) for name, array in outputs.items()}
    return Case(name, title, one_op_kernel(OPS[name], tiles, attrs), arguments, outputs,
                ulps=ulps, absolute=absolute, signed_zeros=signed_zeros)


Cases = Callable[[], Iterator[Case]]
CASES: dict[str, list[Cases]] = {}


def covers(*names: str) -> Callable[[Cases], Cases]:
    """Decorator: a function that yields cases of these ops."""

    def declare(function: Cases) -> Cases:
        for name in names:
            CASES.setdefault(name, []).append(function)
        return function

    return declare
