"""Waits: conditions that block the warps of a cohort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from blocknumba.emulator.cohort import Cohort


@dataclass(frozen=True, slots=True)
class Wait:
    """A condition for each warp of a cohort.

    keys: one row for each warp, that names what it waits for.
    ready: from the keys, which warps may go on.
    reason: from one row, what that warp waits for, as text.
    resume: called with the cohort when all of it may go on, and with its keys.
    """

    keys: np.ndarray
    ready: Callable[[np.ndarray], np.ndarray]
    reason: Callable[[np.ndarray], str]
    resume: Callable[[Cohort, np.ndarray], None] | None = None

    def begin(self, cohort: Cohort) -> bool:
        """Make a cohort wait; false when there is nothing to wait for any more."""
        if self.ready(self.keys).all():
            if self.resume is not None:
                self.resume(cohort, self.keys)
            return False
        cohort.wait = self
        return True

    def take(self, chosen: np.ndarray) -> Wait:
        """The wait of some of the warps."""
        return replace(self, keys=self.keys[chosen])
