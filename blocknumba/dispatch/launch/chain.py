"""The order in which a kernel's launchers are tried: the most frequent call signature first.

    front launcher --other signature--> launcher --other signature--> ... --> any_call (a dict)

A launcher passes calls of other signatures on to the next.  Counting them is the only measure that
costs nothing, and it cannot tell alternating signatures from a changed one.  So when a launcher has
passed on as many calls as the chain's patience, two calls in a row are looked up in the dict.  If
they have one signature, its launcher becomes the front.  If not, the signatures alternate, and the
patience doubles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from blocknumba.dispatch.launch.forks import Lock

FIRST_PATIENCE, MAX_PATIENCE = 16, 4096

Launch = Callable[..., object]


class Link:
    """The next launcher in the chain, for calls of other signatures.

    following: () -> the function to call.
    launcher: the launcher that owns the link, once it is in a chain.
    """

    __slots__ = ("following", "launcher")

    def __init__(self, launch: Launch):
        self.following: Callable[[], Launch] = itertools.repeat(launch).__next__
        self.launcher: Launch = launch


class Chain:
    """The launchers that calls try in turn; after the last, any_call serves every signature.

    any_call: looks the call signature up, and calls `met`.
    length: maximum number of launchers.
    """

    def __init__(self, any_call: Launch, length: int):
        self._any_call, self._length = any_call, length
        self._tried: list[Link] = []
        self._links: dict[Launch, Link] = {}
        self._patience = FIRST_PATIENCE
        self._candidate: Launch | None = None
        self._lock = Lock()  # a finalizer may launch the same kernel meanwhile

    @property
    def front(self) -> Launch:
        """The launcher to try first."""
        tried = self._tried
        return tried[0].launcher if tried else self._any_call

    def has(self, launcher: Launch) -> bool:
        """Whether a launcher was added, rather than one that reads every argument."""
        return launcher in self._links

    def link(self) -> Link:
        """New link for a launcher that is being generated."""
        return Link(self._any_call)

    def add(self, launcher: Launch, link: Link) -> None:
        """Make a new launcher the first."""
        with self._lock:
            link.launcher, self._links[launcher] = launcher, link
            self._candidate = None
            self._connect(link)

    def met(self, launcher: Launch) -> Launch:
        """The front for the next call, after the look-up of a signature found this launcher."""
        with self._lock:
            candidate, self._candidate = self._candidate, None
            if candidate is None:
                self._candidate = launcher
                return self._any_call
            if candidate is launcher:
                self._patience = FIRST_PATIENCE
                self._connect(self._links[launcher])
            else:
                self._patience = min(2 * self._patience, MAX_PATIENCE)
                self._connect(self._tried[0])
            return self.front

    def _connect(self, first: Link) -> None:
        """Connect all links anew, with a given one first and the others in their order."""
        order = [first, *(link for link in self._tried if link is not first)]
        for link in order:  # never in a circle, in which calls of other threads would run
            link.following = itertools.repeat(self._any_call).__next__
        self._tried = order[:self._length]
        for link, after in itertools.pairwise(self._tried):
            link.following = itertools.chain(
                itertools.repeat(after.launcher, self._patience - 1),
                itertools.repeat(self._any_call)).__next__
