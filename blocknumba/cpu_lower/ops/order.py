"""Code of sorting, a network of comparisons on the vectors of a row in memory; of histograms.

Runs of 2**k elements are merged as in gpu_layout/placement/sorts.py.  Elements that are compared
lie in two vectors, or, where runs are shorter than one, in the lanes of the same vector:

    a run and the next one, reversed      | 0 1 2 3 | 4 5 6 7 |      0-7 1-6 2-5 3-4
    halves of a vector                    | 0 1 2 3 |                0-2 1-3, then 0-1 2-3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocknumba.cpu_lower.elements import register_type, size_bytes, uniform
from blocknumba.cpu_lower.emitter import Buffer, Coordinates, Emitter, root
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.cpu_lower.writer import Module, Writer, suffix, vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops import order

Element = tuple[str, ...]  # one vector of each tile


@root(order.sort)
def _(emitter: Emitter, op: Op) -> None:
    tiles, axis = op.tiles, op.attrs["axis"]
    shape, dtypes = tiles[0].type.shape, [tile.type.dtype for tile in tiles]
    buffers = [emitter.buffer(tile.type, axis) for tile in tiles]
    for tile, buffer in zip(tiles, buffers):
        emitter.materialise(tile, buffer)
    if shape[axis] > 1:
        symbol = _sorting_function(emitter.module, emitter.target, dtypes, shape[axis])
        emitter.nest(shape[:axis] + shape[axis + 1:], None, 1,
                     lambda outer: _sort_row(emitter, symbol, op, buffers, outer))
    # the least elements come first: the results are the beginnings of rows
    emitter.known.buffers.update(zip(op.results, buffers))


@root(order.histogram)
def _(emitter: Emitter, op: Op) -> None:
    writer, type_ = emitter.writer, op.result.type
    counters = emitter.buffer(type_)
    writer.call("void", "llvm.memset.p0.i64", ("ptr", counters.address), ("i8", "0"),
                ("i64", str(type_.size * size_bytes(type_.dtype))), ("i1", "false"))
    values = [op.x] if op.mask is None or op.mask in emitter.known.unmasked else [op.x, op.mask]

    def count(coordinates: Coordinates) -> None:
        index, *mask = [emitter.at(value, coordinates).name for value in values]
        counts = writer.assign(f"icmp ult i32 {index}, {type_.size}")
        for condition in mask:
            counts = writer.assign(f"and i1 {counts}, {condition}")
        with writer.only_if(counts):
            place = writer.assign(
                f"getelementptr inbounds i32, ptr {counters.address}, i32 {index}")
            before = writer.assign(f"load i32, ptr {place}")
            writer.do(f"store i32 {writer.assign(f'add i32 {before}, 1')}, ptr {place}")
    with emitter.filled_by(values, op.x.type.shape, None):
        emitter.nest(op.x.type.shape, None, 1, count,
                     lambda coordinates: [(value, coordinates) for value in values])
    emitter.known.buffers[op.result] = counters


def _sort_row(emitter: Emitter, symbol: str, op: Op, buffers: Sequence[Buffer],
              outer: Coordinates) -> None:
    axis = op.attrs["axis"]
    first = (*outer[:axis], uniform(0), *outer[axis:])
    rows = [emitter.place(tile.type.dtype, buffer, first).name
            for tile, buffer in zip(op.tiles, buffers)]
    emitter.writer.do(f"call void @{symbol}({', '.join(f'ptr {row}' for row in rows)})")


def _sorting_function(module: Module, target: CpuTarget, dtypes: Sequence[DType],
                      extent: int) -> str:
    """The name of the function that sorts a row of each tile, at the addresses that it is given."""
    symbol = f"bn.sort.{'.'.join(map(str, dtypes))}.{extent}"
    lanes = min(extent, *(target.lanes(size_bytes(dtype)) for dtype in dtypes))
    network = _Network(Writer(module), dtypes, lanes)
    network.sort(extent)
    parameters = ", ".join(f"ptr noalias {row}" for row in network.rows)
    network.writer.do("ret void")
    module.add(symbol, network.writer.define(
        f"define internal void @{symbol}({parameters}) noinline {target.attributes}"))
    return symbol


class _Network:
    """Writes the comparisons of a row.

    rows: the addresses of the rows.   lanes: elements of a vector.
    """

    def __init__(self, writer: Writer, dtypes: Sequence[DType], lanes: int):
        self.writer, self._dtypes, self._lanes = writer, dtypes, lanes
        self.rows = [f"%row{number}" for number in range(len(dtypes))]

    def sort(self, extent: int) -> None:
        """Sort extent elements, a power of two."""
        inside = self._lanes.bit_length() - 1
        self._in_vectors(extent, [mask for level in range(inside)
                                  for mask in ((2 << level) - 1, *_halves(level))])
        for level in range(inside, extent.bit_length() - 1):
            self._between_vectors(extent, level, is_reversed=True)
            for below in reversed(range(inside, level)):
                self._between_vectors(extent, below, is_reversed=False)
            self._in_vectors(extent, _halves(inside))

    def _in_vectors(self, extent: int, masks: Sequence[int]) -> None:
        """Compare lanes whose numbers differ by masks, in each vector of the row."""
        def body(index: str) -> None:
            x = self._load(index)
            for mask in masks:
                x = self._compared_lanes(x, mask)
            self._store(index, x)
        if masks:
            self.writer.loop(extent, self._lanes, body)

    def _compared_lanes(self, x: Element, mask: int) -> Element:
        lanes, top = range(self._lanes), 1 << mask.bit_length() - 1
        y = self._shuffled(x, x, [lane ^ mask for lane in lanes])
        least, greatest = self._ordered(x, y)
        return self._shuffled(least, greatest,
                              [lane + self._lanes if lane & top else lane for lane in lanes])

    def _between_vectors(self, extent: int, level: int, is_reversed: bool) -> None:
        """Merge pairs of runs of 2**level elements: the step that compares one with the other."""
        writer, lanes, run = self.writer, self._lanes, 1 << level

        def body(pair: str) -> None:
            inside = writer.remainder(pair, run)
            start = writer.multiply(writer.divide(pair, run), str(2 * run))
            here = writer.add(start, inside)
            other = writer.add(here, str(run))
            if is_reversed:
                there = writer.assign(f"sub nsw i32 {2 * run - lanes}, {inside}")
                other = writer.add(start, there)
            x, y = self._load(here), self._load(other)
            backwards = range(lanes)[::-1]
            if is_reversed:
                y = self._shuffled(y, y, backwards)
            least, greatest = self._ordered(x, y)
            if is_reversed:
                greatest = self._shuffled(greatest, greatest, backwards)
            self._store(here, least)
            self._store(other, greatest)
        writer.loop(extent // 2, lanes, body)

    def _ordered(self, x: Element, y: Element) -> tuple[Element, Element]:
        """The lesser and the greater element in each lane."""
        if len(self._dtypes) == 1:
            sign = "s" if self._dtypes[0].is_signed else "u"
            return tuple(self._each(lambda type_, name, *pair: self.writer.call(
                type_, f"llvm.{sign}{which}.{name}", *((type_, value) for value in pair)), x, y)
                for which in ("min", "max"))
        is_less = self._less(y, x)
        flags = vector("i1", self._lanes)

        def chosen(one: Element, other: Element) -> Element:
            return self._each(lambda type_, _, a, b: self.writer.assign(
                f"select {flags} {is_less}, {type_} {a}, {type_} {b}"), one, other)
        return chosen(y, x), chosen(x, y)

    def _less(self, x: Element, y: Element) -> str:
        """Whether x comes before y: by the first tile, of equal ones by the next."""
        found, flags = "", vector("i1", self._lanes)
        for dtype, a, b in reversed(tuple(zip(self._dtypes, x, y))):
            type_ = vector(register_type(dtype), self._lanes)
            less = self.writer.assign(
                f"icmp {'slt' if dtype.is_signed else 'ult'} {type_} {a}, {b}")
            if found:
                equal = self.writer.assign(f"icmp eq {type_} {a}, {b}")
                tie = self.writer.assign(f"and {flags} {equal}, {found}")
                less = self.writer.assign(f"or {flags} {less}, {tie}")
            found = less
        return found

    def _shuffled(self, x: Element, y: Element, order: Sequence[int]) -> Element:
        """Lanes of x, and after them of y, by number."""
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        return self._each(lambda type_, _, a, b: self.writer.assign(
            f"shufflevector {type_} {a}, {type_} {b}, <{self._lanes} x i32> <{lanes}>"), x, y)

    def _each(self, write: Callable[..., str], x: Element, y: Element) -> Element:
        """write(type, suffix, a, b) for the vectors of each tile."""
        scalars = map(register_type, self._dtypes)
        return tuple(write(vector(scalar, self._lanes), suffix(scalar, self._lanes), a, b)
                     for scalar, a, b in zip(scalars, x, y))

    def _load(self, index: str) -> Element:
        return tuple(self.writer.assign(f"load {type_}, ptr {place}, align {size}")
                     for type_, place, size in self._places(index))

    def _store(self, index: str, x: Element) -> None:
        for value, (type_, place, size) in zip(x, self._places(index)):
            self.writer.do(f"store {type_} {value}, ptr {place}, align {size}")

    def _places(self, index: str) -> list[tuple[str, str, int]]:
        """Per tile the type, the address and the alignment of the vector at an index."""
        found = []
        for dtype, row in zip(self._dtypes, self.rows):
            scalar = register_type(dtype)
            place = self.writer.assign(f"getelementptr inbounds {scalar}, ptr {row}, i32 {index}")
            found.append((vector(scalar, self._lanes), place, size_bytes(dtype)))
        return found


def _halves(level: int) -> list[int]:
    """The masks that sort 2**level elements after the first step of a merge."""
    return [1 << bit for bit in reversed(range(level))]
