"""Cases of ops that take more than one op to try: memory, atomics, control, programs, debugging."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
from case import Case, covers
from values import edges, padded

from blocknumba.tile_ir.ir.types import ANY, DTYPES, DType
from blocknumba.tile_ir.ops.memory import KINDS
from blocknumba.tile_ir.text.parser import parse

SIZE = 32


def kernel_case(op: str, title: str, parameters: dict[str, str], body: str,
                arguments: dict[str, object], expected: dict[str, np.ndarray],
                grid: tuple[int, int, int] = (1, 1, 1)) -> Case:
    """A kernel written as text; parameters: type of each argument, all pointers or values."""
    lines = [f"  %{name}: {kind} = {'pointer' if kind.startswith('ptr') else 'value'}({name})"
             for name, kind in parameters.items()]
    text = "\n".join(["kernel case(", *lines, ") {", body, "return", "}"])
    return Case(op, title, partial(parse, text), arguments, expected, grid)


def addresses(name: str, base: str, dtype: DType, index: str) -> str:
    """Text: %name, the addresses of elements %index of the array %base."""
    return (f"%{name}s = splat %{base} : tile<{SIZE}xptr<{dtype}>>\n"
            f"%{name} = offset %{name}s, %{index} : tile<{SIZE}xptr<{dtype}>>\n")


INDEX = f"%i = arange {{start=0, size={SIZE}}} : tile<{SIZE}xint32>\n"


def _values(dtype: DType) -> np.ndarray:
    return np.resize(padded([edges(dtype)])[0], SIZE)


@covers("load", "store", "offset")
def copy_cases() -> Iterator[Case]:
    """Masked copies of every dtype; where the mask is false, `other` or nothing is stored."""
    masks = {"all": np.ones(SIZE, bool), "none": np.zeros(SIZE, bool),
             "some": np.arange(SIZE) % 5 < 2, "first": np.arange(SIZE) < 13}
    for dtype, (title, mask) in itertools.product(sorted(ANY, key=str), masks.items()):
        x = _values(dtype)
        other = x[::-1].copy()
        parameters = {"x": f"ptr<{dtype}>", "y": f"ptr<{dtype}>", "m": "ptr<bool>",
                      "out": f"ptr<{dtype}>"}
        start = (INDEX + addresses("am", "m", DTYPES["bool"], "i")
                 + f"%mask = load %am : tile<{SIZE}xbool>\n"
                 + addresses("ay", "y", dtype, "i")
                 + f"%other = load %ay : tile<{SIZE}x{dtype}>\n"
                 + addresses("ax", "x", dtype, "i") + addresses("ao", "out", dtype, "i"))
        arguments = {"x": x, "y": other, "m": mask, "out": x[:1].repeat(SIZE)}
        load = f"%v = load %ax, %mask, %other : tile<{SIZE}x{dtype}>\nstore %ao, %v"
        yield kernel_case("load", f"{dtype}-{title}", parameters, start + load, arguments,
                          {"out": np.where(mask, x, other)})
        zero = f"%v = load %ax, %mask : tile<{SIZE}x{dtype}>\nstore %ao, %v"
        yield kernel_case("load", f"{dtype}-{title}-zero", parameters, start + zero, arguments,
                          {"out": np.where(mask, x, np.zeros((), x.dtype))})
        store = f"%v = load %ax : tile<{SIZE}x{dtype}>\nstore %ao, %v, %mask"
        yield kernel_case("store", f"{dtype}-{title}", parameters, start + store, arguments,
                          {"out": np.where(mask, x, x[0])})


@covers("load", "store", "offset")
def gather_cases() -> Iterator[Case]:
    """Permutations, with 32-bit and 64-bit counts of either sign, of every dtype."""
    for count, dtype in itertools.product(("int32", "int64"), sorted(ANY, key=str)):
        order = np.random.default_rng(0).permutation(SIZE).astype(count) - SIZE // 2
        x = _values(dtype)
        body = (INDEX + addresses("ak", "k", DTYPES[count], "i")
                + f"%order = load %ak : tile<{SIZE}x{count}>\n"
                + f"%half = constant {{value={SIZE // 2}}} : int32\n"
                + f"%middle = offset %x, %half : ptr<{dtype}>\n"
                + addresses("ax", "middle", dtype, "order")
                + f"%v = load %ax : tile<{SIZE}x{dtype}>\n"
                + addresses("ao", "out", dtype, "i") + "store %ao, %v")
        parameters = {"x": f"ptr<{dtype}>", "k": f"ptr<{count}>", "out": f"ptr<{dtype}>"}
        yield kernel_case("offset", f"{count}-{dtype}", parameters, body,
                          {"x": x, "k": order, "out": x[::-1].copy()},
                          {"out": x[order + SIZE // 2]})


@covers("address")
def distance_cases() -> Iterator[Case]:
    """Distances of elements in bytes, from others before and after them, of every dtype."""
    for dtype, from_ in itertools.product(sorted(ANY, key=str), (0, 5, -SIZE)):
        body = (INDEX + f"%by = constant {{value={-from_}}} : int32\n"
                f"%moved = offset %x, %by : ptr<{dtype}>\n" + addresses("ax", "moved", dtype, "i")
                + f"%at = address %ax : tile<{SIZE}xint64>\n"
                + f"%base = splat %x : tile<{SIZE}xptr<{dtype}>>\n"
                + f"%first = address %base : tile<{SIZE}xint64>\n"
                + f"%distance = sub %at, %first : tile<{SIZE}xint64>\n"
                + addresses("ao", "out", DTYPES["int64"], "i") + "store %ao, %distance")
        out = np.full(SIZE, -1)
        parameters = {"x": f"ptr<{dtype}>", "out": "ptr<int64>"}
        yield kernel_case("address", f"{dtype}-{from_}", parameters, body,
                          {"x": _values(dtype), "out": out},
                          {"out": (np.arange(SIZE) - from_) * dtype.bytes})


@covers("pointer_at")
def address_cases() -> Iterator[Case]:
    """Elements by their addresses in bytes, which are computed with as integers, of every dtype."""
    orders = {"permuted": np.random.default_rng(7).permutation(SIZE),
              "reversed": np.arange(SIZE)[::-1], "one": np.full(SIZE, 3)}
    for dtype, (title, order) in itertools.product(sorted(ANY, key=str), orders.items()):
        x, order = _values(dtype), order.astype(np.int64)
        body = (INDEX + addresses("ak", "k", DTYPES["int64"], "i")
                + f"%order = load %ak : tile<{SIZE}xint64>\n"
                + f"%base = splat %x : tile<{SIZE}xptr<{dtype}>>\n"
                + f"%first = address %base : tile<{SIZE}xint64>\n"
                + f"%item = constant {{value={dtype.bytes}}} : int64\n"
                + f"%items = splat %item : tile<{SIZE}xint64>\n"
                + f"%distance = mul %order, %items : tile<{SIZE}xint64>\n"
                + f"%at = add %first, %distance : tile<{SIZE}xint64>\n"
                + f"%p = pointer_at %at {{dtype=\"{dtype}\"}} : tile<{SIZE}xptr<{dtype}>>\n"
                + f"%v = load %p : tile<{SIZE}x{dtype}>\n"
                + addresses("ao", "out", dtype, "i") + "store %ao, %v")
        parameters = {"x": f"ptr<{dtype}>", "k": "ptr<int64>", "out": f"ptr<{dtype}>"}
        yield kernel_case("pointer_at", f"{dtype}-{title}", parameters, body,
                          {"x": x, "k": order, "out": x[:1].repeat(SIZE)}, {"out": x[order]})


# atomics --------------------------------------------------------------------------------------

_PYTHON = {"add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b,
           "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


def _atomic_case(kind: str, dtype: DType, slots: int, masked: bool) -> Case:
    generator = np.random.default_rng(slots)
    low = -9 if dtype.is_signed else 0
    values = generator.integers(low, 10, SIZE).astype(dtype.numpy)
    slot = (np.arange(SIZE) * 7 % slots).astype(np.int32)
    mask = generator.random(SIZE) < (0.5 if masked else 2)
    memory = generator.integers(0, 10, slots).astype(dtype.numpy)
    expected = [v if dtype.is_integer else float(v) for v in memory.tolist()]
    for s, v, m in zip(slot.tolist(), values.tolist(), mask.tolist()):
        expected[s] = _PYTHON[kind](expected[s], v) if m else expected[s]
    if dtype.is_integer:
        expected = [v % (1 << dtype.bits) - ((1 << dtype.bits) if dtype.is_signed and v < 0 else 0)
                    for v in expected]
    body = (INDEX + addresses("ak", "k", DTYPES["int32"], "i")
            + f"%slot = load %ak : tile<{SIZE}xint32>\n" + addresses("av", "v", dtype, "i")
            + f"%value = load %av : tile<{SIZE}x{dtype}>\n"
            + addresses("am", "m", DTYPES["bool"], "i")
            + f"%mask = load %am : tile<{SIZE}xbool>\n" + addresses("a", "memory", dtype, "slot")
            + f'%old = atomic_rmw %a, %value, %mask {{kind="{kind}"}} : tile<{SIZE}x{dtype}>')
    parameters = {"k": "ptr<int32>", "v": f"ptr<{dtype}>", "m": "ptr<bool>",
                  "memory": f"ptr<{dtype}>"}
    title = f"{kind}-{dtype}-{slots}{'-masked' * masked}"
    return kernel_case("atomic_rmw", title, parameters, body,
                       {"k": slot, "v": values, "m": mask, "memory": memory},
                       {"memory": np.array(expected, None if dtype.is_float else dtype.numpy)
                        .astype(dtype.numpy)})


@covers("atomic_rmw")
def atomic_cases() -> Iterator[Case]:
    """Every kind and dtype into one, seven and as many slots as elements, in any order."""
    for kind in _PYTHON:
        for dtype in sorted(KINDS[kind], key=str):
            for slots, masked in itertools.product((1, 7, SIZE), (False, True)):
                yield _atomic_case(kind, dtype, slots, masked)
    for dtype in sorted(KINDS["exchange"], key=str):
        yield _swap_case("atomic_rmw", dtype, '%old = atomic_rmw %a, %new {kind="exchange"}', None)


@covers("atomic_cas")
def compare_and_swap_cases() -> Iterator[Case]:
    for dtype in (d for d in DTYPES.values() if d.bits >= 16):
        yield _swap_case("atomic_cas", dtype, "%old = atomic_cas %a, %wanted, %new", 3)
        for count in (0, 1, 21):
            yield _swap_case("atomic_cas", dtype, "%old = atomic_cas %a, %wanted, %new, %m", 3,
                             count)


def _swap_case(op: str, dtype: DType, line: str, wanted: int | None, count: int = SIZE) -> Case:
    """Each element exchanged, where it is `wanted` if that is given; the old ones are stored.

    count: how many elements the mask %m lets through; the old ones of the others are 0.
    """
    memory = (np.arange(SIZE) % 5).astype(dtype.numpy)
    new = (np.arange(SIZE) % 3 + 10).astype(dtype.numpy)
    compare = np.full(SIZE, wanted or 0).astype(dtype.numpy)
    tile = f"tile<{SIZE}x{dtype}>"
    body = (INDEX + addresses("an", "n", dtype, "i") + f"%new = load %an : {tile}\n"
            + addresses("ac", "c", dtype, "i") + f"%wanted = load %ac : {tile}\n"
            + f"%count = constant {{value={count}}} : int32\n"
            + f"%counts = splat %count : tile<{SIZE}xint32>\n"
            + f"%m = lt %i, %counts : tile<{SIZE}xbool>\n"
            + addresses("a", "memory", dtype, "i") + f"{line} : {tile}\n"
            + addresses("ao", "out", dtype, "i") + "store %ao, %old")
    pointer = f"ptr<{dtype}>"
    is_let = np.arange(SIZE) < count
    hit = is_let & (np.ones(SIZE, bool) if wanted is None else memory == compare)
    return kernel_case(op, f"swap-{dtype}-{count}",
                       {"n": pointer, "c": pointer, "memory": pointer, "out": pointer}, body,
                       {"n": new, "c": compare, "memory": memory, "out": np.zeros_like(memory)},
                       {"memory": np.where(hit, new, memory), "out": memory * is_let})


# programs and control -------------------------------------------------------------------------

@covers("program_id", "num_programs")
def program_cases() -> Iterator[Case]:
    grids = ((3, 2, 5), (1, 1, 1), (30, 1, 1), (1, 30, 1), (1, 1, 30), (2, 3, 1), (1, 2, 3),
             (4, 1, 4), (7, 5, 3), (16, 2, 2))
    for grid, op, axis in itertools.product(grids, ("program_id", "num_programs"), range(3)):
        body = "\n".join([
            *(f"%p{k} = program_id {{axis={k}}} : int32" for k in range(3)),
            *(f"%n{k} = constant {{value={grid[k]}}} : int32" for k in range(2)),
            "%a = mul %p2, %n1 : int32", "%b = add %a, %p1 : int32", "%c = mul %b, %n0 : int32",
            "%d = add %c, %p0 : int32", f"%v = {op} {{axis={axis}}} : int32",
            "%q = offset %out, %d : ptr<int32>", "store %q, %v"])
        index = np.indices(grid[::-1])[2 - axis].ravel()
        expected = index if op == "program_id" else np.full(index.size, grid[axis])
        yield kernel_case(op, f"{grid}-{axis}", {"out": "ptr<int32>"}, body,
                          {"out": np.full(index.size, -1, np.int32)},
                          {"out": expected.astype(np.int32)}, grid)


@covers("if", "yield", "return", "undefined")
def branch_cases() -> Iterator[Case]:
    """A branch per program, one side of which leaves a value undefined that is then not used."""
    body = """%p = program_id {axis=0} : int32
%t = constant {value=3} : int32
%c = lt %p, %t : bool
%a, %b = if %c : int32, tile<4xint32> {
  %s = splat %p : tile<4xint32>
  yield %p, %s
} else {
  %u = undefined : tile<4xint32>
  yield %t, %u
}
%z = splat %a : tile<4xint32>
%k = splat %c : tile<4xbool>
%v = select %k, %b, %z : tile<4xint32>
%four = constant {value=4} : int32
%f = mul %p, %four : int32
%q = offset %out, %f : ptr<int32>
%i = arange {start=0, size=4} : tile<4xint32>
%r = splat %q : tile<4xptr<int32>>
%w = offset %r, %i : tile<4xptr<int32>>
store %w, %v"""
    for op in ("if", "yield", "return", "undefined"):
        yield kernel_case(op, "branches", {"out": "ptr<int32>"}, body,
                          {"out": np.full(32, -1, np.int32)},
                          {"out": np.repeat([0, 1, 2, 3, 3, 3, 3, 3], 4).astype(np.int32)},
                          (8, 1, 1))


@covers("undefined")
def zero_cases() -> Iterator[Case]:
    """Values that nobody wrote and that have to be 0 all the same."""
    for dtype in ("int32", "float16", "bool", "float8_e4m3fn"):
        body = f"""%u = undefined {{zero=True}} : tile<8x{dtype}>
%i = arange {{start=0, size=8}} : tile<8xint32>
%r = splat %out : tile<8xptr<{dtype}>>
%q = offset %r, %i : tile<8xptr<{dtype}>>
store %q, %u"""
        zeros = np.zeros(8, DTYPES[dtype].numpy)
        yield kernel_case("undefined", dtype, {"out": f"ptr<{dtype}>"}, body,
                          {"out": np.ones_like(zeros)}, {"out": zeros}, (1, 1, 1))


@covers("for")
def range_cases() -> Iterator[Case]:
    """Ranges of both directions, and at the ends of int32; sums wrap."""
    high, low = 2**31 - 1, -2**31
    for bounds in (range(0, 5), range(5, 0), range(7, -8, -3), range(high - 4, high, 3),
                   range(low + 4, low, -3), range(low, high, high), range(3, 3, -1)):
        body = """%zero = constant {value=0} : int32
%one = constant {value=1} : int32
%s, %n = for %start, %stop, %step, %zero, %zero : int32, int32 (%i: int32, %a: int32, %k: int32) {
  %b = add %a, %i : int32
  %l = add %k, %one : int32
  yield %b, %l
}
store %out, %s
%q = offset %out, %one : ptr<int32>
store %q, %n"""
        total = (sum(bounds) + 2**31) % 2**32 - 2**31
        yield kernel_case(
            "for", str(bounds), {"start": "int32", "stop": "int32", "step": "int32",
                                 "out": "ptr<int32>"}, body,
            {"start": bounds.start, "stop": bounds.stop, "step": bounds.step,
             "out": np.zeros(2, np.int32)}, {"out": np.array([total, len(bounds)], np.int32)})


@covers("loop", "continue_if")
def loop_cases() -> Iterator[Case]:
    """The number of halvings of a power of two per program: loops of different lengths."""
    body = """%p = program_id {axis=0} : int32
%zero = constant {value=0} : int32
%one = constant {value=1} : int32
%first = shl %one, %p : int32
%n, %x = loop %zero, %first : int32, int32 (%k: int32, %y: int32) {
  %l = add %k, %one : int32
  %h = shr %y, %one : int32
  %c = ne %h, %zero : bool
  continue_if %c, %l, %h
}
%q = offset %out, %p : ptr<int32>
store %q, %n"""
    for op in ("loop", "continue_if"):
        yield kernel_case(op, "halvings", {"out": "ptr<int32>"}, body,
                          {"out": np.zeros(16, np.int32)},
                          {"out": np.arange(1, 17, dtype=np.int32)}, (16, 1, 1))


@covers("print", "assert", "assume", "check_index")
def debugging_cases() -> Iterator[Case]:
    """Debugging ops that hold change nothing, between a load and a store of every dtype."""
    start = f"""{INDEX}%n = constant {{value={SIZE}}} : int32
%e = splat %n : tile<{SIZE}xint32>
%c = lt %i, %e : tile<{SIZE}xbool>
%zero = constant {{value=0}} : int32
%p = program_id {{axis=0}} : int32
%s = ge %p, %zero : bool
"""
    lines = {"print": 'print %p {prefix="p"}', "assert": 'assert %c {message="i < n"}',
             "assume": "assume %s", "check_index": 'check_index %i, %e, %c {array="out", axis=0}'}
    for (op, line), dtype, programs in itertools.product(lines.items(), sorted(ANY, key=str),
                                                         (1, 2)):
        x, pointer = _values(dtype), f"ptr<{dtype}>"
        body = (start + addresses("ax", "x", dtype, "i") + f"%v = load %ax : tile<{SIZE}x{dtype}>\n"
                + line + "\n" + addresses("ao", "out", dtype, "i") + "store %ao, %v")
        yield kernel_case(op, f"{dtype}-{programs}", {"x": pointer, "out": pointer}, body,
                          {"x": x, "out": x[::-1].copy()}, {"out": x}, (programs, 1, 1))
