"""Masked loads and stores of vectors that a bound may cut.

Where the mask of an access is a bound on its axis, all but one of the vectors along that axis are
true as a whole or false as a whole.  Vectors that are true move at once, without a branch; only
threads that hold one that is cut go on to move elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I1
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.services.global_memory import Hints
from blocknumba.nvvm_lower.services.words import pack, unpack, words_of
from blocknumba.tile_ir.types import DType


@dataclass(frozen=True, slots=True)
class Widths:
    """How registers of an access belong together, in numbers of neighbours.

    vector: they are neighbours in memory, aligned; their masks are true up to one of them and
        false from there on.
    part: they have one mask.
    """

    vector: int
    part: int


def load(emitter: Emitter, dtype: DType, pointers: Registers, masks: Registers, others: Registers,
         widths: Widths, hints: Hints) -> Registers:
    """The elements at pointers; where masks are false, others.

    Threads that hold a cut vector read the elements before its last part again.
    """
    body, vector = emitter.body, widths.vector
    whole = [element for first in range(0, len(masks), vector)
             for element in global_memory.load(
                 emitter, dtype, pointers[first:first + vector], _whole(masks, first, vector),
                 others[first:first + vector], vector, hints)]
    words = _packed(emitter, dtype, whole, vector)
    before, cut, after = body.block, body.new_label("cut"), body.new_label("after")
    body.branch_if(_is_cut(emitter, masks, vector), cut, after)
    body.place(cut)
    with body.scope():
        places = _not_moved(masks, widths)
        elements = list(whole)
        again = global_memory.load(emitter, dtype, *_at(places, pointers, masks, others),
                                   widths.part, hints)
        for place, element in zip(places, again, strict=True):
            elements[place] = element
        parts = _packed(emitter, dtype, elements, vector)
    body.branch(after)
    body.place(after)
    merged = []
    for word, part in zip(words, parts, strict=True):
        phi = body.phi(words_of(dtype, vector).type)
        phi.add(word, before)
        phi.add(part, cut)
        merged.append(phi.name)
    count = words_of(dtype, vector).count
    return [value for first in range(0, len(merged), count)
            for value in unpack(emitter, dtype, merged[first:first + count], vector)]


def store(emitter: Emitter, dtype: DType, pointers: Registers, values: Registers,
          masks: Registers, widths: Widths, hints: Hints) -> None:
    """Write values to pointers where masks are true."""
    body, vector = emitter.body, widths.vector
    for first in range(0, len(masks), vector):
        global_memory.store(emitter, dtype, pointers[first:first + vector],
                            values[first:first + vector], _whole(masks, first, vector), vector,
                            hints)
    cut, after = body.new_label("cut"), body.new_label("after")
    body.branch_if(_is_cut(emitter, masks, vector), cut, after)
    body.place(cut)
    with body.scope():
        places = _not_moved(masks, widths)
        global_memory.store(emitter, dtype, *_at(places, pointers, values, masks), widths.part,
                            hints)
    body.branch(after)
    body.place(after)


def _whole(masks: Registers, first: int, vector: int) -> Registers:
    """The masks under which a vector moves at once: that of its last element."""
    return [masks[first + vector - 1]] * vector


def _not_moved(masks: Registers, widths: Widths) -> list[int]:
    """The registers that a whole vector's mask does not speak for: all but its last part."""
    return [i for i in range(len(masks)) if i % widths.vector < widths.vector - widths.part]


def _at(places: list[int], *lists: Registers) -> list[Registers]:
    """Each list's registers at some places."""
    return [[registers[place] for place in places] for registers in lists]


def _packed(emitter: Emitter, dtype: DType, elements: Registers, vector: int) -> Registers:
    """Elements as words, a vector at a time."""
    return [word for first in range(0, len(elements), vector)
            for word in pack(emitter, dtype, elements[first:first + vector])]


def _is_cut(emitter: Emitter, masks: Registers, vector: int) -> str:
    """Whether this thread holds a vector that is neither true nor false as a whole, an i1."""
    body, found = emitter.body, "false"
    for first in range(0, len(masks), vector):
        differs = body.binary("xor", I1, masks[first], masks[first + vector - 1])
        found = differs if found == "false" else body.binary("or", I1, found, differs)
    return found
