"""Numba IR of a Python function, with the columns of every statement."""

from __future__ import annotations

import builtins
import dis
import inspect
import operator
import types
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType

from numba.core import bytecode, ir
from numba.core import errors as numba_errors

from blocknumba.errors import BlockError, Loc, UnsupportedError
from blocknumba.typing.dialect import Dialect
from blocknumba.typing.function import bare, own_signature
from blocknumba.typing.numba_ir import renaming
from blocknumba.typing.numba_ir.nested import Nested, is_set, keep_settled_values, make_function
from blocknumba.typing.sequences import (
    SequenceInterpreter, drop_unread_dicts, is_generator_expression, mark_unread_updates,
    require_consumed, yield_into_tuple,
)
from blocknumba.typing.static_values import unwrapped

# Opcodes of Python that has no meaning in a kernel, on all supported versions.
_REFUSED = {
    "BEFORE_WITH": "with", "BEFORE_ASYNC_WITH": "async with",
    "PUSH_EXC_INFO": "try", "CHECK_EXC_MATCH": "try/except",
    "SET_ADD": "a set comprehension", "MAP_ADD": "a dict comprehension",
    "YIELD_VALUE": "yield", "DICT_MERGE": "a call with **", "IMPORT_NAME": "import",
    "STORE_GLOBAL": "global assignment",
    "DELETE_GLOBAL": "del of a global", "DELETE_SUBSCR": "del of an element",
    "DELETE_DEREF": "del of a variable that functions share",
    "DELETE_ATTR": "del of an attribute", "STORE_ATTR": "assignment to an attribute",
    "MATCH_CLASS": "match", "MATCH_MAPPING": "match", "MATCH_SEQUENCE": "match",
    "LOAD_BUILD_CLASS": "class", "UNPACK_EX": "starred unpacking",
}
# Opcodes that Numba knows some uses of only.
_UNKNOWN = {"RAISE_VARARGS": "raise", "FORMAT_VALUE": "an f-string with a format",
            "FORMAT_WITH_SPEC": "an f-string with a format"}
_ASSERT = "use assert, which is checked with debug=True"
_HINTS = {
    **dict.fromkeys(("SET_ADD", "MAP_ADD"), "make a tuple: tuple(... for ...)"),
    **dict.fromkeys(("PUSH_EXC_INFO", "CHECK_EXC_MATCH"),
                    "nothing is raised in a kernel: check before, by `if`, or by where of tiles"),
    "DICT_MERGE": "write the keywords: f(x, scale=2)",
    "IMPORT_NAME": "import it at the top of the file",
    "STORE_GLOBAL": "store to an array: what a kernel computes stays in arrays",
    "YIELD_VALUE": "store to an array, each result in its place",
    "STORE_ATTR": "use a variable, or an array"}
MAX_SOURCES = 256  # functions whose Numba IR is kept
_CODE_UNIT = 2  # bytes per instruction, and the length of the NOP that Numba puts before all


# An expression: what a variable holds, nothing when it is not assigned yet.
SAVED = "saved"
# An expression whose assignment is `del` of the variable.
DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Activation:
    """A call that was inlined.

    number: ends the names of its variables, after an @.
    dialect: of the function that is called.
    given: what was known of what it depends on; types: of its arguments, where they decided.
    caller: the one that it is in; depth: how many those are.
    """

    number: int
    code: CodeType
    dialect: Dialect
    given: tuple
    types: tuple | None
    caller: Activation | None
    depth: int

    def around(self) -> Iterator[Activation]:
        """This call, and those that it is in."""
        activation: Activation | None = self
        while activation is not None:
            yield activation
            activation = activation.caller


class SourceLoc(ir.Loc):
    """A location of Numba IR that carries ours.

    activation: the inlined call that the code belongs to; None for the kernel's own code.
    """

    def __init__(self, location: Loc, activation: Activation | None = None):
        super().__init__(location.file, location.line, location.column)
        self.location, self.activation = location, activation

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of the inlined call; None for the kernel's own code."""
        return None if self.activation is None else self.activation.dialect

    def with_lineno(self, line, col=None):
        """This location: each instruction sets its own."""
        return self


@dataclass(eq=False, frozen=True, slots=True)
class Source:
    """The Numba IR of one Python function; never changed once made.

    function: whose code it is.
    blocks: label -> ir.Block; the labels are bytecode offsets.  A variable of an enclosing function
    is a variable like others, which nothing assigns first.
    arguments: names of the parameters, by index.
    made_of: see _replaceable.
    intrinsics: as of Dialect.
    """

    function: types.FunctionType
    blocks: dict[int, ir.Block]
    arguments: tuple[str, ...]
    signature: inspect.Signature
    made_of: tuple
    first_loc: SourceLoc
    intrinsics: Mapping[str, object] = field(default_factory=dict)

    @property
    def entry(self) -> int:
        """Label of the first block."""
        return min(self.blocks)

    def global_value(self, name: str) -> object:
        """The present value of a global name; ir.UNDEFINED when it has none."""
        if name in self.intrinsics:
            return self.intrinsics[name]
        try:
            return unwrapped(self.function.__globals__[name])
        except KeyError:
            return getattr(builtins, name, ir.UNDEFINED)

    def closure_values(self) -> list[ir.FreeVar]:
        """The variables of enclosing functions that are set, as they are now."""
        cells = zip(self.function.__code__.co_freevars, self.function.__closure__ or ())
        return [ir.FreeVar(i, name, unwrapped(cell.cell_contents), self.first_read(name))
                for i, (name, cell) in enumerate(cells) if is_set(cell)]

    def first_read(self, name: str) -> SourceLoc:
        """Location of the first statement that reads a variable, else of the function."""
        read = (statement.loc for _, block in sorted(self.blocks.items())
                for statement in block.body
                if any(variable.name == name for variable in renaming.uses(statement)))
        return next(read, self.first_loc)

    def global_node(self, name: str, loc: ir.Loc) -> ir.Global:
        """A global with what its name means now; known are the names that it may have meant."""
        node = ir.Global(name, self.global_value(name), loc)
        if node.value is ir.UNDEFINED:
            code = self.function.__code__
            node.known = {*code.co_varnames, *code.co_cellvars, *code.co_freevars,
                          *self.function.__globals__, *dir(builtins)}
        return node


class _Interpreter(SequenceInterpreter):
    """Numba's bytecode interpreter, placing each statement by line and columns.

    Every variable keeps its name: Numba's own new names for assignments assume that code runs in
    the order in which it is written, which loops do not.  A variable may be read before the code
    that assigns it; SSA form tells whether that is a mistake.
    """

    def __init__(self, identity: bytecode.FunctionIdentity):
        super().__init__(identity)
        self._locations = statement_locations(identity.func)
        # by the identity of the dict that Python makes of keywords: those after the first 15
        self._keywords: dict[int, list[tuple[str, ir.Var]]] = defaultdict(list)
        self.loc = self.first_loc = SourceLoc(Loc.of(identity.func))

    def _dispatch(self, inst, kws):
        self.loc = self._locations.get(inst.offset - _CODE_UNIT, self.loc)
        return super()._dispatch(inst, kws)

    def _start_new_block(self, offset):
        super()._start_new_block(offset)
        self.assigner = _Copies({*self.code_cellvars, *self.code_freevars})

    def store(self, value, name, redefine=False):
        """Assign a variable."""
        target = self.current_scope.get_or_define(name, loc=self.loc)
        if isinstance(value, ir.Var):
            value = self.assigner.assign(ir.Var(value.scope, value.name, self.loc), target)
        else:
            self.assigner.forget(target.name)
        self.current_block.append(ir.Assign(value=value, target=target, loc=self.loc))
        self.definitions[target.name].append(value)
        return target

    def get(self, name):
        """The variable of a name, or another one that holds the same."""
        try:
            return super().get(name)
        except numba_errors.NotDefinedError:
            if name.startswith("$"):
                raise
            return self.current_scope.get_or_define(name, loc=self.loc)

    def _end_current_block(self):
        # not in Numba's order: what the next blocks take from the stack is read too
        self._insert_outgoing_phis()
        self._remove_unused_temporaries()

    def _remove_unused_temporaries(self):
        """Leave out temporaries that nothing reads, or only the assignment that follows."""
        reads = Counter(v.name for s in self.current_block.body for v in renaming.uses(s))
        body: list[ir.Stmt] = []
        for statement in self.current_block.body:
            if isinstance(statement, ir.Assign):
                if statement.target.name in self.assigner.unused:
                    continue
                before = body[-1] if body else None
                if _is_moved(before, statement) and reads[before.target.name] == 1:
                    self._replace_definition(before.target.name, statement)
                    before.target = statement.target
                    continue
            body.append(statement)
        self.current_block.body = body

    def _replace_definition(self, temporary: str, moved: ir.Assign) -> None:
        definitions = self.definitions[moved.target.name]
        definitions.remove(moved.value)
        definitions += self.definitions.pop(temporary)

    def op_DELETE_FAST(self, inst):  # noqa: N802 - Numba's name
        """From here on the variable is not assigned."""
        self.store(ir.Expr(DELETED, self.loc), self.code_locals[inst.arg])

    def op_LOAD_DEREF(self, inst, res):  # noqa: N802 - Numba's name
        """A variable that functions share: a variable like others."""
        code = self.func_id.func.__code__
        self.store(self.get(code._varname_from_oparg(inst.arg)), res)

    def op_LOAD_CLOSURE(self, inst, res):  # noqa: N802 - Numba's name
        """A cell: op_MAKE_FUNCTION knows them by name."""
        self.store(ir.Const(None, loc=self.loc), res)

    def op_LOAD_FAST(self, inst, res, as_load_deref=False):  # noqa: N802 - Numba's name
        """A local variable, or from Python 3.13 on a cell."""
        if as_load_deref:
            self.op_LOAD_CLOSURE(inst, res)
        else:
            super().op_LOAD_FAST(inst, res)

    def op_LOAD_FAST_AND_CLEAR(self, inst, res):  # noqa: N802 - Numba's name
        """A variable whose name a comprehension uses for its own, from Python 3.12 on."""
        variable = self.get(self.code_locals[inst.arg])
        self.store(ir.Expr(SAVED, self.loc, value=variable), res)

    def op_CALL_FUNCTION_EX(self, inst, func, vararg, varkwarg, res):  # noqa: N802
        """A call with * or with many arguments, which Python collects in a tuple and a dict."""
        keywords = [] if varkwarg is None else self._keywords_of(varkwarg)
        self.store(ir.Expr.call(self.get(func), [], keywords, self.loc, vararg=self.get(vararg)),
                   res)

    def op_MAP_ADD(self, inst, target, key, value, setitemvar, res):  # noqa: N802 - Numba's name
        """A keyword of a call that has more than 15, in whatever block its value was chosen."""
        self.store(self.get(value), setitemvar)
        self._keywords[id(self._definition(target))].append(
            (self._definition(key).value, self.get(setitemvar)))

    def _keywords_of(self, dict_: str) -> list[tuple[str, ir.Var]]:
        """The keywords of a call, from the dict that Python makes of them.

        Errors: UnsupportedError for a dict of the user's.
        """
        made = self._definition(dict_)
        if not isinstance(made, ir.Expr) or made.op != "build_map":
            raise UnsupportedError("a call with **: not supported in a kernel",
                                   loc=self.loc.location, hint=_HINTS["DICT_MERGE"])
        return [(self._definition(key.name).value, value) for key, value in made.items] + (
            self._keywords[id(made)])

    def op_MAKE_FUNCTION(self, inst, name, code, closure, annotations,  # noqa: N802
                         annotate, kwdefaults, defaults, res):
        """A nested function; all its cells are read when it is called, until more is known."""
        inner = self._definition(code).value
        given = self._items(defaults)
        named = dict(self._definition(kwdefaults).items) if kwdefaults else {}
        keywords = tuple(self._definition(key.name).value for key in named)
        cells = tuple(self.get(free) for free in inner.co_freevars)
        nested = Nested(inner, self.func_id.func.__globals__, len(given), keywords, (),
                        inner.co_freevars)
        self.store(make_function(nested, (*given, *named.values()), cells, self.loc), res)

    def _items(self, defaults: str | tuple | None) -> tuple[ir.Var, ...]:
        """Variables for the defaults, read from the tuple that holds them."""
        if not defaults:
            return ()
        if isinstance(defaults, tuple):
            return tuple(self.get(name) for name in defaults)
        whole, count = self.get(defaults), len(self._definition(defaults).items)
        return tuple(self.store(ir.Expr.static_getitem(whole, i, None, self.loc), f"{defaults}.{i}")
                     for i in range(count))

    def _definition(self, name: str) -> object:
        """The expression that made a temporary, on whatever path it came here."""
        made = self.definitions[name][0]
        while isinstance(made, ir.Var):
            made = self.definitions[made.name][0]
        return made

    def post_process(self, peepholes, func_ir):
        """Without the dicts of keywords; Numba's rewrites have nothing to do."""
        self.settle_lists()
        drop_unread_dicts(func_ir.blocks)
        mark_unread_updates(func_ir.blocks, {*func_ir.func_id.code.co_cellvars,
                                             *func_ir.func_id.code.co_freevars})
        return func_ir


class _Copies:
    """The temporaries of a block that are copies of variables which have not changed since.

    Numba's interpreter asks for them through the methods below, to read the variable itself.
    shared: variables that a call may change.
    """

    def __init__(self, shared: set[str]):
        self.unused: set[str] = set()
        self._shared = shared
        self._sources: dict[str, ir.Var] = {}
        self._copies: dict[str, list[str]] = {}

    def assign(self, source: ir.Var, target: ir.Var) -> ir.Var:
        """Note target = source; the variable to assign to target.

        A source knows by its location where it was read.
        """
        self.forget(target.name)
        source = self._sources.get(source.name, source)
        if target.is_temp and source.name not in self._shared:
            self._sources[target.name] = source
            self._copies.setdefault(source.name, []).append(target.name)
            self.unused.add(target.name)
        return source

    def forget(self, name: str) -> None:
        """Note that a variable changes."""
        self._sources.pop(name, None)
        for copy in self._copies.pop(name, ()):
            self._sources.pop(copy, None)

    def get_assignment_source(self, name: str) -> ir.Var | None:
        """The variable to read instead of a temporary."""
        if name not in self._sources:
            self.unused.discard(name)
        return self._sources.get(name)


def _is_moved(before: ir.Stmt | None, statement: ir.Assign) -> bool:
    """Whether a statement assigns the temporary that the one before it made.

    Not of `x = x + y`, where an error about x shows what is assigned.
    """
    value, target = statement.value, statement.target.name
    if not (isinstance(before, ir.Assign) and isinstance(value, ir.Var) and value.is_temp
            and before.target.name == value.name):
        return False
    made = before.value
    is_operator = isinstance(made, ir.Expr) and made.op in ("binop", "inplace_binop")
    return not (is_operator and target in (made.lhs.name, made.rhs.name))


# Function -> its sources by dialect.  They hold their function, so only the latest are kept.
_sources = lru_cache(MAX_SOURCES)(lambda function: {})


def source_of(function: types.FunctionType, dialect: Dialect) -> Source:
    """The Numba IR of a function in a dialect, made once.

    Errors: UnsupportedError for Python that has no meaning in a kernel.
    """
    known = _sources(function)
    source = known.get(dialect.name)
    if source is None or not all(map(operator.is_, source.made_of, _replaceable(function))):
        source = known[dialect.name] = _translate(function, dialect)
    return source


def _replaceable(function: types.FunctionType) -> tuple:
    """The parts of a function that can be replaced: its code and its defaults, each an item."""
    named = function.__kwdefaults__ or {}
    return function.__code__, function.__defaults__, len(named), *named, *named.values()


def activation_numbers(statement: ir.Stmt) -> set[int]:
    """The numbers of the inlined calls that a statement is in."""
    activation = statement.loc.activation
    return set() if activation is None else {a.number for a in activation.around()}


def statement_locations(function: types.FunctionType) -> dict[int, SourceLoc]:
    """Byte offset of each instruction -> where its source is."""
    code, known, locations = function.__code__, {}, {}
    for index, (line, end_line, column, end) in enumerate(code.co_positions()):
        if line is None:
            continue
        if end_line != line:
            end = None
        key = (line, column, end)
        if key not in known:
            known[key] = SourceLoc(Loc(code.co_filename, line, -1 if column is None else column,
                                       -1 if end is None else end, function.__name__))
        locations[index * _CODE_UNIT] = known[key]
    return locations


def _translate(function: types.FunctionType, dialect: Dialect) -> Source:
    written = dialect.written(function)
    _refuse_unsupported(written)
    made_of = _replaceable(function)
    identity = bytecode.FunctionIdentity.from_function(bare(written))
    translator = _Interpreter(identity)
    try:
        function_ir = translator.interpret(bytecode.ByteCode(identity))
    except BlockError:
        raise
    except Exception as error:  # what Numba raises for Python it does not know varies
        raise _unknown_python(error, written, translator) from error
    blocks, code = function_ir.blocks, written.__code__
    keep_settled_values(function, code, blocks, min(blocks))
    require_consumed(blocks)
    if is_generator_expression(code):
        yield_into_tuple(blocks, min(blocks))
    return Source(function, blocks, tuple(function_ir.arg_names),
                  own_signature(function), made_of, SourceLoc(Loc.of(function)),
                  dialect.intrinsics)


def _unknown_python(error: Exception, function: types.FunctionType,
                    translator: _Interpreter) -> UnsupportedError:
    """The error for Python that Numba does not know, at the instruction where Numba met it."""
    instruction, traceback = None, error.__traceback__
    while traceback is not None:
        instruction = traceback.tb_frame.f_locals.get("inst", instruction)
        traceback = traceback.tb_next
    loc, what = translator.loc, "this Python"
    if instruction is not None:
        loc = statement_locations(function).get(instruction.offset - _CODE_UNIT, loc)
        what = _UNKNOWN.get(instruction.opname, what)
    hint = _ASSERT if what == "raise" else ""
    return UnsupportedError(f"{what}: not supported in a kernel", loc=loc.location, hint=hint)


def _refuse_unsupported(function: types.FunctionType) -> None:
    code = function.__code__
    if is_generator_expression(code):
        refused = _REFUSED.keys() - {"YIELD_VALUE"}
    elif code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        refused = {"YIELD_VALUE", "RETURN_GENERATOR"}
    else:
        refused = _REFUSED.keys()
    found = [i for i in dis.get_instructions(code)
             if i.opname in refused and not _collects_keywords(i)]
    if not found:
        return
    found.sort(key=lambda i: i.opname == "RETURN_GENERATOR")  # it is at the `def`, `yield` is not
    locations = statement_locations(function)
    # cleaning up after a block has no line; what the user wrote has one
    shown = next((i for i in found if i.offset in locations), found[0])
    what = _REFUSED.get(shown.opname, "a generator or coroutine")
    at = shown.offset if shown.offset in locations else _start_of_try(code, shown.offset)
    location = locations[at].location if at in locations else Loc.of(function)
    raise UnsupportedError(f"{what}: not supported in a kernel", loc=location,
                           hint=_HINTS.get(shown.opname, ""))


def _collects_keywords(instruction: dis.Instruction) -> bool:
    """Whether an instruction adds to the keywords of a call that has more than 15 of them.

    They are on top of the stack, where a comprehension has its iterator.
    """
    return instruction.opname == "MAP_ADD" and instruction.arg == 1


def _start_of_try(code: types.CodeType, handler: int) -> int:
    """Offset of the instruction before the block whose exceptions go to a handler."""
    entries = dis.Bytecode(code).exception_entries
    start = min((entry.start for entry in entries if entry.target == handler), default=handler)
    return start - _CODE_UNIT
