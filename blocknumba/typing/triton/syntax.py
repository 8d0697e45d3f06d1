"""Python as Triton reads it: the code of a function with calls where Triton's meaning differs.

    x = 2.0              x = named(2.0)       a variable has a dtype; a constexpr has none
    n: tl.constexpr = 4  unchanged
    a, b = values        a, b = named(values, 2)    values beyond the names are left out
    return y             return named(y)
    a and b              both(left, b) if goes_on(left := a) else left
    assert a, text       device_assert(a, text)
    f"{x=}"              f"x={repr(x)}"

The code is compiled again from the source, which Triton needs too.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import textwrap
import tokenize
import weakref
from types import CodeType, FunctionType

from blocknumba.errors import BlockTypeError, Loc, UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import bool_
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.functions.debug import device_assert
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.numba_ir.written import all_codes
from blocknumba.typing.promotion import is_literal
from blocknumba.typing.triton import promotion
from blocknumba.typing.values import is_constant, unwrapped

# names that no user's code can have
_NAMED, _ASSERTED, _LEFT = "named by Triton", "assert of Triton", "left operand"
_GOES_ON = {ast.And: "and goes on", ast.Or: "or goes on"}
_JOINED = {ast.And: "and of Triton", ast.Or: "or of Triton"}
_CONVERSIONS = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}  # of f-strings
_rewritten: weakref.WeakSet[CodeType] = weakref.WeakSet()


def written(function: FunctionType) -> FunctionType:
    """A function with the code that is translated; a lambda as it is, which assigns nothing.

    Errors: UnsupportedError where its source is not to be had.
    """
    code = function.__code__
    if code in _rewritten or code.co_name == "<lambda>":
        return function
    made = _rewritten_code(code, "".join(linecache.getlines(code.co_filename)))
    if made is None:
        raise UnsupportedError(f"{function.__name__}: its source is not to be had",
                               loc=Loc.of(function), hint="define it in a file or a notebook cell")
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    result = FunctionType(made, function.__globals__, function.__name__, function.__defaults__,
                          tuple(cells[name] for name in made.co_freevars))
    result.__kwdefaults__, result.__module__ = function.__kwdefaults__, function.__module__
    result.__qualname__ = function.__qualname__
    return result


@functools.lru_cache(maxsize=1024)
def _rewritten_code(code: CodeType, text: str) -> CodeType | None:
    """The code of a function in Triton's dialect; None where the text has no such function."""
    definition = _definition(_parsed(text), code)
    if definition is None:
        definition = _definition(_parsed(_alone(text, code.co_firstlineno)), code)
    if definition is None:
        return None
    # as a function within one whose variables are those that the code shares
    names = ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in code.co_freevars],
                          kwonlyargs=[], kw_defaults=[], defaults=[])
    body: list[ast.stmt] = [_Rewriter().visit(definition)]
    if code.co_name not in code.co_freevars:  # what calls itself calls the global of its name
        body.insert(0, ast.Global(names=[code.co_name]))
    around = ast.FunctionDef(name="around", args=names, decorator_list=[], body=body, lineno=1,
                             col_offset=0)
    module = ast.fix_missing_locations(ast.Module(body=[around], type_ignores=[]))
    codes = all_codes(compile(module, code.co_filename, "exec", dont_inherit=True))
    found = next(each for each in codes if each.co_name == code.co_name
                 and each.co_firstlineno == code.co_firstlineno)
    _rewritten.update(all_codes(found))
    return found


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The syntax tree of each function of a file, by its name and first line."""
    try:
        module = ast.parse(text)
    except SyntaxError:  # of a notebook, with commands that are not Python, or of a document
        return {}
    return {(node.name, _first_line(node)): node for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef)}


def _alone(text: str, first_line: int) -> str:
    """The text of the function that begins at a line, on that line, and of nothing else."""
    try:
        block = inspect.getblock(text.splitlines(keepends=True)[first_line - 1:])
    except (SyntaxError, tokenize.TokenError):
        return ""
    return "\n" * (first_line - 1) + textwrap.dedent("".join(block))


def _definition(functions: dict[tuple[str, int], ast.FunctionDef],
                code: CodeType) -> ast.FunctionDef | None:
    """A copy of the syntax tree of a function."""
    found = functions.get((code.co_name, code.co_firstlineno))
    return None if found is None else _copied(found)


def _copied(node: ast.AST) -> ast.AST:
    """A syntax tree that can be changed."""
    made = type(node)()
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            value = [_copied(item) if isinstance(item, ast.AST) else item for item in value]
        setattr(made, name, _copied(value) if isinstance(value, ast.AST) else value)
    return ast.copy_location(made, node)


def _first_line(node: ast.FunctionDef) -> int:
    return min(each.lineno for each in (node, *node.decorator_list))


class _Rewriter(ast.NodeTransformer):
    """Puts calls of the intrinsics where Triton's meaning differs from Python's."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._tests: set[ast.expr] = set()  # of which only the truth counts

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:  # noqa: N802
        """Only the truth of its test counts."""
        self._note_test(node.test)
        return self.generic_visit(node)

    visit_While = visit_IfExp = visit_If  # noqa: N815

    def _note_test(self, node: ast.expr) -> None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._note_test(node.operand)
        elif isinstance(node, ast.BoolOp):
            self._tests.add(node)
            for value in node.values:
                self._note_test(value)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802 - Python's name
        """A variable has a dtype."""
        self.generic_visit(node)
        names = node.targets[0]
        is_counted = isinstance(names, ast.Tuple) and not any(
            isinstance(name, ast.Starred) for name in names.elts)
        counts = [ast.Constant(len(names.elts))] if is_counted else []
        node.value = _call(_NAMED, node.value, *counts)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:  # noqa: N802
        """A variable that is annotated with constexpr keeps a number as it is."""
        self.generic_visit(node)
        if node.value is not None and not ast.unparse(node.annotation).endswith("constexpr"):
            node.value = _call(_NAMED, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:  # noqa: N802
        """`x += y` of a variable is `x = x + y`."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], _call(_NAMED, value)), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:  # noqa: N802
        """As an assignment."""
        self.generic_visit(node)
        node.value = _call(_NAMED, node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:  # noqa: N802
        """A result has a dtype."""
        self.generic_visit(node)
        if node.value is not None:
            node.value = _call(_NAMED, node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        """`and` and `or` work on tiles; only a constant decides what is left out."""
        self.generic_visit(node)
        result, *others = node.values
        for other in others:
            name, kind = f"{_LEFT} {next(self._numbers)}", type(node.op)
            kept = ast.copy_location(ast.NamedExpr(ast.Name(name, ast.Store()), result), node)
            left = ast.Name(name, ast.Load())
            # so a constant on the right decides a test where nothing is known of the left
            decided = ast.Constant(kind is ast.Or) if node in self._tests else left
            result = ast.copy_location(ast.IfExp(
                _call(_GOES_ON[kind], kept), _call(_JOINED[kind], left, other, at=node), decided),
                node)
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:  # noqa: N802
        """Of tiles too: device_assert."""
        self.generic_visit(node)
        given = [node.test, *([] if node.msg is None else [node.msg])]
        return ast.copy_location(ast.Expr(_call(_ASSERTED, *given)), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:  # noqa: N802
        """`{x=}` and `{x:.2f}` are calls of repr and format, which Numba's analysis knows."""
        self.generic_visit(node)
        value = node.value
        if node.conversion != -1:
            value = _call(_CONVERSIONS[node.conversion], value)
        if node.format_spec is not None:
            value = _call("format", value, node.format_spec, at=node.value)
        return ast.copy_location(ast.FormattedValue(value, -1, None), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:  # noqa: N802
        """As it is, but for its body."""
        node.body = self.visit(node.body)
        return node


def _call(name: str, *arguments: ast.expr, at: ast.expr | None = None) -> ast.Call:
    """A call of an intrinsic, placed where its first argument is."""
    node = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    return ast.copy_location(node, arguments[0] if at is None else at)


def _named(context: Context, value: object, count: int | None = None) -> object:
    """The value of a variable: a number is a scalar of the dtype that Triton gives it.

    count: of the variables that a tuple is unpacked into.
    """
    if is_literal(value):
        return context.constant(value, promotion.named_dtype(value))
    if type(value) is tuple:
        return tuple([_named(context, item) for item in value[:count]])
    return value


def _fold_named(value: object, count: int | None = None) -> object:
    """Knowledge of a variable: not of a number, which is a scalar of run time then."""
    if isinstance(value, folding.Items):
        if value.kind is not tuple:  # of a record, whose fields stay as they are
            return value
        return folding.as_tuple(map(_fold_named, value.items[:count]))
    if type(value) is tuple:
        return folding.as_tuple(map(_fold_named, value[:count]))
    return folding.UNKNOWN if is_literal(value) else value


def _goes_on(name: str, decides: bool) -> BlockFunction:
    """Whether the right operand counts: it does unless a constant on the left decides.

    decides: the truth of what decides.
    """
    def rule(context: Context, x: object) -> bool:
        return not is_constant(x) or bool(x) != decides

    def fold(x: object) -> object:
        return bool(x) != decides if _is_known(x) else folding.UNKNOWN

    return _intrinsic(rule, name, fold)


def _joined(name: str, op: str, decides: bool) -> BlockFunction:
    """x op y of bools, of which a constant x did not decide; a constant y may.

    decides: as of _goes_on.
    """
    def rule(context: Context, x: object, y: object) -> object:
        if is_constant(x) or (is_constant(y) and bool(y) == decides):
            return y
        if is_constant(y):
            return x
        values = [_truths(context, operand, op) for operand in (x, y)]
        return context.emit(op, *context.broadcast_together(values, op))

    def fold(x: object, y: object) -> object:
        is_decided = _is_known(y) and bool(y) == decides
        return y if _is_known(x) or is_decided else folding.UNKNOWN

    return _intrinsic(rule, name, fold)


def _is_known(value: object) -> bool:
    return value is not folding.UNKNOWN and not folding.is_opaque(value)


def _truths(context: Context, x: object, op: str) -> Value:
    """An operand of `and` or `or`: bools, or a scalar.

    Errors: BlockTypeError for a tile of numbers.
    """
    x = unwrapped(x)
    if isinstance(x, Value) and x.type.shape and not x.type.is_pointer:
        if x.type.dtype != bool_:
            raise BlockTypeError(f"{op}: given {describe(x)}, accepted bools",
                                 hint="compare it: x != 0")
        return x
    return context.dialect.truth(context, x, op)


def _intrinsic(rule, name: str, fold) -> BlockFunction:
    made = BlockFunction(rule, name)
    made.fold = fold
    return made


INTRINSICS = {made.__name__: made for made in (
    _intrinsic(_named, _NAMED, _fold_named),
    _goes_on(_GOES_ON[ast.And], False), _goes_on(_GOES_ON[ast.Or], True),
    _joined(_JOINED[ast.And], "and", False), _joined(_JOINED[ast.Or], "or", True))}
INTRINSICS[_ASSERTED] = device_assert
