"""Tuples, named tuples and dataclasses as arguments, and `*arrays`: the same on every device."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

N = 64


class Pair(NamedTuple):
    left: object
    right: object
    factor: bn.constexpr = 3


@dataclasses.dataclass
class Layer:
    weight: object
    sides: Pair
    scale: bn.float32 = 2.0
    name: str = "plain"


@dataclasses.dataclass(frozen=True)
class Frozen:
    data: object
    count: int = 1


@bn.jit
def of_pair(p, out, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = p.left[r] + p[1][r] * p.factor


@bn.jit
def of_layer(layer, out, N: bn.constexpr, shift=(1, (2, 4))):
    r = bn.span(0, N)
    bias, (_, last) = shift
    total = layer.weight[r] * layer.scale + bias + last
    if layer.name == "plain":
        for side in layer.sides[:2]:
            total += side[r]
    out[r] = total


@bn.jit
def of_rest(out, *arrays, N: bn.constexpr, scale=1):
    r = bn.span(0, N)
    total = bn.zeros((N,), bn.float32)
    for array in arrays:
        total += array[r]
    out[r] = total * scale + len(arrays)


@bn.jit
def swapped(pair, N: bn.constexpr):
    first, second = pair
    r = bn.span(0, N)
    kept = first[r]
    first[r] = second[r]
    second[r] = kept


def arrays(count=1):
    made = [np.random.default_rng().standard_normal(N).astype(np.float32) for _ in range(count)]
    return made if count > 1 else made[0]


def poisoned():
    return np.full(N, np.nan, np.float32)


def test_fields_are_read_by_name_and_by_place(device):
    x, y = arrays(2)
    out, again = poisoned(), poisoned()

    device.run(of_pair, 1, Pair(x, y), out, N)
    device.run(of_pair, 1, Pair(x, y, 5), again, N)

    np.testing.assert_allclose(out, x + y * 3, 1e-5, 1e-5)
    np.testing.assert_allclose(again, x + y * 5, 1e-5, 1e-5)


def test_dataclasses_hold_tuples_and_texts(device):
    x, y, z = arrays(3)
    out, other = poisoned(), poisoned()

    device.run(of_layer, 1, Layer(x, Pair(y, z)), out, N)
    device.run(of_layer, 1, Layer(x, Pair(y, z), 3, "bare"), other, N, shift=(0.5, (x, 3)))

    np.testing.assert_allclose(out, x * 2 + 5 + y + z, 1e-5, 1e-5)
    np.testing.assert_allclose(other, x * 3 + 3.5, 1e-5, 1e-5)


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_any_number_of_arrays(count, device):
    xs, out = [arrays() for _ in range(count)], poisoned()

    device.run(of_rest, 1, out, *xs, N=N, scale=2)

    np.testing.assert_allclose(out, sum(xs, np.zeros(N)) * 2 + count, 1e-4, 1e-4)


def test_what_is_in_a_tuple_is_stored_to(device):
    x, y = arrays(2)
    before = x.copy(), y.copy()

    device.run(swapped, 1, (x, y), N)

    np.testing.assert_array_equal((x, y), before[::-1])


def test_the_same_array_twice_is_no_mistake(device):
    x = arrays()
    before = x.copy()

    device.run(swapped, 1, (x, x), N)

    np.testing.assert_array_equal(x, before)


@bn.jit
def remembered(p, out):
    out[0] = p.count + p.data[0]


def test_each_launch_reads_the_fields_anew():
    """Arrays, numbers, constants, classes and lengths change between launches of one kernel."""
    out = np.zeros(1)
    layers = [Frozen(np.full(1, k, dtype), k * 16 ** (k % 3)) for k in range(12)
              for dtype in (np.float64, np.int32)]
    for layer in layers * 3:
        remembered[1](layer, out)
        assert out[0] == layer.count + layer.data[0]


@bn.jit
def mixed(p, out):
    total = 0.0
    if bn.constexpr(len(p) > 2):
        total += p[2]
    out[0] = p[0][0] * 10 + p[1] + total


def test_nestings_may_alternate():
    out = np.zeros(1)
    x, y = np.array([1.0]), np.array([2], np.int64)
    given = [(x, 5), (y, 5), (x, 5.5), (x, 5, 7), (x, True), Pair(x, 3, 2), (x, np.float32(4)),
             (y, 5, 1.5), (x, 1)]
    random = np.random.default_rng(0)
    for index in random.integers(0, len(given), 300):
        p = given[index]

        mixed[1](p, out)

        extra = p[2] if len(p) > 2 else 0
        assert out[0] == p[0][0] * 10 + p[1] + extra, p


@bn.jit
def with_a_number(p, out, n: bn.int64 = 7):
    out[0] = p[0] + n


def test_defaults_and_names_as_ever():
    out = np.zeros(1, np.int64)
    for _ in range(40):
        with_a_number[1]((1,), out)
        assert out[0] == 8
        with_a_number[1](out=out, p=(2,), n=3)
        assert out[0] == 5
        with_a_number[lambda given: given["p"][0]]((1,), out, num_warps=1)
        assert out[0] == 8


LIMIT = 4


@bn.jit
def with_a_global(p, out):
    out[0] = p[0] * LIMIT


def test_a_global_that_changes_is_seen():
    global LIMIT
    out = np.zeros(1, np.int64)
    for LIMIT in (4, 5, 6) * 3:
        with_a_global[1]((3,), out)
        assert out[0] == 3 * LIMIT


def test_hooks_see_the_arguments_as_they_were_given():
    seen, out = [], np.zeros(1, np.int64)
    kernel = bn.jit(with_a_number.python_function)
    kernel[1]((4,), out)
    kernel.add_launch_hook(lambda event: seen.append(event.arguments["p"]))
    kernel[1]((5,), out)

    assert seen == [(5,)] and out[0] == 12


def test_bound_launches_and_warm_ups_take_tuples():
    x, y = arrays(2)
    out = poisoned()
    of_pair.warmup(Pair(x, y), out, N)

    launch = of_pair.bind(1, Pair(x, y), out, N)
    launch()

    np.testing.assert_allclose(out, x + y * 3, 1e-5, 1e-5)


def test_tuned_kernels_take_tuples():
    kernel = bn.jit(of_pair.python_function)
    tuned = bn.autotune([bn.Config({"N": 32}), bn.Config({"N": N})], key=[])(kernel)
    x, y = arrays(2)
    for _ in range(3):
        out = np.zeros(N, np.float32)
        tuned[1](Pair(x, y), out)

        size = tuned.best_config.kwargs["N"]
        np.testing.assert_allclose(out[:size], (x + y * 3)[:size], 1e-5, 1e-5)


def test_types_of_tuples_are_tuples_of_types():
    array = "f32[:]"
    compiled = [
        bn.compile(of_pair, (Pair(array, array, 4), array), {"N": N}, target="sm_90a"),
        bn.compile(of_pair, {"p": Pair(array, array), "out": array}, {"N": N}, target="sm_80"),
        bn.compile(of_rest, (array, array, array), {"N": N, "scale": 1}, target="sm_90a"),
        bn.compile(swapped, [("*fp32:16", "*fp32")], {"N": N}, target="sm_100")]

    assert all(".global" in code.ptx for code in compiled)
    assert dict(compiled[0].specialization.constants)["p_factor"] == (int, 4)
    assert [name for name, _ in compiled[2].specialization.arguments] == [
        "out", "arrays_0", "arrays_1"]


def test_records_are_made_and_carried_in_kernels(device):
    x, out = arrays(), poisoned()

    device.run(made_in_place, 1, x, out, N)

    np.testing.assert_allclose(out, x * 16 + 6, 1e-5, 1e-5)


def doubled(layer, times):
    return Frozen(layer.data * 2, count=layer.count + times)


@bn.jit
def made_in_place(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    state = Frozen(x[r], 0)
    for k in range(4):
        state = doubled(state, k)
    if state.count > 100:
        state = Frozen(x[r])
    bn.static_assert(Pair(1, 2).factor == 3 and Frozen(x).count == 1)
    out[r] = state.data + state.count


PROGRAM = """
import sys
import numpy as np
import blocknumba as bn
from typing import NamedTuple
class Pair(NamedTuple):
    left: object
    factor: int = {factor}
@bn.jit
def kernel(p, out):
    made = Pair(p.left)
    out[0] = p.left[0] * made.factor + p.factor
x, out = np.ones(1), np.zeros(1)
compiled = kernel[1](Pair(x, 5), out)
print(out[0], "cache" in compiled.times_ms)
"""


def test_the_disk_keeps_them_and_notices_other_defaults(tmp_path):
    told = []
    for factor in (3, 3, 4):
        file = tmp_path / "program.py"
        file.write_text(PROGRAM.format(factor=factor))
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True,
                              cwd=tmp_path, env={
                                  "PYTHONPATH": ":".join(filter(None, sys.path)),
                                  "PATH": "/usr/bin", "BLOCKNUMBA_CACHE": "1",
                                  "BLOCKNUMBA_CACHE_DIR": str(tmp_path / "cache")})
        told.append(done.stdout.split())

    assert told == [["8.0", "False"], ["8.0", "True"], ["9.0", "False"]], done.stderr


@dataclasses.dataclass
class Wrapped:
    """An array that says what it is."""

    data: object

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def test_arrays_that_are_dataclasses_are_arrays():
    x, out = np.array([3.0]), np.zeros(1)

    whole[1](Wrapped(x), out)

    assert out[0] == 3


@bn.jit
def whole(x, out):
    out[0] = x[0]


# mistakes -------------------------------------------------------------------------------------

@dataclasses.dataclass
class Hidden:
    _data: object


@dataclasses.dataclass
class Computed:
    data: object

    def __post_init__(self):
        self.data = None


@dataclasses.dataclass
class WithList:
    items: list = dataclasses.field(default_factory=list)


def reads(p, x):
    x[0] = p.lefd[0]


def reads_a_dataclass(p, x):
    x[0] = p.height


def unpacks(p, x):
    a, b, c, d = p
    x[0] = a


def too_far(p, x):
    x[0] = p[5]


def by_run_time(p, x):
    x[0] = p[bn.program_id(0)]


def assigns(p, x):
    p.left = x


def too_many(p, x):
    Pair(x, x, 1, 2)


def too_few(p, x):
    Pair(x)


def misspelt(p, x):
    Pair(x, rigth=x)


def computes(p, x):
    Computed(x)


def lacks_a_factory(p, x):
    WithList()


def adds(p, x):
    x[0] = p + 1


def loads_a_tuple(p, x):
    bn.sum(p)


X = np.ones(8, np.float32)
IN_KERNELS = [
    (reads, Pair(X, X), "Pair has no field 'lefd', accepted left, right, factor",
     "did you mean left?"),
    (reads_a_dataclass, Frozen(X), "Frozen has no field 'height', accepted data, count", ""),
    (unpacks, Pair(X, X), "unpacking: given 3 values, accepted 4", ""),
    (too_far, Pair(X, X), "in a compile-time expression: tuple index out of range", ""),
    (by_run_time, Pair(X, X), "index: given an int of run time, accepted an int or a slice that "
     "is known at compile time", "choose an item with `if`, or unroll a loop over all of them "
     "with bn.static_range"),
    (assigns, Pair(X, X), "assignment to an attribute: not supported in a kernel",
     "use a variable, or an array"),
    (too_many, (X,), "Pair: too many positional arguments, accepted Pair(left, right, "
     "factor=3)", ""),
    (too_few, (X,), "Pair: missing a required argument: 'right', accepted Pair(left, right, "
     "factor=3)", ""),
    (misspelt, (X,), "Pair: missing a required argument: 'right', accepted Pair(left, right, "
     "factor=3)",
     "did you mean right?"),
    (computes, (X,), "Computed: given a dataclass with __post_init__, accepted dataclasses "
     "whose fields are what they are given", ""),
    (lacks_a_factory, (X,), "WithList: given no value of the field items, which a function makes, "
     "accepted one of each such field", ""),
    (adds, (X, X), "+: given (an array, an array) and 1, accepted tiles and numbers", ""),
    (loads_a_tuple, (X, X), "sum: given (an array, an array), accepted a tile",
     ""),
]


@pytest.mark.parametrize("function,argument,message,hint", IN_KERNELS,
                         ids=[m[0].__name__ for m in IN_KERNELS])
def test_every_mistake_in_a_kernel_has_one_message(function, argument, message, hint):
    with pytest.raises(BlockError) as caught:
        bn.jit(function)[1](argument, X, interpret=True)

    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc.file == __file__
    assert "<arguments of" not in str(caught.value)


@bn.jit
def plain(p, x):
    x[0] = 1


@bn.jit
def starred(x, *ys, n=1):
    x[0] = len(ys)


@bn.jit
def stores(p, x):
    p[1][0] = p[0][0]


def frozen_array():
    x = X.copy()
    x.flags.writeable = False
    return x


@numba.njit
def calls_with_a_star(x):
    starred[1](x, x)


LAUNCHES = {
    "a_dict": (lambda: plain[1](({"a": 1}, X), X),
        "plain: argument p[0]: given a dict, accepted arrays, numbers, bools "
        "and None",
        ""),
    "a_list_of_arrays": (lambda: plain[1]([X, X], X),
        "plain: argument p: given [an array of shape (8,), an array of shape "
        "(8,)], accepted arrays, numbers, bools and None",
        "pass a tuple"),
    "a_complex_field": (lambda: plain[1](Pair(X, 1j), X),
        "plain: argument p.right: given 1j, accepted arrays, numbers, bools "
        "and None",
        ""),
    "a_wide_int": (lambda: plain[1]((2**70,), X),
        "plain: argument p[0]: given 1180591620717411303424, accepted ints "
        "that fit in 64 bits",
        "pass it as a float"),
    "a_float_for_an_int": (lambda: of_layer[1](Layer(X, Pair(X, X), "two"), X, 8),
        "of_layer: argument layer.scale: given 'two', accepted arrays, "
        "numbers, bools and None",
        "to pass it as a constant, annotate the parameter: layer.scale: "
        "bn.constexpr"),
    "a_hidden_field": (lambda: plain[1](Hidden(X), X),
        "Hidden: given a dataclass with the field _data, accepted names that "
        "do not begin with an underscore",
        ""),
    "a_read_only_part": (lambda: stores[1]((X, frozen_array()), X),
        "stores: argument p[1] is read-only, and the kernel stores to it",
        "pass a copy"),
    "a_star_by_name": (lambda: starred[1](X, ys=X),
        "starred: given ys= by name, accepted arguments by position",
        ""),
    "a_star_without_the_first": (lambda: starred[1](),
        "starred: missing x",
        "it takes x, ys, n"),
    "an_unknown_name": (lambda: starred[1](X, m=1),
        "starred: given m=, accepted 3 (x, ys, n) and the options debug, "
        "device, fastmath, interpret, launch_cooperative_grid, launch_pdl, "
        "lineinfo, maxnreg, num_ctas, num_stages, num_warps",
        ""),
    "a_list_as_constant": (lambda: of_pair[1](Pair(X, X, [1]), X, 8),
        "of_pair: argument p.factor: given [1], accepted hashable constants",
        "pass a tuple"),
    "too_few_types": (lambda: bn.compile(of_pair, [Pair("f32[:]", "f32[:]")], {"N": 8}),
        "of_pair: given 1 types, accepted 2 (p, out)",
        ""),
    "no_type": (lambda: bn.compile(plain, {"p": ("f32[:]",)}),
        "plain: missing the type of x",
        ""),
    "a_wrong_type": (lambda: bn.compile(plain, (("f31[:]",), "f32[:]")),
        "plain: argument p[0]: given the type 'f31[:]', accepted "
        '"f32[:,::1]", "f32[:]:16", "*fp32", "*fp32:16", "int", "int:16", '
        '"float", "i32", "f32"',
        ""),
    "two_stars": (lambda: bn.jit(two_stars),
        "two_stars: given a parameter **others, accepted parameters with one "
        "name each, and *names",
        ""),
    "a_block_function": (lambda: bn.block_function(starred, num_warps=4),
        "starred: given a kernel with *ys, accepted parameters with one name "
        "each",
        ""),
}


def two_stars(x, **others):
    pass


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_mistake_at_a_launch_has_one_message(name):
    launch, message, hint = LAUNCHES[name]
    with pytest.raises(BlockError) as caught:
        launch()

    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_functions_that_numba_compiles_pass_no_stars():
    with pytest.raises(numba.TypingError, match=(
            r"starred: given a kernel with \*ys, accepted parameters with one name each in a "
            "function that Numba compiles")):
        calls_with_a_star(X)
