"""Hostile kernels: what is written in them, and the whole message that it gets.

Each is the body of a kernel of a vector x, a matrix y and an int n, compiled by exec as a notebook
does it.  None may end in anything but a BlockError that shows the body.
"""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest
from numba import cuda

import blocknumba as bn
from blocknumba import language
from blocknumba.errors import (
    BlockError,
    BlockNameError,
    BlockTypeError,
    BlockValueError,
    UnsupportedError,
)


class Thing:
    """An object that cannot even be printed."""

    def __repr__(self):
        raise RuntimeError("no repr")


def recursive(n):
    return recursive(n - 1) + 1


def helper(value, factor=2):
    return value * factor


SCOPE = {"bn": bn, "np": np, "cuda": cuda, "COUNTS": {"a": 1}, "THING": Thing(),
         "recursive": recursive, "helper": helper}


def kernel_of(body: str, has_source: bool = True) -> bn.Kernel:
    """A kernel of (x, y, n) that is compiled from a text, which linecache has or has not."""
    file = f"<hostile {abs(hash(body))} {has_source}>"
    source = "def kernel(x, y, n):\n    " + body.replace("\n", "\n    ") + "\n"
    if has_source:
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope = dict(SCOPE)
    exec(compile(source, file, "exec"), scope)
    return bn.jit(scope["kernel"])


def launch(kernel: bn.Kernel) -> None:
    kernel[1](np.zeros(16, np.float32), np.zeros((8, 8), np.float32), 3)


# what is written, the error's class, message and hint
HOSTILE = [
    ("async def f(): return 1\nx[0] = f()", UnsupportedError,
     "a generator or coroutine: not supported in a kernel", ""),
    ("value = yield", UnsupportedError, "yield: not supported in a kernel",
     "store to an array, each result in its place"),
    ("yield from x", UnsupportedError, "yield: not supported in a kernel",
     "store to an array, each result in its place"),
    ("y = (i for i in range(3))\nx[0] = len(y)", UnsupportedError,
     "a generator: accepted as the argument of tuple, sum, min, max, any or all",
     "make a tuple: tuple(... for ...)"),
    ("x[0] = sum(i for i in range(n))", BlockTypeError,
     "a generator or list: the number of its items is not known at compile time",
     "loop over a tuple or a range of compile-time constants, without a run-time `if`; or add up "
     "in a for loop"),
    ("with np.errstate(): x[0] = 1", UnsupportedError,
     "with: not supported in a kernel", ""),
    ("del x[0]", UnsupportedError,
     "del of an element: not supported in a kernel", ""),
    ("del x.shape", UnsupportedError,
     "del of an attribute: not supported in a kernel", ""),
    ("m = 3\ndel m\nx[0] = m", BlockNameError,
     "name 'm' is used before it is assigned", ""),
    ("from math import pi", UnsupportedError,
     "import: not supported in a kernel", "import it at the top of the file"),
    ("class A: pass", UnsupportedError,
     "class: not supported in a kernel", ""),
    ("match (n, 1):\n    case (1, b): x[0] = b", UnsupportedError,
     "match: not supported in a kernel", ""),
    ("text = f\"{n}\"", UnsupportedError,
     "text: given an int of run time, accepted values that are known at compile time",
     "print(\"n =\", n) prints values of run time; the message of an assert has none"),
    ("text = f\"{n:>8}\"", UnsupportedError,
     "an f-string with a format: not supported in a kernel", ""),
    ("text = str(n)", UnsupportedError,
     "text: given an int of run time, accepted values that are known at compile time",
     "print(\"n =\", n) prints values of run time; the message of an assert has none"),
    ("x[0] = max(*x[bn.span(0, 8)])", BlockTypeError,
     "a call with *: given tile<8xfloat32>, accepted a tuple", ""),
    ("x[0] = helper(*y)", UnsupportedError,
     "a call with *: accepted a tuple whose length is known", ""),
    ("if n in {1, 2}: x[0] = 1", UnsupportedError,
     "set: not supported in a kernel",
     "use a tuple: (a, b), or tuple(... for ...)"),
    ("a, *b = (1, 2, 3)", UnsupportedError,
     "starred unpacking: not supported in a kernel", ""),
    ("raise ValueError from None", UnsupportedError,
     "raise: not supported in a kernel",
     "use assert, which is checked with debug=True"),
    ("if n > 5: m = 3\nraise x + 0", UnsupportedError,
     "raise: not supported in a kernel",
     "use assert, which is checked with debug=True"),
    ("x.shape += 1", UnsupportedError,
     "assignment to an attribute: not supported in a kernel", "use a variable, or an array"),
    ("x[0] = recursive(n)", UnsupportedError,
     "recursive: recursion that does not end at compile time",
     "let a compile-time constant or the shape of a tile end it, or write a loop"),
    ("@bn.jit\ndef inner(v): return v\nx[0] = inner(1)", UnsupportedError,
     "the function jit cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("print(x)", BlockTypeError,
     "print: given an array, accepted tiles and numbers",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("print(1, sep=n)", BlockTypeError,
     "print: sep must be a compile-time constant, got an int of run time",
     "pass it as a bn.constexpr argument"),
    ("f = lambda v: v\nx[0] = f(1, 2)", BlockTypeError,
     "<lambda>: too many positional arguments, accepted <lambda>(v)", ""),
    ("x[0] = helper(1, factr=3)", BlockTypeError,
     "helper: got an unexpected keyword argument 'factr', accepted helper(value, factor=2)",
     "did you mean factor?"),
    ("x[0] = helper()", BlockTypeError,
     "helper: missing a required argument: 'value', accepted helper(value, factor=2)", ""),
    ("for v in x: y[0, 0] = v", UnsupportedError,
     "for: given an array, accepted range, static_range, spans or a tuple",
     "use for r in bn.spans(x.shape[0], SIZE)"),
    ("for v in COUNTS: x[0] = 1", UnsupportedError,
     "for: given a dict, accepted range, static_range, spans or a tuple",
     "use a tuple"),
    ("for v in 3: x[0] = 1", UnsupportedError,
     "for: given 3, accepted range, static_range, spans or a tuple",
     "use for i in range(...)"),
    ("for i in range(1, 2, 3, 4): x[0] = 1", BlockTypeError,
     "range: too many positional arguments, accepted range(start, stop=None, step=1, /)", ""),
    ("for i in range(3.5): x[0] = 1", BlockTypeError,
     "range: given 3.5, accepted ints", "use int(...)"),
    ("for i in range(2**70): x[0] = 1", BlockValueError,
     "the int 1180591620717411303424 does not fit in 64 bits", ""),
    ("for i, j in range(3): x[0] = 1", BlockTypeError,
     "unpacking: given an int of run time, accepted a tuple of 2", ""),
    ("for r in bn.spans(8): x[r] = 1", BlockTypeError,
     "spans: missing a required argument: 'size', accepted spans(stop, size, start=0, "
     "step=None, num_stages=None, warp_specialize=None, unroll=None)", ""),
    ("for r in bn.spans(8, 3): x[r] = 1", BlockTypeError,
     "spans: size must be a power of two, got 3",
     "the next valid size is 4; what lies outside of the array reads as 0 and is not written"),
    ("i = cuda.grid(1)", UnsupportedError,
     "cuda.grid: not supported in a kernel: numba.cuda is for kernels that are written for one "
     "thread",
     "use r = bn.block(0, SIZE), this program's SIZE elements of axis 0, and x[r]; "
     "bn.program_id(0) is the index of the program"),
    ("i = cuda.threadIdx.x", UnsupportedError,
     "cuda.threadIdx: not supported in a kernel: numba.cuda is for kernels that are written "
     "for one thread",
     "a program computes whole tiles: r = bn.block(0, SIZE) are its elements, r.index their "
     "indices, and the compiler gives them to threads"),
    ("tile = cuda.shared.array(32, \"float32\")", UnsupportedError,
     "cuda.shared: not supported in a kernel: numba.cuda is for kernels that are written for "
     "one thread",
     "use a tile: x[r] is one; the compiler puts tiles into shared memory where that is needed"),
    ("cuda.syncthreads()", UnsupportedError,
     "cuda.syncthreads: not supported in a kernel: numba.cuda is for kernels that are written "
     "for one thread",
     "leave it out: a program sees its own stores, and the compiler places the barriers"),
    ("cuda.atomic.add(x, 0, 1)", UnsupportedError,
     "cuda.atomic: not supported in a kernel: numba.cuda is for kernels that are written for "
     "one thread",
     "use bn.atomic_add(x.at[i], value), and atomic_max, atomic_cas and the like"),
    ("i = cuda.blockIdx.x", UnsupportedError,
     "cuda.blockIdx: not supported in a kernel: numba.cuda is for kernels that are written for "
     "one thread",
     "a program is one block: bn.program_id(axis) is its index, bn.num_programs(axis) their "
     "number"),
    ("sum_of = 3\nx[0] = sum_fo", BlockNameError,
     "name 'sum_fo' is not defined",
     "did you mean sum_of?"),
    ("x[0] = bn.expp(1.0)", UnsupportedError,
     "the module blocknumba has no attribute 'expp'",
     "did you mean exp or exp2?"),
    ("x[0] = np.sqroot(1.0)", UnsupportedError,
     "the module numpy has no attribute 'sqroot'",
     "did you mean sqrt or roots?"),
    ("x[0] = x.shap[0]", UnsupportedError,
     "an array has no attribute 'shap', accepted T, at, dtype, ndim, shape, size, strides, type",
     "did you mean shape?"),
    ("x[0] = bn.span(0, 8).strat", UnsupportedError,
     "a span has no attribute 'strat', accepted index, size, start, stop",
     "did you mean start?"),
    ("x[0] = bn.sum(x[bn.span(0, 8)], axs=0)", BlockTypeError,
     "sum: got an unexpected keyword argument 'axs', accepted sum(x, axis=None, "
     "keep_dims=False, dtype=None, keepdims=False, *, initial=None, where=None)",
     "did you mean axis?"),
    ("x[bn.span(0, 8)] = bn.zeros((8,), \"flot32\")", BlockTypeError,
     "zeros: dtype must be a dtype such as bn.float32, got 'flot32'",
     "did you mean float32?"),
    ("x[0] = helpr(1)", BlockNameError,
     "name 'helpr' is not defined",
     "did you mean helper or help?"),
    ("t = [1, 2]\nt.append(n)", UnsupportedError,
     "(1, 2) has no attribute 'append'",
     "a list is a tuple in a kernel and does not change; make a new one: t = [*t, item]"),
    ("x[0] = \"abc\".uper()", UnsupportedError,
     "'abc' has no attribute 'uper'",
     "did you mean upper?"),
    ("x[bn.span(0, 8)] = min(x[bn.span(0, 8)], 3.0)", BlockTypeError,
     "min: given tile<8xfloat32> and 3.0, accepted only tiles or only numbers",
     "use bn.minimum(a, b) element by element, or bn.min(x, axis=...) along an axis"),
    ("x[bn.span(0, 8)] = max(0, x[bn.span(0, 8)])", BlockTypeError,
     "max: given 0 and tile<8xfloat32>, accepted only tiles or only numbers",
     "use bn.maximum(a, b) element by element, or bn.max(x, axis=...) along an axis"),
    ("x[0] = sum(x[bn.span(0, 8)], 1)", BlockTypeError,
     "sum: given tile<8xfloat32> and 1, accepted a tile, or a tuple and a number to start with",
     "bn.sum(x, axis=...) adds along an axis"),
    ("x[0] = round(n, -2)", BlockTypeError,
     "round: given an int of run time and -2 decimals, accepted floats", ""),
    ("x[0] = pow(n, 2, 3)", BlockTypeError,
     "pow: too many positional arguments, accepted pow(x, y)", ""),
    ("x[0] = abs(x)", BlockTypeError,
     "absolute: given an array, accepted tiles and numbers",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("x[0] = len(n)", UnsupportedError,
     "len: given an int of run time, accepted a tuple, a tile or an array", ""),
    ("x[0] = sorted((n, 1))", UnsupportedError,
     "the built-in function sorted cannot be called in a kernel",
     "use bn.sort(x)"),
    ("x[0] = isinstance(n, int)", UnsupportedError,
     "the built-in function isinstance cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("x[0] = type(n)", UnsupportedError,
     "the class type cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("x[0] = open(\"a file\")", UnsupportedError,
     "the built-in function open cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("x[0] = THING", BlockTypeError,
     "store: value: given an object of class Thing, accepted a tile or a number", ""),
    ("x[0] = THING()", UnsupportedError,
     "an object of class Thing cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("x[0] = THING.size", UnsupportedError,
     "an object of class Thing has no attribute 'size'", ""),
    ("r = bn.block(0, 0)", BlockTypeError,
     "block: size must be a power of two, got 0",
     "the next valid size is 1; what lies outside of the array reads as 0 and is not written"),
    ("r = bn.block(0, -8)", BlockTypeError,
     "block: size must be a power of two, got -8",
     "the next valid size is 1; what lies outside of the array reads as 0 and is not written"),
    ("r = bn.block(0, 7)", BlockTypeError,
     "block: size must be a power of two, got 7",
     "the next valid size is 8; what lies outside of the array reads as 0 and is not written"),
    ("r = bn.block(0, 8.0)", BlockTypeError,
     "block: size must be an int, got 8.0", "divide by // or bn.cdiv"),
    ("r = bn.block(0, True)", BlockTypeError,
     "block: size must be an int, got True", ""),
    ("r = bn.block(0, None)", BlockTypeError,
     "block: size must be an int, got None", ""),
    ("r = bn.block(0, 2**40)", BlockValueError,
     "block: given a size of 1099511627776, accepted at most 1073741824", ""),
    ("r = bn.block(0, 10**100)", BlockValueError,
     "block: given a size of 2**332 or more, accepted at most 1073741824", ""),
    ("r = bn.block(3, 8)", BlockTypeError,
     "program_id: axis must be 0, 1 or 2, got 3", ""),
    ("r = bn.block(n, 8)", BlockTypeError,
     "block: axis must be a compile-time constant, got an int of run time",
     "pass it as a bn.constexpr argument"),
    ("x[0] = bn.zeros((2,) * 17)", BlockTypeError,
     "zeros: given rank 17, accepted at most 16", ""),
    ("x[0] = bn.zeros(8.0)", BlockTypeError,
     "zeros: shape must be an int, got 8.0", "divide by // or bn.cdiv"),
    ("x[0] = bn.zeros((8,), None)", BlockTypeError,
     "zeros: dtype must be a dtype such as bn.float32, got None", ""),
    ("x[0] = bn.zeros((8,), complex)", BlockTypeError,
     "zeros: dtype must be a dtype such as bn.float32, got the class complex", ""),
    ("x[0] = bn.zeros()", BlockTypeError,
     "zeros: missing a required argument: 'shape', accepted zeros(shape, dtype=float32)", ""),
    ("x[0] = bn.full((8,), \"a\")", BlockTypeError,
     "full: value must be a number, got 'a'", ""),
    ("x[0] = bn.full((8,), float(\"nan\"), bn.int32)", BlockTypeError,
     "full: given the float nan, accepted int32",
     "write it as a value of that dtype"),
    ("x[0] = bn.full((8,), 2**70, bn.int64)", BlockValueError,
     "full: 1180591620717411303424 is out of range for int64, accepted -9223372036854775808 to "
     "9223372036854775807", ""),
    ("x[0] = bn.arange(8, 0)", BlockTypeError,
     "arange: given 8 to 0, accepted a stop that is greater than start", ""),
    ("x[0] = bn.arange(2**40, 2**40 + 8)", BlockTypeError,
     "arange: given 1099511627776 to 1099511627784, accepted int32", ""),
    ("x[0] = bn.sum(x[bn.span(0, 8)], axis=1)", BlockValueError,
     "sum: axis 1 is out of range for rank 1, accepted -1 to 0", ""),
    ("x[0] = bn.sum(x[bn.span(0, 8)], axis=(0, 0))", BlockValueError,
     "sum: axis (0, 0) names one axis twice", ""),
    ("x[0] = bn.sum(x[bn.span(0, 8)], axis=\"a\")", BlockTypeError,
     "sum: axis must be an int, got 'a'", ""),
    ("x[bn.span(0, 8)] = x[bn.span(0, 8)].reshape(3, 3)", BlockTypeError,
     "reshape: every extent must be a power of two, got (3, 3)",
     "the next valid extent is 4; mask the rest"),
    ("x[0] = bn.expand_dims(x[bn.span(0, 8)], 5)", BlockValueError,
     "expand_dims: axis 5 is out of range for rank 2, accepted -2 to 1", ""),
    ("x[bn.span(0, 8)] = bn.dot(3, 4)", BlockTypeError,
     "dot: a must be a tile, got 3", ""),
    ("x[0] = x.sum()", UnsupportedError,
     "an array has no attribute 'sum', accepted T, at, dtype, ndim, shape, size, strides, type",
     "load elements first: x[bn.span(0, SIZE)]; it is a tile, and has sum"),
    ("x[0] = x[...].sum()", UnsupportedError,
     "an array has no attribute 'sum', accepted T, at, dtype, ndim, shape, size, strides, type",
     "load elements first: x[bn.span(0, SIZE)]; it is a tile, and has sum"),
    ("y[0, 0] = y.max(axis=0)", UnsupportedError,
     "an array has no attribute 'max', accepted T, at, dtype, ndim, shape, size, strides, type",
     "load elements first: y[bn.span(0, SIZE), bn.span(0, SIZE)]; it is a tile, and has max"),
    ("x[0] = bn.sum(x)", BlockTypeError,
     "sum: given an array, accepted a tile",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("x[0] = bn.exp(x)", BlockTypeError,
     "exp: given an array, accepted tiles and numbers",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("x[0] = bn.exp(\"a\")", BlockTypeError,
     "exp: given 'a', accepted tiles and numbers", ""),
    ("x[0] = x + x", BlockTypeError,
     "+: given an array and an array, accepted tiles and numbers, or a pointer and ints",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("x[bn.span(0, 8)] = x[bn.span(0, 8)] + x", BlockTypeError,
     "+: given an array and tile<8xfloat32>, accepted tiles and numbers, or a pointer and ints",
     "load elements first: x[bn.span(0, SIZE)]"),
    ("x[bn.span(0, 8)] = bn.span(0, 8)", BlockTypeError,
     "store: value: given a span, accepted a tile or a number",
     "index an array with it: x[r] are elements, and r.index are their indices"),
    ("x[0] = x.at[0]", BlockTypeError,
     "store: value: given a reference to elements of an array, accepted a tile or a number",
     "load it: bn.load(x.at[...])"),
    ("x.at[0] = 1", BlockTypeError,
     "assignment to an element: given array.at, accepted an array",
     "use bn.store(x.at[...], value)"),
    ("x[:] = 1", BlockTypeError,
     "x: axis 0 is given ':' or '...', all of its elements, whose number is not known at "
     "compile time, accepted spans, ints and int tiles",
     "write bn.span(0, SIZE): elements beyond the edge are 0 when they are read, and are not "
     "stored"),
    ("y[..., 0] = 1", BlockTypeError,
     "y: axis 0 is given ':' or '...', all of its elements, whose number is not known at "
     "compile time, accepted spans, ints and int tiles",
     "write bn.span(0, SIZE): elements beyond the edge are 0 when they are read, and are not "
     "stored"),
    ("y[..., 0, ...] = 1", BlockTypeError,
     "index: given '...' twice, accepted once", ""),
    ("x[0:3] = 1", BlockTypeError,
     "span: size must be a power of two, got 3",
     "the next valid size is 4; what lies outside of the array reads as 0 and is not written"),
    ("x[True] = 1", BlockTypeError,
     "x: axis 0 is given True, accepted spans, ints and int tiles", ""),
    ("x[1.5] = 1", BlockTypeError,
     "x: axis 0 is given 1.5, accepted spans, ints and int tiles",
     "divide by //, or use x.astype(bn.int32)"),
    ("x[\"a\"] = 1", BlockTypeError,
     "x: axis 0 is given 'a', accepted spans, ints and int tiles", ""),
    ("x[bn.arange(0, 8) > 3] = 1", BlockTypeError,
     "x: axis 0 is given tile<8xbool>, accepted spans, ints and int tiles",
     "use a mask: bn.load(x.at[...], mask=m)"),
    ("x[x[bn.span(0, 8)]] = 1", BlockTypeError,
     "x: axis 0 is given tile<8xfloat32>, accepted spans, ints and int tiles",
     "divide by //, or use x.astype(bn.int32)"),
    ("x[0] = x[0][0]", BlockTypeError,
     "index: given float32, accepted an array, a tile or a tuple",
     "a number has no elements: index an array, or pass one"),
    ("x[0] = n[0]", BlockTypeError,
     "index: given an int of run time, accepted an array, a tile or a tuple",
     "a number has no elements: index an array, or pass one"),
    ("x[0] = (1, n)[2]", BlockValueError,
     "in a compile-time expression: tuple index out of range", ""),
    ("a, b = x", BlockTypeError,
     "unpacking: given an array, accepted a tuple of 2", ""),
    ("x[0] = x.shape", BlockTypeError,
     "store: value: given (an int of run time,), accepted a tile or a number", ""),
    ("x[0] = n and y", BlockTypeError,
     "a conditional expression: given an int of run time (line 2) on one path and an array (line "
     "2) on another, accepted one type", ""),
    ("if x: x[0] = 1", BlockTypeError,
     "a condition: given an array, accepted a bool or a number", ""),
    ("x[0] = 1j", BlockTypeError,
     "store: value: given 1j, accepted a tile or a number", ""),
    ("x[0] = 1 + \"a\"", BlockTypeError,
     "in a compile-time expression: unsupported operand type(s) for +: 'int' and 'str'", ""),
    ("x[0] = x()", UnsupportedError,
     "an array cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    ("x[bn.span(0, 8)] = x[bn.span(0, 8)] + (1,)", BlockTypeError,
     "+: given tile<8xfloat32> and (1,), accepted tiles and numbers", ""),
    ("x[0] = bn.load((x + bn.arange(0, 8))[0])", BlockTypeError,
     "index: given tile<1xptr<float32>>, accepted tiles of numbers",
     "add one number to the array: x + i is one pointer"),
    ("bn.atomic_and(x.at[0], 1)", BlockTypeError,
     "atomic_and: given float32, accepted int32, int64, uint32, uint64", ""),
    ("bn.atomic_add(x[0], 1)", BlockTypeError,
     "atomic_add: given float32, accepted a pointer, a tile of pointers or array.at[...]",
     "x[i] are their values; the elements themselves are x.at[i], or a pointer and offsets, "
     "x + offs"),
    ("bn.atomic_add(x.at[0], 1, sem=\"strong\")", BlockTypeError,
     "atomic_add: sem must be one of ('relaxed', 'acquire', 'release', 'acq_rel'), got 'strong'",
     ""),
    ("x[0] = bn.load(x.at[0], mask=3)", BlockTypeError,
     "load: mask must be bool, got int32", "compare: x != 0"),
    ("x[0] = bn.int8(300)", BlockValueError,
     "cast: 300 is out of range for int8, accepted -128 to 127", ""),
    ("x[0] = 1 / 0", BlockValueError,
     "in a compile-time expression: division by zero", ""),
]


@pytest.mark.parametrize("body,kind,message,hint", HOSTILE, ids=[row[0] for row in HOSTILE])
def test_what_is_wrong_has_one_message_at_its_line(body, kind, message, hint):
    with pytest.raises(BlockError) as caught:
        launch(kernel_of(body))

    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert type(caught.value) is kind
    shown = str(caught.value).splitlines()
    assert shown[0] == message and shown[3].strip(" ^") == ""
    assert shown[2].strip() in body or "def kernel" in shown[2]


@pytest.mark.parametrize("body", ["x[0] = bn.expp(1.0)", "x[0] = recursive(n)",
                                  "value = yield", "for r in bn.spans(8, 3): x[r] = 1"])
def test_an_error_in_code_without_source_has_its_line(body):
    with pytest.raises(BlockError) as caught:
        launch(kernel_of(body, has_source=False))

    assert "^" not in str(caught.value)
    assert ", line " in str(caught.value).splitlines()[1]


@pytest.mark.parametrize("spelling", ["x[bn.span(0, 8)].sum()", "bn.sum(x[bn.span(0, 8)])",
                                      "bn.min(bn.minimum(x[bn.span(0, 8)], 9.0), axis=0) * 36"])
def test_what_the_hints_say_works(spelling):
    x = np.arange(1, 9, dtype=np.float32)

    kernel_of(f"y[0, 0] = {spelling}")[1](x, y := np.zeros((1, 1), np.float32), 3)

    assert y[0, 0] == 36


@pytest.mark.parametrize("body,value", [
    ("x[0] = min(n, 2, 5)", 2), ("x[0] = max(n, 2.5)", 3), ("x[0] = sum((n, 1), 4)", 8),
    ("q, r = divmod(n, 2)\nx[0] = q * 10 + r", 11), ("x[0] = abs(-n) + pow(n, 2)", 12),
    ("m = 3\ndel m\nm = n + 1\nx[0] = m", 4), ("m = 7\nif n > 5: del m\nx[0] = m", 7),
    ("x[0] = bn.sum(y[..., 0][bn.span(0, 8)])", 0)])
def test_what_looks_hostile_and_is_not_means_what_it_means_in_python(body, value):
    x = np.full(16, np.nan, np.float32)

    kernel_of(body)[1](x, np.zeros((8, 8), np.float32), 3)

    assert x[0] == value


OPERANDS = (
    "3; -1; 2.5; True; None; 'a'; (1, 2); (); x; y; y.T; x.at[0]; x.at[bn.span(0, 8)]; x.at; n; "
    "x[0]; ...; bn.span(0, 8); x[bn.span(0, 8)]; y[bn.span(0, 8), bn.span(0, 8)]; bn.arange(0, 8); "
    "1j; 2**40; THING; bn.float32; bn.exp; bn; np.float32(2); x + bn.arange(0, 8); x + 0; "
    "slice(0, 8); (x, y); lambda a: a; bn.zeros((2, 4, 8)); bn.zeros((8,), bn.float8_e4m3fn); "
    "x.shape; b'x'; float('nan')").split("; ")
FUNCTIONS = [name for name in language.__all__ if callable(getattr(bn, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_misuse_of_a_function_is_one_error_with_a_line(name, capsys):
    random_source = random.Random(name)
    for count in (1, 2, 3):
        body = f"z = bn.{name}({', '.join(random_source.choices(OPERANDS, k=count))})"
        try:
            kernel_of(body).warmup(np.zeros(16, np.float32), np.zeros((8, 8), np.float32), 3)
        except BlockError as error:
            assert body in str(error) and len(error.message) < 500
            assert "object at 0x" not in error.message and "DType(" not in error.message
