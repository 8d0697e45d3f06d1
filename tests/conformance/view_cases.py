"""Cases of views: elements of random arrays, against NumPy's own indexing of a padded copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from case import Case, covers
from kernel_cases import kernel_case

SHAPE = (6, 5, 8)
STRIDES = "strides=(40, 8, 1)"
EXTENTS = "extents=(6, 5, 8)"
WHOLE = f"%v = view %x {{{EXTENTS}, {STRIDES}}} : view<3xfloat32>\n"
BEYOND = 16  # indices reach so far beyond an edge of the array


def _array(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1, 2, SHAPE).astype(np.float32)


def _constant(name: str, number: int, dtype: str = "int32") -> str:
    return f"%{name} = constant {{value={number}}} : {dtype}\n"


def _read(view: str, sizes: tuple[int, ...]) -> str:
    """Text: store the elements from the first on, 0 beyond the edges, to out."""
    shape, rank = "x".join(map(str, sizes)), len(sizes)
    strides = tuple(int(np.prod(sizes[axis + 1:])) for axis in range(rank))
    attributes = f"{{sizes={_tuple(sizes)}, nonnegative={_tuple((True,) * rank)}}}"
    types = f"tile<{shape}xptr<float32>>, tile<{shape}xbool>"
    zeros = ", ".join(["%zero"] * rank)
    return (_constant("zero", 0)
            + f"%p, %inside = elements %{view}, {zeros} {attributes} : {types}\n"
            f"%found = load %p, %inside : tile<{shape}xfloat32>\n"
            f"%o = view %out {{extents={_tuple(sizes)}, strides={_tuple(strides)}}} : "
            f"view<{rank}xfloat32>\n"
            f"%q, %all = elements %o, {zeros} {attributes} : {types}\nstore %q, %found, %all\n")


def _tuple(numbers: tuple) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


def _read_case(op: str, title: str, chain: str, seen: np.ndarray, x: np.ndarray,
               numbers: dict[str, int] | None = None) -> Case:
    """The view %w that a chain of ops makes, which is seen in NumPy."""
    sizes = tuple(1 << (extent - 1).bit_length() for extent in seen.shape)
    padded = np.zeros(sizes, np.float32)
    padded[tuple(map(slice, seen.shape))] = seen
    numbers = numbers or {}
    parameters = {"x": "ptr<float32>", "out": "ptr<float32>", **dict.fromkeys(numbers, "int32")}
    arguments = {"x": x.ravel(), "out": np.full(padded.size, 7, np.float32), **numbers}
    return kernel_case(op, title, parameters, chain + _read("w", sizes), arguments,
                       {"out": padded.ravel()})


@covers("view")
def view_cases() -> Iterator[Case]:
    """Extents and strides that are known, and that are given."""
    x, numbers = _array(0), {"m": 6, "k": 8, "s": 40}
    for wide in (False, True):
        known = f"{EXTENTS}, {STRIDES}, wide={wide}"
        yield _read_case("view", f"known-wide-{wide}",
                         f"%w = view %x {{{known}}} : view<3xfloat32>\n", x, x)
        given = f"extents=(None, 5, None), strides=(None, 8, 1), wide={wide}"
        yield _read_case("view", f"given-wide-{wide}",
                         f"%w = view %x, %m, %k, %s {{{given}}} : view<3xfloat32>\n", x, x, numbers)
    for given in itertools.product((False, True), repeat=5):
        extents = tuple(None if is_given else n for is_given, n in zip(given[:3], SHAPE))
        strides = (*(None if is_given else n for is_given, n in zip(given[3:], (40, 8))), 1)
        own = {f"e{k}": n for k, n in enumerate(SHAPE) if given[k]} | {
            f"s{k}": n for k, n in enumerate((40, 8)) if given[3 + k]}
        operands = "".join(f", %{name}" for name in own)
        chain = (f"%w = view %x{operands} {{extents={extents}, strides={strides}}} : "
                 "view<3xfloat32>\n")
        title = "".join("gk"[not is_given] for is_given in given)
        yield _read_case("view", title, chain, x, x, own)
    repeated = "%w = view %x {extents=(4, 8), strides=(0, 1)} : view<2xfloat32>\n"
    yield _read_case("view", "repeated", repeated, np.broadcast_to(x[0, 0], (4, 8)), x)


@covers("view_select")
def select_cases() -> Iterator[Case]:
    """Indices of each axis, known and given."""
    x = _array(1)
    for axis in range(3):
        select = f"%w = view_select %v, %i {{axis={axis}}} : view<2xfloat32>\n"
        for index in range(0, SHAPE[axis], 2):
            seen = np.take(x, index, axis)
            yield _read_case("view_select", f"given-{axis}-{index}", WHOLE + select, seen, x,
                             {"i": index})
            for dtype in ("int32", "int64"):
                yield _read_case("view_select", f"{dtype}-{axis}-{index}",
                                 WHOLE + _constant("i", index, dtype) + select, seen, x)


@covers("view_slice", "view_pointer")
def slice_cases() -> Iterator[Case]:
    """Some elements of each axis; none; all of the pointer to its first element."""
    x = _array(2)
    for axis, start in itertools.product(range(3), range(5)):
        chain = WHOLE + f"%w = view_slice %v, %start, %length {{axis={axis}}} : view<3xfloat32>\n"
        for length in {0, min(3, SHAPE[axis] - start)}:
            seen = x[(slice(None),) * axis + (slice(start, start + length),)]
            seen = seen if seen.size else np.zeros((1, 1, 1), np.float32)
            numbers = {"start": start, "length": length}
            yield _read_case("view_slice", f"{axis}-{start}-{length}", chain, seen, x, numbers)
        chain = chain.replace("%w", "%u") + "%first = view_pointer %u : ptr<float32>\n"
        for extent in (1, 4):
            view = f"%w = view %first {{extents=({extent},), strides=(1,)}} : view<1xfloat32>\n"
            seen = x.ravel()[start * (40, 8, 1)[axis]:][:extent]
            yield _read_case("view_pointer", f"{axis}-{start}-{extent}", chain + view, seen, x,
                             {"start": start, "length": 1})


@covers("view_reverse", "view_permute")
def rearranged_cases() -> Iterator[Case]:
    """Axes from their ends, in other orders, one after the other, and sliced."""
    x, numbers = _array(3), {"m": 6, "s": 40}
    given = ("%v = view %x, %m, %s {extents=(None, 5, 8), strides=(None, 8, 1)} : "
             "view<3xfloat32>\n")
    wholes = {"known": (WHOLE, None), "given": (given, numbers)}
    for (title, (whole, own)), axis in itertools.product(wholes.items(), range(3)):
        reverse = f"%w = view_reverse %v {{axis={axis}}} : view<3xfloat32>\n"
        yield _read_case("view_reverse", f"{title}-{axis}", whole + reverse, np.flip(x, axis), x,
                         own)
        for index in range(5):  # an element of a reversed axis, or of another one
            along = index % 3
            chain = (whole + reverse.replace("%w", "%u") + _constant("at", index)
                     + f"%w = view_select %u, %at {{axis={along}}} : view<2xfloat32>\n")
            yield _read_case("view_reverse", f"{title}-{axis}-{index}", chain,
                             np.take(np.flip(x, axis), index, along), x, own)
    for (title, (whole, own)), axes in itertools.product(wholes.items(),
                                                         itertools.permutations(range(3))):
        permute = f"%w = view_permute %v {{axes={axes}}} : view<3xfloat32>\n"
        yield _read_case("view_permute", f"{title}-{axes}", whole + permute, x.transpose(axes), x,
                         own)
        for axis in (0, 2):
            chain = (whole + permute.replace("%w", "%u") + _constant("at", 3)
                     + f"%w = view_select %u, %at {{axis={axis}}} : view<2xfloat32>\n")
            yield _read_case("view_permute", f"{title}-{axes}-{axis}", chain,
                             np.take(x.transpose(axes), 3, axis), x, own)
    chain = (WHOLE + _constant("two", 2)
             + "%a = view_permute %v {axes=(2, 0, 1)} : view<3xfloat32>\n"
             "%b = view_slice %a, %two, %two {axis=1} : view<3xfloat32>\n"
             "%c = view_reverse %b {axis=1} : view<3xfloat32>\n"
             "%w = view_select %c, %two {axis=0} : view<2xfloat32>\n")
    yield _read_case("view_permute", "chain", chain, x.transpose(2, 0, 1)[2, 2:4][::-1], x)


# per axis: an int, a tile of ints, or (start, size) of a span; some lie outside of the array
_TILE, _COLUMN = np.array([3, -1, 0, 9]), np.array([[2], [5]])
ACCESSES = {
    "spans": ((0, 8), (0, 4), (0, 8)),
    "spans over the edges": ((-3, 4), (3, 4), (7, 2)),
    "spans outside": ((-8, 4), (2, 2), (0, 4)),
    "scalar first": (4, (1, 4), (2, 8)),
    "scalar between": ((4, 4), 2, (0, 8)),
    "scalar last": ((4, 4), (0, 2), 7),
    "scalars": (5, 4, 7),
    "a scalar outside": (6, 4, 7),
    "a negative scalar": ((0, 2), -1, (0, 2)),
    "tile first": (_TILE, (1, 4), (2, 8)),
    "tile and scalar": (_TILE, 1, (2, 8)),
    "tiles together": ((0, 2), _TILE, _COLUMN),
    "tiles apart": (_COLUMN, (3, 4), _TILE),
    "tile and scalar apart": (2, (3, 4), _TILE),
    "three tiles": (_COLUMN, _TILE, np.array(1)),
}


# 8 rows of a matrix from %first on, of which the first %bound are inside
_POINTERS = """\
%i = arange {{start=0, size=8}} : tile<8xint32>
%bounds = splat %bound : tile<8xint32>
%below = lt %i, %bounds : tile<8xbool>
%below_column = reshape %below : tile<8x1xbool>
%mask = broadcast %below_column : tile<8x8xbool>
%widths = splat %width : tile<8xint32>
%rows = mul %i, %widths : tile<8xint32>
%row_column = reshape %rows : tile<8x1xint32>
%all_rows = broadcast %row_column : tile<8x8xint32>
%j_row = reshape %i : tile<1x8xint32>
%columns = broadcast %j_row : tile<8x8xint32>
%index = add %all_rows, %columns : tile<8x8xint32>
%start = mul %first, %width : int32
%corner = offset %x, %start : ptr<float32>
%corners = splat %corner : tile<8x8xptr<float32>>
%pointers = offset %corners, %index : tile<8x8xptr<float32>>
%v = view %x {{extents=({extent}, 8), strides=(8, 1)}} : view<2xfloat32>
%p, %inside = raised_elements %pointers, %mask, %v, %first, %zero \
{{sizes=(8, 8), nonnegative=(True, True)}} : tile<8x8xptr<float32>>, tile<8x8xbool>
%found = load %p, %inside : tile<8x8xfloat32>
"""


@covers("raised_elements")
def raised_cases() -> Iterator[Case]:
    """The rows of a matrix by pointers, raised to a view with a bound, and to one without."""
    x = _array(5).reshape(30, 8)
    for first, bound in itertools.product((0, 3, 14, 22), (*range(8), 16)):
        extent = first + bound if bound < 8 else 2**31
        body = (_constant("zero", 0) + _constant("first", first) + _constant("bound", bound)
                + _constant("width", 8) + _POINTERS.format(extent=extent) + _stored((8, 8)))
        expected = np.where(np.arange(8)[:, None] < bound, x[first:first + 8],
                            np.float32(0))
        parameters = {"x": "ptr<float32>", "out": "ptr<float32>"}
        yield kernel_case("raised_elements", f"{first}-{bound}", parameters, body,
                          {"x": x.ravel(), "out": np.full(64, 7, np.float32)},
                          {"out": expected.ravel()})


@covers("elements")
def element_cases() -> Iterator[Case]:
    """Every way to mix ints, tiles of ints and spans, in int32 and int64, known and given."""
    x = _array(4)
    for (title, index), dtype in ((item, dtype) for item in ACCESSES.items()
                                  for dtype in ("int32", "int64")):
        padded = np.pad(x, BEYOND)
        expected = padded[tuple(
            slice(BEYOND + entry[0], BEYOND + sum(entry)) if isinstance(entry, tuple)
            else entry + BEYOND for entry in index)]
        yield _element_case(f"{title}-{dtype}", index, dtype, x, np.asarray(expected))


def _element_case(title: str, index: tuple, dtype: str, x: np.ndarray,
                  expected: np.ndarray) -> Case:
    parameters, arguments, body, operands = {"x": "ptr<float32>"}, {"x": x.ravel()}, WHOLE, []
    sizes = tuple(entry[1] if isinstance(entry, tuple) else None for entry in index)
    for axis, entry in enumerate(index):
        name, entry = f"i{axis}", entry[0] if isinstance(entry, tuple) else entry
        operands.append(f"%{name}")
        if not np.ndim(entry):
            parameters[name], arguments[name] = dtype, int(entry)
            continue
        parameters[f"{name}a"], arguments[f"{name}a"] = f"ptr<{dtype}>", entry.ravel().astype(dtype)
        body += _loaded(name, entry.shape, dtype)
    shape = "x".join(map(str, expected.shape))
    pointers, bools, floats = (f"tile<{shape}x{of}>" if shape else of
                               for of in ("ptr<float32>", "bool", "float32"))
    body += (f"%p, %inside = elements %v, {', '.join(operands)} {{sizes={_tuple(sizes)}, "
             f"nonnegative=(False, False, False)}} : {pointers}, {bools}\n"
             f"%found = load %p, %inside : {floats}\n")
    body += _stored(expected.shape)
    parameters["out"], arguments["out"] = "ptr<float32>", np.full(expected.size, 7, np.float32)
    return kernel_case("elements", title, parameters, body, arguments, {"out": expected.ravel()})


def _loaded(name: str, shape: tuple[int, ...], dtype: str) -> str:
    """Text: %name, the elements of the array %namea in a shape."""
    size, target = int(np.prod(shape)), "x".join(map(str, shape))
    return (f"%{name}n = arange {{start=0, size={size}}} : tile<{size}xint32>\n"
            f"%{name}s = splat %{name}a : tile<{size}xptr<{dtype}>>\n"
            f"%{name}p = offset %{name}s, %{name}n : tile<{size}xptr<{dtype}>>\n"
            f"%{name}l = load %{name}p : tile<{size}x{dtype}>\n"
            f"%{name} = reshape %{name}l : tile<{target}x{dtype}>\n")


def _stored(shape: tuple[int, ...]) -> str:
    """Text: store %found, of a shape, to out."""
    if not shape:
        return "store %out, %found\n"
    size = int(np.prod(shape))
    return (f"%flat = reshape %found : tile<{size}xfloat32>\n"
            f"%n = arange {{start=0, size={size}}} : tile<{size}xint32>\n"
            f"%os = splat %out : tile<{size}xptr<float32>>\n"
            f"%q = offset %os, %n : tile<{size}xptr<float32>>\nstore %q, %flat\n")
