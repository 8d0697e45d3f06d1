"""Warm launches: what a launcher recognises, and that it never mistakes one launch for another."""

import gc
import itertools
import threading
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest
from stub_libraries import CURRENT, CupyArray, TorchTensor

from blocknumba.dispatch.launch import kernel, launchers, recent
from blocknumba.dispatch.launch.kernel import jit
from blocknumba.errors import BlockError, BlockTypeError

FACTOR = 1


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


def make_scale():
    @jit
    def scale(x, out, n, factor, B: constexpr):
        """Never compiled: the test's compiler makes it."""
        return FACTOR

    return scale


def pair(make=CupyArray, shape=(12,), dtype=np.float32) -> tuple:
    return make(np.zeros(shape, dtype)), make(np.zeros(shape, dtype))


def pointer(array) -> int:
    return array.host.ctypes.data


def told(launch) -> tuple:
    """All that the driver is told but the kernel."""
    return (launch.stream, *launch.grid, *launch.block, *launch.parameters[:16])


SHAPES = [(12,), (7,), (3, 4), (4, 3), (12, 1), (1, 12), (2, 3, 4), (), (0,), (0, 5), (0, 7)]


@pytest.mark.parametrize("make", [CupyArray, TorchTensor])
@pytest.mark.parametrize("first, then", [*itertools.permutations(SHAPES, 2)], ids=str)
def test_arrays_of_other_shapes_are_never_taken_for_each_other(stub, compiler, make, first, then):
    scale, calls = make_scale(), [pair(make, first), pair(make, then)]
    for arrays in calls:
        scale[1](*arrays, 3, 1.5, B=64)
    cold = [list(launch.parameters[:2 * (1 + 2 * len(shape))])
            for launch, shape in zip(stub.launches, (first, then))]

    for arrays in calls * 2:
        scale[1](*arrays, 3, 1.5, B=64)

    warm = [list(launch.parameters[:2 * (1 + 2 * len(shape))])
            for launch, shape in zip(stub.launches[2:], (first, then) * 2)]
    assert warm == cold * 2


@pytest.mark.parametrize("make", [CupyArray, TorchTensor])
@pytest.mark.parametrize("change", [
    lambda x: x.astype(np.int32), lambda x: x[::2].copy()[:6], lambda x: x[::2], lambda x: x[::-1],
    lambda x: x.reshape(4, 3).T, lambda x: np.broadcast_to(x[:1], 12)])
def test_a_vector_is_not_taken_for_another_array_of_its_address(stub, compiler, make, change):
    x, out = pair(make)
    x.host.flat = range(12)
    other = make(x.host)
    scale, values = make_scale(), change(other.host)
    other.host = values
    if make is TorchTensor:
        other.dtype = type(other.dtype)(values.dtype.name)
    else:
        other.data = type(other.data)(values.ctypes.data, 0)
    expected = [values.ctypes.data, *values.shape,
                *(stride // values.itemsize for stride in values.strides)]

    for _ in range(2):
        scale[1](x, out, 3, 1.5, B=64)
        scale[1](other, out, 3, 1.5, B=64)

    words = [word & 0xFFFFFFFFFFFFFFFF for word in expected]
    for launch in stub.launches[1::2]:
        assert list(launch.parameters[:len(words)]) == words


VARIANTS = {
    "n": lambda given, step: given | {"n": 3 + 2 * step},
    "negative n": lambda given, step: given | {"n": -(2**40) - 2 * step},
    "n becomes 1": lambda given, step: given | {"n": step},
    "wide n": lambda given, step: given | {"n": 2**40 * (1 + step)},
    "zero and minus zero": lambda given, step: given | {"factor": -0.0 if step else 0.0},
    "not a number": lambda given, step: given | {"factor": float("nan")},
    "factor": lambda given, step: given | {"factor": 0.5 + step},
    "B": lambda given, step: given | {"B": 64 << step},
    "True and 1": lambda given, step: given | {"B": True if step else 1},
    "1 and 1.0": lambda given, step: given | {"B": 1.0 if step else 1},
    "warps": lambda given, step: given | {"num_warps": 2 << step},
    "stream": lambda given, step: given | {"stream": 0x10 * (1 + step)},
}


@pytest.mark.parametrize("vary", VARIANTS.values(), ids=VARIANTS)
def test_launches_that_differ_in_one_thing_take_turns(stub, compiler, vary):
    arrays, given = pair(), {"n": 3, "factor": 1.5, "B": 64}
    expected = []
    for step in (0, 1):
        make_scale()[2](*arrays, **vary(given, step))
        expected.append(told(stub.launches[-1]))
    scale = make_scale()

    for step in (0, 1) * 3:
        scale[2](*arrays, **vary(given, step))

    assert [told(launch) for launch in stub.launches[2:]] == expected * 3


@pytest.mark.parametrize("grids", [
    (1, 2), (3, (3,)), ((3,), (3, 1, 1)), ((2, 3), (3, 2)), (5, lambda meta: meta["n"]), ([4], 0),
    ((3, 2), (np.int64(3), 2)), ((3, 0), (3, 1)), ((2, 3), lambda meta: (2, meta["n"])),
    (lambda meta: meta["n"], lambda meta: (meta["n"], 2))])
def test_grids_take_turns(stub, compiler, grids):
    scale, arrays, expected = make_scale(), pair(), []
    for grid in grids * 3:
        extents = grid({"n": 3}) if callable(grid) else grid
        extents = (*((extents,) if isinstance(extents, int) else extents), 1, 1)[:3]
        expected += [list(extents)] if all(extents) else []

        scale[grid](*arrays, 3, 1.5, B=64)

    assert [list(launch.grid) for launch in stub.launches] == expected


@pytest.mark.parametrize("right, wrong", [
    (1, True), (1, 1.0), ((2,), (2.0,)), ((1, 2), (True, 2)), ((2, 1, 3), (2, 1.0, 3))])
def test_a_grid_is_not_taken_for_an_equal_one_that_is_a_mistake(stub, compiler, right, wrong):
    scale, arrays = make_scale(), pair()

    for _ in range(4):
        scale[right](*arrays, 3, 1.5, B=64)
        with pytest.raises(BlockTypeError, match="of the grid, accepted an int"):
            scale[wrong](*arrays, 3, 1.5, B=64)

    assert len(stub.launches) == 4


@pytest.mark.parametrize("wrong", [(), (1, 1, 1, 1), (1, -1), (1, 2**16)])
def test_a_tuple_that_is_no_grid_is_an_error_each_time(stub, compiler, wrong):
    scale, arrays = make_scale(), pair()

    for _ in range(3):
        scale[1, 1](*arrays, 3, 1.5, B=64)
        with pytest.raises(BlockError, match="scale: given .* of the grid|scale: given a grid of"):
            scale[wrong](*arrays, 3, 1.5, B=64)

    assert len(stub.launches) == 3


@pytest.mark.parametrize("make", [lambda: (3,), lambda: [3], lambda: lambda meta: 3])
def test_a_grid_that_is_used_again_and_again_is_the_same_launch(stub, compiler, make):
    scale, arrays, grid = make_scale(), pair(), make()
    others = [[extent] for extent in range(1, 2 * launchers.MAX_TRIES)]  # after so many it gives up

    grids = [grid, grid, make(), grid, *others, grid, grid, make()]
    for given in grids:
        scale[given](*arrays, 3, 1.5, B=64)

    expected = [3] * 4 + [extent for extent, in others] + [3] * 3
    assert [launch.grid[0] for launch in stub.launches] == expected


def test_a_list_of_extents_may_change_in_place(stub, compiler):
    scale, arrays, grid = make_scale(), pair(), [1]

    for extent in (3, 3, 3, 4, 4):
        grid[0] = extent
        scale[grid](*arrays, 3, 1.5, B=64)

    assert [launch.grid[0] for launch in stub.launches] == [3, 3, 3, 4, 4]


def test_what_a_grid_function_holds_is_not_kept_alive(stub, compiler):
    scale, arrays = make_scale(), pair()

    class Held:
        """Stands for an array."""

    held = Held()
    alive, grid = weakref.ref(held), lambda meta, held=held: 3
    for _ in range(5):
        scale[grid](*arrays, 3, 1.5, B=64)

    del held, grid

    assert alive() is None


def test_the_current_stream_may_change_between_launches(stub, compiler, monkeypatch):
    scale, arrays = make_scale(), pair()
    for stream in (0x10, 0x20, 0x10, 0x10):
        monkeypatch.setattr(CURRENT, "cupy", stream)
        scale[1](*arrays, 3, 1.5, B=64)

    assert [launch.stream for launch in stub.launches] == [0x10, 0x20, 0x10, 0x10]


@pytest.mark.parametrize("share", [False, True])
def test_a_changed_global_is_seen_whatever_ran_before(stub, compiler, monkeypatch, share):
    scale, (x, out) = make_scale(), pair()
    for _ in range(3):
        scale[1](x, out, 3, 1.5, B=64)
        scale[1](out, out, 3, 1.5, B=64)
    before = len(compiler.compilations)
    monkeypatch.setitem(globals(), "FACTOR", 2)

    for _ in range(3):
        scale[1](out if share else x, out, 3, 1.5, B=64)
        scale[1](x if share else out, out, 3, 1.5, B=64)

    captured = [dict(specialization.captured) for _, specialization, _
                in compiler.compilations[before:]]
    assert [values[f"{__name__}.FACTOR"][1] for values in captured] == [2] * len(captured)
    assert len(captured) == before == 2
    assert len(stub.launches) == 12


class Config:
    """A constant that is equal to all others."""

    def __init__(self, size):
        self.size = size

    def __eq__(self, other):
        return isinstance(other, Config)

    def __hash__(self):
        return 0


def make_sized():
    @jit
    def sized(x, out, given: constexpr):
        """Never compiled: the test's compiler makes it."""
        return given.size

    return sized


def sizes_compiled(compiler) -> list[int]:
    return [dict(specialization.captured)["argument given.size"][1]
            for _, specialization, _ in compiler.compilations]


def test_an_attribute_of_a_constant_is_seen_to_change_between_warm_launches(stub, compiler):
    sized, arrays, config = make_sized(), pair(), Config(1)
    for size in (1, 1, 1, 2, 2, 1, 1):
        config.size = size
        sized[1](*arrays, given=config)

    assert sizes_compiled(compiler) == [1, 2]
    assert len(stub.launches) == 7


def test_equal_constants_with_other_attributes_have_other_code(stub, compiler):
    sized, arrays = make_sized(), pair()
    one, two = Config(1), Config(2)
    launched = [sized[1](*arrays, given=config) for config in (one, one, two, one, two, Config(1))]

    assert sizes_compiled(compiler) == [1, 2]
    assert [launched.index(compiled) for compiled in launched] == [0, 0, 2, 0, 2, 0]


@dataclass(frozen=True, slots=True)
class Slots:
    """A constant that is equal to others by its name only."""

    name: str
    size: int = field(compare=False)


def test_equal_constants_without_a_dict_have_code_of_their_own_attributes(stub, compiler):
    sized, arrays = make_sized(), pair()
    for size in (1, 2, 1):
        sized[1](*arrays, given=Slots("a", size))

    assert sizes_compiled(compiler) == [1, 2]


def test_a_constant_that_died_is_not_taken_for_another_at_its_address(stub, compiler):
    sized, arrays = make_sized(), pair()
    for size in range(100):
        sized[1](*arrays, given=Config(size))

    assert sizes_compiled(compiler) == [*range(100)]


def test_a_bound_launch_sees_an_attribute_change(stub, compiler):
    sized, arrays, config = make_sized(), pair(), Config(1)
    bound = sized.bind(1, *arrays, given=config)
    first = [bound(), bound()]
    config.size = 2

    assert bound() not in first
    assert sizes_compiled(compiler) == [1, 2]


def test_a_global_that_changes_back_is_the_first_code_again(stub, compiler, monkeypatch):
    scale, arrays = make_scale(), pair()
    used = []
    for value in (1, 2, 1, 2, 1):
        monkeypatch.setitem(globals(), "FACTOR", value)
        used.append(scale[1](*arrays, 3, 1.5, B=64))

    assert used == [used[0], used[1]] * 2 + [used[0]]
    assert len(compiler.compilations) == 2


def test_arrays_that_are_only_read_may_share_memory(stub, compiler):
    @jit
    def add(x, y, out):
        """Never compiled: the test's compiler makes it."""

    x, out = pair()
    seen = [add[1](*arrays).specialization.disjoint
            for arrays in [(x, x, out), (x, x, out), (x, out, out), (x, x, out), (x, out, out)]]

    assert seen == [True, True, False, True, False]


@pytest.mark.parametrize("count", [2, 4, 5, 9])
def test_overlaps_are_found_among_any_number_of_arrays(stub, compiler, count):
    names = [f"a{number}" for number in range(count - 1)]
    scope = {}
    exec(f"def gather(out, {', '.join(names)}): pass", scope)
    gather, memory = jit(scope["gather"]), CupyArray(np.zeros(16 * count, np.float32))
    arrays = [view(memory, 16 * number) for number in range(count)]
    near = view(memory, 16 * (count - 1) - 8)

    seen = [gather[1](*arrays[:-1], last).specialization.disjoint
            for last in (arrays[-1], arrays[-1], arrays[0], arrays[-1], near, arrays[0])]

    shares = count == 2  # near lies in the array before, which is stored to when there are two
    assert seen == [True, True, False, True, not shares, False]


def view(memory: CupyArray, start: int) -> CupyArray:
    """Twelve elements of another array, from a given one."""
    made = CupyArray.__new__(CupyArray)
    made.host = memory.host[start:start + 12]
    made.data = type(memory.data)(memory.data.ptr + 4 * start, 0)
    return made


def test_a_finalizer_that_launches_the_same_kernel_disturbs_nothing(stub, compiler):
    scale, (x, out), others = make_scale(), pair(), pair()
    launch_scale = scale[1]

    class Launches:
        def __del__(self):
            launch_scale(*others, 5, 2.5, B=64, stream=7)

    def garbage():
        knot = [Launches()]
        knot.append(knot)

    before = gc.get_threshold()
    gc.set_threshold(1)  # a collection wherever there can be one
    try:
        for step in range(200):
            garbage()
            launch_scale(x, out, step, 1.5, B=64)
    finally:
        gc.set_threshold(*before)

    own = [launch.parameters[6] & 0xFFFFFFFF for launch in stub.launches if launch.stream == 0]
    foreign = [launch for launch in stub.launches if launch.stream == 7]
    assert own == list(range(200))
    assert len(foreign) > 100
    assert {(launch.parameters[0], launch.parameters[6]) for launch in foreign} == {
        (pointer(others[0]), 5)}


def test_a_new_thread_finds_the_plans_of_others(stub, compiler):
    scale, arrays = make_scale(), pair()
    scale[1](*arrays, 3, 1.5, B=64)
    expected = told(stub.launches[0])

    for _ in range(3):
        thread = threading.Thread(target=lambda: scale[1](*arrays, 3, 1.5, B=64))
        thread.start()
        thread.join()

    assert [told(launch) for launch in stub.launches] == [expected] * 4
    assert len(compiler.compilations) == 1


@pytest.mark.parametrize("module, name", [(recent, "MAX_KEPT"), (kernel, "MAX_PLANS")])
def test_more_shapes_than_are_kept_still_launch(stub, compiler, monkeypatch, module, name):
    monkeypatch.setattr(module, name, 3)
    scale, sizes = make_scale(), [2, 3, 4, 5, 6, 7]
    calls = [pair(shape=(size,)) for size in sizes]

    for _ in range(3):
        for arrays in calls:
            scale[1](*arrays, 3, 1.5, B=64)

    assert [launch.parameters[1] for launch in stub.launches] == sizes * 3
