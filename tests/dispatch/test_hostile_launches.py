"""Hostile launches: grids, arguments and options, and the whole message that each gets."""

from __future__ import annotations

import decimal
import functools

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import (
    BlockError, BlockOverflowError, BlockTypeError, BlockValueError, UnsupportedError,
)


class Thing:
    """An object that cannot even be printed."""

    def __repr__(self):
        raise RuntimeError("no repr")


class Interface:
    """An array of an unknown library that breaks its protocol."""

    __cuda_array_interface__ = {"shape": "x"}


class Capsule:
    """Another, of the other protocol."""

    def __dlpack__(self, **options):
        return 3

    def __dlpack_device__(self):
        return "x"


class Unhashable:
    """An object that cannot be a constant."""

    __hash__ = None


def copies(x, y, B: bn.constexpr):
    r = bn.block(0, B)
    y[r] = x[r]


def annotated(x, n: bn.int8 = 0):
    x[0] = n


def takes_nothing():
    return 1


copy, small, THING = bn.jit(copies), bn.jit(annotated), Thing()
A, FROZEN = np.zeros(16, np.float32), np.zeros(16, np.float32)
FROZEN.flags.writeable = False
ODD = np.lib.stride_tricks.as_strided(A, (4,), (2,))
DTYPES = ("bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, "
          "float32, float64, float8_e4m3fn, float8_e5m2")
OPTIONS = ("debug, device, fastmath, interpret, launch_cooperative_grid, launch_pdl, lineinfo, "
           "maxnreg, num_ctas, num_stages, num_warps")

# the call, the error's class, message and hint
HOSTILE = [
    (lambda: copy[-1](A, A, B=8), BlockValueError,
     "copies: given -1 programs along axis 0 of the grid, accepted 0 to 2147483647", ""),
    (lambda: copy[()](A, A, B=8), BlockTypeError,
     "copies: given a grid of 0 axes, accepted 1 to 3", ""),
    (lambda: copy[1, 2, 3, 4](A, A, B=8), BlockTypeError,
     "copies: given a grid of 4 axes, accepted 1 to 3", ""),
    (lambda: copy[1.0](A, A, B=8), BlockTypeError,
     "copies: given 1.0 for axis 0 of the grid, accepted an int",
     "use bn.cdiv or // to divide"),
    (lambda: copy[True](A, A, B=8), BlockTypeError,
     "copies: given True for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[None](A, A, B=8), BlockTypeError,
     "copies: given None for axis 0 of the grid, accepted an int", ""),
    (lambda: copy["1"](A, A, B=8), BlockTypeError,
     "copies: given '1' for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[2**40](A, A, B=8), BlockValueError,
     "copies: given 1099511627776 programs along axis 0 of the grid, accepted 0 to "
     "2147483647", ""),
    (lambda: copy[1, 2**16](A, A, B=8), BlockValueError,
     "copies: given 65536 programs along axis 1 of the grid, accepted 0 to 65535", ""),
    (lambda: copy[10**5000](A, A, B=8), BlockValueError,
     "copies: given 2**16609 or more programs along axis 0 of the grid, accepted 0 to "
     "2147483647", ""),
    (lambda: copy[{1}](A, A, B=8), BlockTypeError,
     "copies: given a set for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[np.array([1, 1])](A, A, B=8), BlockTypeError,
     "copies: given an array of shape (2,) for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[THING](A, A, B=8), BlockTypeError,
     "copies: given an object of class Thing for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[lambda options: None](A, A, B=8), BlockTypeError,
     "copies: given None for axis 0 of the grid, accepted an int", ""),
    (lambda: copy[takes_nothing](A, A, B=8), BlockTypeError,
     "copies: the grid: takes_nothing() takes 0 positional arguments but 1 was given", ""),
    (lambda: copy[lambda options: (1,) * 5](A, A, B=8), BlockTypeError,
     "copies: given a grid of 5 axes, accepted 1 to 3", ""),
    (lambda: copy(A, A, B=8), BlockTypeError,
     "copies: called without a grid, accepted copies[grid](...)",
     "use copies[1](...) for one program"),
    (lambda: copy[1](A, B=8), BlockTypeError,
     "copies: missing y",
     "it takes x, y, B"),
    (lambda: copy[1](), BlockTypeError,
     "copies: missing x, y, B",
     "it takes x, y, B"),
    (lambda: copy[1](A, A, 8, 9), BlockTypeError,
     "copies: given 4 positional arguments, accepted 3 (x, y, B)", ""),
    (lambda: copy[1](A, A, BB=8), BlockTypeError,
     "copies: given BB=, accepted 3 (x, y, B) and the options " + OPTIONS,
     "did you mean B?"),
    (lambda: copy[1](A, A, B=8, num_wraps=4), BlockTypeError,
     "copies: given num_wraps=, accepted 3 (x, y, B) and the options " + OPTIONS,
     "did you mean num_warps or num_ctas?"),
    (lambda: copy[1](A, A, B=[8]), BlockTypeError,
     "copies: argument B: given [8], accepted hashable constants",
     "pass a tuple"),
    (lambda: copy[1](A, A, B=A), UnsupportedError,
     "B: given an array of shape (16,) as a constant, accepted numbers, strings, tuples, "
     "dtypes, functions and modules",
     "pass it as an argument that is no constexpr"),
    (lambda: copy[1](8, A, B=8), BlockTypeError,
     "index: given an int of run time, accepted an array, a tile or a tuple",
     "a number has no elements: index an array, or pass one"),
    (lambda: copy[1](None, A, B=8), BlockTypeError,
     "index: given None, accepted an array, a tile or a tuple", ""),
    (lambda: copy[1]([1.0] * 16, A, B=8), BlockTypeError,
     "copies: argument x: given [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ...], accepted "
     "arrays, numbers, bools and None",
     "use np.asarray"),
    (lambda: copy[1]("abc", A, B=8), BlockTypeError,
     "copies: argument x: given 'abc', accepted arrays, numbers, bools and None",
     "to pass it as a constant, annotate the parameter: x: bn.constexpr"),
    (lambda: copy[1](b"abc", A, B=8), BlockTypeError,
     "copies: argument x: given b'abc', accepted arrays, numbers, bools and None", ""),
    (lambda: copy[1]({}, A, B=8), BlockTypeError,
     "copies: argument x: given a dict, accepted arrays, numbers, bools and None", ""),
    (lambda: copy[1](1j, A, B=8), BlockTypeError,
     "copies: argument x: given 1j, accepted arrays, numbers, bools and None", ""),
    (lambda: copy[1](2**70, A, B=8), BlockOverflowError,
     "copies: argument x: given 1180591620717411303424, accepted ints that fit in 64 bits",
     "pass it as a float"),
    (lambda: copy[1](10**5000, A, B=8), BlockOverflowError,
     "copies: argument x: given 2**16609 or more, accepted ints that fit in 64 bits",
     "pass it as a float"),
    (lambda: copy[1](THING, A, B=8), BlockTypeError,
     "copies: argument x: given an object of class Thing, accepted arrays, numbers, bools "
     "and None", ""),
    (lambda: copy[1](decimal.Decimal(1), A, B=8), BlockTypeError,
     "copies: argument x: given an object of class Decimal, accepted arrays, numbers, "
     "bools and None", ""),
    (lambda: copy[1](len, A, B=8), BlockTypeError,
     "copies: argument x: given the built-in function len, accepted arrays, numbers, bools "
     "and None",
     "to pass it as a constant, annotate the parameter: x: bn.constexpr"),
    (lambda: copy[1](np, A, B=8), BlockTypeError,
     "copies: argument x: given the module numpy, accepted arrays, numbers, bools and None", ""),
    (lambda: copy[1](np.zeros(16, object), A, B=8), BlockTypeError,
     "copies: argument x: given an array of object, accepted " + DTYPES,
     "use x.astype of a dtype of numbers"),
    (lambda: copy[1](np.zeros(16, "U3"), A, B=8), BlockTypeError,
     "copies: argument x: given an array of <U3, accepted " + DTYPES,
     "pass numbers: np.unique(x, return_inverse=True) makes them"),
    (lambda: copy[1](np.zeros(16, "M8[s]"), A, B=8), BlockTypeError,
     "copies: argument x: given an array of datetime64[s], accepted " + DTYPES,
     "use x.view(np.int64)"),
    (lambda: copy[1](np.zeros(16, complex), A, B=8), BlockTypeError,
     "copies: argument x: given an array of complex128, accepted " + DTYPES,
     "pass its parts, x.real and x.imag"),
    (lambda: copy[1](np.zeros(16, [("a", "f4")]), A, B=8), BlockTypeError,
     "copies: argument x: given an array of [('a', '<f4')], accepted " + DTYPES,
     "pass a field of it, x['a']"),
    (lambda: copy[1](np.zeros(16, ">f4"), A, B=8), BlockTypeError,
     "copies: argument x: given an array of >f4, accepted " + DTYPES,
     "use x.astype('float32')"),
    (lambda: copy[1](np.ma.zeros(16), A, B=8), BlockTypeError,
     "copies: argument x: given a masked array, accepted a plain one",
     "use x.filled(0)"),
    (lambda: copy[1](np.zeros((1,) * 17), A, B=8), BlockTypeError,
     "copies: argument x: given an array of rank 17, accepted 0 to 16", ""),
    (lambda: copy[1](np.zeros((4, 4)), A, B=8), BlockTypeError,
     "x: given 1 index, accepted 2, one for each axis of the array",
     "index its other axes too: x[r, bn.span(0, SIZE)]"),
    (lambda: copy[1](np.zeros(()), A, B=8), BlockTypeError,
     "x: given 1 index, accepted 0, one for each axis of the array", ""),
    (lambda: copy[1](A, FROZEN, B=8), BlockValueError,
     "copies: argument y is read-only, and the kernel stores to it",
     "pass a copy"),
    (lambda: copy[1](A, np.broadcast_to(A[:1], 16), B=8), BlockValueError,
     "copies: argument y is read-only, and the kernel stores to it",
     "pass a copy"),
    (lambda: copy[1](ODD, A, B=8), BlockValueError,
     "copies: argument x: given a stride of 2 bytes along axis 0, accepted multiples of 4 "
     "(float32)",
     "pass a copy"),
    (lambda: copy[1](Interface(), A, B=8), BlockTypeError,
     "copies: argument x: given an object of class Interface, whose cuda_array_interface "
     "cannot be read: KeyError: 'typestr'", ""),
    (lambda: copy[1](Capsule(), A, B=8), BlockTypeError,
     "copies: argument x: given an object of class Capsule, whose dlpack cannot be read: "
     "ValueError: not enough values to unpack (expected 2, got 1)", ""),
    (lambda: copy[1](np.complex64(1), A, B=8), BlockTypeError,
     "copies: argument x: given a scalar of complex64, accepted " + DTYPES, ""),
    (lambda: copy[1](A, A, B=Unhashable()), BlockTypeError,
     "copies: argument B: given an object of class Unhashable, accepted hashable constants", ""),
    (lambda: small[1](A, 300), BlockValueError,
     "annotated: argument n: given 300, accepted int8 (-128 to 127)", ""),
    (lambda: small[1](A, 1.5), BlockTypeError,
     "annotated: argument n: given 1.5, accepted int8", ""),
    (lambda: small[1](A, "a"), BlockTypeError,
     "annotated: argument n: given 'a', accepted arrays, numbers, bools and None",
     "to pass it as a constant, annotate the parameter: n: bn.constexpr"),
    (lambda: small[1](A, True), BlockTypeError,
     "annotated: argument n: given True, accepted int8", ""),
    (lambda: copy[1](A, A, B=8, num_warps=3), BlockValueError,
     "num_warps: given 3, accepted a power of two up to 32", ""),
    (lambda: copy[1](A, A, B=8, num_warps="4"), BlockTypeError,
     "num_warps: given '4', accepted an int", ""),
    (lambda: copy[1](A, A, B=8, num_warps=True), BlockTypeError,
     "num_warps: given True, accepted an int", ""),
    (lambda: copy[1](A, A, B=8, num_warps=64), BlockValueError,
     "num_warps: given 64, accepted 1 to 32", ""),
    (lambda: copy[1](A, A, B=8, num_stages=0), BlockValueError,
     "num_stages: given 0, accepted 1 to 16", ""),
    (lambda: copy[1](A, A, B=8, num_ctas=None), BlockTypeError,
     "num_ctas: given None, accepted an int", ""),
    (lambda: copy[1](A, A, B=8, debug=1), BlockTypeError,
     "debug: given 1, accepted True or False", ""),
    (lambda: copy[1](A, A, B=8, maxnreg=8), BlockValueError,
     "maxnreg: given 8, accepted 16 to 255", ""),
    (lambda: copy[1](A, A, B=8, stream="x"), BlockTypeError,
     "copies: given 'x' as stream, accepted None, an int, a CuPy, Torch or Numba stream, "
     "anything with __cuda_stream__", ""),
    (lambda: bn.jit(num_warp=4), BlockTypeError,
     "jit: given the options num_warp, accepted " + OPTIONS,
     "did you mean num_warps?"),
    (lambda: bn.jit(num_warps=0), BlockValueError,
     "num_warps: given 0, accepted 1 to 32", ""),
    (lambda: bn.jit(Thing), BlockTypeError,
     "jit: given the class Thing, accepted a Python function", ""),
    (lambda: bn.jit(len), BlockTypeError,
     "jit: given the built-in function len, accepted a Python function", ""),
    (lambda: bn.jit(copy), BlockTypeError,
     "jit: given the kernel copies, accepted a Python function", ""),
    (lambda: bn.jit(functools.partial(copies, A)), BlockTypeError,
     "jit: given an object of class partial, accepted a Python function", ""),
    (lambda: bn.jit(lambda *a: None)[1](a=1), BlockTypeError,
     "<lambda>: given a= by name, accepted arguments by position", ""),
    (lambda: bn.jit(lambda **a: None), BlockTypeError,
     "<lambda>: given a parameter **a, accepted parameters with one name each, and *names", ""),
    (lambda: bn.jit(lambda stream: None), BlockTypeError,
     "<lambda>: given a parameter named stream, which is the keyword that chooses a "
     "launch's stream", ""),
    (lambda: bn.compile(copies, ("f32[:]",) * 2), BlockTypeError,
     "compile: given the function copies, accepted a @bn.jit kernel", ""),
    (lambda: bn.compile(copy, ("f32[:]",) * 2, {"BB": 8}), BlockTypeError,
     "copies: given the constants BB, accepted x, y, B",
     "did you mean B?"),
    (lambda: bn.compile(copy, ("f32[:]",) * 2), BlockTypeError,
     "copies: missing the constant B", ""),
    (lambda: bn.compile(copy, ("f31[:]",) * 2, {"B": 8}), BlockTypeError,
     'copies: argument x: given the type \'f31[:]\', accepted "f32[:,::1]", "f32[:]:16", "*fp32", '
     '"*fp32:16", "int", "int:16", "float", "i32", "f32"', ""),
    (lambda: bn.compile(copy, ("f32[:]",) * 2, {"B": 8}, target="sm_90b"), BlockValueError,
     "target: given 'sm_90b', accepted sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, "
     "sm_100a, sm_120",
     "did you mean sm_90 or sm_90a?"),
    (lambda: bn.compile(copy, ("f32[:]",) * 2, {"B": 8}, num_warp=4), BlockTypeError,
     "copies: given the options num_warp, accepted " + OPTIONS,
     "did you mean num_warps?"),
    (lambda: bn.autotune([bn.Config({"BB": 8})])(copy), BlockValueError,
     "autotune of copies: given BB, accepted x, y, B",
     "did you mean B?"),
    (lambda: bn.autotune([3])(copy), BlockTypeError,
     "autotune: given 3 among configs, accepted Config", ""),
    (lambda: bn.autotune([], key=["z"])(copy), BlockValueError,
     "autotune: given the key 'z', accepted arguments of copies that are not tuned: x, y, B", ""),
    (lambda: bn.autotune([], key=[3])(copy), BlockTypeError,
     "autotune: given the key 3, accepted names of arguments", ""),
    (lambda: bn.autotune([], prune_configs_by={"top": 3}), BlockTypeError,
     "autotune: given prune_configs_by top, accepted early_config_prune, perf_model, "
     "top_k, max_spills",
     "did you mean top_k?"),
    (lambda: bn.heuristics({"BB": len})(copy), BlockValueError,
     "heuristics of copies: given BB, accepted x, y, B",
     "did you mean B?"),
    (lambda: bn.heuristics({"B": takes_nothing})(copy)[1](A, A), BlockTypeError,
     "heuristics: B: takes_nothing() takes 0 positional arguments but 1 was given", ""),
    (lambda: bn.heuristics(3), BlockTypeError,
     "heuristics: given 3, accepted a dict of functions by name", ""),
    (lambda: bn.autotune([])(copies), BlockTypeError,
     "autotune: given the function copies, accepted a kernel",
     "put @bn.autotune above @bn.jit"),
    (lambda: bn.Config(3), BlockTypeError,
     "Config: given 3, accepted a dict of constants by name", ""),
    (lambda: bn.exp(1.0), UnsupportedError,
     "bn.exp can only be called in a @bn.jit kernel",
     "to try it on arrays: bn.evaluate(bn.exp, ...)"),
    (lambda: copy.warmup(A, A), BlockTypeError,
     "copies: missing B",
     "it takes x, y, B"),
    (lambda: copy.bind(1, A), BlockTypeError,
     "copies: missing y, B",
     "it takes x, y, B"),
    (lambda: copy.add_launch_hook(3), BlockTypeError,
     "copies: given 3 as a launch hook, accepted a function", ""),
]


def test_an_argument_that_is_given_twice_is_a_type_error():
    with pytest.raises(TypeError, match="B"):  # Python's own, or ours from the first call
        copy[1](A, A, 8, B=8)


@pytest.mark.parametrize("call,kind,message,hint", HOSTILE,
                         ids=[f"{i}: {row[2][:40]}" for i, row in enumerate(HOSTILE)])
def test_a_hostile_call_has_one_message(call, kind, message, hint):
    with pytest.raises(BlockError) as caught:
        call()

    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert type(caught.value) is kind
    assert not A.any()
