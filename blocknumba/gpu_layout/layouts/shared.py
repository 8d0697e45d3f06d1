"""Layouts of tiles in shared memory, whole or in chunks: bank conflicts, swizzles that avoid them.

Shared memory has 32 banks of 4 bytes.  Lanes that access different words of one bank conflict.  The
read of a column of 32 x 32 words; a letter is a bank:

    C order              swizzled
    row 0   a b c d      a b c d      column 0 is a a a a: 4 conflicts; swizzled, it is a b c d:
    row 1   a b c d      b a d c      none, since the bank of (row, column) is column ^ row
    row 2   a b c d      c d a b
    row 3   a b c d      d c b a

Chunks: pieces of a tile that go through shared memory one after the other, in a small buffer.

A chunk has the elements whose packed index has given values in some chosen bits.  The bits must be
register bits, and nothing else, both in the source layout and in the destination layout.  Then
every thread holds elements of every chunk and takes part in each copy.

Worked example: of 8 elements with the packed index b2 b1 b0, b2 is chosen.  Chunk 0 has the
elements 0..3, chunk 1 the elements 4..7; a buffer of 4 elements suffices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout, pack
from blocknumba.gpu_layout.layouts.registers import (
    LANE, LANE_BITS, REGISTER, WARP, dims_of, from_columns, log2, replication,
)
from blocknumba.tile_ir.ir.types import TileType


OFFSET = "offset"
BANKS = 32  # CUDA Programming Guide, 'Shared Memory': 32 banks
BANK_BYTES = 4  # of 4 bytes each, so one wavefront moves 128 bytes
ROW_BITS, MATRIX_BITS = 3, 2  # PTX ISA, 'ldmatrix': up to four matrices of eight rows
VECTOR_BYTES = 16  # PTX ISA, 'Vectors': the widest access of one thread


def is_buffer(tile: TileType) -> bool:
    """Whether a value of this type is in shared memory."""
    return isinstance(tile.layout, LinearLayout) and OFFSET in dict(tile.layout.ins)


def in_registers(tile: TileType) -> bool:
    """Whether a value of this type is a tile that has, or needs, a layout in registers."""
    return bool(tile.shape) and not is_buffer(tile)


def register_layout(tile: TileType) -> LinearLayout | None:
    """The layout of a value in registers; None for scalars and buffers."""
    return None if is_buffer(tile) else tile.layout


def offset_of(shared: LinearLayout, index: dict[int, int]) -> int:
    """The offset of an element in a shared layout; index: by axis, 0 where left out."""
    element = pack(shared.outs, {f"dim{axis}": position for axis, position in index.items()})
    return gf2.apply(gf2.right_inverse(shared.columns, shared.out_bits), element)


def contiguous_run(shared: LinearLayout, axis: int) -> int:
    """The longest aligned run of neighbours along an axis that are contiguous in the buffer."""
    run = 1
    while run < 1 << shared.bits(OFFSET):
        index = shared(offset=run)
        if index.pop(f"dim{axis}") != run or any(index.values()):
            break
        run *= 2
    return run


def conflict_degree(lanes: gf2.Matrix) -> int:
    """Bank conflicts of one 4-byte access: how often the hardware repeats it (1 = none).

    lanes: per lane bit, the number of words by which it moves the access.  Lanes that read the same
    word do not conflict.   Source: CUDA Programming Guide, 'Shared Memory'.
    """
    return 1 << gf2.rank(lanes) - gf2.rank(tuple(word % BANKS for word in lanes))


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """The instructions by which each thread writes or reads its registers.

    offsets: register, lane, warp -> offset, in elements.
    element_bits: size of an element in memory.
    vector: elements per instruction.
    groups: one tuple of `vector` registers per instruction, in the order of their offsets; the
        offset of the first one is a multiple of vector, in every thread.
    degree: bank conflict degree of each instruction.
    """

    offsets: LinearLayout
    element_bits: int
    vector: int
    groups: tuple[tuple[int, ...], ...]
    degree: int

    @property
    def wavefronts(self) -> int:
        """Passes through shared memory that the whole tile takes, for one warp."""
        words = max(1, self.vector * self.element_bits // (8 * BANK_BYTES))
        return len(self.groups) * words * self.degree


@lru_cache(maxsize=4096)
def access(layout: LinearLayout, shared: LinearLayout, element_bits: int) -> SharedAccess:
    """The access of a tile in shared memory by threads with a register layout.

    Registers that are copies of others in the same thread are left out.
    """
    offsets = layout.then_inverse(shared)
    vector_bits = _vector_bits(offsets, element_bits)
    vector = 1 << vector_bits
    copies = replication(layout).register
    groups: dict[int, dict[int, int]] = {}
    for register, offset in enumerate(gf2.images(offsets[REGISTER])):
        if not register & copies:
            groups.setdefault(offset >> vector_bits, {})[offset % vector] = register
    ordered = tuple(tuple(group[i] for i in range(vector)) for group in groups.values())
    return SharedAccess(
        offsets, element_bits, vector, ordered, _degree(offsets, vector, element_bits)
    )


def _vector_bits(offsets: LinearLayout, element_bits: int) -> int:
    """log2 of the widest access: low offset bits that registers span and threads do not touch."""
    registers = gf2.Echelon(offsets[REGISTER])
    threads = offsets[LANE] + offsets[WARP]
    limit = log2(8 * VECTOR_BYTES // element_bits)
    bits = 0
    while bits < min(limit, offsets.out_bits):
        if not registers.spans(1 << bits) or any(column >> bits & 1 for column in threads):
            break
        bits += 1
    return bits


def _degree(offsets: LinearLayout, vector: int, element_bits: int) -> int:
    """The conflict degree of one instruction.

    The hardware executes a vector access for as many lanes at a time as move 128 bytes.
    """
    words = vector * element_bits // (8 * BANK_BYTES)
    lanes_at_once = LANE_BITS - (log2(words) if words > 1 else 0)
    bytes_ = element_bits // 8
    return conflict_degree(
        tuple(column * bytes_ // BANK_BYTES for column in offsets[LANE][:lanes_at_once])
    )


@dataclass(frozen=True, slots=True)
class LdmatrixAccess:
    """The ldmatrix instructions of each thread; a matrix is 8 rows of 16 bytes.

    addresses: number of the instruction (register), lane, warp -> offset of the row whose address
        the lane passes, in elements.
    matrices: per instruction: 1, 2 or 4, one for each 32-bit word of a thread; the words of an
        instruction are consecutive registers.
    transposed: whether a thread receives one column of two rows.
    element_bits: size of an element in memory.
    """

    addresses: LinearLayout
    matrices: int
    transposed: bool
    element_bits: int

    @property
    def elements(self) -> int:
        """Registers that one instruction fills."""
        return self.matrices * 8 * BANK_BYTES // self.element_bits

    @property
    def degree(self) -> int:
        """The bank conflict degree of each matrix."""
        size = self.element_bits // 8
        words = tuple(column * size // BANK_BYTES for column in self.addresses[LANE][:ROW_BITS])
        return conflict_degree(words)


@lru_cache(maxsize=4096)
def ldmatrix_access(
    layout: LinearLayout, shared: LinearLayout, element_bits: int
) -> LdmatrixAccess | None:
    """The ldmatrix access of a tile in shared memory; None if ldmatrix cannot read it.

    Lane l receives word l % 4 of row l / 4; transposed, of 16-bit elements, it receives column
    l / 4 of rows 2 * (l % 4) and 2 * (l % 4) + 1.
    Source: PTX ISA, "ldmatrix".
    """
    offsets = layout.then_inverse(shared)
    register, lane = offsets[REGISTER], offsets[LANE]
    inner = log2(max(1, 8 * BANK_BYTES // element_bits))  # bits of an element's index in a word
    if element_bits > 8 * BANK_BYTES or len(register) < inner:
        return None
    chunk = 8 * VECTOR_BYTES // element_bits
    words = register[inner:]
    if register[:inner] + lane[:2] == tuple(1 << bit for bit in range(inner + 2)):
        transposed, rows = False, lane[2:]
    elif element_bits == 16 and lane[2:] == (1, 2, 4):
        transposed, rows = True, (register[0], *lane[:2])
    else:
        return None
    if any(column % chunk for column in (*words, *rows, *offsets[WARP])):
        return None
    lanes_at_once = min(len(words), MATRIX_BITS)
    lanes = rows + words[:lanes_at_once] + (0,) * (MATRIX_BITS - lanes_at_once)
    ins = ((REGISTER, len(words) - lanes_at_once), *offsets.ins[1:])
    addresses = LinearLayout(ins, offsets.outs, words[lanes_at_once:] + lanes + offsets[WARP])
    return LdmatrixAccess(addresses, 1 << lanes_at_once, transposed, element_bits)


def in_order(layout: LinearLayout) -> LinearLayout:
    """The shared layout in C order of tiles that have the shape of a layout."""
    return LinearLayout(((OFFSET, layout.out_bits),), layout.outs, gf2.identity(layout.out_bits))


@lru_cache(maxsize=1024)
def best_shared(writer: LinearLayout, reader: LinearLayout, element_bits: int) -> LinearLayout:
    """The shared layout through which a tile goes from writer to reader in the fewest wavefronts.

    Candidates differ in which registers form vectors; the other columns are computed.  Among
    equals, fewer instructions win, then C order, which has the cheapest addresses.
    """
    limit = log2(8 * VECTOR_BYTES // element_bits)
    both = gf2.intersection(writer[REGISTER], reader[REGISTER])[:limit]
    vectors = (
        both + gf2.extension(both, writer[REGISTER])[: limit - len(both)],
        both + gf2.extension(both, reader[REGISTER])[: limit - len(both)],
        both,
    )
    candidates = [in_order(writer)]
    candidates += [_swizzled(writer, reader, element_bits, vector) for vector in vectors]

    def cost(shared: LinearLayout) -> tuple[int, int]:
        accesses = (access(writer, shared, element_bits), access(reader, shared, element_bits))
        return sum(a.wavefronts for a in accesses), sum(len(a.groups) for a in accesses)

    return min(candidates, key=cost)


def _swizzled(
    writer: LinearLayout, reader: LinearLayout, element_bits: int, vector: gf2.Matrix
) -> LinearLayout:
    """The shared layout whose lowest offset bits are `vector`, and whose rows avoid conflicts.

    The offset is (row, bank, index in the vector).  Two lanes conflict when they differ in the row
    only, so rows are spanned by vectors that neither the writer's nor the reader's lanes span.
    """
    size = writer.out_bits
    row_bits = log2(8 * BANKS * BANK_BYTES // element_bits)
    write = _wavefront(writer, reader, vector, element_bits)
    read = _wavefront(reader, writer, vector, element_bits)
    rows = gf2.extension(vector, gf2.avoiding_basis(size, write, read))[: max(0, size - row_bits)]
    lanes = writer[LANE] + reader[LANE] + gf2.identity(size)
    banks = gf2.extension(vector + rows, lanes)
    return LinearLayout(((OFFSET, size),), writer.outs, vector + banks + rows)


def _wavefront(
    layout: LinearLayout, other: LinearLayout, vector: gf2.Matrix, element_bits: int
) -> gf2.Matrix:
    """The columns of one wavefront: those of `vector` that one thread holds, and lanes.

    Lanes that are not threads of the other layout come first: a row column that is the sum of one
    of its vector columns and one of its threads would split its vectors.
    """
    registers = gf2.Echelon(layout[REGISTER])
    held = tuple(itertools.takewhile(registers.spans, vector))
    words = (element_bits << len(held)) // (8 * BANK_BYTES)
    lanes = layout[LANE][: LANE_BITS - (log2(words) if words > 1 else 0)]
    threads = gf2.Echelon(other[LANE] + other[WARP])
    return held + tuple(sorted(lanes, key=threads.spans))


SWIZZLES = (128, 64, 32, 0)  # bytes of a row, the widest first; 0: rows as long as the minor axis
CHUNK_BYTES = 16  # the unit that a swizzle moves
PATTERN_ROWS = 8  # after which a swizzle repeats.  Source: PTX ISA, "Swizzling Modes"
_CHUNK_BIT = log2(CHUNK_BYTES)
_ROW_BIT = 7  # chunk numbers are combined with the address bits from here on: 128-byte rows


@lru_cache(maxsize=1024)
def in_panels(
    shape: tuple[int, ...], minor_axis: int, element_bits: int, swizzle_bytes: int
) -> LinearLayout:
    """The layout of `swizzled` without the permutation of chunks.

    TMA and wgmma compute addresses in this layout, and permute the address bits at last.
    """
    assert swizzle_bytes in SWIZZLES, f"a swizzle of {swizzle_bytes} bytes"
    first_bits = {}
    size = 0
    for axis in reversed(range(len(shape))):
        first_bits[axis], size = size, size + log2(shape[axis])

    def bits(axis: int) -> gf2.Matrix:
        return tuple(1 << first_bits[axis] + i for i in range(log2(shape[axis])))

    minor = bits(minor_axis)
    row_bits = log2(swizzle_bytes * 8 // element_bits) if swizzle_bytes else len(minor)
    assert row_bits <= len(minor), f"rows of {swizzle_bytes} bytes in {shape}, {element_bits} bits"
    others = [axis for axis in reversed(range(len(shape))) if axis != minor_axis]
    rows = tuple(column for axis in others for column in bits(axis))
    columns = minor[:row_bits] + rows + minor[row_bits:]
    return LinearLayout(((OFFSET, size),), dims_of(shape), columns)


@lru_cache(maxsize=1024)
def swizzled(
    shape: tuple[int, ...], minor_axis: int, element_bits: int, swizzle_bytes: int
) -> LinearLayout:
    """The layout of a tile in panels of rows, with chunks permuted by the number of their row.

    shape: of the tile; rows follow each other in C order of the other axes, panels come last.
    minor_axis: the axis that a row runs along, of at least swizzle_bytes.
    swizzle_bytes: one of SWIZZLES.  The buffer starts at a multiple of 8 * swizzle_bytes.
    """
    layout = in_panels(shape, minor_axis, element_bits, swizzle_bytes)
    if not swizzle_bytes:
        return layout
    columns = _permuted(layout.columns, element_bits, log2(swizzle_bytes // CHUNK_BYTES))
    return LinearLayout(layout.ins, layout.outs, columns)


def _permuted(columns: gf2.Matrix, element_bits: int, chunk_bits: int) -> gf2.Matrix:
    """Columns of offset bits, each bit from _ROW_BIT on also flipping a bit of the chunk."""
    element_bit = log2(element_bits // 8)
    chunk, row = _CHUNK_BIT - element_bit, _ROW_BIT - element_bit
    changed = list(columns)
    for i in range(min(chunk_bits, len(columns) - row)):
        changed[row + i] ^= columns[chunk + i]
    return tuple(changed)


def widest_swizzle(extent: int, element_bits: int) -> int:
    """The widest swizzle whose rows an axis of this extent fills; 0 if there is none."""
    size_bytes = extent * element_bits // 8
    return next(swizzle for swizzle in SWIZZLES if swizzle <= size_bytes)


@lru_cache(maxsize=1024)
def recognized(layout: LinearLayout, element_bits: int) -> tuple[int, int] | None:
    """The (minor axis, swizzle bytes) of a layout made by `swizzled`; None for other layouts."""
    shape = tuple(1 << bits for _, bits in reversed(layout.outs))
    for minor_axis in reversed(range(len(shape))):
        for swizzle in SWIZZLES:
            fits = swizzle <= shape[minor_axis] * element_bits // 8
            if fits and swizzled(shape, minor_axis, element_bits, swizzle) == layout:
                return minor_axis, swizzle
    return None


@lru_cache(maxsize=1024)
def chunk_bits(source: LinearLayout, destination: LinearLayout, wanted: int) -> tuple[int, ...]:
    """Bits of the packed index that can number the chunks of a tile: at most `wanted`, the highest.

    Elements that lie side by side in a thread's registers, before or after, stay in one chunk: they
    are written or read together.
    """
    touched = 0
    for layout in (source, destination):
        sums = (column for column in layout[REGISTER] if column & column - 1)
        for column in (*layout[LANE], *layout[WARP], *sums):
            touched |= column
    shared = set(source[REGISTER]) & set(destination[REGISTER])
    run = max(_side_by_side(source), _side_by_side(destination))
    own = sorted(column.bit_length() - 1 for column in shared
                 if not column & touched and column >= run)
    return tuple(own[max(0, len(own) - wanted) :])


def _side_by_side(layout: LinearLayout) -> int:
    """Number of elements in a row that a thread's registers hold."""
    run = 1
    while run in layout[REGISTER]:
        run *= 2
    return run


@lru_cache(maxsize=1024)
def chunk_layout(layout: LinearLayout, bits: tuple[int, ...]) -> LinearLayout:
    """The layout of every chunk of a tile, as a tile of rank 1 in the order of the packed index."""
    removed = sum(1 << bit for bit in bits)
    register = tuple(column for column in layout[REGISTER] if not column & removed)
    size = 1 << layout.out_bits - len(bits)

    def kept(columns: gf2.Matrix) -> gf2.Matrix:
        return tuple(_without(column, bits) for column in columns)

    return from_columns((size,), kept(register), kept(layout[LANE]), kept(layout[WARP]))


def _without(index: int, bits: tuple[int, ...]) -> int:
    """An index without some bits: highest first, so that lower bits keep their positions."""
    for bit in sorted(bits, reverse=True):
        low = index & (1 << bit) - 1
        index = index >> bit + 1 << bit | low
    return index


def registers_of_chunk(layout: LinearLayout, bits: tuple[int, ...], index: int) -> tuple[int, ...]:
    """The registers that hold one chunk, in the order of the chunk's registers.

    index: of the chunk; bit i of it is the value of bits[i].
    """
    removed = sum(1 << bit for bit in bits)
    chosen = sum((index >> i & 1) << bit for i, bit in enumerate(bits))
    return tuple(
        register for register, image in enumerate(gf2.images(layout[REGISTER]))
        if image & removed == chosen
    )
