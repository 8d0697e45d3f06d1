"""Repeated launches: arguments compared with those of the last one."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from blocknumba.dispatch.launch.arrays import Library
from blocknumba.dispatch.launch.launch_buffer import LaunchBuffer
from blocknumba.dispatch.launch.launcher_source import MARKS
from blocknumba.dispatch.launch.plan import FormPlans

TensorCheck = Callable[..., bool]


def no_check(*_: object) -> bool:
    """A check that cannot tell."""
    return False


def tensor_check(tensors: Sequence[object]) -> TensorCheck:
    """Whether tensors have these dtypes, shapes, strides, devices and classes.

    It is what torch.compile guards its code with.  It may say no to equal tensors, for example
    in another autograd mode, but never yes to different ones.
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

    arrays, constants, numbers: of the key.
    marks: what the arrays are recognised by; see Library.
    check: whether tensors are like these in their classes and in all that arrays says; it may say
        no when it cannot tell.
    limits: see FormPlans.
    is_current: whether what the plan that was launched last captured is what it was.
    options: compile options by name, for grids that are functions.
    device: ordinal.
    now: the addresses, numbers, grid and stream that `ready` holds; None when none is ready.
    loading: what is being put into a buffer.
    ready: the buffer that was launched last.
    disjoint, overlapping: buffers of the plans; None until one is chosen.
    forms: the plans.
    """

    __slots__ = ("arrays", "constants", "numbers", "marks", "check", "limits", "is_current",
                 "options", "device", "now", "loading", "ready", "disjoint", "overlapping",
                 "forms", "_pairs", "_checks_left")

    def __init__(self, key: Key, forms: FormPlans, marks: tuple, tensors: Sequence[object]):
        plan = forms.disjoint or forms.overlapping
        self.arrays, self.constants, self.numbers = key
        self.marks = marks
        self.check = tensor_check(tensors)
        self.limits = forms.limits
        self.is_current = plan.captures.is_current
        self.options: Mapping[str, object] = plan.compiled.specialization.options.named()
        self.device = plan.device
        self.now = self.loading = None
        self.ready: LaunchBuffer | None = None
        self.disjoint: LaunchBuffer | None = None
        self.overlapping: LaunchBuffer | None = None
        self.forms = forms
        self._pairs = forms.pairs()
        self._checks_left = MAX_CHECKS if tensors else 0

    def choose(self, shares: bool) -> LaunchBuffer | None:
        """A buffer for arrays that share memory or do not; None when there is no plan."""
        plan = self.forms.overlapping if shares else self.forms.disjoint
        if plan is None or not plan.captures.is_current():
            self.is_current = _never  # the next launch looks for what this one will have made
            return None
        buffer = LaunchBuffer(plan)
        if shares:
            self.overlapping = buffer
        else:
            self.disjoint = buffer
        self.is_current = plan.captures.is_current
        return buffer

    def forget(self) -> None:
        """Make nothing of what was ready count: a captured global changed."""
        self.now = self.disjoint = self.overlapping = None

    def shares(self, pointers: Sequence[int]) -> bool:
        """Whether arrays at these pointers share memory: for more of them than code is made for."""
        return any(low < pointers[second] - pointers[first] < high
                   for first, second, low, high in self._pairs)

    def renew_check(self, tensors: Sequence[object]) -> None:
        """Replace a check that said no to tensors that are as ever: the autograd mode differs."""
        if self._checks_left > 0:
            self._checks_left -= 1
            self.check = tensor_check(tensors)


class _Nothing:
    """Stands for what a thread launched last that has launched nothing: equal to nothing.

    marks, constants: as many as a Recent of the launcher has.
    """

    check = staticmethod(no_check)
    is_current = staticmethod(_never)
    arrays = None

    def __init__(self, marks: int, constants: int):
        self.marks = tuple(object() for _ in range(marks))
        self.constants = tuple(object() for _ in range(constants))


class ThreadState(threading.local):
    """What the thread that asks has launched through one launcher.

    recent: the last key.
    """

    def __init__(self, libraries: Sequence[Library], constants: int):
        self._libraries = libraries
        self.recent: Recent | _Nothing = _Nothing(MARKS * len(libraries), constants)
        self._known: dict[Key, Recent] = {}

    def find(self, plans: Mapping[Key, FormPlans], key: Key,
             arrays: Sequence[object]) -> Recent | None:
        """What this thread launched with a key, from now on its last; None when nobody has."""
        forms = plans.get(key)
        if forms is None:
            return None
        recent = self._known.get(key)
        if recent is None or recent.forms is not forms:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            recent = self._known[key] = self._new(key, forms, arrays)
        elif not recent.is_current():
            recent.forget()
        elif recent is self.recent:
            recent.renew_check(arrays)
        self.recent = recent
        return recent

    def _new(self, key: Key, forms: FormPlans, arrays: Sequence[object]) -> Recent:
        libraries = self._libraries
        tensors = arrays if {library.name for library in libraries} == {"torch"} else ()
        recognised = not tensors and all(library.differs for library in libraries)
        marks = (itertools.chain(*(library.marks(array) for library, array
                                   in zip(libraries, arrays, strict=True))) if recognised else ())
        return Recent(key, forms, tuple(marks), tensors)
