"""Functions of the driver that a kernel calls: printing, and failing an assertion.

Source: CUDA C++ Programming Guide, "Assertion" and "Formatted Output"; PTX Writer's Guide to
Interoperability, "System Calls".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from blocknumba.emulator.access import global_bytes, load
from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.decoding import Step
from blocknumba.emulator.errors import KernelAssertionError, UnknownInstructionError
from blocknumba.emulator.syntax import Variable
from blocknumba.errors import Loc

# flags, width and precision, as Python's; the length, which only C has; the conversion
_CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|j|z|t)?([diouxXeEfFgGcsp%])")
_WIDE_LENGTHS = ("ll", "l", "j", "z", "t")
_FLOATS, _SIGNED, _ADDRESSES = "eEfFgG", "dic", "sp"
_PYTHON = {"i": "d", "u": "d", "p": "#x"}  # what Python's % calls otherwise

# (pc, parameters, results) -> the step
SystemCall = Callable[[int, Sequence[Variable], Sequence[Variable]], Step]


def _print(pc: int, parameters: Sequence[Variable], results: Sequence[Variable]) -> Step:
    """vprintf(format, arguments): the arguments lie at their natural alignment."""
    format_, arguments = parameters

    def step(cohort: Cohort) -> None:
        texts, output = _values(cohort, format_), cohort.launch.options.output or sys.stdout
        formats = {int(text): _string(cohort, int(text)) for text in np.unique(texts)}
        columns = {text: _arguments(cohort, pattern, _addresses_of(cohort, arguments), pc)
                   for text, pattern in formats.items()}
        for lane, text in enumerate(texts):
            row = iter([column[lane] for column in columns[int(text)]])
            output.write(_CONVERSION.sub(partial(_converted, row), formats[int(text)]))
        for result in results:
            counts = [len(columns[int(text)]) for text in texts]
            _write(cohort, result, np.array(counts))
    return step


def _fail(pc: int, parameters: Sequence[Variable], results: Sequence[Variable]) -> Step:
    """__assertfail(message, file, line, function, size of a character)."""
    def step(cohort: Cohort) -> None:
        message, file, line, function, _ = (int(_values(cohort, one)[0]) for one in parameters)
        lane = int(np.flatnonzero(cohort.active_lanes())[0])
        raise KernelAssertionError(
            f"{_string(cohort, message)}: false in {cohort.launch.thread_name(cohort, lane)}",
            loc=Loc(_string(cohort, file), line, function=_string(cohort, function)))
    return step


SYSTEM_CALLS: dict[str, SystemCall] = {"vprintf": _print, "__assertfail": _fail}


def _converted(arguments: Iterator[object], conversion: re.Match) -> str:
    """The next argument as a conversion of printf prints it."""
    flags, _, letter = conversion.groups()
    if letter == "%":
        return "%"
    argument = next(arguments)
    if letter == "c":
        argument = chr(argument & 255)
    return f"%{flags}{_PYTHON.get(letter, letter)}" % argument


def _arguments(cohort: Cohort, pattern: str, address: np.ndarray, pc: int) -> list[list[object]]:
    """The arguments of a format, each a list with one element for each active lane."""
    columns, offset = [], 0
    for _, length, letter in _CONVERSION.findall(pattern):
        if letter == "%":
            continue
        is_wide = letter in _FLOATS + _ADDRESSES or length in _WIDE_LENGTHS
        size = 8 if is_wide else 4
        offset = -(-offset // size) * size
        (bits,) = load(cohort, "generic", address + offset, size, 1, pc)
        kind = "f" if letter in _FLOATS else "i" if letter in _SIGNED else "u"
        column = cohort.chosen(bits).view(f"{kind}{size}").tolist()
        columns.append([_string(cohort, one) for one in column] if letter == "s" else column)
        offset += size
    return columns


def _string(cohort: Cohort, address: int) -> str:
    """The zero-terminated text at an address of global memory."""
    octets = bytearray()
    while not octets or octets[-1]:
        at = np.array([address + len(octets)], np.int64)
        octets += global_bytes(cohort, at, 1).tobytes()
    return octets[:-1].decode(errors="replace")


def _offsets(cohort: Cohort, variable: Variable) -> np.ndarray:
    """Offsets of a variable of param space, one for each active lane."""
    launch = cohort.launch
    return (cohort.chosen(cohort.threads) * launch.local_stride
            + launch.layout.addresses[variable])


def _values(cohort: Cohort, variable: Variable) -> np.ndarray:
    """Values that the active lanes stored in a variable of param space, int64."""
    return cohort.launch.local.gather(_offsets(cohort, variable), variable.size).astype(np.int64)


def _addresses_of(cohort: Cohort, variable: Variable) -> np.ndarray:
    """The same for all lanes; those that are not active have any."""
    values = np.zeros(cohort.lanes, np.int64)
    values[cohort.active_lanes()] = _values(cohort, variable)
    return values


def _write(cohort: Cohort, variable: Variable, values: np.ndarray) -> None:
    launch, offsets = cohort.launch, _offsets(cohort, variable)
    launch.local.scatter(offsets, variable.size, values)
    if launch.local_written is not None:
        launch.local_written.data[offsets[:, None] + np.arange(variable.size)] = 255


def system_call(name: str, pc: int, parameters: Sequence[Variable],
                results: Sequence[Variable]) -> Step | None:
    """The step that calls a function of the driver; None where there is none of this name.

    Errors: UnknownInstructionError for another number of parameters.
    """
    made = SYSTEM_CALLS.get(name)
    if made is None:
        return None
    accepted = 2 if made is _print else 5
    if len(parameters) != accepted:
        raise UnknownInstructionError(f"call: {name} given {len(parameters)} parameters, accepted "
                                      f"{accepted}")
    return made(pc, parameters, results)
