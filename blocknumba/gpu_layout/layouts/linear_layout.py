"""Linear maps over GF(2) between named coordinates: the one class of layouts.

A layout says where the elements of a tile are.  The usual one maps hardware coordinates to tile
coordinates: register r of lane l of warp w holds the element at layout(register=r, lane=l, warp=w).
Every coordinate is a few bits, and the map is linear: the image of a set of bits is the xor of the
images of its bits.  So a layout is a list of columns, one per input bit.

Worked example: a row of 512 elements over 4 warps of 32 lanes, 4 neighbours to a lane.

    >>> row = (LinearLayout.identity("register", "dim0", 2)
    ...        * LinearLayout.identity("lane", "dim0", 5)
    ...        * LinearLayout.identity("warp", "dim0", 2))
    >>> str(row)
    'register:1.2;lane:4..64;warp:128.256/dim0:9'
    >>> row(register=3, lane=1, warp=2)
    {'dim0': 263}

Source: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2",
arXiv 2505.23819.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.wording import quoted

Dims = tuple[tuple[str, int], ...]

MAX_BITS = 63  # of a dimension that is read from text


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class LinearLayout:
    """A GF(2)-linear map between named coordinates.

    ins, outs: (name, bits) pairs, minor dimension first.
    columns: one int per input bit, minor input first; its value is the image of that bit, with the
        output dimensions packed minor first.

    Two layouts are equal when ins, outs and columns are.  str(layout) is one line without spaces,
    commas or brackets, and LinearLayout.parse reads it back.
    """

    ins: Dims
    outs: Dims
    columns: gf2.Matrix
    _hash: int = field(init=False)

    def __post_init__(self):
        in_bits, out_bits = _total(self.ins), _total(self.outs)
        assert len(self.columns) == in_bits, f"{len(self.columns)} columns for inputs {self.ins}"
        assert all(0 <= column < 1 << out_bits for column in self.columns), (
            f"a column leaves the output space {self.outs}"
        )
        object.__setattr__(self, "_hash", hash((self.ins, self.outs, self.columns)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, LinearLayout) or self._hash != other._hash:
            return False
        return (self.ins, self.outs, self.columns) == (other.ins, other.outs, other.columns)

    @staticmethod
    def identity(in_dim: str, out_dim: str, bits: int) -> LinearLayout:
        """Coordinate in_dim is coordinate out_dim."""
        return LinearLayout(((in_dim, bits),), ((out_dim, bits),), gf2.identity(bits))

    @staticmethod
    def zeros(in_dim: str, bits: int) -> LinearLayout:
        """The layout that ignores in_dim: every element is held 2**bits times."""
        return LinearLayout(((in_dim, bits),), (), (0,) * bits)

    def __mul__(self, major: LinearLayout) -> LinearLayout:
        """The direct sum: self is the minor bits of each dimension, major the bits above them."""
        ins, outs = _joined(self.ins, major.ins), _joined(self.outs, major.outs)
        own = self._repacked(outs, {})
        above = major._repacked(outs, dict(self.outs))
        columns = ()
        for name, _ in ins:
            columns += _slice(self.ins, own, name) + _slice(major.ins, above, name)
        return LinearLayout(ins, outs, columns)

    def __getitem__(self, in_dim: str) -> gf2.Matrix:
        """The columns of one input dimension; none if the layout does not have it."""
        return _slice(self.ins, self.columns, in_dim)

    def __call__(self, **coordinates: int) -> dict[str, int]:
        """The image of a point; inputs left out are 0.  A name that is not an input: KeyError."""
        return unpack(self.outs, gf2.apply(self.columns, pack(self.ins, coordinates)))

    @property
    def in_bits(self) -> int:
        """Bits of all input dimensions together."""
        return len(self.columns)

    @property
    def out_bits(self) -> int:
        """Bits of all output dimensions together."""
        return _total(self.outs)

    def bits(self, dim: str) -> int:
        """Number of bits of an input or output dimension; 0 if there is none of that name."""
        return dict(self.ins + self.outs).get(dim, 0)

    def first_bit(self, in_dim: str) -> int:
        """The position of the first bit of in_dim in a packed input."""
        shift = 0
        for name, bits in self.ins:
            if name == in_dim:
                return shift
            shift += bits
        return shift

    @property
    def rank(self) -> int:
        """log2 of the number of different points that are reached."""
        return gf2.rank(self.columns)

    @property
    def is_injective(self) -> bool:
        """Nothing is held twice."""
        return self.rank == self.in_bits

    @property
    def is_surjective(self) -> bool:
        """Everything is held."""
        return self.rank == self.out_bits

    def then_inverse(self, other: LinearLayout) -> LinearLayout:
        """A map x -> y with other(y) == self(x): where other holds the element that self has at x.

        other must be surjective.  Where it holds an element several times, one copy is chosen.
        """
        return _then_inverse(self, other)

    def with_columns(self, in_dim: str, columns: gf2.Matrix) -> LinearLayout:
        """The layout with other columns for one input dimension, of any number."""
        ins = tuple((n, len(columns) if n == in_dim else bits) for n, bits in self.ins)
        start = self.first_bit(in_dim)
        stop = start + len(self[in_dim])
        return LinearLayout(ins, self.outs, self.columns[:start] + columns + self.columns[stop:])

    def with_outs(self, outs: Dims) -> LinearLayout:
        """The layout with output dimensions in another order, or with more of them.

        outs: names and bits; every dimension of self is in it, with at least its bits.
        """
        return LinearLayout(self.ins, outs, self._repacked(outs, {}))

    def _repacked(self, outs: Dims, above: dict[str, int]) -> gf2.Matrix:
        """The columns packed for outs, each dimension shifted up by `above`."""
        if outs == self.outs and not above:
            return self.columns
        shift, shifts = 0, {}
        for name, bits in outs:
            shifts[name], shift = shift + above.get(name, 0), shift + bits
        moves, shift = [], 0
        for name, bits in self.outs:
            if bits:
                moves.append((shift, (1 << bits) - 1, shifts[name]))
            shift += bits
        return tuple(
            sum((column >> old & mask) << new for old, mask, new in moves)
            for column in self.columns
        )

    def __str__(self) -> str:
        ins = ";".join(f"{name}:{_columns_text(self[name])}" for name, _ in self.ins)
        outs = ";".join(f"{name}:{bits}" for name, bits in self.outs)
        return f"{ins}/{outs}"

    def __repr__(self) -> str:
        return f"LinearLayout.parse({str(self)!r})"

    @staticmethod
    def parse(text: str) -> LinearLayout:
        """The layout that str wrote.  ValueError if the text is not one."""
        return _parse(text)


def pack(dims: Dims, coordinates: dict[str, int]) -> int:
    """Named coordinates as one int, minor dimension first."""
    packed, shift = 0, 0
    known = {name for name, _ in dims}
    for name in coordinates:
        if name not in known:
            raise KeyError(name)
    for name, bits in dims:
        packed |= coordinates.get(name, 0) << shift
        shift += bits
    return packed


def unpack(dims: Dims, packed: int) -> dict[str, int]:
    """Named coordinates out of one int."""
    coordinates = {}
    for name, bits in dims:
        coordinates[name] = packed & (1 << bits) - 1
        packed >>= bits
    return coordinates


@lru_cache(maxsize=4096)
def _then_inverse(layout: LinearLayout, other: LinearLayout) -> LinearLayout:
    assert layout.outs == other.outs, f"{layout.outs} and {other.outs} are different spaces"
    inverse = gf2.right_inverse(other.columns, other.out_bits)
    assert inverse is not None, f"{other} does not hold every element"
    return LinearLayout(layout.ins, other.ins, gf2.compose(inverse, layout.columns))


def _total(dims: Dims) -> int:
    return sum(bits for _, bits in dims)


def _slice(dims: Dims, columns: gf2.Matrix, name: str) -> gf2.Matrix:
    start = 0
    for other, bits in dims:
        if other == name:
            return columns[start : start + bits]
        start += bits
    return ()


def _joined(first: Dims, second: Dims) -> Dims:
    joined = dict(first)
    for name, bits in second:
        joined[name] = joined.get(name, 0) + bits
    return tuple(joined.items())


def _columns_text(columns: gf2.Matrix) -> str:
    """Columns joined by dots; a run of three or more, each twice the last, is first..last."""
    parts, start = [], 0
    while start < len(columns):
        stop = start + 1
        while stop < len(columns) and columns[start] and columns[stop] == 2 * columns[stop - 1]:
            stop += 1
        if stop - start < 3:
            parts.append(str(columns[start]))
            start += 1
            continue
        parts.append(f"{columns[start]}..{columns[stop - 1]}")
        start = stop
    return ".".join(parts)


def _parse_columns(text: str) -> gf2.Matrix:
    columns: list[int] = []
    numbers = text.split(".") if text else []
    run = False
    for number in numbers:
        if not number:
            run = True
            continue
        value = int(number)
        while run and columns and 0 < columns[-1] * 2 < value:
            columns.append(columns[-1] * 2)
        if run and (not columns or columns[-1] * 2 != value):
            raise ValueError(f"{text!r} is not a list of columns")
        columns.append(value)
        run = False
    return tuple(columns)


def _check_spaces(ins: list[tuple[str, int]], outs: list[tuple[str, int]],
                  columns: gf2.Matrix) -> None:
    """Errors: ValueError for duplicate names, and for columns outside the output space."""
    out_bits = _total(outs)
    for dims in (ins, outs):
        if len(dict(dims)) != len(dims) or not all(0 <= bits <= MAX_BITS for _, bits in dims):
            raise ValueError(dims)
    if not all(0 <= column < 1 << out_bits for column in columns):
        raise ValueError(columns)


@lru_cache(maxsize=4096)
def _parse(text: str) -> LinearLayout:
    """The layout a text writes: `name:columns;.../name:bits;...`."""
    try:
        ins_text, outs_text = text.split("/")
        ins, outs, columns = [], [], ()
        for part in filter(None, ins_text.split(";")):
            name, numbers = part.split(":")
            own = _parse_columns(numbers)
            ins.append((name, len(own)))
            columns += own
        for part in filter(None, outs_text.split(";")):
            name, bits = part.split(":")
            outs.append((name, int(bits)))
        _check_spaces(ins, outs, columns)
    except ValueError as error:
        raise ValueError(
            f"layout: given {quoted(text)}, accepted 'register:1.2;lane:4..64;warp:128.256/dim0:9'"
        ) from error
    return LinearLayout(tuple(ins), tuple(outs), columns)
