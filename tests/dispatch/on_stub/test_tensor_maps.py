"""Tensor maps as kernel parameters: what the driver is asked to encode, and what it is given."""

import ctypes
import struct
import threading

import numpy as np
import pytest
from own_maps import own_map
from stub_libraries import CupyArray, TorchTensor

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.tensor_map import ALIGNMENT, Product, TensorMap

MAP = own_map("x", (1, 0), (64, 128), 128)
AFTER_ALL_OTHERS = 10  # two arrays of rank 2 come before


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


@pytest.fixture
def scale(compiler):
    compiler.maps = (MAP,)

    @jit
    def scale(x, out, B: constexpr):
        """Never compiled: the test's compiler makes it."""

    return scale


@pytest.fixture(params=[CupyArray, TorchTensor])
def pair(request):
    values = np.zeros((256, 320), np.float16)
    return request.param(values), request.param(values)


def pointer(array) -> int:
    return array.host.ctypes.data


def described(launch, position=AFTER_ALL_OTHERS) -> dict[str, object]:
    """The description that stub_driver.c writes instead of NVIDIA's encoding."""
    words = struct.unpack("<6iQ5i5i5i5i", ctypes.string_at(launch.addresses[position], 112))
    rank = words[1]
    return {"element": words[0], "interleave": words[2], "swizzle": words[3],
            "promotion": words[4], "fill": words[5], "array": words[6],
            "extents": words[7:7 + rank], "strides_bytes": words[13:12 + rank],
            "box": words[17:17 + rank], "steps": words[22:22 + rank]}


def test_a_map_describes_the_array_innermost_axis_first(stub, scale, pair):
    scale[1](*pair, B=64)

    (launch,) = stub.launches
    assert launch.addresses[AFTER_ALL_OTHERS] % ALIGNMENT == 0
    assert described(launch) == {
        "element": 6, "interleave": 0, "swizzle": 3, "promotion": 3, "fill": 0,
        "array": pointer(pair[0]), "extents": (320, 256), "strides_bytes": (640,),
        "box": (64, 128), "steps": (1, 1)}


@pytest.mark.parametrize("kind", ["warm", "bound"])
def test_warm_and_bound_launches_pass_the_map_of_their_array(stub, scale, pair, kind):
    others = type(pair[0])(pair[0].host), pair[1]
    bound = scale.bind(1, *others, B=64)
    scale[1](*pair, B=64)

    launch = bound if kind == "bound" else lambda: scale[1](*others, B=64)
    launch()

    assert described(stub.launches[-1])["array"] == pointer(others[0])


def test_arrays_that_come_back_are_not_encoded_again(stub, scale, pair):
    others = type(pair[0])(pair[0].host), pair[1]
    for arrays in (pair, others):
        scale[1](*arrays, B=64)
    encoded, addresses = stub.encoded_maps, []

    for arrays in (pair, others, pair):
        scale[1](*arrays, B=64)
        addresses.append(described(stub.launches[-1])["array"])

    assert stub.encoded_maps == encoded
    assert addresses == [pointer(pair[0]), pointer(others[0]), pointer(pair[0])]


def test_another_shape_is_another_map(stub, scale, pair):
    scale[1](*pair, B=64)

    scale[1](CupyArray(np.zeros((64, 64), np.float16)), CupyArray(pair[1].host), B=64)

    assert described(stub.launches[-1])["extents"] == (64, 64)


def test_threads_do_not_disturb_each_others_maps(stub, scale):
    pairs = [(CupyArray(np.zeros((128, 64), np.float16)),) * 2 for _ in range(4)]
    seen = [[] for _ in pairs]
    stub.on_launch(lambda launch: seen[launch.stream - 1].append(described(launch)["array"]))
    scale[1](*pairs[0], B=64, stream=1)

    def work(number):
        for _ in range(50):
            scale[1](*pairs[number], B=64, stream=number + 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [set(arrays) for arrays in seen] == [{pointer(x)} for x, _ in pairs]


OF_ROWS = Parameter("tensor_map", "x", tensor_map=TensorMap(
    (Product.read("x.extent1"), Product.read("rows")), (Product.read("x.stride0"),), (64, 128), 128))


@pytest.fixture
def part(compiler):
    compiler.maps = (OF_ROWS,)

    @jit
    def part(x, out, rows, B: constexpr):
        """Never compiled: the test's compiler makes it."""

    return part


def test_a_number_that_describes_an_array_may_change_from_launch_to_launch(
        stub, compiler, part, pair):
    numbers = (256, 256, 200, 200, 256)

    for number in numbers:
        part[1](*pair, rows=number, B=64)

    assert [described(launch, 11)["extents"] for launch in stub.launches] == [
        (320, number) for number in numbers]
    assert len({spec for _, spec, _ in compiler.compilations if spec.numbers_describe}) == 2  # 8, 16


def test_the_maps_of_numbers_that_come_back_are_not_encoded_again(stub, part, pair):
    for number in (256, 240):
        part[1](*pair, rows=number, B=64)
    encoded = stub.encoded_maps

    for number in (256, 240, 256):
        part[1](*pair, rows=number, B=64)

    assert stub.encoded_maps == encoded


@pytest.mark.parametrize("number", [0, -16, np.int64(2**31)])
def test_numbers_that_describe_no_array_get_code_without_the_map(stub, compiler, part, pair, number):
    other = type(number)(256)

    for given in (other, number, number, other):
        part[1](*pair, rows=given, B=64)

    describing = [spec.numbers_describe for _, spec, _ in compiler.compilations]
    assert describing == [True, False]
    assert [launch.addresses[11] != 0 for launch in stub.launches] == [True, False, False, False]


def test_the_number_is_packed_as_it_was_given_whichever_code_runs(stub, part, pair):
    for number in (256, -16):
        part[1](*pair, rows=number, B=64)

    packed = [struct.unpack("<i", ctypes.string_at(launch.addresses[10], 4))[0]
              for launch in stub.launches]
    assert packed == [256, -16]
