"""Python at compile time: the value of an expression whose operands are all known."""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numba.core import ir

from blocknumba.errors import BlockError, BlockTypeError, BlockValueError, UnsupportedError
from blocknumba.tile_ir.ir.types import DType, PointerType, dtype_of
from blocknumba.typing.foreign import native, refuse_numba_cuda
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.numba_ir.constant_size import require_small, require_small_result
from blocknumba.typing.numba_ir.nested import KEPT, MAKE, Nested
from blocknumba.typing.records import made_record, method_of, record_of
from blocknumba.typing.static_values import constexpr, unwrapped
from blocknumba.wording import shortened, shown

UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}
MAX_REASON = 200  # characters of Python's own words in a message
PLAIN = (bool, int, float, str, bytes, type(None), tuple, slice, np.generic)


class Unknown:
    """The value of an expression that is not known at compile time."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
_OF_LISTS = "a list is a tuple in a kernel and does not change; make a new one: t = [*t, item]"
_CHANGES_OF_LISTS = frozenset(dir(list)) - frozenset(dir(tuple))


class Opaque:
    """Base of what stands for a value that exists at run time only."""

    __slots__ = ()


@dataclass(eq=False, frozen=True, slots=True)
class Items(Opaque):
    """A tuple of which some items are not known at compile time.

    items: the value of each, UNKNOWN or opaque for some.   kind: its class.
    """

    items: tuple
    kind: type = tuple


@dataclass(frozen=True, slots=True)
class Range(Opaque):
    """A range whose bounds are known at compile time; its loop is one of run time all the same."""

    over: range


@dataclass(eq=False, frozen=True, slots=True)
class Closure(Opaque):
    """A function defined inside a kernel.

    nested: the function; cells: its free variables, as variables of the kernel.
    kept: what is known of the values that it keeps.
    """

    nested: Nested
    cells: tuple[ir.Var, ...]
    kept: tuple

    @property
    def key(self) -> tuple:
        """Key that closures have in common which can be called alike."""
        return self.nested, tuple(cell.name for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Method(Opaque):
    """A method of a record.   function: of the class.   receiver: the variable that has the record.

    value: what is known of it.
    """

    function: object
    receiver: ir.Var
    value: object


_PAIRING = {enumerate, zip, reversed}
_TUPLE_MAKERS = _PAIRING | {sorted}
_FOLDED = {
    getattr(builtins, name)
    for name in ("abs", "all", "any", "bool", "callable", "chr", "divmod", "float", "format",
                 "getattr", "hasattr", "int", "isinstance", "issubclass", "len", "max", "min",
                 "ord", "pow", "repr", "round", "slice", "str", "sum", "tuple", "type")
} | {
    getattr(operator, name)
    for name in ("add", "and_", "contains", "eq", "floordiv", "ge", "getitem", "gt", "index",
                 "inv", "is_", "is_not", "le", "lshift", "lt", "mod", "mul", "ne", "neg", "not_",
                 "or_", "pos", "pow", "rshift", "sub", "truediv", "truth", "xor")
} | {value for value in vars(math).values() if callable(value)} | _TUPLE_MAKERS


def is_plain(value: object) -> bool:
    """Whether arithmetic on a value is Python's or NumPy's own."""
    return isinstance(value, PLAIN)


def same(a: object, b: object) -> bool:
    """Whether two compile-time values cannot be told apart."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Items):
        return a.kind is b.kind and same(a.items, b.items)
    if isinstance(a, Closure):
        return a.key == b.key and same(a.kept, b.kept)
    if isinstance(a, float):
        return repr(a) == repr(b)
    try:
        return bool(a == b) and hash(a) == hash(b)
    except Exception:  # a user's class may raise anything from its __eq__
        return False


def meet(a: object, b: object) -> object:
    """Knowledge of a variable that has value a on one path and b on another."""
    if same(a, b):
        return a
    if isinstance(a, Closure) and isinstance(b, Closure) and a.key == b.key:
        return Closure(a.nested, a.cells, tuple(map(meet, a.kept, b.kept)))
    of_a, of_b = items_of(a), items_of(b)
    if of_a is None or of_b is None or len(of_a) != len(of_b):
        return UNKNOWN
    kinds = {value.kind if isinstance(value, Items) else tuple for value in (a, b)}
    if kinds != {tuple}:
        met = Items(tuple(map(meet, of_a, of_b)), kinds.pop()) if len(kinds) == 1 else UNKNOWN
        return a if same(a, met) else met
    met = as_tuple(map(meet, of_a, of_b))
    return a if same(a, met) else met


def items_of(value: object) -> tuple | None:
    """The items of a tuple, as far as they are known; None for what is no plain tuple."""
    if isinstance(value, Items):
        return value.items
    return value if type(value) is tuple else None


def as_tuple(items: Iterable[object]) -> tuple | Items:
    """The tuple of these items."""
    items = tuple(items)
    require_small(items)
    return Items(items) if any(i is UNKNOWN or is_opaque(i) for i in items) else items


def fold_operator(function: Callable, operands: Sequence[object]) -> object:
    """function(*operands), or UNKNOWN when an operand has no arithmetic of its own.

    Errors: BlockValueError or BlockTypeError when Python raises.
    """
    if function in (operator.is_, operator.is_not):
        return function(*operands)
    if not all(map(is_plain, operands)):
        if function not in (operator.eq, operator.ne) or any(map(is_opaque, operands)):
            return UNKNOWN
        return _equal(*operands) == (function is operator.eq)
    return _guarded(function, operands, {})


def fold_call(function: object, arguments: Sequence[object], keywords: dict[str, object]) -> object:
    """function(*arguments, **keywords) when it is one that Python can answer now, else UNKNOWN."""
    if not is_folded(function):
        return UNKNOWN
    if function is isinstance and len(arguments) == 2 and not keywords and _names_constexpr(
            arguments[1]):
        return True  # a kernel has a constexpr as the value itself
    if _gives_limits(function):
        arguments = [_dtype_for(function, argument) for argument in arguments]
    result = unwrapped(_guarded(function, arguments, keywords))
    return tuple(result) if function in _TUPLE_MAKERS else result


def _names_constexpr(classes: object) -> bool:
    return constexpr in (classes if isinstance(classes, tuple) else (classes,))


def _gives_limits(function: object) -> bool:
    """Whether a callable is `finfo` or `iinfo` of NumPy, Torch, ml_dtypes or another library."""
    return isinstance(function, type) and function.__name__ in ("finfo", "iinfo")


def _dtype_for(function: type, dtype: object) -> object:
    """A dtype of ours as the library of `function` has it; any other value as it is."""
    if not isinstance(dtype, DType):
        return dtype
    library = function.__module__.partition(".")[0]
    is_numpys = library in ("numpy", "ml_dtypes")
    return dtype.numpy if is_numpys else getattr(sys.modules[library], dtype.name)


def fold_attribute(value: object, name: str) -> object:
    """value.name, or UNKNOWN when it has none.

    Errors: UnsupportedError for what numba.cuda has for kernels of threads, and for what changes
    a list.
    """
    kind = value.kind if isinstance(value, Items) else type(value)
    if kind is tuple and name in _CHANGES_OF_LISTS:
        what = shown(value) if isinstance(value, tuple) else "a tuple"
        raise UnsupportedError(f"{what} has no attribute {name!r}", hint=_OF_LISTS)
    if isinstance(value, Items) and name in getattr(value.kind, "_fields", ()):
        return value.items[value.kind._fields.index(name)]
    if is_opaque(value) or (type(value) is tuple and name != "value"):
        return UNKNOWN
    found = native(getattr(value, name, UNKNOWN))
    is_value = is_plain(value) or isinstance(value, DType | PointerType)
    if found is UNKNOWN and name == "value" and is_value:
        return value  # of a constexpr, which a kernel has as the value itself
    if isinstance(found, int):
        require_small(found)
    refuse_numba_cuda(found, f"cuda.{name}")
    return found


def fold_expression(expression: ir.Expr, values: dict[str, object]) -> object:
    """The value of an expression, from those of its variables that are known; else UNKNOWN."""
    handler = _HANDLERS.get(expression.op)
    return UNKNOWN if handler is None else handler(expression, values)


def _fold_binary(expression: ir.Expr, values: dict[str, object]) -> object:
    left = values.get(expression.lhs.name, UNKNOWN)
    right = values.get(expression.rhs.name, UNKNOWN)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    function = expression.fn if expression.op == "binop" else expression.immutable_fn
    if isinstance(left, Items) or isinstance(right, Items):
        return _fold_items(function, left, right)
    return fold_operator(function, (left, right))


def _fold_items(function: Callable, left: object, right: object) -> object:
    """The concatenation or repetition of tuples whose items are not all known."""
    of_left, of_right = items_of(left), items_of(right)
    if function is operator.add and of_left is not None and of_right is not None:
        return as_tuple(of_left + of_right)
    if function is operator.mul and type(right if of_left is not None else left) is int:
        repeated = (of_left, right) if of_left is not None else (left, of_right)
        return as_tuple(_guarded(operator.mul, repeated, {}))
    if function in (operator.is_, operator.is_not):
        return function is operator.is_not
    return UNKNOWN


def _fold_unary(expression: ir.Expr, values: dict[str, object]) -> object:
    value = values.get(expression.value.name, UNKNOWN)
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, Items) and expression.fn == "not":
        return not value.items
    return fold_operator(UNARY.get(expression.fn, expression.fn), (value,))


def _fold_getattr(expression: ir.Expr, values: dict[str, object]) -> object:
    value = values.get(expression.value.name, UNKNOWN)
    kind = value.kind if isinstance(value, Items) else type(value)
    if hasattr(kind, "_fields") and issubclass(kind, tuple):
        method = method_of(kind, expression.attr)
        if method is not None:
            return Method(method, expression.value, value)
    return UNKNOWN if value is UNKNOWN else fold_attribute(value, expression.attr)


def _fold_tuple(expression: ir.Expr, values: dict[str, object]) -> object:
    return as_tuple(values.get(item.name, UNKNOWN) for item in expression.items)


def _fold_item(expression: ir.Expr, values: dict[str, object]) -> object:
    return _item(values.get(expression.value.name, UNKNOWN),
                 values.get(expression.index.name, UNKNOWN))


def _fold_static_item(expression: ir.Expr, values: dict[str, object]) -> object:
    return _item(values.get(expression.value.name, UNKNOWN), expression.index)


def _item(value: object, index: object) -> object:
    if index is UNKNOWN or is_opaque(index) or not isinstance(value, (tuple, str, Items)):
        return UNKNOWN
    if not isinstance(value, Items):
        return _guarded(operator.getitem, (value, index), {})
    found = _guarded(operator.getitem, (value.items, index), {})
    return as_tuple(found) if isinstance(index, slice) else found


def _fold_unpack(expression: ir.Expr, values: dict[str, object]) -> object:
    value = values.get(expression.value.name, UNKNOWN)
    items = value if isinstance(value, tuple) else items_of(value)
    return value if items is not None and len(items) == expression.count else UNKNOWN


def _fold_made(expression: ir.Expr, values: dict[str, object]) -> Closure:
    kept = tuple(values.get(variable.name, UNKNOWN) for variable in expression.kept)
    return Closure(expression.nested, expression.cells, kept)


def _fold_kept(expression: ir.Expr, values: dict[str, object]) -> object:
    function = values.get(expression.value.name, UNKNOWN)
    return function.kept[expression.index] if isinstance(function, Closure) else UNKNOWN


def _fold_call(expression: ir.Expr, values: dict[str, object]) -> object:
    function = values.get(expression.func.name, UNKNOWN)
    if function is UNKNOWN or expression.vararg is not None:
        return UNKNOWN
    if isinstance(function, BlockFunction) and function.fold is not None and not expression.kws:
        return function.fold(*(values.get(item.name, UNKNOWN) for item in expression.args))
    if function is range:
        bounds = [values.get(item.name, UNKNOWN) for item in expression.args]
        is_known = all(type(bound) is int for bound in bounds) and not expression.kws
        is_valid = 1 <= len(bounds) <= 3 and 0 not in bounds[2:]
        return Range(range(*bounds)) if is_known and is_valid else UNKNOWN
    if isinstance(function, Method):
        return _fold_method(function, expression, values)
    is_record = record_of(function) is not None
    if not is_record and not is_folded(function):
        return UNKNOWN
    arguments = [values.get(item.name, UNKNOWN) for item in expression.args]
    keywords = {name: values.get(item.name, UNKNOWN) for name, item in expression.kws}
    if is_record:
        made = made_record(function, tuple(arguments), keywords)
        is_open = any(item is UNKNOWN or is_opaque(item) for item in made)
        return Items(tuple(made), type(made)) if is_open else made
    if any(value is UNKNOWN or is_opaque(value) for value in (*arguments, *keywords.values())):
        return _fold_call_of_items(function, arguments) if not keywords else UNKNOWN
    return fold_call(function, arguments, keywords)


def _fold_method(method: Method, expression: ir.Expr, values: dict[str, object]) -> object:
    """The result of a method that runs at compile time; of others nothing is known."""
    if not getattr(method.function, "__compile_time__", False):
        return UNKNOWN
    receiver = method.value
    if isinstance(receiver, Items):
        receiver = receiver.kind(*receiver.items)
    arguments = [values.get(item.name, UNKNOWN) for item in expression.args]
    keywords = {name: values.get(item.name, UNKNOWN) for name, item in expression.kws}
    return run(method.function, [receiver, *arguments], keywords)


def run(function: Callable, arguments: Sequence[object], keywords: dict[str, object]) -> object:
    """The result of a function of the user's that runs at compile time.

    Errors: BlockValueError or BlockTypeError where it raises.
    """
    return unwrapped(_guarded(function, arguments, keywords))


def _fold_call_of_items(function: object, arguments: Sequence[object]) -> object:
    """Results of calls that Python knows of tuples without knowing all items."""
    if not all(items_of(argument) is not None for argument in arguments):
        return UNKNOWN
    items = [items_of(argument) for argument in arguments]
    if function in (len, bool, operator.not_, operator.truth) and len(items) == 1:
        return function(items[0])
    if function is tuple and len(items) == 1:
        return arguments[0]
    if function not in _PAIRING:
        return UNKNOWN
    made = _guarded(function, items, {})
    return as_tuple(as_tuple(m) if function is not reversed else m for m in made)


def _fold_cast(expression: ir.Expr, values: dict[str, object]) -> object:
    return values.get(expression.value.name, UNKNOWN)


def is_exception(value: object) -> bool:
    """Whether a value is an exception class."""
    return isinstance(value, type) and issubclass(value, BaseException)


def is_opaque(value: object) -> bool:
    """Whether a value stands for one that exists at run time only."""
    return isinstance(value, Opaque)


def _equal(a: object, b: object) -> bool:
    """a == b, all spellings of one dtype being equal."""
    if isinstance(a, DType) or isinstance(b, DType):
        try:
            return dtype_of(a) == dtype_of(b)
        except BlockError:
            return False
    return bool(a == b)


def is_folded(function: object) -> bool:
    if (getattr(function, "__compile_time__", False) or is_exception(function)
            or _gives_limits(function)):
        return True
    if isinstance(function, (types.BuiltinMethodType, types.MethodType)):
        receiver = function.__self__
        if isinstance(receiver, (str, bytes, int, float)) and not isinstance(receiver, type):
            return True
    try:
        return function in _FOLDED
    except TypeError:  # unhashable
        return False


def _guarded(function: Callable, arguments: Sequence[object],
             keywords: dict[str, object]) -> object:
    require_small_result(function, arguments, keywords)
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments, **keywords)
    except BlockError:
        raise
    except (TypeError, AttributeError) as error:
        reason = shortened(str(error), MAX_REASON)
        raise BlockTypeError(f"in a compile-time expression: {reason}") from error
    except Exception as error:  # whatever Python raises is the user's mistake
        reason = shortened(str(error), MAX_REASON) or type(error).__name__
        raise BlockValueError(f"in a compile-time expression: {reason}") from error
    require_small(result)
    return result


_HANDLERS = {
    "binop": _fold_binary,
    "inplace_binop": _fold_binary,
    "unary": _fold_unary,
    "getattr": _fold_getattr,
    "build_tuple": _fold_tuple,
    "getitem": _fold_item,
    "static_getitem": _fold_static_item,
    "exhaust_iter": _fold_unpack,
    "call": _fold_call,
    "cast": _fold_cast,
    MAKE: _fold_made,
    KEPT: _fold_kept,
}
