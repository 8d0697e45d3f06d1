"""Values, ops, regions and functions: typed SSA with structured control flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blocknumba.errors import UNKNOWN, Loc
from blocknumba.tile_ir.ir.tensor_map import TensorMap
from blocknumba.tile_ir.ir.types import TileType

if TYPE_CHECKING:
    from blocknumba.tile_ir.ir.opdef import OpDef

Attr = bool | int | float | str | None | tuple


@dataclass(eq=False, slots=True)
class Value:
    """A result of an op, or an argument of a region; compared by identity.

    owner: the op that makes it; None for an argument of a region.
    hint: the user's name for it, for printing.
    """

    type: TileType
    owner: Op | None = None
    hint: str = ""


@dataclass(eq=False, slots=True)
class Op:
    """One operation.  All ops are of this class; what an op means is in its opdef.

    A pass never changes an op: it emits new ones (see builder and rebuild).
    """

    opdef: OpDef
    operands: tuple[Value, ...]
    attrs: Mapping[str, Attr]
    results: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()
    loc: Loc = UNKNOWN

    @property
    def name(self) -> str:
        return self.opdef.name

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(eq=False, slots=True)
class Region:
    """A straight run of ops that ends in a terminator, with the values it is entered with."""

    args: tuple[Value, ...]
    ops: tuple[Op, ...]

    @property
    def terminator(self) -> Op:
        return self.ops[-1]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where a kernel parameter comes from, and what is known of it at compile time.

    kind: "pointer" (first element of an array), "extent" (of an axis, elements), "stride" (of
        an axis, elements), "value" (a scalar argument) or "tensor_map" (128 bytes that describe
        an array to the copy engine; the type of its value is a pointer to the elements).
    argument: name of the Python argument.
    axis: for extents and strides.
    divisibility: the value is a multiple of this; of a pointer, its address in bytes.
    minimum: the value is at least this; None when nothing is known.
    mappable: of a pointer: as of an ArrayArgument.
    tensor_map: of a tensor map: the box.
    """

    kind: str
    argument: str
    axis: int | None = None
    divisibility: int = 1
    minimum: int | None = None
    mappable: bool = False
    tensor_map: TensorMap | None = None

    @property
    def is_pointer(self) -> bool:
        """Whether its value is a pointer."""
        return self.kind in ("pointer", "tensor_map")


@dataclass(eq=False, slots=True)
class Function:
    """A kernel: parameters[i] says what body.args[i] is."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Region
    loc: Loc = UNKNOWN


def walk(region: Region) -> Iterator[Op]:
    """Every op of a region, regions within included, each op before its regions."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)
