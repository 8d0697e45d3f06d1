"""The text of a function: one syntax for all ops, read back by the parser.

    kernel scale(
      %x: ptr<float32> = pointer(x) {divisibility=16}
      %n: int32 = extent(x, 0) {minimum=0}
      %m: ptr<float32> = tensor_map(x) {extents=("n",), strides=(), box=(64,), swizzle_bytes=0}
    ) {
      %0 = arange {start=0, size=128} : tile<128xint32>
      %1 = offset %p, %0 : tile<128xptr<float32>>
      %2 = load %1, %m {cache=".cg"} : tile<128xfloat32>
      %acc = for %start, %stop, %step, %zero : float32 (%i: int32, %acc.1: float32) {
        yield %acc.1
      }
      return
    }

An op is `results = name operands {attributes} : result types`, then its regions, separated by
`else`.  Attributes that have their default value, and those that the result types already say
(see IMPLIED), are left out.  A value is named after its hint, or numbered.  `#` starts a comment.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

from blocknumba.tile_ir.ir.function import Attr, Function, Op, Parameter, Region, Value
from blocknumba.tile_ir.ir.types import TileType

_UNWRITTEN = ("as_tf32",)  # fields of a tensor map that are written only when they are true

# Required attributes that the types of the results determine.
IMPLIED: dict[str, Callable[[tuple[TileType, ...]], Attr]] = {
    "dtype": lambda types: str(types[0].dtype),
    "shape": lambda types: types[0].shape,
    "layout": lambda types: types[0].layout,
    "result_types": lambda types: types,
}
_NAME = re.compile(r"[A-Za-z_]\w*")
_NOT_IN_NAMES = re.compile(r"\W+")
_INDENT = "  "


def text(fn: Function, *, locs: bool = False) -> str:
    """The text of a function; with locs, each op is followed by its location as a comment."""
    return _Printer(locs).function(fn)


def attribute_text(value: Attr) -> str:
    """An attribute exactly: floats round-trip, and -0.0, nan, 0, False and "0" all differ."""
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return ("-nan" if math.copysign(1, value) < 0 else "nan") if value != value else repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"({', '.join(map(attribute_text, value))}{',' if len(value) == 1 else ''})"
    # types print as types; anything else is a layout or a scalar function, as str writes it
    return str(value) if isinstance(value, TileType) else f"<{value}>"


class _Printer:
    """Writes lines; remembers the name of every value."""

    def __init__(self, locs: bool):
        self._locs = locs
        self._lines: list[str] = []
        self._names: dict[Value, str] = {}
        self._uses: dict[str, int] = {}
        self._types: dict[TileType, str] = {}
        self._numbered = 0

    def function(self, fn: Function) -> str:
        self._lines.append(f"kernel {_word(fn.name)}(")
        for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
            self._lines.append(f"{_INDENT}{self._define(arg)}: {arg.type} = {_origin(parameter)}")
        self._lines.append(f") {_function_attributes(fn)}{{")
        self._ops(fn.body, _INDENT)
        self._lines.append("}\n")
        return "\n".join(self._lines)

    def _ops(self, region: Region, indent: str) -> None:
        for op in region.ops:
            self._op(op, indent)

    def _op(self, op: Op, indent: str) -> None:
        names = self._names
        fields = [op.opdef.name]
        if op.operands:
            fields.append(", ".join([names[value] for value in op.operands]))
        if op.attrs and (attributes := attributes_text(op)):
            fields.append(attributes)
        if op.results:
            fields.append(f": {', '.join([self._type(value.type) for value in op.results])}")
            fields.insert(0, f"{', '.join([self._define(value) for value in op.results])} =")
        line = indent + " ".join(fields)
        if self._locs and op.loc.line:
            line, location = line, f"  # {op.loc}"
        else:
            location = ""
        if not op.regions:
            self._lines.append(line + location)
            return
        for number, region in enumerate(op.regions):
            opening = f"{line} " if number == 0 else f"{indent}}} else "
            self._lines.append(f"{opening}{self._arguments(region)}{{{location}")
            self._ops(region, indent + _INDENT)
        self._lines.append(f"{indent}}}")

    def _arguments(self, region: Region) -> str:
        if not region.args:
            return ""
        args = [f"{self._define(arg)}: {self._type(arg.type)}" for arg in region.args]
        return f"({', '.join(args)}) "

    def _type(self, type_: TileType) -> str:
        written = self._types.get(type_)
        if written is None:
            written = self._types[type_] = str(type_)
        return written

    def _define(self, value: Value) -> str:
        """Give a value its name, which no other value has."""
        if not value.hint:
            name = f"%{self._numbered}"
            self._numbered += 1
        else:
            stem = value.hint if _NAME.fullmatch(value.hint) else _cleaned(value.hint)
            count = self._uses.get(stem, 0)
            self._uses[stem] = count + 1
            name = f"%{stem}.{count}" if count else f"%{stem}"
        self._names[value] = name
        return name


def attributes_text(op: Op) -> str:
    """`{name=value, ...}` in the order of the opdef, or nothing."""
    defaults, attrs, written = op.opdef.defaults, op.attrs, []
    types = tuple(value.type for value in op.results)
    for name in op.opdef.attributes:
        if name not in attrs:
            continue
        value = attribute_text(attrs[name])
        if name in defaults:
            implied = value == attribute_text(defaults[name])
        else:
            implied = name in IMPLIED and value == attribute_text(IMPLIED[name](types))
        if not implied:
            written.append(f"{name}={value}")
    return f"{{{', '.join(written)}}}" if written else ""


def _function_attributes(fn: Function) -> str:
    """`with {name=value, ...} `, by name, or nothing."""
    written = [f"{name}={attribute_text(value)}" for name, value in sorted(fn.attrs.items())]
    return f"with {{{', '.join(written)}}} " if written else ""


def _origin(parameter: Parameter) -> str:
    """Origin of a parameter: `extent(x, 0) {divisibility=16, minimum=0}`."""
    axis = "" if parameter.axis is None else f", {parameter.axis}"
    known = []
    if parameter.divisibility != 1:
        known.append(f"divisibility={parameter.divisibility}")
    if parameter.minimum is not None:
        known.append(f"minimum={parameter.minimum}")
    if parameter.mappable:
        known.append("mappable=True")
    if parameter.tensor_map is not None:
        known += [f"{name}={attribute_text(value)}"
                  for name, value in parameter.tensor_map.fields().items()
                  if value or name not in _UNWRITTEN]
    written = f" {{{', '.join(known)}}}" if known else ""
    return f"{parameter.kind}({_word(parameter.argument)}{axis}){written}"


def _word(name: str) -> str:
    """A name as it is, quoted where it is not an identifier."""
    return name if _NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _cleaned(hint: str) -> str:
    """A hint with nothing in it that a name cannot have."""
    stem = _NOT_IN_NAMES.sub("_", hint)
    return stem if _NAME.fullmatch(stem) else f"_{stem}"
