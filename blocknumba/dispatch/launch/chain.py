"""In which order the launchers of a kernel are tried: first the one whose form comes most.

A launcher that meets another form passes the call on to the next.  How often it does is all that
can be known at no cost, and it does not tell calls that take turns from calls that have changed.
So when a launcher has passed on as many calls as the chain has patience for, the form of the next
call is looked up too: if it is the same one, its launcher becomes the first; if not, the forms
take turns, and the chain becomes more patient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from blocknumba.dispatch.launch.forks import Lock

FIRST_PATIENCE, MOST_PATIENCE = 16, 4096

Launch = Callable[..., object]


class Link:
    """Where a launcher passes calls of other forms on to.

    following: () -> what to call.
    launcher: whose link it is, once it is in a chain.
    """

    __slots__ = ("following", "launcher")

    def __init__(self, launch: Launch):
        self.following: Callable[[], Launch] = itertools.repeat(launch).__next__
        self.launcher: Launch = launch


class Chain:
    """The launchers that calls try in turn; behind the last, what serves any form.

    any_form: looks forms up, and tells `met`.
    length: how many launchers there may be in it.
    """

    def __init__(self, any_form: Launch, length: int):
        self._any_form, self._length = any_form, length
        self._tried: list[Link] = []
        self._links: dict[Launch, Link] = {}
        self._patience = FIRST_PATIENCE
        self._candidate: Launch | None = None
        self._lock = Lock()  # a finalizer may launch the same kernel meanwhile

    @property
    def front(self) -> Launch:
        """What to try first."""
        tried = self._tried
        return tried[0].launcher if tried else self._any_form

    def link(self) -> Link:
        """A link for a new launcher."""
        return Link(self._any_form)

    def add(self, launcher: Launch, link: Link) -> None:
        """Make a new launcher the first."""
        with self._lock:
            link.launcher, self._links[launcher] = launcher, link
            self._candidate = None
            self._connect(link)

    def met(self, launcher: Launch) -> Launch:
        """What the next call begins with, when a form was looked up that has this launcher."""
        with self._lock:
            candidate, self._candidate = self._candidate, None
            if candidate is None:
                self._candidate = launcher
                return self._any_form
            if candidate is launcher:
                self._patience = FIRST_PATIENCE
                self._connect(self._links[launcher])
            else:
                self._patience = min(2 * self._patience, MOST_PATIENCE)
                self._connect(self._tried[0])
            return self.front

    def _connect(self, first: Link) -> None:
        """Connect all links anew, in their order but for the first."""
        order = [first, *(link for link in self._tried if link is not first)]
        for link in order:  # never in a circle, in which calls of other threads would run
            link.following = itertools.repeat(self._any_form).__next__
        self._tried = order[:self._length]
        for link, after in itertools.pairwise(self._tried):
            link.following = itertools.chain(
                itertools.repeat(after.launcher, self._patience - 1),
                itertools.repeat(self._any_form)).__next__
