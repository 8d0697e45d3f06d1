"""The emitter of translation: constants, casts and broadcasts around strict tile IR ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, Loc, require
from blocknumba.tile_ir import ops  # noqa: F401  fills the registry
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import OpDef, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DType, PointerType, dtype_of, int32, int64
from blocknumba.tile_ir.ops.shape import common_shape
from blocknumba.typing import promotion
from blocknumba.typing.dialect import NUMPY_NAME, Dialect, dialect
from blocknumba.typing.values import Array, Number, Reference, Span, Structure
from blocknumba.wording import MAX_ITEMS, shown

if TYPE_CHECKING:
    from blocknumba.typing.scalars.functions import ScalarFunctions

assert ops, "the op registry is filled by importing the ops"


@dataclass(frozen=True, slots=True)
class Options:
    """The launch options that change the meaning of a kernel.

    debug: device_assert and assert are checked, and out-of-bounds accesses reported.
    watched: a number that some path does not assign is not taken as known, so that its use there
        can be found; else it is what the other paths assign.
    target: the GPU, such as "sm_90a", for whose types scalar functions are compiled; "" for the
        CPU.
    dialect: name of the dialect of the kernel's own function.
    contract: where the dialect lets a product and a sum be rounded once, they are.
    num_warps: what the caller asked for, which a kernel may read; None for the compiler's choice.
    """

    debug: bool = False
    watched: bool = False
    target: str = ""
    dialect: str = NUMPY_NAME
    contract: bool = True
    num_warps: int | None = None


class Context:
    """A builder, with what Python's operations need around it.

    wide: some array of the kernel has offsets that need 64 bits; then positions do too.
    is_inference: what is emitted is thrown away: only the types of the results matter.
    nonnegative: int parameters and loop variables that are at least 0.
    read_only: pointers of parameters that nothing may be stored through.
    scalar_functions: those that the kernel maps over tiles.
    dialect: of the statement that is evaluated; root: of code that no call was inlined for.
    call: (function, values) -> what a user's function returns for them, its ops emitted at the
        insertion point.  The front end provides it.
    """

    call: Callable[[object, Sequence[Value]], object]

    def __init__(self, builder: Builder, options: Options, wide: bool,
                 scalar_functions: ScalarFunctions, is_inference: bool = False):
        self.builder, self.options, self.wide = builder, options, wide
        self.scalar_functions, self.is_inference = scalar_functions, is_inference
        self.nonnegative: set[Value] = set()
        self.read_only: set[Value] = set()
        self.root = self.dialect = dialect(options.dialect)

    def enter(self, location: Loc, of_call: Dialect | None) -> None:
        """Go to a statement: its location is that of ops and errors, its dialect that of rules.

        of_call: the dialect of the inlined call that it is in, if any.
        """
        self.builder.loc = location
        self.dialect = of_call or self.root

    def settled(self, value: object) -> object:
        """The value of an expression as a variable of the dialect holds it."""
        settle = self.dialect.settled
        return value if settle is None else settle(self, value)

    @property
    def index_dtype(self) -> DType:
        """The dtype of positions in arrays."""
        return int64 if self.wide else int32

    def emit(self, name: str | OpDef, *operands: Value, **attrs) -> Value:
        """Append an op, by name."""
        opdef = name if isinstance(name, OpDef) else OPS[name]
        return self.builder.emit(opdef, *operands, **attrs)

    def constant(self, number: bool | int | float, dtype: DType) -> Value:
        """A scalar constant, rounded to dtype."""
        return self.builder.constant(_as_python(number, dtype), dtype)

    def value(self, operand: object, dtype: DType | None = None, what: str = "operand") -> Value:
        """An operand as a Value, of the given dtype or of its own.

        Errors: an operand that is not a number; a literal out of range; with debug=True, when the
        kernel runs, an int of run time that is.
        """
        if isinstance(operand, Value):
            return operand if dtype is None else self.cast(operand, dtype)
        if isinstance(operand, Number):
            return self._number(operand, dtype or promotion.default_dtype(operand), what)
        if promotion.is_literal(operand):
            dtype = dtype or promotion.default_dtype(operand)
            promotion.require_fits(operand, dtype, what)
            return self.constant(operand, dtype)
        if isinstance(operand, np.generic):
            own = self.constant(operand.item(), dtype_of(operand.dtype))
            return own if dtype is None else self.cast(own, dtype)
        raise BlockTypeError(f"{what}: given {describe(operand)}, accepted a tile or a number",
                             hint=loading_hint(operand))

    def _number(self, number: Number, dtype: DType, what: str) -> Value:
        own = number.dtype
        if self.options.debug and own.is_integer and dtype.is_integer:
            low, high = max(own.minimum, dtype.minimum), min(own.maximum, dtype.maximum)
            fits = [self.emit(name, number.value, self.constant(limit, own))
                    for name, limit, least in (("ge", low, own.minimum), ("le", high, own.maximum))
                    if limit != least]
            for condition in fits:
                self.emit("assert", condition, message=f"{what}: an int is out of range for "
                          f"{dtype}, accepted {dtype.minimum} to {dtype.maximum}")
        return self.cast(number.value, dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        """value converted to dtype; itself when it has it."""
        if value.type.dtype == dtype:
            return value
        return self.emit("cast", value, dtype=dtype.name)

    def broadcast_to(self, value: Value, shape: tuple[int, ...], what: str = "broadcast") -> Value:
        """value with leading axes added and axes of extent 1 repeated.

        Errors: shape is not one that value broadcasts to.
        Source: numpy.broadcast_to.
        """
        own = value.type.shape
        if own == shape:
            return value
        if not own:
            return self.emit("splat", value, shape=shape)
        fits = len(own) <= len(shape) and all(
            n in (1, m) for n, m in zip(own[::-1], shape[::-1]))
        require(fits, "{}: given shape {}, accepted one that broadcasts to {}", what, own, shape)
        if len(own) < len(shape):
            own = (1,) * (len(shape) - len(own)) + own
            value = self.emit("reshape", value, shape=own)
        return value if own == shape else self.emit("broadcast", value, shape=shape)

    def broadcast_together(self, values: Sequence[Value], what: str) -> list[Value]:
        """values in their common shape.

        Errors: shapes that do not broadcast together.
        """
        shape = common_shape([value.type.shape for value in values], what)
        return [self.broadcast_to(value, shape, what) for value in values]


def describe(operand: object) -> str:
    """An operand in a message: the type of a Value, the kind of a structure, else the value."""
    if isinstance(operand, Value):
        return str(operand.type)
    if isinstance(operand, Number):
        return "a float of run time" if operand.dtype.is_float else "an int of run time"
    if isinstance(operand, DType):
        return f"the dtype {operand}"
    if isinstance(operand, tuple):
        inner = ", ".join(map(describe, operand[:MAX_ITEMS]))
        if len(operand) > MAX_ITEMS:
            return f"({inner}, ...) of {len(operand)}"
        return f"({inner},)" if len(operand) == 1 else f"({inner})"
    if isinstance(operand, slice):
        return "a slice"
    return operand.noun if isinstance(operand, Structure) else shown(operand)


def loading_hint(operand: object) -> str:
    """Hint that says how to get a tile from a value that is none; empty where there is no way."""
    if isinstance(operand, Span):
        return "index an array with it: x[r] are elements, and r.index are their indices"
    if isinstance(operand, Reference):
        return "load it: bn.load(x.at[...])"
    if isinstance(operand, Value) and operand.type.is_pointer:
        return "an array and an int make a pointer: load elements first"
    if not isinstance(operand, Array):
        return ""
    index = ", ".join(["bn.span(0, SIZE)"] * operand.rank) or "()"
    return f"load elements first: {operand.name.partition(' ')[0]}[{index}]"


def require_numbers(what: str, *operands: object) -> None:
    """Raise unless all operands are tiles and numbers; what: the function or operator."""
    for operand in operands:
        if not promotion.is_number(operand):
            given = " and ".join(map(describe, operands))
            raise BlockTypeError(f"{what}: given {given}, accepted tiles and numbers",
                                 hint="ask x is None" if any(each is None for each in operands)
                                 else loading_hint(operand))


def _as_python(number: bool | int | float, dtype: DType) -> bool | int | float:
    """number rounded to a value of dtype."""
    assert not isinstance(dtype, PointerType)
    if dtype.is_float:
        try:
            number = float(number)
        except OverflowError:
            raise BlockValueError(f"the int {shown(number)} is out of range for {dtype}") from None
        with np.errstate(all="ignore"):
            return float(np.asarray(number, np.float64).astype(dtype.numpy))
    return bool(number) if dtype.kind == "bool" else int(number)
