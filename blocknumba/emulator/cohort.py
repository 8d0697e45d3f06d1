"""Warps that execute the same instruction together, as one NumPy batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.emulator.control_flow import EXIT
from blocknumba.emulator.syntax import Variable
from blocknumba.emulator.waits import Wait

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch

LANES = 32  # threads of a warp; CUDA Programming Guide, "SIMT Architecture"
_LANE_NUMBERS = np.arange(LANES)


@dataclass(frozen=True, slots=True)
class Return:
    """Where a call goes back to.

    reconvergence: of the caller there.   results: (from, to) variables that are copied then.
    """

    pc: int
    reconvergence: int
    results: tuple[tuple[Variable, Variable], ...]


@dataclass(slots=True)
class Path:
    """Lanes that wait for their turn: where they go on, and where they meet the others.

    mask: which lanes, None for all.   calls: those that they are in, outermost first.
    gave_way: they have waited once already for lanes of their warp at a barrier.
    """

    pc: int
    mask: np.ndarray | None
    reconvergence: int
    calls: tuple[Return, ...]
    gave_way: bool = False


@dataclass(eq=False, slots=True)
class Cohort:
    """Some warps of a launch at one program counter.

    warps: their resident numbers, ascending.
    registers: one array of shape (lanes,) for each slot, or (1,) where all lanes agree.
    mask: the active lanes, None for all.
    stack: paths that run when this one reaches reconvergence.
    wait: what the warps wait for, None when they can run.
    """

    launch: Launch
    warps: np.ndarray
    registers: list[np.ndarray]
    pc: int
    mask: np.ndarray | None = None
    reconvergence: int = EXIT
    calls: tuple[Return, ...] = ()
    stack: list[Path] = field(default_factory=list)
    wait: Wait | None = None
    fuel: int = 0
    lanes: int = field(init=False)
    threads: np.ndarray = field(init=False)
    blocks: np.ndarray = field(init=False)

    def __post_init__(self):
        self.lanes = LANES * len(self.warps)
        self.threads = (self.warps[:, None] * LANES + _LANE_NUMBERS).ravel()
        self.blocks = self.launch.block_of_thread[self.threads]

    # ---- values

    def spread(self, value: np.ndarray) -> np.ndarray:
        """A value for each lane: (lanes,)."""
        return value if len(value) == self.lanes else np.broadcast_to(value, (self.lanes,))

    def by_warp(self, value: np.ndarray) -> np.ndarray:
        """A value for each lane of each warp: (warps, 32)."""
        return self.spread(value).reshape(-1, LANES)

    def active_by_warp(self) -> np.ndarray:
        """Which lanes are active: (warps, 32)."""
        if self.mask is None:
            return np.ones((len(self.warps), LANES), bool)
        return self.mask.reshape(-1, LANES)

    def active_lanes(self) -> np.ndarray:
        """Which lanes are active: (lanes,)."""
        return np.ones(self.lanes, bool) if self.mask is None else self.mask

    def chosen(self, value: np.ndarray) -> np.ndarray:
        """A value for each active lane."""
        value = self.spread(value)
        return value if self.mask is None else value[self.mask]

    # ---- divergence

    def diverge(self, ways: Sequence[tuple[int, np.ndarray]], meeting: int) -> None:
        """Part: (pc, lanes) for each way, the first goes first; they meet again at meeting."""
        if meeting != self.reconvergence or not self.stack:
            self.stack.append(Path(meeting, self.mask, self.reconvergence, self.calls))
            self.reconvergence = meeting
        for pc, mask in reversed(ways):
            if pc != meeting:
                self.stack.append(Path(pc, mask, meeting, self.calls))
        self.next_path()

    def next_path(self) -> bool:
        """Go on with the lanes that waited; false when there are none left."""
        while self.stack:
            path = self.stack.pop()
            if path.mask is None or path.mask.any():
                self.pc, self.mask = path.pc, path.mask
                self.reconvergence, self.calls = path.reconvergence, path.calls
                if self.pc != self.reconvergence:
                    return True
        return False

    def give_way(self, pc: int) -> bool:
        """Let the lanes go first that parted from these, and come back to pc; once only."""
        if not self.stack or self.stack[-1].pc == self.reconvergence or self.stack[-1].gave_way:
            return False
        other = self.stack.pop()
        self.stack.append(Path(pc, self.mask, self.reconvergence, self.calls, gave_way=True))
        self.pc, self.mask = other.pc, other.mask
        self.reconvergence, self.calls = other.reconvergence, other.calls
        return True

    def retire(self) -> bool:
        """End the active lanes; false when no lane is left."""
        self.launch.retire(self)
        if self.mask is None:
            return False
        for path in self.stack:
            path.mask = ~self.mask if path.mask is None else path.mask & ~self.mask
        return self.next_path()

    # ---- splitting

    def take(self, chosen: np.ndarray) -> Cohort:
        """A cohort of the warps that are chosen, a bool for each, in the same state."""
        lanes = np.repeat(chosen, LANES)
        registers = [value if len(value) == 1 else value[lanes] for value in self.registers]
        part = Cohort(self.launch, self.warps[chosen], registers, self.pc, _cut(self.mask, lanes),
                      self.reconvergence, self.calls,
                      wait=self.wait.take(chosen) if self.wait else None)
        part.stack = [replace(path, mask=_cut(path.mask, lanes)) for path in self.stack]
        return part

    def keep(self, chosen: np.ndarray) -> Cohort:
        """Keep only the chosen warps; the others are returned as their own cohort."""
        others, kept = self.take(~chosen), self.take(chosen)
        for name in ("warps", "registers", "mask", "stack", "wait", "lanes", "threads",
                     "blocks"):
            setattr(self, name, getattr(kept, name))
        return others

    def part_from_absent(self) -> None:
        """Let the warps without an active lane go their own way, so that all here are present."""
        if self.mask is None:
            return
        present = self.mask.reshape(-1, LANES).any(1)
        if not present.all():
            absent = self.keep(present)
            if absent.next_path():
                self.launch.scheduler.add(absent)

    @property
    def state(self) -> tuple:
        """Cohorts of equal state can be joined."""
        return (self.pc, self.reconvergence, self.calls,
                tuple([(path.pc, path.reconvergence, path.calls) for path in self.stack]))

    def join(self, other: Cohort) -> Cohort:
        """One cohort of two that have the same state."""
        warps = np.concatenate((self.warps, other.warps))
        order = np.argsort(warps)
        lanes = (order[:, None] * LANES + _LANE_NUMBERS).ravel()

        def merge(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            if left is right or (len(left) == 1 == len(right) and left[0] == right[0]):
                return left
            return np.concatenate((self.spread(left), other.spread(right)))[lanes]

        def merge_masks(left: np.ndarray | None, right: np.ndarray | None) -> np.ndarray | None:
            if left is None and right is None:
                return None
            full = np.ones(1, bool)
            return merge(full if left is None else left, full if right is None else right)

        registers = [merge(*pair) for pair in zip(self.registers, other.registers)]
        joined = Cohort(self.launch, warps[order], registers, self.pc,
                        merge_masks(self.mask, other.mask), self.reconvergence, self.calls)
        joined.stack = [replace(mine, mask=merge_masks(mine.mask, theirs.mask))
                        for mine, theirs in zip(self.stack, other.stack)]
        return joined


def _cut(mask: np.ndarray | None, lanes: np.ndarray) -> np.ndarray | None:
    """The part of a mask; None when all of it is set."""
    if mask is None:
        return None
    part = mask[lanes]
    return None if part.all() else part
