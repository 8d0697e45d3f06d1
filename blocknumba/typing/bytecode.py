"""Numba IR of a Python function, with the columns of every statement."""

from __future__ import annotations

import builtins
import dis
import inspect
import operator
import types
import weakref
from dataclasses import dataclass

from numba.core import bytecode, interpreter, ir
from numba.core import errors as numba_errors

from blocknumba.errors import BlockNameError, Loc, UnsupportedError
from blocknumba.typing.constexpr import unwrapped
from blocknumba.typing.function import bare, own_signature

# Opcodes of Python that has no meaning in a kernel, on all supported versions.
_REFUSED = {
    "BEFORE_WITH": "with", "BEFORE_ASYNC_WITH": "async with",
    "PUSH_EXC_INFO": "try/except", "CHECK_EXC_MATCH": "try/except",
    "YIELD_VALUE": "yield", "DICT_MERGE": "a call with **", "IMPORT_NAME": "import",
    "STORE_GLOBAL": "global assignment",
    "DELETE_GLOBAL": "del of a global", "DELETE_SUBSCR": "del of an element",
    "DELETE_ATTR": "del of an attribute", "STORE_ATTR": "assignment to an attribute",
    "MATCH_CLASS": "match", "MATCH_MAPPING": "match", "MATCH_SEQUENCE": "match",
    "LOAD_BUILD_CLASS": "class", "UNPACK_EX": "starred unpacking",
}
_CODE_UNIT = 2  # bytes per instruction, and the length of the NOP that Numba puts before all


class SourceLoc(ir.Loc):
    """A location of Numba IR that carries ours."""

    def __init__(self, place: Loc):
        super().__init__(place.file, place.line, place.column)
        self.place = place

    def with_lineno(self, line, col=None):
        """This location: each instruction sets its own."""
        return self


@dataclass(eq=False, frozen=True, slots=True)
class Source:
    """The Numba IR of one Python function; never changed once made.

    function: whose code it is.
    blocks: label -> ir.Block; the labels are bytecode offsets.
    arguments: names of the parameters, by index.
    made_of: see _replaceable.
    """

    function: types.FunctionType
    blocks: dict[int, ir.Block]
    arguments: tuple[str, ...]
    signature: inspect.Signature
    made_of: tuple

    @property
    def entry(self) -> int:
        """Label of the first block."""
        return min(self.blocks)

    def global_value(self, name: str) -> object:
        """What a global name means now; ir.UNDEFINED when nothing."""
        try:
            return unwrapped(self.function.__globals__[name])
        except KeyError:
            return getattr(builtins, name, ir.UNDEFINED)

    def closure_value(self, name: str) -> object:
        """What a variable of the enclosing function means now; ir.UNDEFINED when not set."""
        index = self.function.__code__.co_freevars.index(name)
        try:
            return unwrapped(self.function.__closure__[index].cell_contents)
        except ValueError:
            return ir.UNDEFINED


class _Interpreter(interpreter.Interpreter):
    """Numba's bytecode interpreter, placing each statement by line and columns."""

    def __init__(self, identity: bytecode.FunctionIdentity):
        super().__init__(identity)
        self._places = statement_places(identity.func)
        self.loc = self.first_loc = SourceLoc(function_place(identity.func))

    def _dispatch(self, inst, kws):
        self.loc = self._places.get(inst.offset - _CODE_UNIT, self.loc)
        return super()._dispatch(inst, kws)

    def post_process(self, peepholes, func_ir):
        """Numba's rewrites of calls with *; those for with, try and dict have nothing to do."""
        for rewrite in (interpreter.peep_hole_list_to_tuple,
                        interpreter.peep_hole_call_function_ex_to_call_function_kw):
            func_ir = rewrite(func_ir)
        return func_ir


_sources: weakref.WeakKeyDictionary[types.FunctionType, Source] = weakref.WeakKeyDictionary()


def source_of(function: types.FunctionType) -> Source:
    """The Numba IR of a function, made once.

    Errors: UnsupportedError for Python that has no meaning in a kernel; BlockNameError for a
    local variable that is used before it is assigned.
    """
    source = _sources.get(function)
    if source is None or not all(map(operator.is_, source.made_of, _replaceable(function))):
        source = _sources[function] = _translate(function)
    return source


def _replaceable(function: types.FunctionType) -> tuple:
    """What of a function can be replaced: its code and its defaults, each of them an item."""
    named = function.__kwdefaults__ or {}
    return function.__code__, function.__defaults__, len(named), *named, *named.values()


def function_place(function: types.FunctionType) -> Loc:
    """Where a function starts."""
    code = function.__code__
    return Loc(code.co_filename, code.co_firstlineno, function=function.__name__)


def statement_places(function: types.FunctionType) -> dict[int, SourceLoc]:
    """Byte offset of each instruction -> where its source is."""
    code, known, places = function.__code__, {}, {}
    for index, (line, end_line, column, end) in enumerate(code.co_positions()):
        if line is None:
            continue
        if end_line != line:
            end = None
        key = (line, column, end)
        if key not in known:
            known[key] = SourceLoc(Loc(code.co_filename, line, -1 if column is None else column,
                                       -1 if end is None else end, function.__name__))
        places[index * _CODE_UNIT] = known[key]
    return places


def _translate(function: types.FunctionType) -> Source:
    _refuse_unsupported(function)
    made_of = _replaceable(function)
    identity = bytecode.FunctionIdentity.from_function(bare(function))
    translator = _Interpreter(identity)
    try:
        function_ir = translator.interpret(bytecode.ByteCode(identity))
    except numba_errors.NotDefinedError as error:
        raise BlockNameError(f"name {error.name!r} is used before it is assigned",
                             loc=translator.loc.place) from None
    except Exception as error:  # what Numba raises for Python it does not know varies
        raise UnsupportedError(f"{function.__name__}: this Python has no meaning in a kernel",
                               loc=_place_of(error, translator)) from error
    for block in function_ir.blocks.values():
        for made in block.find_exprs("make_function"):
            made._kws["globals"] = function.__globals__
    return Source(function, function_ir.blocks, tuple(function_ir.arg_names),
                  own_signature(function), made_of)


def _place_of(error: Exception, translator: _Interpreter) -> Loc:
    """Where Numba met Python that it does not know."""
    loc = getattr(error, "loc", None)
    if loc is None or isinstance(loc, SourceLoc):
        return getattr(loc, "place", translator.loc.place)
    return Loc(loc.filename, loc.line, function=translator.func_id.func.__name__)


def _refuse_unsupported(function: types.FunctionType) -> None:
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        refused = {"YIELD_VALUE", "RETURN_GENERATOR"}
    else:
        refused = _REFUSED.keys()
    found = [i for i in dis.get_instructions(code) if i.opname in refused]
    if not found:
        return
    places = statement_places(function)
    # cleaning up after a block has no line; what the user wrote has one
    shown = next((i for i in found if i.offset in places), found[0])
    what = _REFUSED.get(shown.opname, "a generator or coroutine")
    place = places[shown.offset].place if shown.offset in places else function_place(function)
    raise UnsupportedError(f"{what}: not supported in a kernel", loc=place)
