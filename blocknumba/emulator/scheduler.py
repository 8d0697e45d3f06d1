"""The scheduler: picks the cohort that runs next, and finds deadlocks."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.errors import DeadlockError, EmulatorError

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch

# Backward branches that a cohort takes before others get their turn: a loop that polls must not
# starve what it polls for.
TURN = 64


class Scheduler:
    """The cohorts of the resident blocks.

    Cohorts run in the order in which they became able to, or in a random one with a seed.
    """

    def __init__(self, launch: Launch, seed: int | None, instruction_limit: int):
        self.launch = launch
        self.runnable: list[Cohort] = []
        self.waiting: list[Cohort] = []
        self.random = None if seed is None else random.Random(seed)
        self.instructions_left = instruction_limit

    def add(self, cohort: Cohort) -> None:
        """Make a cohort runnable, joined with one in the same state if there is one."""
        self.runnable.append(self._joined(cohort))

    def _joined(self, cohort: Cohort) -> Cohort:
        state = cohort.state
        for index, other in enumerate(self.runnable):
            if other.pc == cohort.pc and other.state == state:
                del self.runnable[index]
                return self._joined(other.join(cohort))
        return cohort

    def elapsed(self) -> int:
        """A clock for the kernel."""
        return sum(self.launch.counters.executed)

    def run(self) -> None:
        """Run until every warp has ended.

        Errors: DeadlockError when all warps that are left wait; any error of an instruction.
        """
        while self.runnable or self.waiting:
            if not self.runnable and not self._wake():
                raise self._deadlock()
            index = self.random.randrange(len(self.runnable)) if self.random else 0
            cohort = self.runnable.pop(index)
            if not self._turn(cohort):
                continue
            if cohort.wait is not None:
                self.waiting.append(cohort)
                self._wake()
            else:
                self.add(cohort)

    def _turn(self, cohort: Cohort) -> bool:
        """Run a cohort until it waits, ends or has had its turn; false when it ended."""
        code, executed = self.launch.code, self.launch.counters.executed
        cohort.fuel = TURN
        steps = 0
        pc = cohort.pc
        try:
            while True:
                pc = cohort.pc
                if pc == cohort.reconvergence:
                    self._reconverge(cohort)
                    continue
                executed[pc] += len(cohort.warps)
                steps += 1
                cohort.pc = pc + 1
                if code[pc](cohort):
                    break
        except EmulatorError as error:
            raise self.launch.located(error, pc) from None
        self.instructions_left -= steps
        if self.instructions_left < 0:
            raise self.launch.located(EmulatorError(
                "launch: more instructions than the limit; the kernel may never end",
                hint="raise instruction_limit if the kernel is that long; a lock that lanes of one "
                     "warp take in turn never ends here"), pc)
        return cohort.pc >= 0

    def _reconverge(self, cohort: Cohort) -> None:
        """Continue with the next path of the stack, joined with warps in the same state."""
        if not cohort.next_path():
            raise AssertionError("a reconvergence point without a path on the stack")
        if not self.runnable:
            return
        joined = self._joined(cohort)
        if joined is not cohort:
            for name in Cohort.__slots__:
                setattr(cohort, name, getattr(joined, name))

    def _wake(self) -> bool:
        """Make the warps runnable whose condition holds."""
        still, woken = [], []
        for cohort in self.waiting:
            ready = cohort.wait.ready(cohort.wait.keys)
            if not ready.any():
                still.append(cohort)
                continue
            if not ready.all():
                still.append(cohort.keep(ready))
            woken.append(cohort)
        self.waiting = still
        for cohort in woken:
            wait, cohort.wait = cohort.wait, None
            if wait.resume is not None:
                wait.resume(cohort, wait.keys)
            self.add(cohort)
        return bool(woken)

    def _deadlock(self) -> DeadlockError:
        """The error that says for every warp where it waits, and for what."""
        waiting: dict[tuple[int, str], list[int]] = {}
        for cohort in self.waiting:
            location = self.launch.location_of(cohort.pc - 1)
            for warp, key in zip(cohort.warps, cohort.wait.keys):
                block, number = divmod(int(warp), self.launch.warps_per_block)
                text = f"at {location}: waits for {cohort.wait.reason(key)}"
                waiting.setdefault((block, text), []).append(number)
        count = sum(len(numbers) for numbers in waiting.values())
        lines = [f"  block {self.launch.block_name(block)} warp "
                 f"{', '.join(map(str, sorted(numbers)))} {text}"
                 for (block, text), numbers in sorted(waiting.items())]
        return DeadlockError("\n".join([f"deadlock: all {count} warps that are left wait", *lines]))
