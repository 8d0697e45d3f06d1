"""Shorter programs that go wrong in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable


def shortened(source: str, is_as_wrong: Callable[[str], bool], seconds: float = 20) -> str:
    """Source with as many of its lines left out as can be, those that use others before them.

    A line is left out with the block that it holds, or the block takes its place.
    """
    deadline, is_shorter = time.time() + seconds, True
    while is_shorter and time.time() < deadline:
        is_shorter = False
        start = len(source.splitlines()) - 1
        while start >= 0 and time.time() < deadline:
            lines = source.splitlines()
            for instead in _replacements(lines, start):
                shorter = "\n".join(instead)
                if shorter != source and is_as_wrong(shorter):
                    source, is_shorter = shorter, True
                    break
            start -= 1
    return source


def _replacements(lines: list[str], start: int) -> list[list[str]]:
    """The lines without one and its block, with `pass` there, or with its block alone."""
    if start >= len(lines):
        return []
    indent = len(lines[start]) - len(lines[start].lstrip())
    stop = start + 1
    while stop < len(lines) and lines[stop].startswith(" " * (indent + 1)):
        stop += 1
    before, after = lines[:start], lines[stop:]
    found = [before + after]
    if lines[start].strip() != "pass":
        found.append([*before, " " * indent + "pass", *after])
    return [*found, [*before, *(line[4:] for line in lines[start + 1:stop]), *after]]
