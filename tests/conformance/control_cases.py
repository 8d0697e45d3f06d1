"""Cases of control flow and of ops that only debugging and analyses see, in every dtype."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blocknumba.tile_ir.ir.types import DTYPES, DType

from case import Case, covers, one_op_case
from kernel_cases import INDEX, SIZE, addresses, kernel_case
from values import edges

SHAPES = ((1,), (8,), (2048,), (4, 8), (64, 32), (2, 4, 8), (1, 16, 1, 2), (2, 2, 2, 2, 2),
          (2, 1, 2, 1, 2, 4), (2, 2, 2, 2, 2, 2, 2, 2))
NUMBERS = [dtype for dtype in DTYPES.values() if dtype.bits > 8 or not dtype.is_float]
LIMITS = (0, 3, 8)  # of the programs that take the first arm; iterations


def _values(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Edge values of a dtype, in a shape."""
    return np.resize(edges(dtype), shape)


@covers("join", "split")
def pair_cases() -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape in SHAPES[:-1]:
            x = _values(dtype, shape)
            y = x.ravel()[::-1].reshape(shape)
            both, title = np.stack([x, y], -1), f"{dtype}-{shape}"
            yield one_op_case("join", title, [x, y], [both])
            yield one_op_case("split", title, [both], [x, y])


@covers("broadcast")
def broadcast_cases() -> Iterator[Case]:
    """Every subset of the axes of a shape repeated."""
    for dtype in (DTYPES[name] for name in ("bool", "int8", "float16", "float64")):
        for shape in ((2048,), (64, 32), (2, 4, 8), (2, 4, 2, 2), (2, 2, 2, 2, 2, 2, 2, 2)):
            for repeated in range(min(1 << len(shape), 16)):
                given = tuple(1 if repeated >> axis & 1 else n for axis, n in enumerate(shape))
                x = _values(dtype, given)
                yield one_op_case("broadcast", f"{dtype}-{given}-{shape}", [x],
                                  [np.broadcast_to(x, shape)], shape=shape)


@covers("arange")
def arange_cases() -> Iterator[Case]:
    for size in (1, 2, 16, 512, 2048):
        for start in (1, -1, 1000, -2048, 2**31 - 2048, -2**31):
            expected = np.arange(start, start + size, dtype=np.int64).astype(np.int32)
            yield one_op_case("arange", f"{start}-{size}-drawn", [], [expected], start=start,
                              size=size)


@covers("hint")
def hint_cases() -> Iterator[Case]:
    """Promises that hold change nothing."""
    for name in ("int32", "int64", "uint32"):
        for size in (1, 16, 256, 2048):
            for step in (1, 4, 16):
                x = (np.arange(size) * step).astype(name)
                yield one_op_case("hint", f"{name}-{size}-{step}", [x], [x],
                                  divisibility=(step,), constancy=(1,))


@covers("undefined")
def zero_cases() -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape in ((), (1,), (256,)):
            zeros = np.zeros(shape, dtype.numpy)
            yield one_op_case("undefined", f"{dtype}-{shape}", [], [zeros], dtype=dtype.name,
                              shape=shape, zero=True)


@covers("if", "yield", "return")
def branch_cases() -> Iterator[Case]:
    """Arms that give tiles, in some programs, in all and in none."""
    for dtype in NUMBERS:
        x = _values(dtype, (SIZE,))
        y = x[::-1].copy()
        tile = f"tile<{SIZE}x{dtype}>"
        body = (INDEX + addresses("ax", "x", dtype, "i") + addresses("ay", "y", dtype, "i")
                + "%p = program_id {axis=0} : int32\n%c = lt %p, %limit : bool\n"
                f"%v = if %c : {tile} {{\n  %a = load %ax : {tile}\n  yield %a\n}} else {{\n"
                f"  %b = load %ay : {tile}\n  yield %b\n}}\n"
                f"%size = constant {{value={SIZE}}} : int32\n%first = mul %p, %size : int32\n"
                f"%to = offset %out, %first : ptr<{dtype}>\n"
                + addresses("ao", "to", dtype, "i") + "store %ao, %v")
        pointer = f"ptr<{dtype}>"
        parameters = {"x": pointer, "y": pointer, "limit": "int32", "out": pointer}
        for limit in LIMITS:
            expected = np.concatenate([x if p < limit else y for p in range(4)])
            arguments = {"x": x, "y": y, "limit": limit, "out": expected[::-1].copy()}
            for op in ("if", "yield", "return"):
                yield kernel_case(op, f"{dtype}-{limit}", parameters, body, arguments,
                                  {"out": expected}, (4, 1, 1))


@covers("for", "loop", "continue_if")
def carried_cases() -> Iterator[Case]:
    """Two tiles that change places in each iteration, of which there may be none."""
    for dtype in NUMBERS:
        x = _values(dtype, (SIZE,))
        y = x[::-1].copy()
        tile, pointer = f"tile<{SIZE}x{dtype}>", f"ptr<{dtype}>"
        start = (INDEX + addresses("ax", "x", dtype, "i") + addresses("ay", "y", dtype, "i")
                 + f"%a = load %ax : {tile}\n%b = load %ay : {tile}\n"
                 "%zero = constant {value=0} : int32\n%one = constant {value=1} : int32\n")
        counted = (f"%v, %w = for %zero, %count, %one, %a, %b : {tile}, {tile} "
                   f"(%k: int32, %c: {tile}, %d: {tile}) {{\n  yield %d, %c\n}}\n")
        endless = (f"%n, %v, %w = loop %zero, %a, %b : int32, {tile}, {tile} "
                   f"(%k: int32, %c: {tile}, %d: {tile}) {{\n  %l = add %k, %one : int32\n"
                   "  %more = lt %l, %count : bool\n  continue_if %more, %l, %d, %c\n}\n")
        parameters = {"x": pointer, "y": pointer, "count": "int32", "out": pointer}
        end = addresses("ao", "out", dtype, "i") + "store %ao, %v"
        for count in LIMITS:
            for op, text in (("for", counted), ("loop", endless), ("continue_if", endless)):
                # the body of a loop runs once at least
                swaps = count if op == "for" else max(count, 1)
                yield kernel_case(op, f"{dtype}-{count}-carried", parameters, start + text + end,
                                  {"x": x, "y": y, "count": count, "out": y.copy()},
                                  {"out": y if swaps % 2 else x})
