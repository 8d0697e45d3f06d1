"""Reconvergence points of divergent branches: immediate post-dominators."""

from __future__ import annotations

from collections.abc import Sequence

EXIT = -1  # program counter of threads that have ended


def reconvergence_points(successors: Sequence[Sequence[int]]) -> list[int]:
    """The immediate post-dominator of each instruction; EXIT where only the end is common.

    successors: of each instruction, EXIT for one that ends the function.
    Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reverse graph.
    """
    order = _postorder_of_reverse(successors)
    rank = {node: index for index, node in enumerate(order)}
    parent: dict[int, int] = {EXIT: EXIT}
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == EXIT:
                continue
            known = [successor for successor in successors[node] if successor in parent]
            common = known[0]
            for successor in known[1:]:
                common = _common_ancestor(common, successor, parent, rank)
            if parent.get(node) != common:
                parent[node] = common
                changed = True
    return [parent.get(node, EXIT) for node in range(len(successors))]


def _postorder_of_reverse(successors: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that reach EXIT, EXIT last."""
    predecessors: dict[int, list[int]] = {}
    for node, following in enumerate(successors):
        for successor in following:
            predecessors.setdefault(successor, []).append(node)
    order: list[int] = []
    seen = {EXIT}
    pending = [(EXIT, iter(predecessors.get(EXIT, ())))]
    while pending:
        node, rest = pending[-1]
        unseen = next((candidate for candidate in rest if candidate not in seen), None)
        if unseen is None:
            order.append(node)
            pending.pop()
            continue
        seen.add(unseen)
        pending.append((unseen, iter(predecessors.get(unseen, ()))))
    return order


def _common_ancestor(left: int, right: int, parent: dict[int, int], rank: dict[int, int]) -> int:
    """The closest common ancestor of two nodes in the tree of post-dominators so far."""
    while left != right:
        while rank[left] < rank[right]:
            left = parent[left]
        while rank[right] < rank[left]:
            right = parent[right]
    return left
