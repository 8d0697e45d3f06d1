"""The parameters of a kernel in tile IR, and the values that stand for its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blocknumba.tile_ir.ir.arguments import Argument, ArrayArgument, ScalarArgument
from blocknumba.tile_ir.ir.function import Parameter, Value
from blocknumba.tile_ir.ir.types import DType, PointerType, TileType, int32, int64
from blocknumba.typing.context import Context
from blocknumba.typing.values import Array, Number


def is_wide(arguments: Mapping[str, Argument]) -> bool:
    """Whether positions in some array need 64 bits."""
    return any(isinstance(a, ArrayArgument) and a.wide for a in arguments.values())


class Parameters:
    """What a kernel receives, in the order of its Python parameters.

    descriptions, types, hints: one of each per tile IR parameter.
    """

    def __init__(self, arguments: Mapping[str, Argument], order: Sequence[str]):
        self._arguments = {name: arguments[name] for name in order if name in arguments}
        self.descriptions: tuple[Parameter, ...] = ()
        self.types: tuple[TileType, ...] = ()
        self.hints: tuple[str, ...] = ()
        for name, argument in self._arguments.items():
            if isinstance(argument, ArrayArgument):
                self._describe_array(name, argument)
            elif argument.value is None:
                self._describe(Parameter("value", name, divisibility=argument.divisibility,
                                         minimum=argument.minimum), argument.dtype, name)

    def bind(self, context: Context, values: Sequence[Value]) -> dict[str, object]:
        """The value of each argument, from those of the tile IR parameters."""
        given = iter(values)
        for description, value in zip(self.descriptions, values):
            if description.minimum is not None and description.minimum >= 0:
                context.nonnegative.add(value)
        return {name: self._bind(context, name, argument, given)
                for name, argument in self._arguments.items()}

    def stand_ins(self) -> dict[str, object]:
        """What inference takes the arguments to be."""
        given = iter([Value(t) for t in self.types])
        return {name: self._bind(None, name, argument, given)
                for name, argument in self._arguments.items()}

    def _bind(self, context: Context | None, name: str, argument: Argument, given) -> object:
        if isinstance(argument, ScalarArgument):
            scalar = self._scalar(context, argument, given)
            return Number(scalar) if argument.weak else scalar
        pointer = next(given)
        extents = tuple([next(given) if n is None else n for n in argument.extents])
        strides = tuple([next(given) if n is None else n for n in argument.strides])
        return Array(name, argument.dtype, argument.wide, pointer, extents, strides)

    @staticmethod
    def _scalar(context: Context | None, argument: ScalarArgument, given) -> Value:
        if argument.value is None:
            return next(given)
        if context is None:
            return Value(TileType(argument.dtype))
        return context.constant(argument.value, argument.dtype)

    def _describe_array(self, name: str, argument: ArrayArgument) -> None:
        self._describe(Parameter("pointer", name, divisibility=argument.alignment,
                                 mappable=argument.mappable),
                       PointerType(argument.dtype), name)
        number = int64 if argument.wide else int32
        for kind, known, divisors, least in (
                ("extent", argument.extents, argument.extent_divisibility, 0),
                ("stride", argument.strides, argument.stride_divisibility, None)):
            for axis, size in enumerate(known):
                if size is None:
                    divisor = divisors[axis] if axis < len(divisors) else 1
                    self._describe(Parameter(kind, name, axis, divisor, least), number,
                                   f"{name}_{kind}{axis}")

    def _describe(self, description: Parameter, dtype: DType | PointerType, hint: str) -> None:
        self.descriptions += (description,)
        self.types += (TileType(dtype),)
        self.hints += (hint,)
