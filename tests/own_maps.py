"""Tensor maps of whole arrays, for tests that make them by hand."""

from __future__ import annotations

from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.tensor_map import Number, Product, TensorMap


def own_map(argument: str, axes: tuple[int, ...], box: tuple[int, ...], swizzle_bytes: int = 0,
            ) -> Parameter:
    """The parameter of a map with an argument's own extents and strides.

    axes: every axis once, the contiguous one first.  box: in the same order.
    """
    return Parameter("tensor_map", argument, tensor_map=TensorMap(
        tuple(Product(1, (Number("extent", argument, axis),)) for axis in axes),
        tuple(Product(1, (Number("stride", argument, axis),)) for axis in axes[1:]),
        box, swizzle_bytes))
