"""The cases of every op: a kernel, what it is given, and what it must give.

A case says nothing of who runs it: see executors.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.ir import Function, Parameter, Value
from blocknumba.tile_ir.opdef import OPS, OpDef
from blocknumba.tile_ir.ops.elementwise import ERROR_ULPS
from blocknumba.tile_ir.types import DTYPES, DType, PointerType, TileType, dtype_of, float32

from oracle import COMPARISON, EXACT, INTEGER, NEAR, near, wrapped
from values import operands


@dataclass(frozen=True)
class Case:
    """One run of a kernel and its result.

    op: the op it is about; title: what sets it apart from others of the op.
    arguments: arrays and scalars by name; arrays named in expected are written.
    expected: the arrays afterwards; ulps: how far floats may be off, in units in the last place.
    signed_zeros: whether 0.0 and -0.0 must be told apart.
    """

    op: str
    title: str
    function: Function
    arguments: Mapping[str, object]
    expected: Mapping[str, np.ndarray]
    grid: tuple[int, int, int] = (1, 1, 1)
    ulps: int = 0
    signed_zeros: bool = field(default=True)

    def __str__(self) -> str:
        return f"{self.op}-{self.title}"


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
                ulps: int = 0, signed_zeros: bool = True, **attrs: object) -> Case:
    """A case of one op on arrays: expected are its results."""
    arguments = {f"a{i}": tile.ravel() for i, tile in enumerate(tiles)}
    outputs = {f"out{i}": array.ravel() for i, array in enumerate(expected)}
    arguments |= {name: np.zeros_like(array) for name, array in outputs.items()}
    return Case(name, title, one_op_kernel(OPS[name], tiles, attrs), arguments, outputs,
                ulps=ulps, signed_zeros=signed_zeros)


# elementwise ----------------------------------------------------------------------------------

ELEMENTWISE = tuple(dict.fromkeys((*INTEGER, *COMPARISON, *EXACT, "floordiv", *NEAR)))
_EITHER_ZERO = ("minimum", "maximum", "fmin", "fmax")
_SHAPES = ((), (1,), (4,), (2, 1), (4, 8), (2, 4, 8), (2, 2, 2, 2, 2))


def accepts(opdef: OpDef, dtype: DType) -> bool:
    """Whether an elementwise op takes tiles of a dtype."""
    try:
        opdef.infer(*[TileType(dtype)] * len(opdef.operands))
    except TypeError:
        return False
    return True


def element(name: str, dtype: DType, *values: bool | int | float) -> bool | int | float:
    """What an elementwise op gives for one element."""
    if name in COMPARISON:
        return COMPARISON[name](*values)
    if not dtype.is_float:
        result = INTEGER[name](*map(int, values), dtype)
        return bool(result) if dtype.kind == "bool" else wrapped(result, dtype)
    values = tuple(map(float, values))
    return EXACT[name](*values, dtype) if name in EXACT else near(name, values, dtype)


def elementwise_case(name: str, title: str, dtype: DType, tiles: list[np.ndarray]) -> Case:
    """A case whose result is computed element by element."""
    rows = zip(*(tile.ravel().tolist() for tile in tiles))
    kind = np.dtype(bool) if name in COMPARISON else dtype.numpy
    results = [element(name, dtype, *row) for row in rows]
    results = np.array(results, kind if kind.kind in "biu" else np.float64).astype(kind)
    ulps = ERROR_ULPS.get(name, 0) if dtype.is_float else 0
    return one_op_case(name, title, tiles, [results.reshape(tiles[0].shape)],
                       ulps=min(ulps, 1) if dtype.bits == 16 else ulps,
                       signed_zeros=name not in _EITHER_ZERO)


def elementwise_cases(name: str) -> Iterator[Case]:
    """Edge values of every dtype that an op accepts; and every rank."""
    opdef = OPS[name]
    dtypes = [d for d in DTYPES.values() if accepts(opdef, d)]
    for dtype in dtypes:
        tiles = operands(dtype, len(opdef.operands))
        yield elementwise_case(name, str(dtype), dtype, tiles)
    dtype = float32 if float32 in dtypes else dtypes[-1]
    for shape in _SHAPES:
        tiles = [tile[-int(np.prod(shape)):].reshape(shape)
                 for tile in operands(dtype, len(opdef.operands), seed=1)]
        yield elementwise_case(name, "x".join(map(str, shape)) or "scalar", dtype, tiles)


Cases = Callable[[], Iterator[Case]]
CASES: dict[str, list[Cases]] = {name: [partial(elementwise_cases, name)] for name in ELEMENTWISE}


def covers(*names: str) -> Callable[[Cases], Cases]:
    """Decorator: a function that yields cases of these ops."""

    def declare(function: Cases) -> Cases:
        for name in names:
            CASES.setdefault(name, []).append(function)
        return function

    return declare


def cases() -> Iterator[Case]:
    """Every case of every op, in a fixed order."""
    for function in dict.fromkeys(f for functions in CASES.values() for f in functions):
        yield from function()
