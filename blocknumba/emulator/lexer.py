"""PTX text into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from blocknumba.emulator.errors import PtxSyntaxError

_TOKEN = re.compile(r"""
    (?P<space>[ \t\r]+|//[^\n]*|/\*.*?\*/)
  | (?P<newline>\n)
  | (?P<string>"[^"\n]*")
  | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
             |[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?:0[0-7]*|[1-9][0-9]{0,19})U?(?![0-9]))
  | (?P<identifier>[%.$_A-Za-z][\w$.:]*(?<!:))
  | (?P<mark>[{}()\[\];,:+\-*|!@=<>&~])
""", re.VERBOSE | re.DOTALL)


class Token(NamedTuple):
    """One token: its kind (string, number, identifier or mark), its text and its line, from 1."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a module, without white space and comments.

    Errors: PtxSyntaxError at a character that begins no token.
    """
    line, position = 1, 0
    match = _TOKEN.match
    while position < len(text):
        found = match(text, position)
        if found is None:
            raise PtxSyntaxError(f"PTX: given the character {text[position]!r}, accepted a token",
                                 ptx_line=line)
        kind, piece = found.lastgroup, found.group()
        position = found.end()
        if kind == "newline":
            line += 1
        elif kind == "space":
            line += piece.count("\n")
        else:
            yield Token(kind, piece, line)
