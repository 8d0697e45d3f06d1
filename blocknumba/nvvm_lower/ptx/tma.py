"""Inline PTX of TMA: copies of boxes of arrays between global and shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.ptx.mbarrier import ELECT
from blocknumba.nvvm_lower.ptx.memory import SHARED_ADDRESS
from blocknumba.nvvm_lower.target import Capability

MAP_ADDRESS = "i64"  # generic, of the 128 bytes that describe an array
MAX_RANK = 5  # PTX ISA, "cp.async.bulk.tensor": .1d to .5d


@dataclass(frozen=True, slots=True)
class Piece:
    """One of the boxes of a copy.

    offset_bytes: in shared memory, from the start of the copy.  starts: in the array, from the
    first indices of the copy, innermost first.
    """

    offset_bytes: int
    starts: tuple[int, ...]


def _assembly(name: str, text: str, *operands: str,
              needs: Capability = Capability.TMA) -> Assembly:
    return Assembly(name, text, (), operands, "cp.async.bulk.tensor", needs=needs,
                    has_effect=True, touches_memory=True, converges=True)


def _boxes(pieces: tuple[Piece, ...], first: int, copy: str) -> str:
    """Copies of pieces in the lane where p holds.

    first: the operand with the first start.   copy: the instruction, with the names "shared"
    (an offset) and "starts".
    """
    text = ""
    for piece in pieces:
        starts = []
        for axis, start in enumerate(piece.starts):
            starts.append(f"s{axis}" if start else f"${first + axis}")
            text += f" add.s32 s{axis}, ${first + axis}, {start};" if start else ""
        offset = f"+{piece.offset_bytes}" if piece.offset_bytes else ""
        text += f" @p {copy.format(shared=offset, starts=', '.join(starts))}"
    return text


def _declared(rank: int) -> str:
    return f".reg .pred p; .reg .b32 {', '.join(f's{axis}' for axis in range(rank))};"


@cache
def load(pieces: tuple[Piece, ...], blocks: int = 1) -> Assembly:
    """One lane of a whole warp begins to copy boxes to shared memory.

    blocks: of the cluster; the boxes go to the same shared address in each, and count there.
    Operands: shared address, map, mbarrier that counts the bytes, starts (innermost first).
    """
    rank, declared = len(pieces[0].starts), _declared(len(pieces[0].starts))
    modifier, mask, to, needs = "", "", "", Capability.TMA
    if blocks > 1:
        modifier, mask, to, needs = ".multicast::cluster", ", m", f".{blocks}", Capability.MULTICAST
        declared += f" .reg .b16 m; mov.b16 m, {(1 << blocks) - 1};"
    copy = (f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            f"{modifier} [$0{{shared}}], [$1, {{{{{{starts}}}}}}], [$2]{mask};")
    return _assembly(f"tma.load.{rank}d.{len(pieces)}{to}",
                     f"{{ {declared} {ELECT}{_boxes(pieces, 3, copy)} }}",
                     SHARED_ADDRESS, MAP_ADDRESS, SHARED_ADDRESS, *["i32"] * rank, needs=needs)


@cache
def store(pieces: tuple[Piece, ...]) -> Assembly:
    """One lane of a whole warp begins to copy boxes from shared memory, if the predicate holds.

    The boxes are a group of that lane.
    Operands: shared address, map, predicate (the same in all lanes), starts (innermost first).
    """
    rank = len(pieces[0].starts)
    copy = (f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
            " [$1, {{{starts}}}], [$0{shared}];")
    text = (f"{{ {_declared(rank)} .reg .pred q; {ELECT} setp.ne.b32 q, $2, 0; and.pred p, p, q;"
            f"{_boxes(pieces, 3, copy)} @p cp.async.bulk.commit_group; }}")
    return _assembly(f"tma.store.{rank}d.{len(pieces)}", text, SHARED_ADDRESS, MAP_ADDRESS, "i32",
                     *["i32"] * rank)


@cache
def store_wait(reads: bool) -> Assembly:
    """Wait until the groups of this lane have read shared memory, or until all is written."""
    modifiers = ".read" * reads
    return _assembly("tma.store_wait" + modifiers, f"cp.async.bulk.wait_group{modifiers} 0;")


# Prefetch a tensor map, if the predicate in the second operand is not 0.
PREFETCH = _assembly("tma.prefetch", "{ .reg .pred p; setp.ne.b32 p, $1, 0; "
                     "@p prefetch.tensormap [$0]; }", MAP_ADDRESS, "i32")
FENCE = Assembly("fence.async", "fence.proxy.async.shared::cta;", (), (), "membar, fence",
                 needs=Capability.TMA, has_effect=True, touches_memory=True)


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    both = [(Piece(0, (0,) * rank), Piece(1024, (64,) * rank)) for rank in range(1, MAX_RANK + 1)]
    return [*map(load, both), load(both[1], 2), load(both[4], 8), *map(store, both),
            store_wait(True), store_wait(False), PREFETCH, FENCE]
