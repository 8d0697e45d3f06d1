"""`bn.evaluate`: a function of tiles called on arrays, outside of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FunctionType

import numpy as np

from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.errors import UNKNOWN, BlockError, BlockTypeError, Loc, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, dtype_of
from blocknumba.tracebacks import GENERATED, without_our_frames
from blocknumba.typing.context import Context, describe
from blocknumba.typing.frontend import infer
from blocknumba.typing.function import BlockFunction, python_function
from blocknumba.typing.functions.create import zeros
from blocknumba.typing.functions.memory import load, store
from blocknumba.typing.functions.spans import make_span
from blocknumba.typing.static_values import constexpr
from blocknumba.typing.values import Array, Number, Reference, is_constant, unwrapped
from blocknumba.wording import shown

_FILE = f"{GENERATED}evaluate>"


@without_our_frames
def evaluate(function: Callable, /, *arguments: object, **keywords: object) -> object:
    """Call a function of tiles on arrays: for trying things out, and for tests.

    function: of the language (`bn.sum`), or a Python function or lambda as a kernel may call it.
    arguments, keywords: arrays and lists become tiles of their shape, NumPy's scalars become
    scalars; anything else is a compile-time constant, as numbers are in the text of a kernel.
    One program runs, in the interpreter, on the CPU.
    Returns a NumPy array for a tile, a NumPy scalar for a scalar, what Python has for a number
    or a constant, and a tuple for a tuple.
    Errors: BlockTypeError for extents that are not powers of two; for results of other kinds.

    Example:
    >>> bn.evaluate(bn.sum, [[1, 2], [3, 4]], axis=1)
    array([3, 7])
    >>> bn.evaluate(lambda x, y: bn.maximum(x, y) / 2, np.float32([1, 4]), 3)
    array([1.5, 2. ], dtype=float32)
    """
    require(isinstance(function, BlockFunction) or python_function(function) is not None,
            "evaluate: given {}, accepted a function", shown(function))
    call = _Call.of(arguments, keywords)
    try:
        made = call.result_of(function)
        results = [np.empty(leaf.shape, leaf.dtype.numpy) for leaf in _leaves(made)]
        kernel = Kernel(call.caller(len(results)))
        kernel[1](function, _READ, _WRITE, *call.values, *call.shapes, *results, interpret=True)
    except BlockError as error:
        error.loc = _of_the_user(error.loc)
        raise
    return _filled(made, iter(results))


@dataclass(frozen=True)
class _Call:
    """The arguments of a call.

    values: arrays, and compile-time constants; shapes: of the arrays, None of constants.
    names: of the last of them, those that are passed by keyword.
    """

    values: tuple[object, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, arguments: tuple, keywords: dict[str, object]) -> _Call:
        given = {f"argument {number}": value for number, value in enumerate(arguments)} | keywords
        values = tuple(_as_array(value, name) for name, value in given.items())
        shapes = tuple(value.shape if isinstance(value, np.ndarray) else None for value in values)
        return cls(values, shapes, tuple(keywords))

    def caller(self, result_count: int) -> FunctionType:
        """A kernel that writes what its function gives for its arguments to so many arrays."""
        return _caller(tuple(shape is not None for shape in self.shapes), self.names, result_count)

    def result_of(self, function: Callable) -> object:
        """The result of the function, as of typing: a _Leaf for each value of run time."""
        found: list[object] = []
        see = BlockFunction(lambda context, _, value: found.append(_described(value)), "write")
        names = self.caller(0).__code__.co_varnames
        stand_ins = [value if shape is None else (shape, dtype_of(value.dtype))
                     for value, shape in zip(self.values, self.shapes)]
        constants = dict(zip(names, (function, _STAND_IN, see, *stand_ins, *self.shapes)))
        infer(self.caller(0), constants)
        return found[-1]


@dataclass(frozen=True)
class _Leaf:
    """A result of run time: a tile or a scalar, or one of Python's numbers."""

    shape: tuple[int, ...]
    dtype: DType
    is_python: bool


@lru_cache(maxsize=256)
def _caller(are_arrays: tuple[bool, ...], names: tuple[str, ...],
            result_count: int) -> FunctionType:
    """The kernel of a call of a kind.

    Made of text: what inlines calls must see the number of arguments.
    """
    numbers = range(len(are_arrays))
    values = [f"read(value{i}, shape{i})" if is_array else f"value{i}"
              for i, is_array in enumerate(are_arrays)]
    first = len(values) - len(names)
    passed = values[:first] + [f"{name}={value}" for name, value in zip(names, values[first:])]
    results = [f"result{i}" for i in range(result_count)]
    parameters = ["function", "read", "write", *(f"value{i}" for i in numbers),
                  *(f"shape{i}" for i in numbers), *results]
    text = (f"def evaluate({', '.join(parameters)}):\n"
            f"    write(({''.join(f'{name}, ' for name in results)}), "
            f"function({', '.join(passed)}))\n")
    made: dict[str, object] = {}
    exec(compile(text, _FILE, "exec"), made)
    tiles = {f"value{i}" for i in numbers if are_arrays[i]}
    made["evaluate"].__annotations__ = {
        name: constexpr for name in parameters if name not in tiles.union(results)}
    return made["evaluate"]


def _as_array(value: object, name: str) -> object:
    """An argument as an array where it stands for a tile or a scalar of run time, else as it is.

    Errors: BlockTypeError for extents and dtypes that no tile has, and for what is no constant.
    """
    if not isinstance(value, (np.ndarray, np.generic, list)):
        is_constant = isinstance(value, Hashable) and not hasattr(value, "__dlpack__")
        require(is_constant and not hasattr(value, "__cuda_array_interface__"),
                "evaluate: {}: given {}, accepted NumPy's arrays, lists, numbers and other "
                "constants", name, shown(value))
        return value
    try:
        array = np.asarray(value)
        dtype_of(array.dtype)
    except (BlockTypeError, ValueError):  # ValueError: of rows of several lengths
        of = f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
        raise BlockTypeError(f"evaluate: {name}: given {shown(value)}{of}, accepted arrays of "
                             "numbers and bools") from None
    padded = tuple(1 << max(n - 1, 0).bit_length() for n in array.shape)
    require(array.shape == padded,
            "evaluate: {}: given an array of shape {}, accepted extents that are powers of two",
            name, array.shape, hint=f"pad it to {padded}")
    return array


def _whole(context: Context, array: Array, shape: tuple[int, ...]) -> Value:
    """All elements of an array of a known shape, as a tile."""
    return load.rule(context, _elements(context, array, shape))


def _elements(context: Context, array: Array, shape: tuple[int, ...]) -> Array | Reference:
    spans = tuple(make_span(context, 0, extent) for extent in shape)
    return Reference(array, spans) if spans else array


def _write(context: Context, arrays: tuple[Array, ...], result: object) -> None:
    """Store the values of run time in a result to arrays of their shapes."""
    for array, value in zip(arrays, _run_time_values(result)):
        store.rule(context, _elements(context, array, value.type.shape), value)


def _empty(context: Context, described_array: tuple, shape: object) -> Value:
    """A tile of the shape and the dtype of an array: for inference, which sees no values."""
    extents, dtype = described_array
    return zeros.rule(context, extents, dtype)


_READ, _WRITE = BlockFunction(_whole, "read"), BlockFunction(_write, "write")
_STAND_IN = BlockFunction(_empty, "read")


def _run_time_values(result: object) -> Iterator[Value]:
    if isinstance(result, tuple):
        for item in result:
            yield from _run_time_values(item)
    elif isinstance(result, (Value, Number)):
        yield unwrapped(result)


def _described(result: object) -> object:
    """A result with a _Leaf for each value of run time in it.

    Errors: BlockTypeError for pointers, spans and the like.
    """
    if isinstance(result, tuple):
        return tuple(map(_described, result))
    value = unwrapped(result)
    if isinstance(value, Value) and not value.type.is_pointer:
        return _Leaf(value.type.shape, value.type.dtype, isinstance(result, Number))
    if not is_constant(value):
        raise BlockTypeError(f"evaluate: the function returns {describe(result)}, accepted tiles, "
                             "numbers and tuples of them")
    return value


def _leaves(made: object) -> Iterator[_Leaf]:
    if isinstance(made, tuple):
        for item in made:
            yield from _leaves(item)
    elif isinstance(made, _Leaf):
        yield made


def _filled(made: object, results: Iterator[np.ndarray]) -> object:
    """A described result with the arrays in the place of its leaves, scalars as scalars."""
    if isinstance(made, tuple):
        return tuple(_filled(item, results) for item in made)
    if not isinstance(made, _Leaf):
        return made
    array = next(results)
    return array.item() if made.is_python else array if made.shape else array[()]


def _of_the_user(location: Loc) -> Loc:
    """A location without those of the kernel that calls the function."""
    if location is UNKNOWN or location.file == _FILE:
        return UNKNOWN
    caller = location.caller
    return location if caller is None else replace(location, caller=(
        None if caller.file == _FILE else _of_the_user(caller)))
