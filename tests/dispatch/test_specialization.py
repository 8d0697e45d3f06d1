"""What code is specialised on."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from blocknumba.dispatch.launch.arrays import array_info
from blocknumba.dispatch.launch.signature import scalar_info
from blocknumba.dispatch.launch.specialize import (
    are_disjoint, argument_of, freeze, identify, integer_class,
)
from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import ScalarArgument, float64, int32, int64, uint64


def argument(value):
    where = "add: argument x"
    return argument_of(scalar_info(value, None, where) or array_info(value, where))


def aligned(shape, dtype=np.float32, offset=0):
    """An array whose first element is offset bytes after a multiple of 256."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 512, np.uint8)
    start = -memory.ctypes.data % 256 + offset
    return memory[start:start + size].view(dtype).reshape(shape)


def test_unit_and_zero_strides_are_constants():
    array = np.broadcast_to(aligned((4, 8)), (3, 4, 8))

    assert argument(array).strides == (0, None, 1)


def test_powers_of_two_up_to_16_that_divide_strides_and_extents_of_unit_stride_are_known():
    found = argument(aligned((3, 32))[:, :17])

    assert found.stride_divisibility == (16, 1)
    assert found.extent_divisibility == (1, 1)
    assert argument(aligned((32, 48))).extent_divisibility == (1, 16)
    assert argument(aligned((32, 48)).T).extent_divisibility == (16, 1)
    assert argument(aligned((6, 1000))).extent_divisibility == (1, 8)
    assert argument(aligned((6, 1000))).stride_divisibility == (8, 1)


def test_many_shapes_share_few_versions():
    shapes = np.random.default_rng(0).integers(2, 500, (200, 2))

    versions = {argument(aligned(tuple(shape))) for shape in shapes.tolist()}

    assert len(versions) == 5  # rows that are multiples of 1, 2, 4, 8 and 16 elements


@pytest.mark.parametrize("offset, alignment", [(0, 16), (16, 16), (4, 4), (8, 4)])
def test_addresses_that_are_multiples_of_16_bytes_are_known(offset, alignment):
    assert argument(aligned((8,), offset=offset)).alignment == alignment


@pytest.mark.parametrize("array, mappable", [
    (aligned((8, 16)), True), (aligned((8, 16)).T, True), (aligned((8, 16))[::2], True),
    (aligned((2, 3, 2, 5, 4)), True),
    (aligned((2, 3, 2, 5, 1, 4)), False),  # six axes
    (aligned((128,)), False),
    (aligned((8, 16), offset=4), False), (aligned((8, 18)), False),  # not multiples of 16 bytes
    (aligned((8, 16))[:, ::2], False),  # no stride of 1
    (aligned((8, 16))[::-1], False), (aligned((0, 16)), False),
    (np.broadcast_to(aligned((16,)), (8, 16)), False),
    (np.lib.stride_tricks.as_strided(aligned((16,)), (2, 2), (2**40, 4)), False)])
def test_arrays_that_a_tensor_map_can_describe_are_mappable(array, mappable):
    assert argument(array).mappable == mappable


@pytest.mark.parametrize("shape, strides, wide", [
    ((2**20, 2**10), (2**10, 1), False), ((2**21, 2**10), (2**10, 1), True),
    ((2, 2), (2**31, 1), True), ((2, 2), (-(2**31), 1), True), ((2**31 + 1,), (0,), True),
    ((1, 4), (2**40, 1), False)])
def test_arrays_whose_offsets_leave_32_bits_are_wide(shape, strides, wide):
    base = np.zeros(1, np.int8)
    array = np.lib.stride_tricks.as_strided(base, shape, strides)

    assert argument(array).wide == wide


@pytest.mark.parametrize("value, divisibility, minimum", [
    (7, 1, 1), (96, 32, 1), (128, 128, 1), (384, 128, 1), (1024, 256, 1), (0, 16, None),
    (-128, 16, None), (2**31 - 1, 1, 1)])
def test_an_int_that_remainders_are_taken_by_is_specialised_on_whole_tiles(
        value, divisibility, minimum):
    found = argument_of(scalar_info(value, None, ""), is_divisor=True)

    assert found == ScalarArgument(int32, None, divisibility, minimum, weak=True)


def test_of_other_ints_that_remainders_are_taken_by_nothing_more_is_known():
    for value in (1, 2**31, 2**40 + 8, np.int32(128), 2.0):
        info = scalar_info(value, None, "")

        assert argument_of(info, is_divisor=True) == argument_of(info)


def test_an_int_is_specialised_on_being_one_and_on_divisibility():
    assert argument(1) == ScalarArgument(int32, value=1, weak=True)
    assert argument(32) == argument(0) == ScalarArgument(int32, divisibility=16, weak=True)
    assert argument(7) == argument(-3) == ScalarArgument(int32, weak=True)
    assert argument(1000) == argument(-24) == ScalarArgument(int32, divisibility=8, weak=True)
    assert argument(2**40) == ScalarArgument(int64, divisibility=16, weak=True)
    assert argument(2**63 + 1) == ScalarArgument(uint64, weak=True)


def test_numpy_scalars_and_floats_are_not_specialised_on_their_value():
    assert argument(np.int32(1)) == argument(np.int32(16)) == ScalarArgument(int32)
    assert argument(1.0) == argument(2.5) == ScalarArgument(float64, weak=True)


@pytest.mark.parametrize("a, b", [
    (1, True), (1, 1.0), (0.0, -0.0), (True, 1.0), (np.int32(1), np.int64(1)), (1, np.int32(1)),
    ((1, 2), (1.0, 2)), ((0.0,), (-0.0,)), ("1", 1), (np.float32, np.float64), (None, 0),
    (np.float16(1), np.float32(1)), (len, max), ((1,), [1]), (frozenset({1}), frozenset({True})),
    (complex(0, 0.0), complex(0, -0.0)), (range(0, 3, 2), range(0, 4, 2))])
def test_constants_that_differ_in_value_or_type_have_different_keys(a, b):
    assert freeze(a, "B") != (freeze(b, "B") if not isinstance(b, list) else None)


class Valued:
    """Objects that are compared by what they hold, but for what they hide."""

    def __init__(self, shown, hidden=0):
        self.shown, self.hidden = shown, hidden

    def __eq__(self, other):
        return self.shown == other.shown

    def __hash__(self):
        return hash(self.shown)


class Plain:
    """Objects that are compared by which one they are."""


@dataclass(frozen=True)
class Frozen:
    shown: object
    hidden: int = field(default=0, compare=False)


@pytest.mark.parametrize("cls", [Valued, Frozen])
def test_objects_are_identified_by_all_that_they_hold(cls):
    assert identify(cls(1), "B") == identify(cls(1), "B")
    assert identify((cls(Frozen(1)),), "B") == identify((cls(Frozen(1)),), "B")
    for other in (cls(True), cls(1.0), cls(1, 2), cls((1,)), Plain()):
        assert identify(cls(1), "B") != identify(other, "B")


def test_objects_that_can_hold_themselves_have_an_identity():
    one, other = Valued(1), Valued(1)
    one.hidden, other.hidden = one, other
    plain = Plain()

    assert identify(one, "B") == identify(one, "B") != identify(other, "B")
    assert identify(plain, "B") == identify(plain, "B") != identify(Plain(), "B")


@pytest.mark.parametrize("make", [
    lambda: 12345678, lambda: float("nan"), lambda: (1, (2.5, "x")), lambda: np.float32(0.1),
    lambda: np.dtype("f4"), lambda: "".join(["a", "b"]), lambda: np.array([1, 2])])
def test_equal_constants_have_equal_keys(make):
    assert freeze(make(), "B") == freeze(make(), "B")
    assert hash(freeze(make(), "B")) == hash(freeze(make(), "B"))


@pytest.mark.parametrize("value, message", [
    ([1, 2], r"B: given \[1, 2\], accepted hashable constants"), ({}, "B: given a dict"),
    ((1, [2]), r"B: given \[2\]")])
def test_a_constant_that_cannot_be_hashed_is_an_error(value, message):
    with pytest.raises(BlockTypeError, match=message):
        freeze(value, "B")


@pytest.mark.parametrize("value", [2**31, 2**31 + 16, 2**62, 2**63, 2**64 - 1, -2**31 - 1, -2**63])
def test_ints_of_one_class_specialise_alike(value):
    other = {True: 2**40, False: 2**40 + 1}[value % 16 == 0]
    other += 2**63 if value >= 2**63 else 0

    assert integer_class(value) == integer_class(other)
    assert argument(value) == argument(other)


def test_ints_beyond_64_bits_are_in_a_class_of_their_own():
    assert integer_class(2**64) == integer_class(-2**63 - 1) == -1


BASE = np.zeros((8, 8), np.float32)


@pytest.mark.parametrize("arrays, disjoint", [
    ([BASE], True), ([BASE, BASE], False), ([BASE[:4], BASE[4:]], True),
    ([BASE[:5], BASE[4:]], False), ([BASE[3::-1], BASE[4:]], True), ([BASE[4:], BASE[:4]], True),
    ([BASE[:, :4], BASE[:, 4:]], False), ([BASE, BASE[:0]], True), ([], True),
    ([BASE[:2], BASE[4:], BASE[1:3]], False)])
def test_arrays_whose_ranges_of_bytes_meet_are_not_disjoint(arrays, disjoint):
    info = [array_info(array, "add: argument x") for array in arrays]

    assert are_disjoint(info) == disjoint
