"""Tensor maps: the box of an array that TMA moves at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Self

# Source: CUDA Driver API, cuTensorMapEncodeTiled
SIZE_BYTES, ALIGNMENT = 128, 64
MAX_RANK, MAX_BOX, STRIDE_LIMIT_BYTES, STRIDE_ALIGNMENT = 5, 256, 2**40, 16
SWIZZLES = (0, 32, 64, 128)
# The driver takes extents up to 2**32, but starts are int32.
MAX_EXTENT = 2**31 - 1
UNBOUNDED = 2**31  # the extent of an axis along which every int32 that is not negative is inside

_NUMBER = re.compile(r"(\w+)(?:\.(extent|stride)(\d+))?")


@dataclass(frozen=True, slots=True)
class Number:
    """An integer that a launch is given: kind, argument and axis are as of a Parameter.

    As text: `M`, `x.extent0`, `x.stride1`.
    """

    kind: str
    argument: str
    axis: int | None = None

    def __str__(self) -> str:
        return self.argument if self.axis is None else f"{self.argument}.{self.kind}{self.axis}"

    @property
    def spelled(self) -> str:
        """Its spelling in kernels."""
        attribute = {"extent": "shape", "stride": "strides"}.get(self.kind)
        return f"{self.argument}.{attribute}[{self.axis}]" if attribute else self.argument

    @classmethod
    def read(cls, text: str) -> Self:
        """The number of a text."""
        argument, kind, axis = _NUMBER.fullmatch(text).groups()
        return cls("value", argument) if kind is None else cls(kind, argument, int(axis))


@dataclass(frozen=True, slots=True)
class Product:
    """A number known at launch: a positive factor times integers that the launch is given.

    As text: `1`, `M`, `64 * x.stride0`.
    """

    factor: int = 1
    numbers: tuple[Number, ...] = ()

    def __str__(self) -> str:
        factor = [str(self.factor)] if self.factor != 1 or not self.numbers else []
        return " * ".join([*factor, *map(str, self.numbers)])

    @classmethod
    def read(cls, text: str) -> Self:
        """The product of a text."""
        factors = text.split(" * ")
        if not factors[0].isdigit():
            return cls(1, tuple(map(Number.read, factors)))
        return cls(int(factors[0]), tuple(map(Number.read, factors[1:])))

    def value(self, given: Callable[[Number], int]) -> int:
        """Its value.  given: the value of each number at this launch."""
        return self.factor * prod(map(given, self.numbers))

    def is_of(self, kind: str, argument: str) -> bool:
        """Whether it is the extent or the stride, as kind says, of an axis of an argument."""
        of = [(number.kind, number.argument) for number in self.numbers]
        return self.factor == 1 and of == [(kind, argument)]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers that a launch describes an array with, the contiguous axis first.

    strides_bytes: of the other axes.
    """

    extents: tuple[int, ...]
    strides_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A box of an array, and how its elements lie in shared memory.

    The array is one that the launch describes, in the memory of an argument: with extents and
    strides of that argument, or with numbers that the kernel is given.
    extents: of the array, the contiguous axis first; starts are given in this order.
    strides: of the other axes, in elements.
    box: its extents, one for each axis.
    swizzle_bytes: the width of the rows whose 16-byte chunks are permuted; 0 permutes nothing.
    as_tf32: float32 elements are rounded to 11 significant bits on their way.
    Source: CUDA Driver API, cuTensorMapEncodeTiled.
    """

    extents: tuple[Product, ...]
    strides: tuple[Product, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    as_tf32: bool = False

    def __post_init__(self):
        assert 1 <= len(self.extents) <= MAX_RANK and len(self.box) == len(self.extents), self
        assert len(self.strides) == len(self.extents) - 1, self
        assert all(1 <= extent <= MAX_BOX for extent in self.box), self
        assert self.swizzle_bytes in SWIZZLES, self

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers that describe the array at a launch, each once."""
        products = (*self.extents, *self.strides)
        return tuple(dict.fromkeys(number for product in products for number in product.numbers))

    def sizes(self, element_bytes: int, given: Callable[[Number], int]) -> Sizes | None:
        """The sizes of the array at a launch; None where TMA supports no such array.

        given: the value of each number at this launch.
        """
        extents = tuple(extent.value(given) for extent in self.extents)
        strides = tuple(stride.value(given) * element_bytes for stride in self.strides)
        limits = (MAX_EXTENT if extent.numbers else UNBOUNDED for extent in self.extents)
        if all(1 <= extent <= limit for extent, limit in zip(extents, limits, strict=True)) and all(
                0 < stride < STRIDE_LIMIT_BYTES and stride % STRIDE_ALIGNMENT == 0
                for stride in strides):
            return Sizes(extents, strides)
        return None

    def fields(self) -> dict[str, object]:
        """Its fields, as texts and files have them."""
        return {"extents": tuple(map(str, self.extents)), "strides": tuple(map(str, self.strides)),
                "box": self.box, "swizzle_bytes": self.swizzle_bytes, "as_tf32": self.as_tf32}

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        """The map with these fields, whose sequences may be of any kind."""
        products = {name: tuple(map(Product.read, fields[name])) for name in ("extents", "strides")}
        return cls(**{**fields, **products, "box": tuple(fields["box"])})
