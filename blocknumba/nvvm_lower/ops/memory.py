"""Code of accesses to global memory: loads and stores.

Code of loads and stores, also of vectors that a bound cuts ("guarded" accesses).

Where the mask of an access is a bound on its axis, all but one of the vectors along that axis are
uniformly true or false.  Whole vectors move without a branch; only threads that hold a cut vector
move its elements, one by one: under a branch or, where they are few, each under its predicate.

    mask      T T T T | T T T T | T T F F | F F F F
    vectors    whole     whole      cut      none

Code behind a branch waits for what was loaded before it: loads that branch take their latencies
one after the other, those by predicates together.

A vector that is cut where a position meets a position (columns up to the row), not a bound of the
array, is read as a whole, and of its elements those are taken that the mask wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from blocknumba.gpu_layout.layouts.registers import contiguous_registers, replication
from blocknumba.nvvm_lower.elements import element_bits, memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import I1, I64
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.services.address import element_pointer, moved_pointer
from blocknumba.nvvm_lower.services.global_memory import Hints
from blocknumba.nvvm_lower.services.words import pack, unpack, words_of
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.folds.patterns import made_by
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.remarks import BY_THREADS, Remark
from blocknumba.tile_ir.ir.types import DType, int32
from blocknumba.tile_ir.ops.memory import address, load, offset, pointer_at, store


@dataclass(frozen=True, slots=True)
class Widths:
    """Groups of registers in an access, as numbers of neighbouring registers.

    vector: neighbours in memory, aligned, whose masks are true up to one of them and false from
        there on.
    uniform: neighbours that have one mask.
    """

    vector: int
    uniform: int


MAX_PREDICATED = 8  # elements of cut vectors that a thread moves without a branch


def guarded_load(emitter: Emitter, dtype: DType, pointers: Registers, masks: Registers,
                 others: Registers, widths: Widths, hints: Hints) -> Registers:
    """The elements at pointers; where masks are false, others.

    Threads that hold a cut vector read its elements again, but for the last ones of one mask.
    """
    vector = widths.vector
    whole = _load_vectors(emitter, dtype, pointers, masks, others, vector, vector - 1, hints)
    if _are_few(masks, widths):
        return _with_singles(emitter, dtype, whole, pointers, masks, others, widths, hints)

    def again() -> Registers:
        remaining, elements = _not_moved(masks, widths), list(whole)
        loaded = global_memory.load(emitter, dtype, *_at(remaining, pointers, masks, others),
                                    widths.uniform, hints)
        for register, element in zip(remaining, loaded, strict=True):
            elements[register] = element
        return elements

    return _where(emitter, _is_cut(emitter, masks, vector), dtype, whole, again, vector)


def _are_few(masks: Registers, widths: Widths) -> bool:
    return len(_not_moved(masks, widths)) <= MAX_PREDICATED


def _with_singles(emitter: Emitter, dtype: DType, whole: Registers, pointers: Registers,
                  masks: Registers, others: Registers, widths: Widths, hints: Hints) -> Registers:
    """Elements of whole vectors and, where they were not read, those that are read singly.

    These have registers of their own, so that they wait for no vector.
    """
    vector, shape = widths.vector, words_of(dtype, widths.vector)
    remaining, elements = _not_moved(masks, widths), list(others)
    singles = global_memory.load(
        emitter, dtype, *_at(remaining, pointers, _of_cut(emitter, masks, vector), others),
        widths.uniform, hints)
    for register, element in zip(remaining, singles, strict=True):
        elements[register] = element
    words, pieces = (_packed(emitter, dtype, each, vector) for each in (whole, elements))
    for word in sorted({register // shape.elements for register in remaining}):
        is_whole = masks[(word // shape.count + 1) * vector - 1]
        words[word] = emitter.body.select(is_whole, shape.type, words[word], pieces[word])
    return _unpacked(emitter, dtype, words, vector)


def load_whole(emitter: Emitter, dtype: DType, pointers: Registers, masks: Registers,
               others: Registers, vector: int, hints: Hints) -> Registers:
    """The elements at pointers; where masks are false, others: cut vectors are read as a whole.

    So threads wait for memory once.  An aligned vector is in one page with its first element.
    """
    loaded = _load_vectors(emitter, dtype, pointers, masks, others, vector, 0, hints)
    result: Registers = []
    for first in range(0, len(masks), vector):
        run = slice(first, first + vector)
        choose = partial(_chosen, emitter, dtype, masks[run], loaded[run], others[run])
        is_cut = _is_cut(emitter, masks[run], vector)
        result += _where(emitter, is_cut, dtype, loaded[run], choose, vector)
    return result


def _chosen(emitter: Emitter, dtype: DType, masks: Registers, elements: Registers,
            others: Registers) -> Registers:
    """Elements where masks are true, and others."""
    return [emitter.body.select(mask, register_type(dtype), element, other)
            for mask, element, other in zip(masks, elements, others, strict=True)]


def _load_vectors(emitter: Emitter, dtype: DType, pointers: Registers, masks: Registers,
                  others: Registers, vector: int, decides: int, hints: Hints) -> Registers:
    """Vectors, read where the mask of one of their elements is true, the one that decides."""
    return [element for first in range(0, len(masks), vector)
            for element in global_memory.load(
                emitter, dtype, pointers[first:first + vector],
                [masks[first + decides]] * vector, others[first:first + vector], vector, hints)]


def _where(emitter: Emitter, condition: str, dtype: DType, elements: Registers,
           patch: Callable[[], Registers], vector: int) -> Registers:
    """Elements, or in threads where a condition holds what patch writes code for."""
    body, words = emitter.body, _packed(emitter, dtype, elements, vector)
    before, cut, after = body.block, body.new_label("cut"), body.new_label("after")
    body.branch_if(condition, cut, after)
    body.begin_block(cut)
    with body.scope():
        patched = _packed(emitter, dtype, patch(), vector)
    body.branch(after)
    body.begin_block(after)
    merged = []
    for word, patched_word in zip(words, patched, strict=True):
        phi = body.phi(words_of(dtype, vector).type)
        phi.add(word, before)
        phi.add(patched_word, cut)
        merged.append(phi.name)
    return _unpacked(emitter, dtype, merged, vector)


def guarded_store(emitter: Emitter, dtype: DType, pointers: Registers, values: Registers,
          masks: Registers, widths: Widths, hints: Hints) -> None:
    """Write values to pointers where masks are true."""
    vector = widths.vector
    for first in range(0, len(masks), vector):
        global_memory.store(emitter, dtype, pointers[first:first + vector],
                            values[first:first + vector],
                            [masks[first + vector - 1]] * vector, vector, hints)
    if _are_few(masks, widths):
        cut, remaining = _of_cut(emitter, masks, vector), _not_moved(masks, widths)
        global_memory.store(emitter, dtype, *_at(remaining, pointers, values, cut),
                            widths.uniform, hints)
        return
    with cut_vectors(emitter, masks, widths) as remaining:
        global_memory.store(emitter, dtype, *_at(remaining, pointers, values, masks),
                            widths.uniform, hints)


@contextmanager
def cut_vectors(emitter: Emitter, masks: Registers, widths: Widths) -> Iterator[list[int]]:
    """Write code that only threads with a cut vector execute, for the registers it is given."""
    body = emitter.body
    cut, after = body.new_label("cut"), body.new_label("after")
    body.branch_if(_is_cut(emitter, masks, widths.vector), cut, after)
    body.begin_block(cut)
    with body.scope():
        yield _not_moved(masks, widths)
    body.branch(after)
    body.begin_block(after)


def _of_cut(emitter: Emitter, masks: Registers, vector: int) -> Registers:
    """The masks of elements of cut vectors, false of whole ones."""
    body, found = emitter.body, []
    for first in range(0, len(masks), vector):
        is_cut = body.binary("xor", I1, masks[first + vector - 1], "true")
        found += [body.binary("and", I1, mask, is_cut) for mask in masks[first:first + vector]]
    return found


def _not_moved(masks: Registers, widths: Widths) -> list[int]:
    """Registers that may still have to move: of each vector all but the last of one mask."""
    return [i for i in range(len(masks)) if i % widths.vector < widths.vector - widths.uniform]


def _at(remaining: list[int], *lists: Registers) -> list[Registers]:
    """The remaining registers of each list."""
    return [[registers[register] for register in remaining] for registers in lists]


def _packed(emitter: Emitter, dtype: DType, elements: Registers, vector: int) -> Registers:
    """Elements as words, a vector at a time."""
    return [word for first in range(0, len(elements), vector)
            for word in pack(emitter, dtype, elements[first:first + vector])]


def _unpacked(emitter: Emitter, dtype: DType, words: Registers, vector: int) -> Registers:
    """The elements of words, a vector at a time."""
    count = words_of(dtype, vector).count
    return [value for first in range(0, len(words), count)
            for value in unpack(emitter, dtype, words[first:first + count], vector)]


def _is_cut(emitter: Emitter, masks: Registers, vector: int) -> str:
    """Whether this thread holds a vector that is neither true nor false as a whole, an i1."""
    body, found = emitter.body, "false"
    for first in range(0, len(masks), vector):
        differs = body.binary("xor", I1, masks[first], masks[first + vector - 1])
        found = differs if found == "false" else body.binary("or", I1, found, differs)
    return found


VECTOR_BYTES = 16  # PTX ISA, "Vectors": the widest access of one thread


@code(offset)
def _(emitter: Emitter, op: Op, pointers: Registers, counts: Registers) -> Registers:
    body, dtype = emitter.body, op.count.type.dtype
    pointer = register_type(op.result.type.dtype)
    element = memory_type(op.result.type.dtype.pointee)
    if _gathers(op):
        row = body.assembly(ptx.APART, body.convert("ptrtoint", pointer, pointers[0], I64))[0]
        pointers = [body.convert("inttoptr", I64, row, pointer)] * len(counts)
    pairs = zip(pointers, counts, strict=True)
    if dtype == int32:
        # registers of all versions matter more than how often one of them widens
        split = emitter.space != "global" and attribute(op, "narrow")
        return [moved_pointer(body, emitter.threads, pointer, element, address, distance, split)
                for address, distance in pairs]
    widen = "sext" if dtype.is_signed else "zext"
    return [element_pointer(body, pointer, element, address,
                            body.convert(widen, memory_type(dtype), distance, I64))
            for address, distance in pairs]


def _gathers(op: Op) -> bool:
    """Whether elements of a row that scalars lead to have places that floats or loads tell.

    Then the row's address is worth a register: each place is added to it by one instruction, not
    to the row's place first, in 64 bits, which libNVVM prefers and which takes four.
    """
    row = made_by(op.pointer, "splat")
    return row is not None and made_by(row.x, "offset") is not None and _is_told(op.count)


def _is_told(place: Value) -> bool:
    """Whether a tile of integers is computed from floats, or from what is loaded."""
    op = place.owner
    if op is None or not place.type.shape:
        return False
    if op.opdef is load or op.name == "cast" and op.x.type.dtype.is_float:
        return True
    return op.opdef.has(ELEMENTWISE) and any(map(_is_told, op.operands))


@code(address)
def _(emitter: Emitter, op: Op, pointers: Registers) -> Registers:
    given = register_type(op.pointer.type.dtype)
    return [emitter.body.convert("ptrtoint", given, pointer, I64) for pointer in pointers]


@code(pointer_at)
def _(emitter: Emitter, op: Op, addresses: Registers) -> Registers:
    made = register_type(op.result.type.dtype)
    return [emitter.body.convert("inttoptr", I64, each, made) for each in addresses]


@code(load)
def _(emitter: Emitter, op: Op, pointers: Registers, masks: Registers | None = None,
      others: Registers | None = None) -> Registers:
    dtype, registers = op.result.type.dtype, len(pointers)
    hints = Hints(attribute(op, "cache"), attribute(op, "eviction"), attribute(op, "volatile"))
    masks = masks or global_memory.always(registers)
    if hints.volatile:  # read once; passes tell the threads that hold copies
        masks = global_memory.with_predicate(emitter, masks, does_work(emitter, op.pointer))
    others = others or global_memory.zeros(dtype, registers)
    width, guarded = access_width(emitter.axis_infos, op), guarded_width(emitter.axis_infos, op)
    _remark(emitter, op, width, guarded)
    if guarded <= width:
        return global_memory.load(emitter, dtype, pointers, masks, others, width, hints)
    if _width(op, partial(emitter.axis_infos.whole_width, op.pointer, op.mask)) == guarded:
        return load_whole(emitter, dtype, pointers, masks, others, guarded, hints)
    widths = Widths(guarded, width)
    return guarded_load(emitter, dtype, pointers, masks, others, widths, hints)


@code(store)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> None:
    masks = global_memory.with_predicate(
        emitter, masks or global_memory.always(len(pointers)), does_work(emitter, op.pointer))
    dtype, hints = op.value.type.dtype, Hints(attribute(op, "cache"),
                                                    attribute(op, "eviction"))
    width, guarded = access_width(emitter.axis_infos, op), guarded_width(emitter.axis_infos, op)
    _remark(emitter, op, width, guarded)
    if op in emitter.awaited:
        loaded = emitter.values[emitter.awaited[op].result]
        values = global_memory.awaiting(emitter, dtype, values, loaded, max(width, guarded))
    if guarded <= width:
        global_memory.store(emitter, dtype, pointers, values, masks, width, hints)
        return
    widths = Widths(guarded, width)
    guarded_store(emitter, dtype, pointers, values, masks, widths, hints)


def _remark(emitter: Emitter, op: Op, width: int, guarded: int) -> None:
    """Remark how many elements threads move at once: in whole vectors, and in cut ones."""
    pointer = op.pointer.type
    if pointer.is_scalar:
        return
    size = element_bits(pointer.dtype.pointee)
    emitter.remarks.append(Remark.of(
        BY_THREADS, op.loc, kind=op.name, array=emitter.arrays_of(op.pointer),
        tile=pointer.of(pointer.dtype.pointee).spelling, way="threads",
        width_bytes=max(width, guarded) * size // 8,
        cut_bytes=width * size // 8 if guarded > width else 0))


def does_work(emitter: Emitter, tile: Value) -> str:
    """Whether this thread acts for the tile's elements that it holds, an i1; "" for always.

    One of the threads that hold copies acts; for a scalar, the first thread of the program.
    """
    if tile.type.is_scalar:
        return emitter.threads.is_first
    return emitter.threads.keeps(replication(tile.type.layout))


def access_width(infos: AxisInfos, op: Op) -> int:
    """Number of neighbouring registers that a load or store may move at once.

    They are neighbours in the layout and in memory, aligned, under one mask.
    """
    return _width(op, partial(infos.access_width, op.pointer, op.mask))


def guarded_width(infos: AxisInfos, op: Op) -> int:
    """Number of neighbouring registers that a load or store may move at once in whole vectors.

    The masks of that many are true up to one of them and false from there on.
    """
    if op.mask is None or op.attrs.get("volatile"):
        return 1
    return _width(op, partial(infos.guarded_width, op.pointer, op.mask))


def _width(op: Op, width_along: Callable[[int], int]) -> int:
    """Number of registers of one access.  width_along: neighbours in memory along an axis."""
    pointer = op.pointer.type
    if pointer.is_scalar:
        return 1
    widths = (min(contiguous_registers(pointer.layout, axis), width_along(axis))
              for axis in range(len(pointer.shape)))
    limit = max(1, VECTOR_BYTES // pointer.dtype.pointee.bytes)
    return min(max(widths), limit, count(pointer))
