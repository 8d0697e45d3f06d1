"""Kernel parameters that are tensor maps."""

from dataclasses import replace

import pytest
from equal_functions import equal
from own_maps import own_map

from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.tensor_map import UNBOUNDED, Number, Product, Sizes, TensorMap
from blocknumba.tile_ir.ir.verifier import problems
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text  # noqa: E402

D = Product(1, (Number("value", "D"),))
ROWS, ROW, COLUMN = (Number(kind, "x", axis)
                     for kind, axis in (("extent", 0), ("stride", 0), ("stride", 1)))
SOURCE = """\
kernel copy(
  %x: ptr<float16> = pointer(x) {divisibility=16, mappable=True}
  %x_map: ptr<float16> = tensor_map(x) {extents=("D", "x.extent0", "2147483648"), \
strides=("x.stride0", "64 * S * x.stride1"), box=(64, 128, 1), swizzle_bytes=128, as_tf32=True}
  %v_map: ptr<float32> = tensor_map(v) {extents=("v.extent0",), strides=(), box=(4,), \
swizzle_bytes=0}
) {
  return
}
"""


def test_tensor_maps_are_written_and_read_back():
    fn = parse(SOURCE)

    assert fn.parameters == (
        Parameter("pointer", "x", divisibility=16, mappable=True),
        Parameter("tensor_map", "x", tensor_map=TensorMap(
            (D, Product(1, (ROWS,)), Product(UNBOUNDED)),
            (Product(1, (ROW,)), Product(64, (Number("value", "S"), COLUMN))),
            (64, 128, 1), 128, as_tf32=True)),
        own_map("v", (0,), (4,)))
    assert text(fn) == SOURCE
    assert equal(parse(text(fn)), fn)
    assert not list(problems(fn))


@pytest.mark.parametrize("parameter", [
    Parameter("tensor_map", "x"),
    replace(own_map("x", (0,), (4,)), kind="pointer")], ids=["no box", "no map"])
def test_a_parameter_has_a_box_exactly_when_it_is_a_map(parameter):
    fn = parse(SOURCE)
    fn.parameters = (parameter, *fn.parameters[1:])

    assert list(problems(fn)) == [f"parameter x: {parameter.kind} of {parameter.tensor_map}"]


@pytest.mark.parametrize("axes, box, swizzle_bytes", [
    ((0, 1), (4,), 0), ((0,), (257,), 0), ((0,), (0,), 0), ((), (), 0),
    (tuple(range(6)), (1,) * 6, 0), ((0,), (4,), 16)])
def test_boxes_that_the_copy_engine_does_not_know_are_refused(axes, box, swizzle_bytes):
    with pytest.raises(AssertionError):
        own_map("x", axes, box, swizzle_bytes)


@pytest.mark.parametrize("product", [
    Product(), Product(80), D, Product(1, (ROWS,)), Product(3, (Number("value", "S"), COLUMN))])
def test_products_are_written_and_read_back(product):
    assert Product.read(str(product)) == product


@pytest.mark.parametrize("extents, stride, possible", [
    ((64, 1), 64, True), ((64, 0), 64, False), ((64, -1), 64, False),
    ((2**31 - 1, 2**31 - 1), 64, True), ((64, 2**31), 64, False),
    ((64, 1), 0, False), ((64, 1), -64, False), ((64, 1), 68, False), ((64, 1), 8, True),
    ((64, 1), 2**39, False), ((64, 1), 2**39 - 8, True)])
def test_sizes_are_those_of_arrays_that_the_copy_engine_knows(extents, stride, possible):
    given = {"D": extents[0], "S": extents[1], "x": stride}
    map_ = TensorMap((D, Product(1, (Number("value", "S"),))), (Product(1, (ROW,)),), (8, 8))

    sizes = map_.sizes(2, lambda number: given[number.argument])

    assert sizes == (Sizes(extents, (stride * 2,)) if possible else None)


def test_an_axis_without_a_bound_has_every_index():
    map_ = TensorMap((Product(UNBOUNDED),) * 2, (Product(64),), (8, 8))

    sizes = map_.sizes(2, {}.__getitem__)

    assert sizes == Sizes((2**31, 2**31), (128,))
