"""Control-flow graphs of Numba IR blocks: order, dominators, loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from numba.core import ir

Label = int


def successors(block: ir.Block) -> tuple[Label, ...]:
    """Labels that a block may jump to, without repetition."""
    last = block.body[-1]
    if isinstance(last, ir.Jump):
        return (last.target,)
    if isinstance(last, ir.Branch):
        return (last.truebr,) if last.truebr == last.falsebr else (last.truebr, last.falsebr)
    return ()


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: every way in goes through header.

    body: labels in the loop, the header included, those of inner loops too.
    exits: targets outside of the loop, in reverse postorder.
    """

    header: Label
    body: frozenset[Label]
    exits: tuple[Label, ...]


class Graph:
    """The blocks that can be reached from the entry, and what follows from their edges."""

    def __init__(self, blocks: Mapping[Label, ir.Block], entry: Label):
        self.entry = entry
        self.successors: dict[Label, tuple[Label, ...]] = {}
        self.order = self._reverse_postorder(blocks)
        self.index = {label: i for i, label in enumerate(self.order)}
        self.predecessors: dict[Label, list[Label]] = {label: [] for label in self.order}
        for label in self.order:
            for target in self.successors[label]:
                self.predecessors[target].append(label)

    def is_back_edge(self, source: Label, target: Label) -> bool:
        """Whether an edge returns to the header of a loop that source is in."""
        return self.index[target] <= self.index[source]

    def entries(self, label: Label) -> list[Label]:
        """Predecessors, back edges left out."""
        return [p for p in self.predecessors[label] if not self.is_back_edge(p, label)]

    @cached_property
    def dominator(self) -> dict[Label, Label]:
        """Immediate dominator of each block; of the entry, itself.

        Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm".
        """
        dominator = {self.entry: self.entry}
        changed = True
        while changed:
            changed = False
            for label in self.order[1:]:
                known = [p for p in self.predecessors[label] if p in dominator]
                best = known[0]
                for other in known[1:]:
                    best = self._common(dominator, best, other)
                if dominator.get(label) != best:
                    dominator[label] = best
                    changed = True
        return dominator

    @cached_property
    def children(self) -> dict[Label, list[Label]]:
        """The dominator tree, children in reverse postorder."""
        tree: dict[Label, list[Label]] = {label: [] for label in self.order}
        for label in self.order[1:]:
            tree[self.dominator[label]].append(label)
        return tree

    @cached_property
    def frontier(self) -> dict[Label, set[Label]]:
        """Dominance frontier of each block."""
        frontier: dict[Label, set[Label]] = {label: set() for label in self.order}
        for label in self.order:
            if len(self.predecessors[label]) < 2:
                continue
            for runner in self.predecessors[label]:
                while runner != self.dominator[label]:
                    frontier[runner].add(label)
                    runner = self.dominator[runner]
        return frontier

    def dominates(self, above: Label, below: Label) -> bool:
        """Whether every path from the entry to below passes above."""
        while self.index[below] > self.index[above]:
            below = self.dominator[below]
        return below == above

    @cached_property
    def loops(self) -> dict[Label, Loop]:
        """Header -> natural loop."""
        latches: dict[Label, list[Label]] = {}
        for label in self.order:
            for target in self.successors[label]:
                if self.is_back_edge(label, target):
                    assert self.dominates(target, label), "irreducible control flow"
                    latches.setdefault(target, []).append(label)
        return {header: self._loop(header, sources) for header, sources in latches.items()}

    def _loop(self, header: Label, latches: list[Label]) -> Loop:
        body, pending = {header}, list(latches)
        while pending:
            label = pending.pop()
            if label not in body:
                body.add(label)
                pending += self.predecessors[label]
        exits = {t for label in body for t in self.successors[label] if t not in body}
        return Loop(header, frozenset(body), tuple(sorted(exits, key=self.index.__getitem__)))

    def _common(self, dominator: dict[Label, Label], a: Label, b: Label) -> Label:
        while a != b:
            while self.index[a] > self.index[b]:
                a = dominator[a]
            while self.index[b] > self.index[a]:
                b = dominator[b]
        return a

    def _reverse_postorder(self, blocks: Mapping[Label, ir.Block]) -> list[Label]:
        order: list[Label] = []
        pending: list[tuple[Label, Iterator[Label]]] = []

        def enter(label: Label) -> None:
            self.successors[label] = successors(blocks[label])
            # the last successor first: then a loop's body precedes what follows the loop
            pending.append((label, iter(reversed(self.successors[label]))))

        enter(self.entry)
        while pending:
            label, rest = pending[-1]
            target = next((t for t in rest if t not in self.successors), None)
            if target is None:
                order.append(label)
                pending.pop()
            else:
                enter(target)
        order.reverse()
        return order


def merge_straight_lines(blocks: dict[Label, ir.Block], entry: Label) -> None:
    """Drop unreachable blocks, and join each block to the only one that jumps to it."""
    graph = Graph(blocks, entry)
    for label in blocks.keys() - graph.index.keys():
        del blocks[label]
    for label in graph.order:
        if label not in blocks:
            continue
        block = blocks[label]
        while isinstance(last := block.body[-1], ir.Jump):
            target = last.target
            if target in (label, entry) or len(graph.predecessors[target]) != 1:
                break
            block.body[-1:] = blocks.pop(target).body
