"""Functions of tile IR as JSON: their text, and the user's source line of every op."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.dispatch.launch.forks import COMPILATIONS
from blocknumba.errors import UNKNOWN, Loc
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.text.printer import text

_NOWHERE = -1
_LOC_FIELDS = [str, int, int, int, str, int]  # the fields of a Loc


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function that can be read back; it is parsed only when somebody asks for it.

    text: as the printer writes it.
    locations: each distinct location once, as the fields of a Loc; the caller is the index of an
        earlier location.
    op_locations: index of each op's location, in the order of walk; the function's own first.
    """

    text: str
    locations: list[list]
    op_locations: list[int]

    @staticmethod
    def of(fn: Function) -> StoredFunction:
        """The stored form of a function."""
        locations, ops = numbered([fn.loc, *(op.loc for op in walk(fn.body))])
        return StoredFunction(text(fn), locations, ops)

    def check(self) -> None:
        """Errors: ValueError or TypeError when locations are not as `of` writes them."""
        for number, location in enumerate(self.locations):
            if [*map(type, location)] != _LOC_FIELDS or not _NOWHERE <= location[-1] < number:
                raise ValueError(location)
        numbers = set(self.op_locations)
        if not numbers <= set(range(_NOWHERE, len(self.locations))):
            raise ValueError(numbers)

    def read(self) -> Function:
        """The function."""
        with COMPILATIONS.running():
            # here and not above: import blocknumba must be fast, and few functions are read
            from blocknumba.tile_ir.text.parser import parse
        fn = parse(self.text)
        fn.loc, *rest = located(self.locations, self.op_locations)
        for op, loc in zip(walk(fn.body), rest, strict=True):
            op.loc = loc
        return fn


def numbered(locs: Iterable[Loc]) -> tuple[list[list], list[int]]:
    """A table of locations, each a list for JSON, and the number in it of each of some."""
    numbers: dict[Loc, int] = {}
    found = [_number(loc, numbers) for loc in locs]
    table = [[loc.file, loc.line, loc.column, loc.end_column, loc.function,
              _number(loc.caller or UNKNOWN, numbers)] for loc in numbers]
    return table, found


def located(table: Iterable[list], numbers: Iterable[int]) -> list[Loc]:
    """The locations with some numbers in the table that `numbered` made."""
    locs: list[Loc] = []
    for *fields, caller in table:
        locs.append(Loc(*fields, caller=None if caller == _NOWHERE else locs[caller]))
    return [UNKNOWN if number == _NOWHERE else locs[number] for number in numbers]


def _number(loc: Loc, numbers: dict[Loc, int]) -> int:
    """Index of a location in the table; a caller comes before its callee."""
    if loc == UNKNOWN:
        return _NOWHERE
    if loc not in numbers:
        _number(loc.caller or UNKNOWN, numbers)
        numbers[loc] = len(numbers)
    return numbers[loc]
