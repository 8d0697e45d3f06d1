"""Assumptions of the versions of a device function, checked when it is called."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.kernel import is_map
from blocknumba.nvvm_lower.llvm import I1, I64, I8, Body
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.tensor_map import MAX_EXTENT, STRIDE_LIMIT_BYTES
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument

GENERIC_POINTER = f"{I8}*"
Arguments = tuple[tuple[str, Argument], ...]
_PURE = "nounwind readnone"


@dataclass(frozen=True, slots=True)
class Version:
    """A kernel that was laid out for what its arguments may turn out to be.

    fn: with layouts, without producers and clusters.
    arguments: (name, attributes) that it was compiled for; all versions have the same names.
    space: where its arrays are: "global" or "generic" (anywhere).
    narrow_limit: element offsets and extents are at most this, unless arrays are wide.
    apart: pairs of arrays that share no memory.
    """

    fn: Function
    arguments: Arguments
    space: str
    narrow_limit: int
    apart: tuple[tuple[str, str], ...] = ()


def field_name(argument: str, kind: str, axis: int | None) -> str:
    """The name of a parameter: of an argument itself, or of an extent or stride of an array."""
    return argument if axis is None else f"{argument}.{kind}{axis}"


class Assumptions:
    """Assumptions of a version on one array, checked when it is called."""

    def __init__(self, body: Body, version: Version, name: str, argument: ArrayArgument,
                 known: ArrayArgument, registers: dict[str, str]):
        self._body, self._version, self._argument, self._known = body, version, argument, known
        self._address = body.convert("ptrtoint", GENERIC_POINTER, registers[name], I64)
        self._pointer = registers[name]
        self._is_described = any(is_map(parameter) and parameter.argument == name
                                 for parameter in version.fn.parameters)
        self._extents, self._strides = (
            [registers[field_name(name, kind, axis)] for axis in range(argument.rank)]
            for kind in ("extent", "stride"))

    def all(self) -> list[str]:
        """Each as an i1; none where nothing is assumed."""
        return [*self._in_space(), *self._contiguous(), *self._aligned(), *self._narrow(),
                *self._describable()]

    def is_apart_from(self, other: Assumptions) -> str:
        """Whether no byte belongs to both arrays."""
        body = self._body
        (first, end), (other_first, other_end) = self._bytes(), other._bytes()
        return body.binary("or", I1, body.compare("icmp ule", I64, end, other_first),
                           body.compare("icmp ule", I64, other_end, first))

    def _bytes(self) -> tuple[str, str]:
        """The addresses of the first byte, and after the last one; of arrays that are not empty."""
        body, size = self._body, str(self._argument.dtype.bytes)
        first, last = self._address, self._address
        for extent, stride in zip(self._extents, self._strides):
            steps = body.binary("mul", I64, body.binary("sub", I64, extent, "1"), stride)
            reach = body.binary("mul", I64, steps, size)
            is_negative = body.compare("icmp slt", I64, reach, "0")
            first = body.binary("add", I64, first, body.select(is_negative, I64, reach, "0"))
            last = body.binary("add", I64, last, body.select(is_negative, I64, "0", reach))
        return first, body.binary("add", I64, last, size)

    def _describable(self) -> list[str]:
        """A tensor map can describe it, as TensorMap.sizes says."""
        if not self._is_described:
            return []
        body, holds = self._body, []
        for extent in self._extents:
            holds.append(body.compare("icmp sge", I64, extent, "1"))
            if self._argument.wide:
                holds.append(body.compare("icmp sle", I64, extent, str(MAX_EXTENT)))
        limit = STRIDE_LIMIT_BYTES // self._argument.dtype.bytes
        for stride in self._strides:
            holds.append(body.compare("icmp sge", I64, stride, "1"))
            if self._argument.wide:
                holds.append(body.compare("icmp slt", I64, stride, str(limit)))
        return holds

    def _in_space(self) -> list[str]:
        if self._version.space == "generic":
            return []
        return [self._body.call(I1, "llvm.nvvm.isspacep.global",
                                f"{GENERIC_POINTER} {self._pointer}", attributes=_PURE)]

    def _contiguous(self) -> list[str]:
        """Strides of 1 that the type does not tell."""
        return [self._body.compare("icmp eq", I64, stride, str(needed))
                for stride, needed, known in
                zip(self._strides, self._argument.strides, self._known.strides)
                if needed != known]

    def _aligned(self) -> list[str]:
        """The address, strides and extents are multiples."""
        argument, body = self._argument, self._body
        found = [(self._address,
                  argument.alignment if argument.alignment > argument.dtype.bytes else 1)]
        found += [(stride, divisor) for stride, known, divisor in
                  zip(self._strides, argument.strides, argument.stride_divisibility)
                  if known is None]
        found += zip(self._extents, argument.extent_divisibility)
        rest = [body.binary("and", I64, value, str(divisor - 1))
                for value, divisor in found if divisor > 1]
        return [body.compare("icmp eq", I64, value, "0") for value in rest]

    def _narrow(self) -> list[str]:
        """Extents and the offsets of elements fit.

        Products of what is bounded do not wrap.
        """
        if self._argument.wide:
            return []
        body, limit = self._body, str(self._version.narrow_limit)
        steps = [self._absolute(stride) for stride in self._strides]
        bounded = [body.compare("icmp ule", I64, size, limit) for size in (*self._extents, *steps)]
        reach = "0"
        for extent, step in zip(self._extents, steps):
            reach = body.binary("add", I64, reach, body.binary("mul", I64, extent, step))
        return [*bounded, body.compare("icmp ule", I64, reach, limit)]

    def _absolute(self, value: str) -> str:
        body = self._body
        is_negative = body.compare("icmp slt", I64, value, "0")
        return body.select(is_negative, I64, body.binary("sub", I64, "0", value), value)
