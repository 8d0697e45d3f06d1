"""Remarks: decisions of passes and of the lowering on single ops, with reasons.

    Remark("not_tma", loc, {"kind": "load", "array": "x", "reason": "the load is volatile"})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blocknumba.errors import Loc

# Of an access to global memory: it uses TMA; why it does not; why a load is not begun early; how
# threads do it.
TMA, NOT_TMA, NOT_EARLY, BY_THREADS = "tma", "not_tma", "not_early", "by_threads"
NOT_RAISED = "not_raised"  # Of an access by pointers: why they are those of no view.
NOT_IN_ORDER = "it is not in the order of what is fetched"  # of what is also loaded by threads
# Of a dot: its instruction; why it is not wgmma.
DOT, NOT_WGMMA = "dot", "not_wgmma"
# Of a buffer with several slots; of producer warps; of a program that is not partitioned over a
# cluster.
RING, PRODUCERS, NOT_PARTITIONED = "ring", "producers", "not_partitioned"
# Of a scalar function: it computes in float64, though nothing that it is given has 64 bits.
DOUBLES = "doubles"


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark.

    topic: one of the names above.
    loc: the op's location in the user's source, with the calls around it.
    details: of the topic, as plain values; a reason is under "reason".
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
        """The reason why something was not done; empty where the remark has none."""
        return self.details.get("reason", "")
