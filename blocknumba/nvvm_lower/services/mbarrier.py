"""Barriers in shared memory that count arrivals and bytes."""

from __future__ import annotations

from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.ptx import mbarrier as ptx
from blocknumba.nvvm_lower.services.shared_memory import address_of


def initialize(emitter: Emitter, ring: str, copies: int, arrivals: int) -> None:
    """The first thread makes a ring of mbarriers at a byte offset."""
    row = ptx.initialize(copies, arrivals)
    emitter.assembly(row, address_of(emitter, ring), emitter.flag(emitter.threads.is_first))


def wait(emitter: Emitter, barrier: str, phase: str) -> None:
    """Wait until a phase of the mbarrier at a byte offset is over."""
    emitter.assembly(ptx.WAIT, address_of(emitter, barrier), phase)


def arrive(emitter: Emitter, barrier: str, condition: str, blocks: int) -> None:
    """One arrival of each warp, where condition, "" or an i1, holds; in so many blocks."""
    conditions = [emitter.flag(condition)] if condition else []
    is_conditional = bool(condition)
    row = ptx.arrive_in_all(blocks, is_conditional) if blocks > 1 else ptx.arrive(is_conditional)
    emitter.assembly(row, address_of(emitter, barrier), *conditions)


def expect(emitter: Emitter, barrier: str, size_bytes: int) -> None:
    """One arrival of this warp, and that so many bytes will come."""
    emitter.assembly(ptx.expect(size_bytes), address_of(emitter, barrier))
