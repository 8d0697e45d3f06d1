"""A case of an op: a kernel, what it is given, and what it must give; nothing of who runs it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import PointerType, TileType, dtype_of
from blocknumba.typing.context import Context, Options
from blocknumba.typing.frontend import call_in_place
from blocknumba.typing.scalars.functions import ScalarFunctions

WARPS = (1, 2, 4, 8)
POISON = 0xA5  # the bytes of arrays that a kernel has not written yet


@dataclass(frozen=True)
class Case:
    """One run of a kernel and its result.

    op: the op it is about, or "bn." and the name of a function of the language; title: what sets
    it apart from others of the op.   kernel: the function, or what makes it when it is asked for.
    arguments: arrays and scalars by name; arrays named in expected are written.
    expected: the arrays afterwards; ulps: how far floats may be off, in units in the last place;
    absolute: how far they may be off besides, all of them or each.
    signed_zeros: whether 0.0 and -0.0 must be told apart.
    """

    op: str
    title: str
    kernel: Function | Callable[[], Function]
    arguments: Mapping[str, object]
    expected: Mapping[str, np.ndarray]
    grid: tuple[int, int, int] = (1, 1, 1)
    ulps: int = 0
    absolute: float | np.ndarray = 0.0
    signed_zeros: bool = field(default=True)

    def __str__(self) -> str:
        return f"{self.op}-{self.title}"

    @cached_property
    def function(self) -> Function:
        """The kernel."""
        return self.kernel if isinstance(self.kernel, Function) else self.kernel()

    @property
    def num_warps(self) -> int:
        """Of a program on a GPU: another number for each title."""
        return WARPS[_drawn(self.op, self.title) % len(WARPS)]

    def copies(self) -> dict[str, np.ndarray]:
        """The arrays among the arguments, to run a kernel on."""
        return {name: np.array(value, order="C") for name, value in self.arguments.items()
                if isinstance(value, np.ndarray)}


def _drawn(*words: str) -> int:
    """A number that looks random and is the same for the same words."""
    return zlib.crc32("-".join(words).encode())


def is_column_major(op: str, title: str) -> bool:
    """Whether the tiles of a case lie in memory with their axes reversed, so that the ops have
    another layout: so do those of every other title."""
    return bool(_drawn(title, op) >> 8 & 1)


Emit = Callable[[Builder, list[Value]], Sequence[Value]]


def tile_kernel(name: str, tiles: Sequence[np.ndarray], emit: Emit, reversed_: bool) -> Function:
    """Load operands a0, a1, ...; what emit makes of them; store its results to out0, out1, ...

    tiles: the operands, whose shapes and dtypes make the operands' types.
    reversed_: they lie in memory with their axes reversed.
    """
    types = [TileType(dtype_of(tile.dtype), tile.shape) for tile in tiles]
    trial = Builder(folding=False)
    with trial.region(*types) as (_, values):
        results = [value.type for value in emit(trial, list(values))]
    builder = Builder(folding=False)
    pointers = [TileType(PointerType(t.dtype)) for t in (*types, *results)]
    with builder.region(*pointers) as (body, arguments):
        values = [_loaded(builder, pointer, kind.shape, reversed_)
                  for pointer, kind in zip(arguments, types)]
        for pointer, value in zip(arguments[len(types):], emit(builder, values)):
            _store(builder, pointer, value)
        builder.emit(OPS["return"])
    names = [*(f"a{i}" for i in range(len(types))), *(f"out{i}" for i in range(len(results)))]
    return Function(name, tuple(Parameter("pointer", n) for n in names), body)


def _addresses(builder: Builder, pointer: Value, size: int) -> Value:
    """Pointers to consecutive elements, a tile of rank 1."""
    first = builder.emit(OPS["splat"], pointer, shape=(size,))
    return builder.emit(OPS["offset"], first, builder.emit(OPS["arange"], start=0, size=size))


def _loaded(builder: Builder, pointer: Value, shape: tuple[int, ...], reversed_: bool) -> Value:
    if not shape:
        return builder.emit(OPS["load"], pointer)
    flat = builder.emit(OPS["load"], _addresses(builder, pointer, int(np.prod(shape))))
    if len(shape) == 1:
        return flat
    if not reversed_:
        return builder.emit(OPS["reshape"], flat, shape=shape)
    tile = builder.emit(OPS["reshape"], flat, shape=shape[::-1])
    return builder.emit(OPS["transpose"], tile, axes=tuple(range(len(shape)))[::-1])


def _store(builder: Builder, pointer: Value, value: Value) -> None:
    if not value.type.shape:
        builder.emit(OPS["store"], pointer, value)
        return
    size = value.type.size
    flat = value if len(value.type.shape) == 1 else builder.emit(OPS["reshape"], value,
                                                                 shape=(size,))
    builder.emit(OPS["store"], _addresses(builder, pointer, size), flat)


def poisoned(array: np.ndarray) -> np.ndarray:
    """An array like this one whose elements nobody has written."""
    return np.full(array.nbytes, POISON, np.uint8).view(array.dtype) if array.dtype != bool else (
        np.ones(array.size, bool))


def _case(name: str, title: str, emit: Emit, tiles: Sequence[np.ndarray],
          expected: Sequence[np.ndarray], **bounds: object) -> Case:
    reversed_ = is_column_major(name, title)
    arguments = {f"a{i}": tile.ravel(order="F" if reversed_ else "C")
                 for i, tile in enumerate(tiles)}
    outputs = {f"out{i}": array.ravel() for i, array in enumerate(expected)}
    arguments |= {name: poisoned(array) for name, array in outputs.items()}
    return Case(name, title, partial(tile_kernel, name.rpartition(".")[2], tiles, emit, reversed_),
                arguments, outputs, **bounds)


def one_op_case(name: str, title: str, tiles: list[np.ndarray], expected: list[np.ndarray], *,
                ulps: int = 0, absolute: float | np.ndarray = 0.0, signed_zeros: bool = True,
                **attrs: object) -> Case:
    """A case of one op on arrays: expected are its results."""
    def emit(builder: Builder, values: list[Value]) -> Sequence[Value]:
        found = builder.emit(OPS[name], *values, **attrs)
        return found if isinstance(found, tuple) else (found,)

    return _case(name, title, emit, tiles, expected, ulps=ulps, absolute=absolute,
                 signed_zeros=signed_zeros)


def function_case(name: str, title: str, function: Callable, tiles: Sequence[np.ndarray],
                  expected: Sequence[np.ndarray], *, ulps: int = 0, absolute: float = 0.0,
                  signed_zeros: bool = True) -> Case:
    """A case of a function of the language, bn.<name>, as kernels call it.

    function: of tiles, a function of the language or of Python; expected are its results.
    """
    def emit(builder: Builder, values: list[Value]) -> Sequence[Value]:
        context = Context(builder, Options(), False, ScalarFunctions(""))
        context.call = partial(call_in_place, context)
        found = context.call(function, values)
        return [context.value(value) for value in (found if isinstance(found, tuple) else (found,))]

    return _case(f"bn.{name}", title, emit, tiles, expected, ulps=ulps, absolute=absolute,
                 signed_zeros=signed_zeros)


Cases = Callable[[], Iterator[Case]]
CASES: dict[str, list[Cases]] = {}


def covers(*names: str) -> Callable[[Cases], Cases]:
    """Decorator: a function that yields cases of these ops, or functions ("bn.sum")."""

    def declare(function: Cases) -> Cases:
        for name in names:
            CASES.setdefault(name, []).append(function)
        return function

    return declare
