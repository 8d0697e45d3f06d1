"""cp.async: copies of tiles from global to shared memory while the threads go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import SharedAccess, access
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.ptx import async_copy as ptx
from blocknumba.nvvm_lower.services import global_memory, shared_memory
from blocknumba.nvvm_lower.services.address import indices
from blocknumba.nvvm_lower.services.global_memory import ALWAYS, NEVER, Hints
from blocknumba.tile_ir.ir.types import DType

# Loads of arrays that may be in any memory, before what they loaded is written: their registers
# are those of the versions for other arrays too
IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class Source:
    """Elements in global memory.

    layout: of the tile of pointers.   masks: which elements are read, None for all.
    width: so many neighbouring registers are neighbours in memory, aligned, under one mask.
    predicate: whether this thread copies, an i1; "" for always.
    """

    layout: LinearLayout
    pointers: Registers
    masks: Registers | None
    width: int
    predicate: str


def copy(emitter: Emitter, dtype: DType, source: Source, buffer: str,
         shared: LinearLayout) -> int:
    """Begin to copy to the buffer at a byte offset; where a mask is false, zeros.

    Returns the bytes of one copy; 0 for elements that are too narrow for cp.async, or may be in
    any memory, which go through registers at once.
    """
    bits = element_bits(dtype)
    plan = access(source.layout, shared, bits)
    width = copied_at_once(plan, source.width)
    size_bytes = width * bits // 8
    masks = source.masks or global_memory.always(len(source.pointers))
    if size_bytes not in ptx.SIZES or emitter.space != "global":
        _through_registers(emitter, dtype, replace(source, masks=masks, width=width), buffer, plan)
        return 0
    offsets = indices(emitter.body, emitter.threads, plan.offsets, held=True)
    for run in _runs(plan.groups, width):
        to = shared_memory.element_address(emitter, buffer, offsets[run[0]], dtype)
        origin = global_memory.byte_address(emitter, dtype, source.pointers[run[0]])
        _copy(emitter, size_bytes, to, origin, masks[run[0]], source.predicate)
    return size_bytes


def copied_at_once(plan: SharedAccess, width: int) -> int:
    """Number of elements of one copy: neighbours in both memories; width: as of a Source."""
    width = min(width, plan.vector)
    while width > 1 and not all(_is_run(run) for run in _runs(plan.groups, width)):
        width //= 2
    return width


def _runs(groups: tuple[tuple[int, ...], ...], width: int) -> Iterator[tuple[int, ...]]:
    """Groups of registers, cut into runs of width."""
    for group in groups:
        yield from (group[i:i + width] for i in range(0, len(group), width))


def _is_run(registers: tuple[int, ...]) -> bool:
    """Whether registers follow each other, from a multiple of their number on."""
    first = registers[0]
    return not first % len(registers) and registers == tuple(range(first, first + len(registers)))


def _copy(emitter: Emitter, size_bytes: int, to: str, origin: str, mask: str,
          predicate: str) -> None:
    body = emitter.body
    operands = [to, origin]
    if mask not in ALWAYS:
        operands.append("0" if mask == NEVER else body.select(mask, I32, str(size_bytes), "0"))
    if predicate:
        operands.append(emitter.flag(predicate))
    emitter.assembly(ptx.copy(size_bytes, mask not in ALWAYS, bool(predicate)), *operands)


def _through_registers(emitter: Emitter, dtype: DType, source: Source, buffer: str,
                       plan: SharedAccess) -> None:
    """Load and write, so many at a time; source.width: as of copied_at_once."""
    width, vectors = source.width, plan.vector // source.width
    at_once = len(plan.groups) if emitter.space == "global" else max(1, IN_FLIGHT // vectors)
    written = list(zip(plan.groups, shared_memory.leaders(emitter, plan), strict=True))
    for first in range(0, len(written), at_once):
        some = written[first:first + at_once]
        registers = [register for group, _ in some for register in group]
        pointers, masks = ([each[register] for register in registers]
                           for each in (source.pointers, source.masks))
        loaded = iter(global_memory.load(emitter, dtype, pointers, masks, global_memory.zeros(
            dtype, len(registers)), width, Hints()))
        for group, index in some:
            shared_memory.write_vector(emitter, dtype, buffer, index,
                                       list(islice(loaded, len(group))), source.predicate)
