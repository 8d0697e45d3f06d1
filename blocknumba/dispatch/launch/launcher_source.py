"""Source text of generated launchers; launcher.py shows one."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MARKS = 3  # of an array; see Library
MAX_INLINE_PAIRS = 6  # of arrays whose distances are compared one by one

_HEAD = """\
def _launch({parameters}):
    if {differs}:
        return {following}
"""
_RECOGNISE = """\
    _recent = _state.recent
{named}    if ({tests}_hooks or not _recent.is_current()):
{second_look}        _recent = None if _hooks else _state.find(_plans, {key}, {arrays})
        if _recent is None:
            return {miss}
    if _type(_grid) is not _int and (_type(_grid) is not _tuple or not _are_ints(_grid)):
        if not _callable(_grid):
            _grid, stream = _grid_and_stream(_grid, stream)
        if _callable(_grid):
            _grid = _grid({{**_recent.options, {bound}}})
        _grid = _grid_of(_grid, _kernel)
    if stream is None:
        stream = {current_stream}
    elif _type(stream) is not _int:
        stream = _stream_handle(stream, _kernel)
"""
_LOAD = """\
    _now = {now}
    while _now != _recent.now:
        if {numbers} != _recent.numbers:
            _recent = _state.find(_plans, {key}, {arrays})
            if _recent is None:
                return {miss}
        {shares}
        _ready = _recent.overlapping if _shares else _recent.disjoint
        if _ready is None:
            _ready = _recent.choose(_shares)
            if _ready is None:
                return {miss}
        _recent.now, _recent.loading = None, _now
        try:
            _pack(_ready.slots, 0{packed})
        except _errors:
            return {miss}
        if _ready.maps and not _ready.encode_maps():
            _recent.forget()
            return {miss}
        if _grid != _ready.grid or stream != _ready.stream:
            if not _ready.aim(_grid, stream):
                return _ready.compiled
        if _recent.loading is _now:
            _recent.ready, _recent.now = _ready, _now
            break
    else:
        _ready = _recent.ready
"""
_SWITCH = """\
    if _current_device() != _recent.device:
        _ready.plan.run(_ready)
        return _ready.compiled
"""
_LAUNCH = """\
    try:
        _status = _ready.submit()
    except _Exception as _error:
        _status = _status_of(_error)
    if _status:
        _ready.plan.recover(_status, _ready)
{touch}    return _ready.compiled
"""
_TOUCH = """\
    if _recent.touched:
        _touch({arrays}[number] for number in _recent.touched)
"""
_ON_ERROR = """\
    except _Exception as _error:
        _leave_out_our_frames(_error)
        raise
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a launcher.

    is_given: calls of this signature pass it.
    by_name: it takes nothing by position.   by_position: it takes nothing by name.
    """

    name: str
    is_given: bool
    by_name: bool = False
    by_position: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """Source text by which a launcher reads one argument.

    before: statement that comes first.
    key, differs: of an array; see Library.
    constant: the key of a constant.
    numbers: other values that code depends on, as the alignment of an address.
    now: the value that is compared to tell whether the slot must be packed again.
    format: struct format of the slot, empty for a constant.  packed: the slot's contents.
    """

    before: str = ""
    key: str = ""
    differs: str = ""
    constant: str = ""
    numbers: tuple[str, ...] = ()
    now: str = ""
    format: str = ""
    packed: str = ""


@dataclass(frozen=True, slots=True)
class CallSignature:
    """A call signature, as source text.

    parameters: of the launcher: the kernel's, in order, and then options.
    accesses: of the kernel's arguments, by name.
    constants: keys of constants and options.
    tensors: names of the arrays, if Torch can compare all of them at once, classes included.
    bound, chosen: items of the dicts of the arguments and of the options.
    current_stream: the current stream of the arrays' library.
    may_switch: the arrays' device need not be current.
    has_versions: some arrays have versions; see tensors.py.
    """

    parameters: Sequence[Parameter]
    accesses: dict[str, Access]
    constants: Sequence[str]
    tensors: Sequence[str]
    bound: str
    chosen: str
    current_stream: str
    may_switch: bool
    has_versions: bool = False

    @property
    def arrays(self) -> dict[str, Access]:
        """The accesses of arrays."""
        return {name: access for name, access in self.accesses.items() if access.key}


def launcher_source(call: CallSignature) -> str:
    """The text of a function `_launch`."""
    every, following = list(call.accesses.values()), _following(call.parameters)
    numbers = _tuple(number for access in every for number in access.numbers)
    arrays = _tuple(access.key for access in call.arrays.values())
    key = f"({arrays}, {_tuple(call.constants)}, {numbers})"
    named, tests = _recognise(call)
    names = {"named": named, "tests": tests, "key": key, "numbers": numbers,
             "arrays": _tuple(call.arrays), "bound": call.bound,
             "miss": f"_miss(_plans, {key}, _grid, stream, {{{call.bound}}}, {{{call.chosen}}})",
             "current_stream": call.current_stream,
             "now": _tuple([*(access.now for access in every if access.now), "_grid", "stream"]),
             "packed": "".join(f", {access.packed}" for access in every if access.format),
             "shares": _shares([access.packed for access in call.arrays.values()])}
    before = "".join(f"    {access.before}\n" for access in every if access.before)
    names["second_look"] = _second_look(call, before) if call.tensors else ""
    early, late = ("", before) if call.tensors else (before, "")
    switch = _SWITCH if call.may_switch else ""
    text = "".join([_head(call, following), early, _RECOGNISE.format(**names), late,
                    _LOAD.format(**names), switch,
                    _LAUNCH.format(touch=_TOUCH.format(**names) if call.has_versions else "")])
    head, body = text.split(":\n", 1)
    return f"{head}:\n    try:\n{textwrap.indent(body, '    ')}{_ON_ERROR}"


def _head(call: CallSignature, following: str) -> str:
    """The parameters, and the jump to the next launcher for calls of other signatures."""
    parameters = call.parameters
    positional = [parameter for parameter in parameters if not parameter.by_name]
    named = [parameter for parameter in parameters if parameter.by_name]
    listed = ["_grid"]
    for number, parameter in enumerate(positional):
        listed.append(f"{parameter.name}=_missing")
        if parameter.by_position and not any(p.by_position for p in positional[number + 1:]):
            listed.append("/")
    listed += ["*_more", *(f"{parameter.name}=_missing" for parameter in named), "stream=None",
               "**_others"]
    differs = ["_more", "_others", *(_other_class(parameter) for parameter in parameters
                                     if parameter.name not in call.tensors)]
    head = _HEAD.format(parameters=", ".join(listed), following=following,
                        differs=" or ".join(differs))
    return head + "".join(f"    {parameter.name} = _default_{parameter.name}\n"
                          for parameter in parameters if not parameter.is_given)


def _following(parameters: Sequence[Parameter], with_defaults: bool = False) -> str:
    """The call of the next launcher with all arguments.

    with_defaults: parameters that are not given have got their defaults, which are not passed.
    """
    values = [(parameter, "_missing" if with_defaults and not parameter.is_given
               else parameter.name) for parameter in parameters]
    passed = ["_grid", *(value for parameter, value in values if not parameter.by_name), "*_more",
              *(f"{parameter.name}={value}" for parameter, value in values if parameter.by_name),
              "stream=stream", "**_others"]
    return f"_link.following()({', '.join(passed)})"


def _other_class(parameter: Parameter) -> str:
    """Test whether an argument has another class than in this call signature."""
    if parameter.is_given:
        return f"_type({parameter.name}) is not _class_{parameter.name}"
    return f"{parameter.name} is not _missing"


def _second_look(call: CallSignature, before: str) -> str:
    """Statements for when Torch's check fails, which has compared the classes too."""
    classes = " or ".join(_other_class(parameter) for parameter in call.parameters
                          if parameter.name in call.tensors)
    following = _following(call.parameters, with_defaults=True)
    reads = before.replace("    _", "        _")
    return f"        if {classes}:\n            return {following}\n{reads}"


def _recognise(call: CallSignature) -> tuple[str, str]:
    """Statements that name values of the last launch, and tests whether this one differs."""
    lines, tests = [], []
    arrays = call.arrays
    if call.tensors:
        tests.append(f"not _recent.check({', '.join(call.tensors)})")
    elif all(access.differs for access in arrays.values()):
        names = []
        for name, access in arrays.items():
            own = [f"_{name}_{number}" for number in range(MARKS)]
            tests.append(access.differs.format(name, *own))
            names += own
        lines.append(_unpacking(names, "_recent.marks"))
    else:
        keys = _tuple(access.key for access in arrays.values())
        tests.append(f"{keys} != _recent.arrays")
    names = [f"_constant_{number}" for number in range(len(call.constants))]
    tests += [f"{constant} != {name}" for constant, name in zip(call.constants, names)]
    lines.append(_unpacking(names, "_recent.constants"))
    return "".join(lines), "".join(f"{test}\n            or " for test in tests)


def _unpacking(names: Sequence[str], values: str) -> str:
    return f"    {', '.join(names)}, = {values}\n" if names else ""


def _shares(pointers: Sequence[str]) -> str:
    """Statements that tell whether arrays at these pointers share memory."""
    pairs = list(enumerate(itertools.combinations(pointers, 2)))
    if not pairs:
        return "_shares = False"
    if len(pairs) > MAX_INLINE_PAIRS:
        return f"_shares = _recent.shares({_tuple(pointers)})"
    limits = "".join(f"_low_{number}, _high_{number}, " for number, _ in pairs)
    shared = " or ".join(f"_low_{number} < {second} - {first} < _high_{number}"
                         for number, (first, second) in pairs)
    return f"{limits}= _recent.limits\n        _shares = {shared}"


def _tuple(expressions: Iterable[str]) -> str:
    return f"({''.join(f'{expression}, ' for expression in expressions)})"
