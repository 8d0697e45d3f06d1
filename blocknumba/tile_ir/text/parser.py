"""The parser of the text that the printer writes; printer.py shows the syntax."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from blocknumba.errors import BlockError, Loc, ParseError
from blocknumba.tile_ir import ops  # noqa: F401  fills the registry
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Attr, Function, OpDef, Parameter, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.tensor_map import TensorMap
from blocknumba.tile_ir.ir.types import DTYPES, DType, PointerType, TileType, ViewType
from blocknumba.tile_ir.ops.map import ScalarFunction
from blocknumba.tile_ir.text.printer import IMPLIED
from blocknumba.wording import quoted

_VALUE = r"%[\w.]+"
_WORD = r'\w+|"(?:[^"\\]|\\.)*"'
_BRACED = r'\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}'
_TYPE = r"tile<[^<>]*(?:<\w+>)?[^<>]*>|(?:ptr|view)<\w+>|\w+"
_ARGUMENT = rf"({_VALUE}): *({_TYPE})"

_COMMENT = re.compile(r'((?:[^"#]|"(?:[^"\\]|\\.)*")*)#')
_HEADER = re.compile(rf"kernel ({_WORD})\(")
_END_OF_PARAMETERS = re.compile(rf"\) (?:with ({_BRACED}) )?\{{")
_PARAMETER = re.compile(
    rf"{_ARGUMENT} *= *(\w+)\(({_WORD})(?:, *(\d+))?\) *({_BRACED})?")
_OP = re.compile(
    rf"(?:({_VALUE}(?:, *{_VALUE})*) *= *)?([A-Za-z]\w*)(?: +({_VALUE}(?:, *{_VALUE})*))?"
    rf" *({_BRACED})? *(?:: *([^({{]+))?(?:\(([^()]*)\) *)?({{)?")
_ELSE = re.compile(r"\} else (?:\(([^()]*)\) *)?\{")
_TYPES = re.compile(rf"({_TYPE}) *(?:, *|$)")
_ARGUMENTS = re.compile(rf"{_ARGUMENT} *(?:, *|$)")
_TILE = re.compile(r"tile<((?:\d+x)+)(ptr<\w+>|\w+)(?:, *([^<>]+))?>")
_VIEW = re.compile(r"view<(\d+)x(\w+)>")
_ENTRY = re.compile(r" *(\w+)=")
_END = re.compile(r" *\}")
_TOKEN = re.compile(
    r' *(?:("(?:[^"\\]|\\.)*")|(-?\d+\.?\d*(?:e[+-]?\d+)?)|(-?(?:nan|inf))\b'
    rf"|(True|False|None)\b|({_TYPE})|<([^<>]*)>)")
_CONSTANTS = {"True": True, "False": False, "None": None}


def parse(text: str, parse_layout: Callable[[str], object] | None = None,
          file: str = "<text>") -> Function:
    """The function that a text writes.

    parse_layout: reads a layout in a type or an attribute; without it, layouts are errors.
    file: named by errors and by the locations of the ops.
    Errors: ParseError, at the line.  What the verifier checks is not checked here.
    """
    return _Parser(text, parse_layout, file).function()


class _Parser:
    """Reads line by line; an op is one line, and its regions are the lines in braces after it."""

    def __init__(self, text: str, parse_layout: Callable[[str], object] | None, file: str):
        self._lines = text.split("\n")
        self._at = 0
        self._file = file
        self._parse_layout = parse_layout
        self._values: dict[str, Value] = {}
        self._types: dict[str, TileType] = {}
        self._attributes: dict[str, dict[str, Attr]] = {}
        self._builder = Builder(folding=False)

    def function(self) -> Function:
        header = self._expect(_HEADER, "kernel name(")
        parameters, types, names = [], [], []
        while (end := _END_OF_PARAMETERS.fullmatch(line := self._next())) is None:
            match = _PARAMETER.fullmatch(line)
            if match is None:
                self._fail("accepted a parameter: %n: int32 = extent(x, 0) {minimum=0}")
            names.append(match[1])
            types.append(self._type(match[2]))
            parameters.append(self._parameter(match))
        loc = Loc(self._file, self._at)
        body, closing = self._region(names, types)
        if closing != "}" or self._next(at_end="end") != "end":
            self._fail("accepted } and the end of the text")
        attrs = self._braced(end[1] or "{}")
        return Function(self._unquoted(header[1]), tuple(parameters), body, loc, attrs)

    def _parameter(self, match: re.Match) -> Parameter:
        """A parameter from the match of _PARAMETER."""
        known = self._braced(match[6] or "{}")
        try:
            kind, argument, axis = match[3], self._unquoted(match[4]), match[5] and int(match[5])
            if kind == "tensor_map":
                return Parameter(kind, argument, axis, tensor_map=TensorMap.of(known))
            return Parameter(kind, argument, axis, **known)
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._fail("a parameter has no such attributes")

    # lines ------------------------------------------------------------------------------------

    def _next(self, at_end: str | None = None) -> str:
        """The next line that is not empty, without comment and outer spaces."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if "#" in line and (match := _COMMENT.match(line)):
                line = match[1]
            line = line.strip()
            if line:
                return line
        if at_end is None:
            self._fail("the text ends within the kernel")
        return at_end

    def _expect(self, pattern: re.Pattern, accepted: str) -> re.Match:
        match = pattern.fullmatch(self._next())
        if match is None:
            self._fail(f"accepted {accepted}")
        return match

    def _fail(self, reason: str) -> None:
        line = self._lines[self._at - 1].strip() if self._lines else ""
        raise ParseError(f"parse: given {quoted(line)}: {reason}", loc=Loc(self._file, self._at))

    # regions and ops --------------------------------------------------------------------------

    def _region(self, names: list[str], types: list[TileType]) -> tuple[Region, str]:
        """A region, and the line with a brace that ends it."""
        with self._builder.region(*types) as (region, args):
            for name, arg in zip(names, args, strict=True):
                self._define(name, arg)
            while not (line := self._next()).startswith("}"):
                self._op(line)
        return region, line

    def _op(self, line: str) -> None:
        """The op on a line, with the regions that follow it."""
        match = _OP.fullmatch(line)
        if match is None:
            self._fail("accepted an op: %x, %y = name %a, %b {attribute=1} : type, type")
        names, word, operands, braced, types, arguments, opens = match.groups()
        opdef = OPS.get(word)
        if opdef is None:
            self._fail(f"there is no op {word!r}")
        values = [self._value(name) for name in _split(operands)]
        if not opdef.required <= len(values) <= (len(values) if opdef.variadic
                                                 else len(opdef.operands)):
            self._fail(f"the operands of {word} are {', '.join(opdef.operands) or 'none'}")
        result_types = self._type_list(types) if types else ()
        results = _split(names)
        if len(results) != len(result_types):
            self._fail(f"{len(results)} results have {len(result_types)} types")
        attrs = self._complete(opdef, self._braced(braced) if braced else {}, result_types)
        loc = Loc(self._file, self._at)
        regions = self._regions(arguments) if opens else ()
        self._builder.loc = loc
        try:
            made = self._builder.emit(opdef, *values, regions=regions, types=result_types, **attrs)
        except BlockError:
            raise
        except Exception:  # type rules trust attributes to be of their types
            self._fail(f"{word} takes no such attributes and types")
        for name, value in zip(results, made if isinstance(made, tuple) else (made,), strict=True):
            self._define(name, value)

    def _regions(self, arguments: str | None) -> list[Region]:
        regions = []
        while True:
            names, types = self._argument_list(arguments or "")
            region, closing = self._region(names, types)
            regions.append(region)
            if closing == "}":
                return regions
            match = _ELSE.fullmatch(closing)
            if match is None:
                self._fail("accepted } or } else {")
            arguments = match[1]

    def _complete(self, opdef: OpDef, attrs: dict[str, Attr],
                  types: tuple[TileType, ...]) -> dict[str, Attr]:
        """Attributes with those that the result types imply; each must be one of the opdef's."""
        given = dict(attrs)
        for name in opdef.attributes:
            if name in attrs or name in opdef.defaults:
                continue
            if name not in IMPLIED or not (types or name == "result_types"):
                self._fail(f"{opdef.name} needs the attribute {name}")
            given[name] = IMPLIED[name](types)
        for name in attrs:
            if name not in opdef.attributes:
                self._fail(f"{opdef.name} has no attribute {name}")
        return given

    # values and types -------------------------------------------------------------------------

    def _define(self, name: str, value: Value) -> None:
        if name in self._values:
            self._fail(f"{name} is defined twice")
        self._values[name] = value
        if not name[1:].isdigit():
            value.hint = name[1:].partition(".")[0]

    def _value(self, name: str) -> Value:
        value = self._values.get(name)
        if value is None:
            self._fail(f"{name} is not defined")
        return value

    def _type(self, text: str) -> TileType:
        found = self._types.get(text)
        if found is None:
            found = self._types[text] = self._new_type(text)
        return found

    def _new_type(self, text: str) -> TileType:
        match = _TILE.fullmatch(text)
        if match is None:
            return TileType(self._dtype(text))
        shape = tuple(self._number(extent) for extent in match[1][:-1].split("x"))
        layout = None if match[3] is None else self._layout(match[3].rstrip())
        return TileType(self._dtype(match[2]), shape, layout)

    def _dtype(self, text: str) -> DType | PointerType | ViewType:
        view = _VIEW.fullmatch(text)
        if view is not None:
            return ViewType(self._dtype(view[2]), self._number(view[1]))
        name = text[4:-1] if text.startswith("ptr<") else text
        if name not in DTYPES:
            self._fail(f"{text} is not a type")
        return DTYPES[name] if name is text else PointerType(DTYPES[name])

    def _record(self, text: str) -> object:
        """The attribute in angle brackets: a scalar function, or a layout."""
        function = ScalarFunction.of(text)
        return self._layout(text) if function is None else function

    def _layout(self, text: str) -> object:
        if self._parse_layout is None:
            self._fail(f"accepted no layout here, such as {text}")
        try:
            return self._parse_layout(text)
        except ValueError as error:
            return self._fail(str(error))

    def _type_list(self, text: str) -> tuple[TileType, ...]:
        return tuple(self._type(match[1]) for match in self._items(_TYPES, text))

    def _argument_list(self, text: str) -> tuple[list[str], list[TileType]]:
        matches = self._items(_ARGUMENTS, text)
        return [match[1] for match in matches], [self._type(match[2]) for match in matches]

    def _items(self, pattern: re.Pattern, text: str) -> list[re.Match]:
        """The items of a list that ends where the text ends."""
        items, at, text = [], 0, text.strip()
        while at < len(text):
            match = pattern.match(text, at)
            if match is None:
                self._fail(f"cannot read {text[at:]!r}")
            items.append(match)
            at = match.end()
        return items

    # attributes -------------------------------------------------------------------------------

    def _braced(self, text: str) -> dict[str, Attr]:
        """`{name=value, ...}`"""
        found = self._attributes.get(text)
        if found is None:
            found, at = {}, 1
            while not _END.match(text, at):
                entry = _ENTRY.match(text, at)
                if entry is None:
                    self._fail(f"cannot read {text[at:]!r}, accepted name=value")
                found[entry[1]], at = self._attribute(text, entry.end())
                at += text.startswith(",", at)
            self._attributes[text] = found
        return found

    def _attribute(self, text: str, at: int) -> tuple[Attr, int]:
        """The value that starts at an index, and the index where it ends."""
        if text.startswith("(", at):
            return self._tuple(text, at + 1)
        match = _TOKEN.match(text, at)
        if match is None:
            self._fail(f"cannot read {text[at:]!r}")
        string, number, special, word, type_, record = match.groups()
        if string is not None:
            return self._unquoted(string), match.end()
        if number is not None:
            return self._number(number), match.end()
        if special is not None:
            return float(special), match.end()
        if word is not None:
            return _CONSTANTS[word], match.end()
        return (self._record(record) if type_ is None else self._type(type_)), match.end()

    def _number(self, text: str) -> int | float:
        try:
            return int(text) if text.lstrip("-").isdigit() else float(text)
        except ValueError:
            return self._fail(f"cannot read the number {quoted(text)}")

    def _unquoted(self, word: str) -> str:
        """A word, or the text that is written in quotes."""
        try:
            return json.loads(word) if word.startswith('"') else word
        except ValueError:
            return self._fail(f"cannot read {quoted(word)}")

    def _tuple(self, text: str, at: int) -> tuple[tuple[Attr, ...], int]:
        items = []
        while not text.startswith(")", at):
            item, at = self._attribute(text, at)
            items.append(item)
            if text.startswith(",", at):
                at += 1 + text.startswith(" ", at + 1)
            elif not text.startswith(")", at):
                self._fail(f"cannot read {text[at:]!r}, accepted , or )")
        return tuple(items), at + 1


def _split(names: str | None) -> list[str]:
    return [name.strip() for name in names.split(",")] if names else []
