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
    """Return of a call.

    pc: program counter after the call.   reconvergence: of the caller there.
    results: (from, to) variables that are copied then.
    """

    pc: int
    reconvergence: int
    results: tuple[tuple[Variable, Variable], ...]


@dataclass(slots=True)
class Path:
    """Lanes of a divergent warp that wait for their turn.

    pc, reconvergence: where they go on, and where they reconverge with the others.
    mask: the lanes, None for all.   calls: calls that they are in, outermost first.
    yielded: they have already yielded once to other lanes of their warp at a barrier.
    """

    pc: int
    mask: np.ndarray | None
    reconvergence: int
    calls: tuple[Return, ...]
    yielded: bool = False


@dataclass(eq=False, slots=True)
class Cohort:
    """Some warps of a launch at one program counter.

    warps: their resident numbers, ascending.
    registers: one array of shape (lanes,) for each slot, or (1,) where all lanes agree.
    mask: the active lanes, None for all.
    stack: paths that run once this one reaches its reconvergence point; the last runs first.
    wait: condition that the warps wait for, None if they can run.
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

    def by_lane(self, value: np.ndarray) -> np.ndarray:
        """A value for each lane: (lanes,)."""
        return value if len(value) == self.lanes else np.broadcast_to(value, (self.lanes,))

    def by_warp(self, value: np.ndarray) -> np.ndarray:
        """A value for each lane of each warp: (warps, 32)."""
        return self.by_lane(value).reshape(-1, LANES)

    def active_by_warp(self) -> np.ndarray:
        """Mask of the active lanes: (warps, 32)."""
        if self.mask is None:
            return np.ones((len(self.warps), LANES), bool)
        return self.mask.reshape(-1, LANES)

    def active_lanes(self) -> np.ndarray:
        """Mask of the active lanes: (lanes,)."""
        return np.ones(self.lanes, bool) if self.mask is None else self.mask

    def chosen(self, value: np.ndarray) -> np.ndarray:
        """A value for each active lane."""
        value = self.by_lane(value)
        return value if self.mask is None else value[self.mask]

    # ---- divergence

    def diverge(self, branches: Sequence[tuple[int, np.ndarray]], reconvergence: int) -> None:
        """Diverge into branches (pc, lanes); the first runs first, all reconverge at a point."""
        if reconvergence != self.reconvergence or not self.stack:
            self.stack.append(Path(reconvergence, self.mask, self.reconvergence, self.calls))
            self.reconvergence = reconvergence
        for pc, mask in reversed(branches):
            if pc != reconvergence:
                self.stack.append(Path(pc, mask, reconvergence, self.calls))
        self.next_path()

    def next_path(self) -> bool:
        """Continue with the path on top of the stack; false if there is none."""
        while self.stack:
            path = self.stack.pop()
            if path.mask is None or path.mask.any():
                self.pc, self.mask = path.pc, path.mask
                self.reconvergence, self.calls = path.reconvergence, path.calls
                if self.pc != self.reconvergence:
                    return True
        return False

    def yield_turn(self, pc: int) -> bool:
        """Let the lanes that diverged from these run first, then return to pc; once only."""
        if not self.stack or self.stack[-1].pc == self.reconvergence or self.stack[-1].yielded:
            return False
        other = self.stack.pop()
        self.stack.append(Path(pc, self.mask, self.reconvergence, self.calls, yielded=True))
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
        taken = Cohort(self.launch, self.warps[chosen], registers, self.pc, _cut(self.mask, lanes),
                      self.reconvergence, self.calls,
                      wait=self.wait.take(chosen) if self.wait else None)
        taken.stack = [replace(path, mask=_cut(path.mask, lanes)) for path in self.stack]
        return taken

    def keep(self, chosen: np.ndarray) -> Cohort:
        """Keep only the chosen warps; the others are returned as their own cohort."""
        others, kept = self.take(~chosen), self.take(chosen)
        for name in ("warps", "registers", "mask", "stack", "wait", "lanes", "threads",
                     "blocks"):
            setattr(self, name, getattr(kept, name))
        return others

    def split_off_absent(self) -> None:
        """Move the warps without an active lane to a cohort of their own."""
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
            return np.concatenate((self.by_lane(left), other.by_lane(right)))[lanes]

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
    """The mask of some lanes; None if it is set for all of them."""
    if mask is None:
        return None
    taken = mask[lanes]
    return None if taken.all() else taken
