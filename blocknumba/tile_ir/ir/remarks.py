"""Remarks: what a pass or the lowering did with an op, or why it did nothing better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blocknumba.errors import Loc

# Of an access to global memory: by the copy engine; why not; why a load is not begun early;
# how threads do it.
TMA, NOT_TMA, NOT_EARLY, BY_THREADS = "tma", "not_tma", "not_early", "by_threads"
NOT_IN_ORDER = "it is not in the order of what is fetched"  # of what is also loaded by threads
# Of a dot: the instruction that does it; why it is not wgmma.
DOT, NOT_WGMMA = "dot", "not_wgmma"
# Of a buffer with several slots; of warps that only fetch; of a program that stays in one block.
RING, PRODUCERS, NOT_PARTITIONED = "ring", "producers", "not_partitioned"


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark.

    topic: one of the names above.
    loc: the op's location in the user's source, with the calls around it.
    details: what the topic has to tell, as plain values; a reason is under "reason".
    """

    topic: str
    loc: Loc
    details: Mapping[str, object] = field(default_factory=dict)

    @staticmethod
    def of(topic: str, loc: Loc, **details: object) -> Remark:
        """A remark from its details."""
        return Remark(topic, loc, details)

    @property
    def reason(self) -> str:
        """Why something was not done; empty where the remark gives no reason."""
        return self.details.get("reason", "")
