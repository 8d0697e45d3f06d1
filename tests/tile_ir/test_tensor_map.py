"""Kernel parameters that are tensor maps."""

import pytest

from blocknumba.tile_ir.equality import equal
from blocknumba.tile_ir.ir import Parameter
from blocknumba.tile_ir.parser import parse
from blocknumba.tile_ir.printer import text
from blocknumba.tile_ir.tensor_map import TensorMap
from blocknumba.tile_ir.verifier import problems

SOURCE = """\
kernel copy(
  %x: ptr<float16> = pointer(x) {divisibility=16, mappable=True}
  %x_map: ptr<float16> = tensor_map(x) {axes=(2, 0, 1), box=(64, 128, 1), swizzle_bytes=128}
  %v_map: ptr<float32> = tensor_map(v) {axes=(0,), box=(4,), swizzle_bytes=0}
) {
  return
}
"""


def test_tensor_maps_are_written_and_read_back():
    fn = parse(SOURCE)

    assert fn.parameters == (
        Parameter("pointer", "x", divisibility=16, mappable=True),
        Parameter("tensor_map", "x", tensor_map=TensorMap((2, 0, 1), (64, 128, 1), 128)),
        Parameter("tensor_map", "v", tensor_map=TensorMap((0,), (4,))))
    assert text(fn) == SOURCE
    assert equal(parse(text(fn)), fn)
    assert not list(problems(fn))


@pytest.mark.parametrize("parameter", [
    Parameter("tensor_map", "x"),
    Parameter("pointer", "x", tensor_map=TensorMap((0,), (4,)))], ids=["no box", "no map"])
def test_a_parameter_has_a_box_exactly_when_it_is_a_map(parameter):
    fn = parse(SOURCE)
    fn.parameters = (parameter, *fn.parameters[1:])

    assert list(problems(fn)) == [f"parameter x: {parameter.kind} of {parameter.tensor_map}"]


@pytest.mark.parametrize("axes, box, swizzle_bytes", [
    ((0, 2), (4, 4), 0), ((0, 0), (4, 4), 0), ((0, 1), (4,), 0), ((0,), (257,), 0), ((0,), (0,), 0),
    ((), (), 0), (tuple(range(6)), (1,) * 6, 0), ((0,), (4,), 16)])
def test_boxes_that_the_copy_engine_does_not_know_are_refused(axes, box, swizzle_bytes):
    with pytest.raises(AssertionError):
        TensorMap(axes, box, swizzle_bytes)
