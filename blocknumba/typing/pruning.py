"""Removal of the edges that type inference found no way to take."""

from __future__ import annotations

from collections.abc import Set

from numba.core import ir

from blocknumba.typing.graph import Graph, Label, successors
from blocknumba.typing.ssa import phis


def keep_live_edges(blocks: dict[Label, ir.Block], graph: Graph,
                    live: Set[tuple[Label, Label]]) -> Graph:
    """Make jumps of branches that go one way only, and drop what is not reached any more."""
    for label in graph.order:
        block = blocks[label]
        last = block.body[-1]
        taken = [t for t in successors(block) if (label, t) in live]
        if isinstance(last, ir.Branch) and len(taken) == 1:
            block.body[-1] = ir.Jump(taken[0], last.loc)
    pruned = Graph(blocks, graph.entry)
    for label in blocks.keys() - pruned.index.keys():
        del blocks[label]
    for label in pruned.order:
        known = set(pruned.predecessors[label])
        for phi in phis(blocks[label]):
            ways = zip(phi.value.incoming_blocks, phi.value.incoming_values)
            kept = [way for way in ways if way[0] in known]
            phi.value._kws["incoming_blocks"] = [source for source, _ in kept]
            phi.value._kws["incoming_values"] = [value for _, value in kept]
    return pruned
