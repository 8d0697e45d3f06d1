"""Repeated launches: arguments are compared with those of the thread's last launch."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from blocknumba.dispatch.launch.arrays import Library
from blocknumba.dispatch.launch.launcher_source import MARKS
from blocknumba.dispatch.launch.plan import KeyPlans, LaunchBuffer

TensorCheck = Callable[..., bool]


def no_check(*_: object) -> bool:
    """Tensor check that never recognises anything."""
    return False


def tensor_check(tensors: Sequence[object]) -> TensorCheck:
    """A test whether tensors have the dtypes, shapes, strides, devices and classes of these.

    It is the guard of torch.compile.  It may return False for equal tensors, for example in
    another autograd mode, but never True for different ones.
    """
    if not tensors or not _is_exact():
        return no_check
    return _guard(tensors)


def _guard(tensors: Sequence[object]) -> TensorCheck:
    return sys.modules["torch"]._C._dynamo.guards.TensorGuards(
        *tensors, dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
        dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors]).check


@functools.cache
def _is_exact() -> bool:
    """Whether this Torch has the check, and it tells apart all that must be."""
    torch = sys.modules["torch"]
    try:
        tensor = torch.zeros((2, 3))
        check = _guard((tensor,))
        others = (torch.zeros((3, 2)), torch.zeros((2, 3, 1)), torch.zeros((3, 2)).t(),
                  torch.zeros((2, 3), dtype=torch.int32), torch.zeros((2, 3), device="meta"),
                  torch.zeros((2, 3), dtype=torch.complex64).imag, torch.nn.Parameter(tensor),
                  torch._neg_view(tensor))
        return check(tensor) and not any(map(check, others))
    except (AttributeError, TypeError, RuntimeError):
        return False


MAX_CHECKS = 4  # that are made for one key, when none of them lasts
MAX_KEPT = 1024  # keys of a launcher and a thread; shapes that never come back must not fill memory

Key = tuple[tuple, tuple, tuple]  # of arrays, of constants, of numbers


def _never() -> bool:
    return False


class Recent:
    """The launches of one thread with one key of one launcher.

    arrays, constants, numbers: the fields of the key.
    marks: values by which the arrays are recognised; see Library.
    check: test whether tensors equal these in class and in everything of `arrays`; False if in
        doubt.
    limits: see KeyPlans.
    is_current: test whether the captured values of the last plan are unchanged.
    options: compile options by name, for grids that are functions.
    device: ordinal.
    now: addresses, numbers, grid and stream that `ready` holds; None when no buffer is ready.
    loading: the same of the buffer that is being filled.
    ready: the buffer that was launched last.
    disjoint, overlapping: buffers of the two plans; None until first needed.
    key_plans: the plans of the key.
    touched: see KeyPlans.
    """

    __slots__ = ("arrays", "constants", "numbers", "marks", "check", "limits", "is_current",
                 "options", "device", "now", "loading", "ready", "disjoint", "overlapping",
                 "key_plans", "touched", "_pairs", "_checks_left")

    def __init__(self, key: Key, key_plans: KeyPlans, marks: tuple, tensors: Sequence[object]):
        plan = key_plans.disjoint or key_plans.overlapping
        self.arrays, self.constants, self.numbers = key
        self.marks = marks
        self.check = tensor_check(tensors)
        self.limits = key_plans.limits
        self.is_current = plan.captures.is_current
        self.options: Mapping[str, object] = plan.compiled.specialization.options.named()
        self.device = plan.device
        self.now = self.loading = None
        self.ready: LaunchBuffer | None = None
        self.disjoint: LaunchBuffer | None = None
        self.overlapping: LaunchBuffer | None = None
        self.key_plans, self.touched = key_plans, key_plans.touched
        self._pairs = key_plans.pairs()
        self._checks_left = MAX_CHECKS if tensors else 0

    def choose(self, shares: bool) -> LaunchBuffer | None:
        """The buffer for arrays that share memory, or that do not; None if no plan exists."""
        plan = self.key_plans.overlapping if shares else self.key_plans.disjoint
        if plan is None or not plan.captures.is_current():
            self.is_current = _never  # the next launch looks for what this one will have made
            return None
        buffer = plan.buffer()
        if shares:
            self.overlapping = buffer
        else:
            self.disjoint = buffer
        self.is_current = plan.captures.is_current
        return buffer

    def forget(self) -> None:
        """Drop the buffers: a captured global changed."""
        self.now = self.disjoint = self.overlapping = None

    def shares(self, pointers: Sequence[int]) -> bool:
        """Whether arrays at these pointers share memory.  Launchers of few arrays inline it."""
        return any(low < pointers[second] - pointers[first] < high
                   for first, second, low, high in self._pairs)

    def renew_check(self, tensors: Sequence[object]) -> None:
        """Replace a check that rejected equal tensors, as another autograd mode makes it do."""
        if self._checks_left > 0:
            self._checks_left -= 1
            self.check = tensor_check(tensors)


class _Nothing:
    """The last launch of a thread that has launched nothing: it equals no launch.

    marks, constants: as many as a Recent of the launcher has.
    """

    check = staticmethod(no_check)
    is_current = staticmethod(_never)
    arrays = None

    def __init__(self, marks: int, constants: int):
        self.marks = tuple(object() for _ in range(marks))
        self.constants = tuple(object() for _ in range(constants))


class ThreadState(threading.local):
    """Launches of the current thread through one launcher.

    recent: the last key.
    """

    def __init__(self, libraries: Sequence[Library], constants: int):
        self._libraries = libraries
        self.recent: Recent | _Nothing = _Nothing(MARKS * len(libraries), constants)
        self._known: dict[Key, Recent] = {}

    def find(self, plans: Mapping[Key, KeyPlans], key: Key,
             arrays: Sequence[object]) -> Recent | None:
        """This thread's launches with a key, made the most recent; None if the key has no plans."""
        key_plans = plans.get(key)
        if key_plans is None:
            return None
        recent = self._known.get(key)
        if recent is None or recent.key_plans is not key_plans:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            recent = self._known[key] = self._new(key, key_plans, arrays)
        elif not recent.is_current():
            recent.forget()
        elif recent is self.recent:
            recent.renew_check(arrays)
        self.recent = recent
        return recent

    def _new(self, key: Key, key_plans: KeyPlans, arrays: Sequence[object]) -> Recent:
        libraries = self._libraries
        tensors = arrays if {library.name for library in libraries} == {"torch"} else ()
        recognised = not tensors and all(library.differs for library in libraries)
        marks = (itertools.chain(*(library.marks(array) for library, array
                                   in zip(libraries, arrays, strict=True))) if recognised else ())
        return Recent(key, key_plans, tuple(marks), tensors)
