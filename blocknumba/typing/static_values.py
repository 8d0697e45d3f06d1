"""Compile-time values: the annotation constexpr, loops over static_range, static arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DTYPES, DType, dtype_of
from blocknumba.typing.context import describe, loading_hint
from blocknumba.typing.foreign import native
from blocknumba.typing.values import is_constant
from blocknumba.wording import did_you_mean

PACKAGE = __name__.partition(".")[0]


class constexpr:  # noqa: N801 - Triton's spelling
    """`BLOCK: bn.constexpr` makes a parameter a compile-time constant.

    `N = bn.constexpr(128)` marks a global as one, which is allowed but not needed: every global
    that a kernel reads is a constant.  In a kernel, bn.constexpr(x) is x.

    Example:
    >>> @bn.jit
    ... def fill(out, SIZE: bn.constexpr):
    ...     out[bn.span(0, SIZE)] = SIZE
    >>> out = np.zeros(6, int)
    >>> _ = fill[1](out, SIZE=4)
    >>> out
    array([4, 4, 4, 4, 0, 0])
    """

    __compile_time__ = True

    def __init__(self, value: object):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr({self.value!r})"

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))  # 1 and True are apart in most tables

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)


def _of_values(function: Callable[..., object]) -> Callable[..., constexpr]:
    def method(*operands: object) -> constexpr:
        return constexpr(function(*map(unwrapped, operands)))
    return method


def _declare_operators() -> None:
    """Define operators of constexprs outside of kernels, which give constexprs."""
    for name in ("lt", "le", "eq", "ne", "ge", "gt", "neg", "pos", "invert"):
        setattr(constexpr, f"__{name}__", _of_values(getattr(operator, name)))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift",
                 "and", "or", "xor"):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(constexpr, f"__{name}__", _of_values(function))
        setattr(constexpr, f"__r{name}__", _of_values(lambda y, x, f=function: f(x, y)))


_declare_operators()


class static_range:  # noqa: N801 - spelled as range is
    """range(start, stop, step) whose loop is unrolled, its variable a compile-time constant.

    Errors: bounds that are not compile-time ints.

    Example:
    >>> @bn.jit
    ... def first(xs, out):
    ...     for i in bn.static_range(len(xs)):
    ...         out[i] = xs[i][0]
    >>> out = np.zeros(2)
    >>> _ = first[1]((np.ones(3), np.ones(5) * 2), out)
    >>> out
    array([1., 2.])
    """

    __compile_time__ = True

    def __init__(self, start: int, stop: int | None = None, step: int | None = None):
        bounds = (0, start) if stop is None else (start, stop)
        bounds = bounds if step is None else (*bounds, step)
        require(all(isinstance(bound, int) for bound in bounds),
                "static_range: given {!r}, accepted ints", bounds)
        self.over = range(*bounds)

    def __iter__(self) -> Iterator[int]:
        return iter(self.over)


def unwrapped(value: object) -> object:
    """A value as a kernel reads it from a variable outside.

    The value of a constexpr, the element of an array without axes, a list as a tuple, ours for
    Triton's; any other value as it is.
    """
    if isinstance(value, constexpr):
        return StaticFunction(value.value) if _is_of_user(value.value) else value.value
    value = native(value)
    if isinstance(value, list):
        return tuple(map(unwrapped, value))
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


@dataclass(frozen=True)
class StaticFunction:
    """A function of the user's, in a constexpr: Python runs it while a kernel is compiled.

    As under Triton it gets constants as constexprs, and dtypes as they are.
    """

    function: FunctionType
    __compile_time__ = True

    def __call__(self, *arguments: object, **named: object) -> object:
        return self.function(*map(_as_argument, arguments),
                             **{name: _as_argument(value) for name, value in named.items()})

    @property
    def __name__(self) -> str:
        return self.function.__name__

    @property
    def python_function(self) -> FunctionType:
        """As of what jit makes of a function."""
        return self.function


def _as_argument(value: object) -> object:
    return value if isinstance(value, DType) else constexpr(value)


def _is_of_user(value: object) -> bool:
    """Whether a value is a Python function that is no part of this package."""
    return isinstance(value, FunctionType) and (value.__module__ or "").partition(".")[0] != PACKAGE


def static(name: str, value: object) -> object:
    """value, which must be known at compile time.  name: "function: parameter"."""
    if not is_constant(value):
        raise BlockTypeError(f"{name} must be a compile-time constant, got {describe(value)}",
                             hint="" if loading_hint(value) else
                             "pass it as a bn.constexpr argument")
    return value


def static_int(name: str, value: object) -> int:
    """An int known at compile time."""
    known = static(name, value)
    try:
        number = operator.index(known)
    except TypeError:
        number = None
    if number is None or isinstance(known, (bool, np.bool_)):
        raise BlockTypeError(f"{name} must be an int, got {describe(value)}",
                             hint="divide by // or bn.cdiv" if _is_whole(known) else "")
    return number


def _is_whole(value: object) -> bool:
    """Whether a value is a float without a fraction, as / makes of ints."""
    return isinstance(value, float) and value.is_integer()


def static_shape(name: str, value: object) -> tuple[int, ...]:
    """A shape known at compile time: an int or a tuple of ints."""
    items = value if isinstance(value, tuple) else (value,)
    if not all(map(is_constant, items)):
        raise BlockTypeError(f"{name}: shape must be compile-time ints, got {describe(value)}",
                             hint="pass its extents as bn.constexpr arguments")
    return tuple(static_int(f"{name}: shape", item) for item in items)


def static_axis(name: str, value: object, rank: int) -> int:
    """An axis from 0 to rank - 1; negative ones count from the end."""
    axis = static_int(f"{name}: axis", value)
    if not -rank <= axis < rank:
        raise BlockValueError(f"{name}: axis {axis} is out of range for rank {rank}, accepted "
                              f"{-rank} to {rank - 1}")
    return axis % rank


def static_axes(name: str, value: object, rank: int) -> tuple[int, ...]:
    """Several axes, each once, sorted; None means all."""
    if value is None:
        return tuple(range(rank))
    items = value if isinstance(value, tuple) else (value,)
    axes = sorted(static_axis(name, item, rank) for item in items)
    if len(set(axes)) != len(axes):
        raise BlockValueError(f"{name}: axis {describe(value)} names one axis twice")
    return tuple(axes)


def static_dtype(name: str, value: object) -> DType:
    """A dtype, in any spelling."""
    if isinstance(value, Value) or not is_constant(value):
        raise BlockTypeError(f"{name}: dtype must be a dtype such as bn.float32, got "
                             f"{describe(value)}")
    if type(value).__module__.startswith("numba.") and str(value) in DTYPES:
        return DTYPES[str(value)]
    try:
        return dtype_of(value)
    except BlockTypeError as error:
        raise BlockTypeError(f"{name}: dtype must be a dtype such as bn.float32, got "
                             f"{describe(value)}", hint=error.hint) from None


def static_choice(name: str, value: object, accepted: tuple) -> object:
    """One of a few constants."""
    if static(name, value) not in accepted:
        hint = did_you_mean(value, filter(None, accepted)) if isinstance(value, str) else ""
        raise BlockValueError(f"{name} must be one of {accepted}, got {describe(value)}", hint=hint)
    return value
