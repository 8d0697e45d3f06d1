"""Functions of tile IR as JSON: their text, and the user's source line of every op."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.dispatch.launch.forks import COMPILATIONS
from blocknumba.errors import UNKNOWN, Loc
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.text.printer import text

_NOWHERE = -1
_PLACE = [str, int, int, int, str, int]  # the fields of a Loc


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function that can be read back; it is parsed only when somebody asks for it.

    text: as the printer writes it.
    places: each different place once, as the fields of a Loc, the caller being the number of an
        earlier place.
    places_of_ops: the number of each op's place, in the order of walk; first the function's own.
    """

    text: str
    places: list[list]
    places_of_ops: list[int]

    @staticmethod
    def of(fn: Function) -> StoredFunction:
        """What read makes a function of again."""
        places, ops = numbered([fn.loc, *(op.loc for op in walk(fn.body))])
        return StoredFunction(text(fn), places, ops)

    def check(self) -> None:
        """Errors: ValueError or TypeError when places are not what `of` writes."""
        for number, place in enumerate(self.places):
            if [*map(type, place)] != _PLACE or not _NOWHERE <= place[-1] < number:
                raise ValueError(place)
        numbers = set(self.places_of_ops)
        if not numbers <= set(range(_NOWHERE, len(self.places))):
            raise ValueError(numbers)

    def read(self) -> Function:
        """The function."""
        with COMPILATIONS.running():
            # here and not above: import blocknumba must be fast, and few functions are read
            from blocknumba.tile_ir.text.parser import parse
        fn = parse(self.text)
        fn.loc, *rest = located(self.places, self.places_of_ops)
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
    """The number of a place, which comes after its caller's."""
    if loc == UNKNOWN:
        return _NOWHERE
    if loc not in numbers:
        _number(loc.caller or UNKNOWN, numbers)
        numbers[loc] = len(numbers)
    return numbers[loc]
