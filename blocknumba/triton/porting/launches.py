"""Values of arguments, guessed from the launches of a kernel in the file that defines it.

    def norm(x, eps: float = 1e-6):
        rows, columns = x.shape
        out = torch.empty(rows, columns, dtype=torch.float32, device=x.device)
        kernel[(rows,)](x, out, x.stride(0), columns, eps, BLOCK=triton.next_power_of_2(columns))

    x -> Array(rank=2)   out -> Array("fp32", rank=2)   eps -> 1e-6
    x.stride(0), columns, BLOCK -> 64

Functions are read, never run.  Nothing is known of the extents of arrays: each is 64, or 4 before
the last two.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

EXTENT, OUTER_EXTENT = 64, 4
_ELEMENTS = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32",
             "float": "fp32", "float64": "fp64", "double": "fp64", "int8": "i8", "int16": "i16",
             "int32": "i32", "int": "i32", "int64": "i64", "long": "i64", "uint8": "u8",
             "bool": "i1", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
_MADE = frozenset(("empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor",
                   "new_empty", "new_zeros", "new_ones", "new_full"))
_ALIKE = frozenset(("empty_like", "zeros_like", "ones_like", "full_like", "rand_like"))
_SAME = frozenset(("contiguous", "view", "reshape", "to", "clone", "detach", "transpose", "permute",
                   "unsqueeze", "squeeze", "expand", "flatten", "cuda"))
_ACROSS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
           ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.Mod: operator.mod,
           ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift}
_COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
             ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_DEEPEST = 24  # assignments followed, which may name each other in turn


@dataclass(frozen=True, slots=True)
class Array:
    """An array.  element: "fp32" and the like, None for any floats.  rank: None if not known."""

    element: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """A dtype.  name: "fp32" and the like."""

    name: str


class Unknown(Exception):
    """Nothing is known of an expression."""


@dataclass
class _Scope:
    """The function that launches: its parameters and assignments, and the globals around it."""

    globals: Mapping[str, object]
    annotations: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[tuple[ast.expr, int | None]]] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)


def launched(tree: ast.Module, name: str, parameters: list[str],
             globals: Mapping[str, object]) -> dict[str, object]:
    """The values that the first launch of a kernel in a file gives its parameters, if known.

    An array is an Array, a dtype an Element; numbers, strings and None are themselves.
    """
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _launches(call, name):
                    scope = _scope_of(function, globals)
                    return dict(_values(call, parameters, scope))
    return {}


def _launches(call: ast.Call, name: str) -> bool:
    """Whether it is kernel[grid](...) or kernel.run(...)."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "run":
        function = ast.Subscript(function.value, ast.Constant(0))
    return isinstance(function, ast.Subscript) and isinstance(
        function.value, ast.Name) and function.value.id == name


def _values(call: ast.Call, parameters: list[str],
            scope: _Scope) -> Iterator[tuple[str, object]]:
    given = dict(zip(parameters, _until_starred(call.args)))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in parameters}
    for name, expression in given.items():
        try:
            yield name, _value(expression, scope, 0)
        except (Unknown, ArithmeticError, TypeError, ValueError):
            continue


def _until_starred(arguments: list[ast.expr]) -> Iterator[ast.expr]:
    for argument in arguments:
        if isinstance(argument, ast.Starred):
            return
        yield argument


def _scope_of(function: ast.FunctionDef | ast.AsyncFunctionDef,
              globals: Mapping[str, object]) -> _Scope:
    scope = _Scope(globals)
    arguments = [*function.args.posonlyargs, *function.args.args]
    defaults = [*zip(reversed(arguments), reversed(function.args.defaults)),
                *zip(function.args.kwonlyargs, function.args.kw_defaults)]
    for argument in (*arguments, *function.args.kwonlyargs):
        if argument.annotation is not None:
            scope.annotations[argument.arg] = ast.unparse(argument.annotation)
    for argument, default in defaults:
        if default is not None:
            scope.values.setdefault(argument.arg, []).append((default, None))
    for node in ast.walk(function):
        _read(node, scope)
    return scope


def _read(node: ast.AST, scope: _Scope) -> None:
    """Keep what a statement assigns, and the ranks that uses of arrays show."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _read_target(target, node.value, scope)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        _read_target(node.target, node.value, scope)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
            node.func.attr in ("stride", "size") and node.args):
        _read_axis(node.func.value, node.args[0], scope)
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and (
            node.value.attr == "shape"):
        _read_axis(node.value.value, node.slice, scope)


def _read_target(target: ast.expr, value: ast.expr, scope: _Scope) -> None:
    if isinstance(target, ast.Name):
        scope.values.setdefault(target.id, []).append((value, None))
    elif isinstance(target, ast.Tuple):
        parts = list(target.elts)
        value = _unstarred(value, len(parts))
        for part in getattr(value, "elts", ()):
            _read(part, scope)
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            _read_axis(value.value, ast.Constant(len(parts) - 1), scope)
        for number, part in enumerate(parts):
            if isinstance(part, ast.Name):
                scope.values.setdefault(part.id, []).append((value, number))


def _unstarred(value: ast.expr, count: int) -> ast.expr:
    """A tuple of count parts, whose stars are shapes: *x.shape is x.shape[0], x.shape[1] ..."""
    if not isinstance(value, ast.Tuple) or not any(
            isinstance(part, ast.Starred) for part in value.elts):
        return value
    parts = []
    for part in value.elts:
        if isinstance(part, ast.Starred):
            parts += [ast.Subscript(part.value, ast.Constant(number))
                      for number in range(count - len(value.elts) + 1)]
        else:
            parts.append(part)
    return ast.Tuple(parts)


def _read_axis(array: ast.expr, axis: ast.expr, scope: _Scope) -> None:
    if isinstance(array, ast.Name) and isinstance(axis, ast.Constant) and isinstance(
            axis.value, int):
        least = axis.value + 1 if axis.value >= 0 else -axis.value
        scope.ranks[array.id] = max(scope.ranks.get(array.id, 1), least)


def _value(node: ast.expr, scope: _Scope, depth: int) -> object:
    """The value of an expression.  Errors: Unknown."""
    if depth > _DEEPEST:
        raise Unknown
    rule = _RULES.get(type(node))
    if rule is None:
        raise Unknown
    return rule(node, scope, depth + 1)


def _constant(node: ast.Constant, scope: _Scope, depth: int) -> object:
    return node.value


def _name(node: ast.Name, scope: _Scope, depth: int) -> object:
    name = node.id
    found, is_none = None, False
    for value, number in scope.values.get(name, ()):
        if isinstance(value, ast.Name) and value.id == name:
            continue
        try:
            found = _value(value, scope, depth) if number is None else _part(
                value, number, scope, depth)
        except (Unknown, ArithmeticError, TypeError, ValueError):
            continue
        is_none = found is None
        if not is_none:
            break
    annotation = scope.annotations.get(name, "")
    if isinstance(found, Array) or (found is None and "Tensor" in annotation):
        return Array(getattr(found, "element", None),
                     scope.ranks.get(name, getattr(found, "rank", None)))
    if found is not None:
        return found
    by_annotation = {"int": EXTENT, "bool": False, "float": 1.0}
    if annotation in by_annotation:
        return by_annotation[annotation]
    if is_none and name not in scope.ranks:
        return None
    if name in scope.values or annotation:
        return _nothing(name, scope)
    if isinstance(scope.globals.get(name), bool | int | float | str):
        return scope.globals[name]
    return _nothing(name, scope)


def _nothing(name: str, scope: _Scope) -> object:
    """An array, when a name is used as one."""
    if name in scope.ranks:
        return Array(None, scope.ranks[name])
    raise Unknown


def _part(value: ast.expr, number: int, scope: _Scope, depth: int) -> object:
    if isinstance(value, ast.Tuple | ast.List) and number < len(value.elts):
        return _value(value.elts[number], scope, depth)
    if isinstance(value, ast.Attribute) and value.attr == "shape":
        return _extent(value.value, number, scope, depth)
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "stride":
        return _stride(value.func.value, number, scope, depth)
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "size":
        return _extent(value.func.value, number, scope, depth)
    raise Unknown


def _rank(array: ast.expr, axis: int, scope: _Scope, depth: int) -> int:
    try:
        found = _value(array, scope, depth)
    except Unknown:
        found = None
    rank = getattr(found, "rank", None) or 1
    return max(rank, axis + 1 if axis >= 0 else -axis)


def _extent(array: ast.expr, axis: int, scope: _Scope, depth: int) -> int:
    rank = _rank(array, axis, scope, depth)
    return EXTENT if axis % rank >= rank - 2 else OUTER_EXTENT


def _stride(array: ast.expr, axis: int, scope: _Scope, depth: int) -> int:
    rank = _rank(array, axis, scope, depth)
    return math.prod(_extent(array, inner, scope, depth)
                     for inner in range(axis % rank + 1, rank)) if rank > 1 else 1


def _attribute(node: ast.Attribute, scope: _Scope, depth: int) -> object:
    if node.attr == "dtype":
        found = _value(node.value, scope, depth)
        if isinstance(found, Array):
            return Element(found.element or "fp16")
        raise Unknown
    if node.attr == "ndim":
        return _rank(node.value, 0, scope, depth)
    if node.attr in _ELEMENTS:
        return Element(_ELEMENTS[node.attr])
    if node.attr in ("T", "mT", "data"):
        return _value(node.value, scope, depth)
    if node.attr == "inf" or node.attr == "pi":
        return getattr(math, node.attr)
    raise Unknown


def _subscript(node: ast.Subscript, scope: _Scope, depth: int) -> object:
    value = node.value
    if isinstance(value, ast.Attribute) and value.attr == "shape":
        return _extent(value.value, _value(node.slice, scope, depth), scope, depth)
    return _value(value, scope, depth) if isinstance(
        _value(value, scope, depth), Array) else _unknown()


def _unknown() -> object:
    raise Unknown


def _call(node: ast.Call, scope: _Scope, depth: int) -> object:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in ("stride", "size") and isinstance(function, ast.Attribute) and node.args:
        axis = _value(node.args[0], scope, depth)
        return (_stride if name == "stride" else _extent)(function.value, axis, scope, depth)
    if name in _MADE or name in _ALIKE or name in _SAME or name in ("float", "half", "long", "int"):
        return _made(name, node, given, scope, depth)
    if name in ("numel", "nelement"):
        return EXTENT * EXTENT
    if name in ("element_size", "itemsize"):
        return 2
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*(_value(part, scope, depth) for part in node.args))
    raise Unknown


def _made(name: str, node: ast.Call, given: Mapping[str, ast.expr], scope: _Scope,
          depth: int) -> object:
    """The array that a function of Torch makes, or a number converted."""
    dtype = given.get("dtype")
    base = Array()
    if name in _ALIKE and node.args:
        base = _value(node.args[0], scope, depth)
    elif isinstance(node.func, ast.Attribute) and (name in _SAME or name not in _MADE):
        base = _receiver(node.func.value, scope, depth)
        if name == "to" and node.args:
            dtype = node.args[0]
    elif name in ("int", "float") and node.args:
        return {"int": int, "float": float}[name](_value(node.args[0], scope, depth))
    elif node.args:
        base = Array(None, _rank_of_shape(node, name))
    element = getattr(base, "element", None)
    if dtype is not None:
        try:
            found = _value(dtype, scope, depth)
        except Unknown:
            found = None
        element = found.name if isinstance(found, Element) else element
    elif name in _ELEMENTS and not node.args:
        element = _ELEMENTS[name]
    elif name in ("randint", "arange"):
        element = "i64"
    return Array(element, getattr(base, "rank", None))


def _receiver(node: ast.expr, scope: _Scope, depth: int) -> object:
    """An array, since one of its methods is called."""
    try:
        found = _value(node, scope, depth)
    except Unknown:
        found = None
    return found if isinstance(found, Array) else Array()


def _rank_of_shape(node: ast.Call, name: str) -> int | None:
    first = node.args[0]
    if isinstance(first, ast.Tuple | ast.List):
        return len(first.elts) or None
    if isinstance(first, ast.Attribute | ast.Name | ast.Starred):
        return None if len(node.args) == 1 else len(node.args)
    return len(node.args) if name in ("empty", "zeros", "ones", "rand", "randn") else None


def _next_power_of_2(number: int) -> int:
    return 1 << max(int(number) - 1, 0).bit_length()


_FUNCTIONS = {"next_power_of_2": _next_power_of_2, "cdiv": lambda a, b: -(-a // b), "min": min,
              "max": max, "sqrt": math.sqrt, "log2": math.log2, "ceil": math.ceil, "abs": abs,
              "is_contiguous": lambda *_: True, "rsqrt": lambda x: x ** -0.5, "round": round}


def _binary(node: ast.BinOp, scope: _Scope, depth: int) -> object:
    left, right = _value(node.left, scope, depth), _value(node.right, scope, depth)
    for side in (left, right):
        if isinstance(side, Array):
            return side
    if type(node.op) not in _ACROSS or not all(
            isinstance(side, bool | int | float) for side in (left, right)):
        raise Unknown
    if isinstance(node.op, ast.Pow | ast.LShift) and abs(right) > 64:
        raise Unknown
    return _ACROSS[type(node.op)](left, right)


def _unary(node: ast.UnaryOp, scope: _Scope, depth: int) -> object:
    value = _value(node.operand, scope, depth)
    if isinstance(node.op, ast.Not):
        return not value
    return -value if isinstance(node.op, ast.USub) else value


def _compared(node: ast.Compare, scope: _Scope, depth: int) -> object:
    if len(node.ops) != 1:
        raise Unknown
    sign, other = node.ops[0], node.comparators[0]
    try:
        left = _value(node.left, scope, depth)
    except Unknown:
        if isinstance(sign, ast.Is | ast.IsNot):
            left = None if isinstance(sign, ast.Is) else Array()
        else:
            raise
    right = _value(other, scope, depth)
    if isinstance(sign, ast.Is | ast.IsNot):
        return (left is right) == isinstance(sign, ast.Is)
    if type(sign) not in _COMPARED:
        raise Unknown
    return bool(_COMPARED[type(sign)](left, right))


def _boolean(node: ast.BoolOp, scope: _Scope, depth: int) -> object:
    result = None
    for part in node.values:
        result = _value(part, scope, depth)
        if bool(result) == isinstance(node.op, ast.Or):
            return result
    return result


def _either(node: ast.IfExp, scope: _Scope, depth: int) -> object:
    try:
        chosen = node.body if _value(node.test, scope, depth) else node.orelse
    except Unknown:
        chosen = node.body
    return _value(chosen, scope, depth)


_RULES = {ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute,
          ast.Subscript: _subscript, ast.Call: _call, ast.BinOp: _binary, ast.UnaryOp: _unary,
          ast.Compare: _compared, ast.BoolOp: _boolean, ast.IfExp: _either}
