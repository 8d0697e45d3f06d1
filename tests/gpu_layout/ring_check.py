"""Static check that the rings of a kernel balance: no role waits forever.

    producer    wait empty, expect full    wait empty, expect full    ...
    consumer    wait full,  arrive empty   wait full,  arrive empty   ...

Both roles run the same control flow.  The check requires that they use the same rings at the same
points of it, that every filled slot is waited for, and that every slot that is waited for is
released once.  Then each wait of a role is for something that the other role does, in that order.

In a single-role schedule, every iteration of a loop fills, awaits and releases each ring equally
often, and before the loop as many slots are filled as iterations are fetched ahead.

The blocks of a cluster run the same roles.  Where they fill each other's slots, `empty` counts the
warps of all blocks, and a release reaches all blocks.  No block begins before the barriers of all
are ready, and none ends before all have done their releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from blocknumba.gpu_layout.async_copies.ops import (
    blocks_done, mbarrier_arrive, mbarrier_expect, mbarrier_wait, mbarriers_ready, slot, tma_load,
    warp_roles,
)
from blocknumba.gpu_layout.placement.planner import tile_bytes
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.uses import is_loop

# Ring events of a region: (ring,) for a wait or a fill, (name of op, *traces) for control flow.
Trace = tuple[tuple, ...]


def ring_problems(fn: Function, num_warps: int) -> list[str]:
    """Problems of the rings of a function; empty if they balance, or if it has none.

    num_warps: of the program in each block.
    """
    roles = [op for op in walk(fn.body) if op.opdef is warp_roles]
    if roles:
        problems = [problem for op in roles for problem in _Check(op).problems]
    else:
        problems = _problems_of_single_role(fn)
    return problems + _problems_among_blocks(fn, num_warps)


class _Check:
    """Check of one warp_roles op."""

    def __init__(self, roles: Op):
        consumer, producer = roles.regions
        self.problems: list[str] = []
        self._empty_of: dict[Op, Op] = {}
        fills = self._fills(producer)
        waits = self._waits(consumer)
        if fills != waits:
            self.problems.append(f"the producer fills {fills}, the consumers wait for {waits}")
        if self._releases(consumer):
            self.problems.append("a slot is released late that no loop waited for")

    def _fills(self, region: Region) -> Trace:
        """The fills of a region, each a wait for empty, an expect, and copies of these bytes."""
        trace: list[tuple] = []
        acquired: Op | None = None
        expected = 0
        for op in region.ops:
            if op.opdef is mbarrier_wait:
                acquired = _ring(op.barrier)
            elif op.opdef is mbarrier_expect:
                full = _ring(op.barrier)
                if acquired is None or self._empty_of.setdefault(full, acquired) is not acquired:
                    self.problems.append("a slot is filled that was not waited for")
                expected, acquired = op.attrs["size_bytes"], None
                trace.append((full,))
            elif op.opdef is tma_load:
                # each block fetches a shard
                expected -= tile_bytes(op.buffer.type) * attribute(op, "blocks")
            trace += self._within(op, self._fills)
        if expected:
            self.problems.append(f"{expected} more bytes are expected than come")
        return tuple(trace)

    def _waits(self, region: Region) -> Trace:
        """The waits of a region."""
        trace: list[tuple] = []
        for op in region.ops:
            if op.opdef is mbarrier_wait:
                trace.append((_ring(op.barrier),))
            trace += self._within(op, self._waits)
        return tuple(trace)

    @staticmethod
    def _within(op: Op, trace_of) -> Trace:
        """The entry of a control op in a trace; none if its regions have no ring events."""
        traces = tuple(trace_of(inner) for inner in op.regions)
        return ((op.name, *traces),) if any(traces) else ()

    def _releases(self, region: Region) -> list[Op]:
        """Check that a region releases what it waits for; return the rings that it releases late.

        A loop may release a slot one iteration late, under a condition; then its last slot is
        released after the loop, under another condition.
        """
        balance: dict[Op, int] = {}
        owed: list[Op] = []
        late: list[Op] = []
        for op in region.ops:
            if op.opdef is mbarrier_wait:
                empty = self._empty_of.get(_ring(op.barrier))
                balance[empty] = balance.get(empty, 0) + 1
            elif op.opdef is mbarrier_arrive:
                empty, is_late = _ring(op.barrier), op.condition is not None
                if is_late and empty in owed:
                    owed.remove(empty)
                    continue
                balance[empty] = balance.get(empty, 0) - 1
                late += [empty] * is_late
            for inner in op.regions:
                left = self._releases(inner)
                owed += left
                if left and not is_loop(op):
                    self.problems.append("a slot is released late that no loop waited for")
        if any(balance.values()) or owed:
            self.problems.append("a region does not release each slot once")
        return late


def _problems_of_single_role(fn: Function) -> list[str]:
    """Problems of a single-role schedule, in which the warps that read slots also fill them."""
    loops = [op for op in walk(fn.body) if is_loop(op)]
    within = [_counts(walk(loop.regions[0])) for loop in loops]
    finishing, problems = _finishing_releases(fn, loops)
    whole = _counts(op for op in walk(fn.body) if op not in finishing)
    for ring, (fills, waits, releases) in whole.items():
        ahead = ring.attrs["copies"] - 1
        for counts in within:
            in_loop = counts.get(ring, (0, 0, 0))
            if len(set(in_loop)) > 1:
                problems.append(f"an iteration fills, awaits and releases {in_loop} slots")
            fills -= in_loop[0] * ahead
        if not fills == waits == releases:
            problems.append(f"{fills} fetches, {waits} waits and {releases} releases")
    return problems


def _finishing_releases(fn: Function, loops: list[Op]) -> tuple[set[Op], list[str]]:
    """The releases of what a loop's last iteration read; iterations release late, on a condition.

    And problems: each late release needs one after its loop, and only it.
    """
    inside = {op for loop in loops for op in walk(loop.regions[0])}
    late = [op for op in walk(fn.body) if op.opdef is mbarrier_arrive and op.condition]
    finishing = {op for op in late if op not in inside}
    of_loops = Counter(_ring(op.barrier) for op in late if op in inside)
    if of_loops != Counter(_ring(op.barrier) for op in finishing):
        return finishing, ["releases of last iterations do not match those of loops"]
    return finishing, []


def _counts(ops: Iterable[Op]) -> dict[Op, tuple[int, int, int]]:
    """Per ring, keyed by the allocation of its `full`: numbers of fills, waits and releases.

    A barrier that is waited for before a fill is an `empty`; the others are `full`.
    """
    ops = list(ops)
    fills, waits, releases = (
        Counter(_ring(op.barrier) for op in ops if op.opdef is opdef)
        for opdef in (mbarrier_expect, mbarrier_wait, mbarrier_arrive))
    empty_of = _empty_of(ops)
    fulls = dict.fromkeys((*empty_of, *waits))
    for empty in empty_of.values():
        fulls.pop(empty, None)
    return {full: (fills[full], waits[full], releases[empty_of.get(full)]) for full in fulls}


def _empty_of(ops: Iterable[Op]) -> dict[Op, Op]:
    """Per allocation of `full`, the allocation of the `empty` that is waited for before a fill."""
    found: dict[Op, Op] = {}
    waited: Op | None = None
    for op in ops:
        if op.opdef is mbarrier_wait:
            waited = _ring(op.barrier)
        elif op.opdef is mbarrier_expect:
            found[_ring(op.barrier)] = waited
    return found


def _problems_among_blocks(fn: Function, num_warps: int) -> list[str]:
    """Problems of rings that the blocks of a cluster fill for each other.

    A block that fills slots of others must wait until the warps of all blocks have released them.
    """
    ops, problems = list(walk(fn.body)), []
    reach = _reach(ops)
    for empty, blocks in reach.items():
        arrivals = attribute(empty, "arrivals")
        if arrivals != num_warps * blocks:
            problems.append(f"a slot that {blocks} blocks of {num_warps} warps read is empty after "
                            f"{arrivals} releases")
    for op in ops:
        blocks = reach.get(_ring(op.barrier)) if op.opdef is mbarrier_arrive else None
        if blocks is not None and attribute(op, "blocks") != blocks:
            problems.append(f"a slot that {blocks} blocks fill is released in "
                            f"{attribute(op, 'blocks')}")
    max_blocks = max(reach.values(), default=1)
    begins = [attribute(op, "blocks") for op in ops if op.opdef in (mbarriers_ready, warp_roles)]
    if max_blocks > 1 and begins != [max_blocks]:
        problems.append("a block may begin before the barriers of the others are ready")
    if max_blocks > 1 and not _ends_with_others(fn):
        problems.append("a block may end while others reach it")
    return problems


def _reach(ops: Iterable[Op]) -> dict[Op, int]:
    """Per allocation of `empty`, the number of blocks that fill each other's slots of its ring."""
    ops = list(ops)
    filled: dict[Op, int] = {}
    for op in ops:
        if op.opdef is tma_load:
            full = _ring(op.barrier)
            filled[full] = max(filled.get(full, 1), attribute(op, "blocks"))
    return {empty: filled.get(full, 1) for full, empty in _empty_of(ops).items()}


def _ends_with_others(fn: Function) -> bool:
    """Whether the warps that read slots wait for the other blocks after their last ring event."""
    roles = [op for op in fn.body.ops if op.opdef is warp_roles]
    ops = roles[0].regions[0].ops if roles else fn.body.ops
    indices = [index for index, op in enumerate(ops) if op.opdef is blocks_done]
    if len(indices) != 1:
        return False
    after = Region((), ops[indices[0] + 1:])
    return not any(op.opdef in (mbarrier_wait, mbarrier_arrive) for op in walk(after))


def _ring(barrier: Value) -> Op:
    """The allocation of a barrier object."""
    owner = barrier.owner
    while owner.opdef is slot:
        owner = owner.ring.owner
    return owner
