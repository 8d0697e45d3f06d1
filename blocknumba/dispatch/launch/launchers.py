"""The launchers of a kernel, in the order they are tried: the most frequent call signature first.

    front launcher --other signature--> launcher --other signature--> ... --> any_call (a dict)

A launcher passes calls of other signatures on to the next.  Counting them is the only measure that
costs nothing, and it cannot tell alternating signatures from a changed one.  So when a launcher has
passed on as many calls as the chain's patience, two calls in a row are looked up in the dict.  If
they have one signature, its launcher becomes the front.  If not, the signatures alternate, and the
patience doubles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import MethodType

from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.signature import Signature
from blocknumba.tracebacks import leave_out_our_frames

FIRST_PATIENCE, MAX_PATIENCE = 16, 4096
MAX_CHAIN = 4  # generated launchers that a call tries before its signature is looked up
MAX_TRIES = 16  # to see the same grid twice in a row: those that are computed are new objects
_NOTHING_KEPT = (object(), None)  # yet

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


class Launchers:
    """The launchers of one kernel: `kernel[grid]` is a bound method of the front.

    front: called by launches; replaced as call signatures are met.
    kept: the first grid that was asked for twice in a row and its launch, replaced as one.
    """

    __slots__ = ("front", "kept", "_signature", "_chain", "_of_calls", "_latest", "_tries_left")

    def __init__(self, signature: Signature, any_call: Launch):
        """any_call: looks every call up, and launches it."""
        self._signature = signature
        # launchers of parameters that may be options take them by position or by name, not both
        self._chain = Chain(any_call, 1 if signature.options else MAX_CHAIN)
        self._of_calls: dict[tuple, Launch] = {}
        self.front: Launch = self._launch
        self.kept: tuple[object, Launch | None] = _NOTHING_KEPT
        self._latest: object = _NOTHING_KEPT  # the grid that was asked for before
        self._tries_left = MAX_TRIES

    def find(self, arguments: tuple, keywords: Mapping[str, object],
             make: Callable[[tuple, Mapping[str, object]], Launch]) -> Launch:
        """The launcher for calls like one, which make(arguments, keywords) returns at the first."""
        given = dict(zip(self._signature.positional_names, arguments))
        if len(given) < len(arguments) or not given.keys().isdisjoint(keywords):
            self._signature.bind(arguments, keywords)  # raises
        key = self._key(given | keywords, keywords)
        launcher = self._of_calls.get(key)
        if launcher is None:
            launcher = self._of_calls[key] = make(arguments, keywords)
        elif self._chain.has(launcher):
            self.met(launcher)
        return launcher

    def find_named(self, named: Mapping[str, object]) -> Launch | None:
        """The launcher for a call with all arguments by name, if there was one like it."""
        return self._of_calls.get(self._key(named, named))

    def link(self) -> Link:
        """New link for a launcher that is being generated."""
        return self._chain.link()

    def add(self, launcher: Launch, link: Link) -> Launch:
        """Make a launcher that was generated the first of the chain; return it."""
        self._chain.add(launcher, link)
        self._begin_with(launcher)
        return launcher

    def met(self, launcher: Launch) -> None:
        """Count a call that was looked up and has a launcher of the chain."""
        self._begin_with(self._chain.met(launcher))

    def keep(self, configuration: object) -> None:
        """Keep the launch of a grid that is asked for twice in a row; give up after MAX_TRIES."""
        if configuration is self._latest:
            self.kept = configuration, MethodType(self.front, configuration)
        elif not self._tries_left:
            self.kept = object(), self.front  # equal to nothing, and not to be replaced
        else:
            self._tries_left -= 1
            if type(configuration) in (int, tuple):  # a function might keep arrays alive
                self._latest = configuration

    def _launch(self, configuration: object, /, *arguments: object,
                stream: object = None, **keywords: object) -> object:
        """Call the front launcher: for `kernel[grid]` made before the kernel had one."""
        try:
            return self._chain.front(configuration, *arguments, stream=stream, **keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise

    def _key(self, given: Mapping[str, object], keywords: Mapping[str, object]) -> tuple:
        """Key of the calls of one launcher.  given: all arguments by name."""
        return (frozenset([(name, type(value)) for name, value in given.items()]),
                self._signature.options.intersection(keywords))

    def _begin_with(self, launcher: Launch) -> None:
        """Make a launcher, or the look-up, the front."""
        self.front = launcher
        self.kept, self._tries_left = _NOTHING_KEPT, MAX_TRIES
