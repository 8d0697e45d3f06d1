"""What is counted of a kernel's machine code: instructions, accesses, barriers, chains of loads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_LABEL_OR_LINE = re.compile(r"^(\.L_x_\d+):|^\s*/\*([0-9a-f]{4,})\*/\s+([^;]*);", re.MULTILINE)
_REGISTER = re.compile(r"\b(U?R\d+)(\.64)?")
_WIDTH = re.compile(r"\.(U8|S8|U16|S16|64|128)\b")
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    name: without modifiers.   operation: with them.   text: all of it.
    target: the number of the instruction where it may branch to.
    """

    name: str
    operation: str
    text: str
    target: int | None

    @property
    def size_bytes(self) -> int:
        """Bytes of a thread's access to memory."""
        found = _WIDTH.search(self.operation)
        return BYTES[found[1]] if found else 4


@dataclass
class Counts:
    """What one kernel's machine code has; see the module."""

    instructions: int
    loop: int
    loads: dict[int, int]
    stores: dict[int, int]
    copies: int
    atomics: int
    shared: int
    shuffles: int
    barriers: int
    branches: int
    chain: int
    registers: int = 0
    spills: int = 0
    warps: int = 0
    seconds: float = 0.0
    names: dict[str, int] = field(default_factory=dict)


def parsed(sass: str) -> list[Instruction]:
    """The instructions of nvdisasm's text, without what pads it."""
    places, lines = {}, []
    for label, _, text in _LABEL_OR_LINE.findall(sass):
        if label:
            places.setdefault(label, len(lines))
        elif text.strip() != "NOP":
            lines.append(text.strip())
    found = []
    for text in lines:
        words = text.removeprefix(text.split()[0]).split() if text.startswith("@") else text.split()
        label = re.search(r"\((\.L_x_\d+)\)", text)
        found.append(Instruction(words[0].partition(".")[0], words[0], text,
                                 places.get(label[1]) if label else None))
    return found


def loops(code: Sequence[Instruction]) -> list[tuple[int, int]]:
    """First and last instructions of innermost loops."""
    found = {(one.target, at) for at, one in enumerate(code)
             if one.name == "BRA" and one.target is not None and one.target < at}
    return [loop for loop in found
            if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1]
                       for other in found)]


def chain_of_loads(code: Sequence[Instruction]) -> int:
    """The most loads of global memory of which each needs the one before, as the text goes."""
    depth: dict[str, int] = {}
    longest = 0
    for one in code:
        registers = _REGISTER.findall(one.text)
        if not registers:
            continue
        names = [name for name, _ in registers]
        stores = one.name.startswith(("ST", "RED", "BAR", "BRA"))
        inputs = names if stores else names[1:]
        reach = max((depth.get(name, 0) for name in inputs), default=0)
        if one.name in ("LDG", "LD", "ATOMG"):
            reach += 1
        longest = max(longest, reach)
        if not stores:
            first = names[0]
            depth[first] = reach
            number = int(first.strip("UR"))
            for more in range(1, max(1, one.size_bytes // 4) if one.name.startswith("LD") else 1):
                depth[first.rstrip("0123456789") + str(number + more)] = reach
    return longest


def counted(sass: str) -> Counts:
    """What is counted of machine code."""
    code = parsed(sass)
    names = Counter(one.name for one in code)

    def by_bytes(*those: str) -> dict[int, int]:
        return dict(sorted(Counter(one.size_bytes for one in code if one.name in those).items()))

    return Counts(
        len(code), max((last - first + 1 for first, last in loops(code)), default=0),
        by_bytes("LDG", "LD"), by_bytes("STG", "ST"), names["LDGSTS"] + names["UTMALDG"],
        names["RED"] + names["REDG"] + names["ATOM"] + names["ATOMG"],
        sum(names[n] for n in ("LDS", "STS", "LDSM", "STSM", "ATOMS")), names["SHFL"],
        names["BAR"] + names["SYNCS"] + names["WARPSYNC"],
        sum(names[n] for n in ("BRA", "BSSY", "CALL", "BRX")), chain_of_loads(code),
        names=dict(names.most_common()))
