"""Types of arguments, guessed from what a kernel does with its parameters.

    tl.load(x_ptr + i)         x_ptr is a pointer, also when another jitted function does it
    tl.load(x + tl.load(at))   at is a pointer to ints
    x.load([i, j])             x is a descriptor
    tl.arange(0, BLOCK)        the constant BLOCK is a power of two
    if MASKED: ...             the constant MASKED is a bool
    if ACT == "relu": ...      the constant ACT is that string
    x.to(TYPE)                 the constant TYPE is a dtype

Anything else is an int, or a float when its name is one that floats have.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType

from blocknumba.dispatch.compile.ahead import parse_type
from blocknumba.tile_ir.ir.types import float32
from blocknumba.triton.porting.launches import Array, Element, launched
from blocknumba.triton.runtime.jit import JITFunction

POINTER, INDICES, OFFSET, DESCRIPTOR, SIZE, FLAG, DTYPE = (
    "pointer", "pointer to ints", "offset", "descriptor", "size", "flag", "dtype")
SIZE_GUESS, NUMBER_GUESS = 16, 1
_ACCESSES = re.compile(r"load|store|atomic_\w+|make_block_ptr|make_tensor_descriptor|"
                       r"_experimental_make_tensor_descriptor")
_SIZED = frozenset(("arange", "zeros", "full", "reshape", "view", "broadcast_to", "make_block_ptr",
                    "make_tensor_descriptor", "empty", "static_range"))
_DTYPED = frozenset(("to", "cast", "zeros", "full"))
_FLOATS = re.compile(
    r"eps|scale|alpha|beta|gamma|prob|(^|_)p($|_)|drop|rate|(^|_)lr|temperature|momentum|decay|"
    r"factor|slope|cap|thresh|clip|weight_decay|smoothing|(^|_)value", re.IGNORECASE)
_INTEGERS = re.compile(
    r"idx|indi|index|offs|len|label|target|token|table|lock|count|seq|slot|(^|_)ids?($|_)|start|"
    r"block_map|pos|bincount|expert|perm|chunk|cu_|seed|shape|stride", re.IGNORECASE)
_FLAGS = re.compile(r"^(IS|HAS|USE|EVEN|ENABLE|WITH|STORE|APPLY|NEED|DO|CAUSAL|ALLOW|INPLACE|"
                    r"REVERSE|TRANS)(_|$)|^(is|has|use)_")


@dataclass
class Uses:
    """Uses of the names of a function.

    kinds: name -> POINTER and the like, of parameters.
    texts: name -> strings that a parameter is compared with.
    ranks: name -> axes of a descriptor.
    returns: it returns a value, as functions do that kernels call.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    returns: bool = False


def uses_of(kernel: JITFunction, pending: frozenset[FunctionType] = frozenset()) -> Uses:
    """The uses of a kernel's parameters, by its source and by that of functions that it calls.

    pending: functions whose uses are being found, which recursion would ask for again.
    """
    tree = _tree(kernel.fn)
    if tree is None:
        return Uses()
    return _Reader(kernel, tree, pending | {kernel.fn}).uses()


def _tree(function: FunctionType) -> ast.FunctionDef | None:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError):
        return None
    return body[0] if body and isinstance(body[0], ast.FunctionDef) else None


class _Reader:
    """The uses of one function's names."""

    def __init__(self, kernel: JITFunction, tree: ast.FunctionDef,
                 pending: frozenset[FunctionType]):
        self._kernel, self._tree, self._pending = kernel, tree, pending
        self._parameters = set(kernel.arg_names)
        self._assigned: dict[str, list[ast.expr]] = {}
        self._found = Uses()

    def uses(self) -> Uses:
        """All uses."""
        for node in ast.walk(self._tree):
            for name, value in _assignments(node):
                self._assigned.setdefault(name, []).append(value)
        for node in ast.walk(self._tree):
            self._read(node)
        return self._found

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._read_call(node)
        elif isinstance(node, ast.Return) and node.value is not None and not (
                isinstance(node.value, ast.Constant) and node.value.value is None):
            self._found.returns = True
        elif isinstance(node, (ast.If, ast.IfExp)):
            for name in _flags(node.test):
                self._note(name, FLAG)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            self._read_comparison(node.left.id, node.comparators)

    def _read_comparison(self, name: str, others: list[ast.expr]) -> None:
        for other in others:
            for part in ast.walk(other):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self._found.texts.setdefault(name, []).append(part.value)

    def _read_call(self, call: ast.Call) -> None:
        name = _name_of(call)
        is_method = isinstance(call.func, ast.Attribute) and isinstance(
            call.func.value, ast.Name) and call.func.value.id in self._parameters
        if is_method and name in ("load", "store", "gather", "scatter"):
            self._note(call.func.value.id, DESCRIPTOR)
            if call.args and isinstance(call.args[0], (ast.List, ast.Tuple)):
                self._found.ranks[call.func.value.id] = len(call.args[0].elts)
        elif _ACCESSES.fullmatch(name) and (call.args or call.keywords):
            self._point(_address(call))
            self._read_indices(_address(call))
        if name in _SIZED:
            for part in (*call.args, *(keyword.value for keyword in call.keywords)):
                for inner in ast.walk(part):
                    if isinstance(inner, ast.Name):
                        self._note(inner.id, SIZE)
        if name in _DTYPED:
            given = [*call.args[-1:], *(k.value for k in call.keywords if k.arg == "dtype")]
            for part in given:
                if isinstance(part, ast.Name):
                    self._note(part.id, DTYPE)
        callee = self._callee(call.func)
        if callee is not None and callee.fn not in self._pending:
            self._read_callee(call, callee)

    def _read_indices(self, address: ast.expr) -> None:
        """Note the parameters that numbers in an address are loaded from, through assignments."""
        seen, waiting = set(), [address]
        while waiting:
            for part in ast.walk(waiting.pop()):
                if isinstance(part, ast.Call) and _name_of(part) == "load" and part.args:
                    self._point(_address(part), INDICES)
                elif isinstance(part, ast.Name) and part.id not in seen:
                    seen.add(part.id)
                    self._note(part.id, OFFSET)
                    waiting += self._assigned.get(part.id, ())

    def _read_callee(self, call: ast.Call, callee: JITFunction) -> None:
        below = uses_of(callee, self._pending)
        passed = dict(zip(callee.arg_names, call.args))
        passed |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        for name, value in passed.items():
            kind = below.kinds.get(name)
            if kind in (POINTER, INDICES):
                self._point(value, kind)
            elif kind == OFFSET:
                self._read_indices(value)
            elif kind is not None and isinstance(value, ast.Name):
                self._note(value.id, kind)
            if isinstance(value, ast.Name) and name in below.texts:
                self._found.texts.setdefault(value.id, []).extend(below.texts[name])

    def _callee(self, function: ast.expr) -> JITFunction | None:
        """The jitted function that an expression names, if it is a global's or a module's."""
        names = []
        while isinstance(function, ast.Attribute):
            names.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return None
        found = self._kernel.fn.__globals__.get(function.id)
        for name in reversed(names):
            found = getattr(found, name, None)
        return found if isinstance(found, JITFunction) else None

    def _point(self, address: ast.expr, kind: str = POINTER) -> None:
        """Note the parameter that an address begins with, through assignments."""
        seen, waiting = set(), list(_bases(address))
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            self._note(name, kind)
            for value in self._assigned.get(name, ()):
                waiting += _bases(value)

    def _note(self, name: str, kind: str) -> None:
        """Keep the kind of a parameter; a pointer stays one, and a size is no flag."""
        order = (OFFSET, FLAG, SIZE, DTYPE, DESCRIPTOR, POINTER, INDICES)
        known = self._found.kinds.get(name)
        if name in self._parameters and (known is None
                                         or order.index(kind) > order.index(known)):
            self._found.kinds[name] = kind


def _name_of(call: ast.Call) -> str:
    """The last name of what is called."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _address(call: ast.Call) -> ast.expr:
    """The address that an access is given first, or by name."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if call.args:
        return call.args[0]
    return given.get("pointer", given.get("base", call.keywords[0].value))


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for part, value in zip(target.elts, node.value.elts):
                    if isinstance(part, ast.Name):
                        yield part.id, value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
        if node.value is not None:
            yield node.target.id, node.value


def _bases(address: ast.expr) -> list[str]:
    """The names that a pointer may have in an expression: of sums the first operand that has any.
    """
    if isinstance(address, ast.Name):
        return [address.id]
    if isinstance(address, ast.BinOp) and isinstance(address.op, (ast.Add, ast.Sub)):
        return _bases(address.left) or _bases(address.right)
    if isinstance(address, ast.IfExp):
        return _bases(address.body) + _bases(address.orelse)
    if isinstance(address, (ast.Subscript, ast.Starred)):
        return _bases(address.value)
    if isinstance(address, ast.Call) and isinstance(address.func, ast.Attribute):
        # tl.advance(p, ...), p.to(...), tl.multiple_of(p, 16), tl.make_block_ptr(p, ...)
        of_method = _bases(address.func.value) if address.func.attr in ("to", "cast") else []
        return of_method or (_bases(address.args[0]) if address.args else [])
    return []


def _flags(test: ast.expr) -> Iterator[str]:
    """Names that are tested as they are."""
    if isinstance(test, ast.Name):
        yield test.id
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _flags(test.operand)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _flags(value)


def constant_guess(name: str, uses: Uses) -> object:
    """The value of a constant that nothing else says."""
    if uses.texts.get(name):
        return uses.texts[name][0]
    kind = uses.kinds.get(name)
    if kind == DTYPE:
        return float32
    if _FLAGS.search(name) or kind == FLAG:
        return False
    if kind == SIZE or re.search(r"BLOCK|TILE|SIZE|^[A-Z]{1,3}$|DIM|GROUP", name):
        return SIZE_GUESS
    return NUMBER_GUESS


def type_guess(name: str, uses: Uses, element: str) -> object:
    """The type of a run-time argument.  element: the dtype of arrays of floats."""
    kind = uses.kinds.get(name)
    if kind == DESCRIPTOR:
        sizes = ", ".join([str(SIZE_GUESS)] * uses.ranks.get(name, 2))
        return f"tensordesc<{element}[{sizes}]>"
    if kind in (POINTER, INDICES):
        is_integer = kind == INDICES or _INTEGERS.search(name)
        return f"*{'i32' if is_integer else element}:16"
    return "float" if _FLOATS.search(name) and not _INTEGERS.search(name) else "int"


def guessed(kernel: JITFunction, uses: Uses, chosen: Mapping[str, object],
            element: str) -> tuple[dict[str, object], dict[str, object]]:
    """The types of the arguments of a kernel, and the values of its constants.

    chosen: constants that a decorator of the kernel says.  What a launch in the kernel's file says
    comes next, then what the kernel does with a parameter.
    """
    types, constants = {}, {}
    known = launched_values(kernel)
    for formal in kernel.signature.formals:
        name = formal.name
        default = formal.default if formal.has_default else ...
        value = known.get(name, default)
        if name in chosen:
            constants[name] = chosen[name]
        elif formal.is_constant:
            is_said = value is not ... and not isinstance(value, Array)
            constants[name] = constant_guess(name, uses) if not is_said else _constant(value)
        elif value is None:
            constants[name] = None
        else:
            types[name] = str(formal.dtype) if formal.dtype else launched_type(
                name, uses, element, known.get(name, ...))
    return types, constants


def launched_values(kernel: JITFunction) -> dict[str, object]:
    """See launches.launched; of the first launch of a kernel in its file."""
    tree = _file_tree(kernel.fn.__code__.co_filename)
    if tree is None:
        return {}
    return launched(tree, kernel.fn.__name__, kernel.arg_names, kernel.fn.__globals__)


@functools.lru_cache(maxsize=64)
def _file_tree(name: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(name)))
    except SyntaxError:
        return None


def _constant(value: object) -> object:
    return parse_type(value.name, "port").dtype if isinstance(value, Element) else value


def launched_type(name: str, uses: Uses, element: str, value: object) -> str:
    """The type of a run-time argument, for which a launch gives a value; ... if it is not known."""
    pointed = uses.kinds.get(name) in (POINTER, INDICES)
    if isinstance(value, Array) and uses.kinds.get(name) != DESCRIPTOR:
        is_integer = uses.kinds.get(name) == INDICES or (
            value.element is None and _INTEGERS.search(name))
        return f"*{value.element or ('i32' if is_integer else element)}:16"
    if pointed or isinstance(value, str | Element) or value is ...:
        return type_guess(name, uses, element)
    if isinstance(value, float):
        return "float"
    if isinstance(value, bool):
        return "bool"
    return "int:1" if value == 1 else "int:16" if value % 16 == 0 else "int"
