"""Evaluation of the expressions and statements of a kernel's Numba IR, node by node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba.core import ir

from blocknumba.errors import BlockNameError, BlockTypeError, UnsupportedError
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import dtype_of
from blocknumba.typing.attributes import attribute
from blocknumba.typing.calls import apply_operator, call
from blocknumba.typing.context import Context, describe
from blocknumba.typing.dialect import NUMPY_NAME
from blocknumba.typing.functions import debug
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.indexing import load_item, store_item
from blocknumba.typing.numba_ir import folding, idioms, nested
from blocknumba.typing.numba_ir.bytecode import SAVED
from blocknumba.typing.numba_ir.constant_size import require_small
from blocknumba.typing.foreign import hint_for, refuse_numba_cuda
from blocknumba.typing.values import Array, Function, Iteration, Number, SlicedSpan, is_constant
from blocknumba.wording import did_you_mean, shown

Read = Callable[[ir.Var], object]


class Undefined:
    """The value of a variable on paths that do not assign it."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()
_REFUSED_GLOBALS = (dict, set, np.ndarray)
_TUPLE_HINT = "use a tuple: (a, b), or tuple(... for ...)"
_RECORD_HINT = "use variables, a named tuple or a dataclass"
_LITERALS = {"build_list": "list", "build_set": "set", "build_map": "dict"}


def evaluate(context: Context, node: object, read: Read) -> object:
    """The value of the right-hand side of an assignment, its ops being emitted.

    read: variable -> its value.
    Errors: whatever is wrong with it, without a location.
    """
    if isinstance(node, ir.Var):
        return context.settled(read(node))
    if isinstance(node, ir.Expr):
        handler = _HANDLERS.get(node.op)
        if handler is None:
            raise UnsupportedError(f"{_LITERALS.get(node.op, node.op)}: not supported in a kernel",
                                   hint=_RECORD_HINT if node.op == "build_map" else
                                   _TUPLE_HINT if node.op in _LITERALS else "")
        return context.settled(handler(context, node, read))
    if node.value is ir.UNDEFINED:
        raise BlockNameError(f"name {node.name!r} is not defined",
                             hint=hint_for(node.name) or did_you_mean(
                                 node.name, getattr(node, "known", ())))
    if not isinstance(node, ir.Const):
        refuse_numba_cuda(node.value, node.name)
    if isinstance(node.value, _REFUSED_GLOBALS):
        raise UnsupportedError(
            f"{node.name}: given {shown(node.value)} as a constant, accepted numbers, strings, "
            "tuples, dtypes, functions and modules",
            hint="pass it as an argument that is no constexpr" if isinstance(node.value, np.ndarray)
            else _RECORD_HINT if isinstance(node.value, dict) else "use a tuple")
    return node.value


def execute(context: Context, statement: ir.Stmt, read: Read) -> None:
    """Emit the ops of a statement that is not an assignment of a variable."""
    if isinstance(statement, ir.SetItem):
        given = (statement.target, statement.index, statement.value)
        store_item(context, *map(read, given))
        return
    raise UnsupportedError(f"{type(statement).__name__}: not supported in a kernel")


def _operator(context: Context, node: ir.Expr, read: Read) -> object:
    function = node.fn if node.op == "binop" else node.immutable_fn
    operands = (read(node.lhs), read(node.rhs))
    if (node._kws.get("is_unread") and isinstance(operands[0], Array)
            and context.dialect.name == NUMPY_NAME):
        raise BlockTypeError("an update of an array that nothing reads: accepted of its elements",
                             hint="write x[r] += y; x += y moves a pointer")
    return apply_operator(context, function, operands)


def _unary(context: Context, node: ir.Expr, read: Read) -> object:
    return apply_operator(context, folding.UNARY.get(node.fn, node.fn), (read(node.value),))


def _call(context: Context, node: ir.Expr, read: Read) -> object:
    arguments = [read(v) for v in node.args]
    if node.vararg is not None:
        starred = read(node.vararg)
        if not isinstance(starred, tuple):
            raise BlockTypeError(f"a call with *: given {describe(starred)}, accepted a tuple")
        arguments += starred
    return call(context, read(node.func), tuple(arguments), {k: read(v) for k, v in node.kws})


def _getattr(context: Context, node: ir.Expr, read: Read) -> object:
    return attribute(context, read(node.value), node.attr)


def _getitem(context: Context, node: ir.Expr, read: Read) -> object:
    return load_item(context, read(node.value), read(node.index))


def _static_getitem(context: Context, node: ir.Expr, read: Read) -> object:
    return load_item(context, read(node.value), node.index)


def _tuple(context: Context, node: ir.Expr, read: Read) -> tuple:
    items = tuple(read(item) for item in node.items)
    require_small(items)
    return items


def _unpack(context: Context, node: ir.Expr, read: Read) -> tuple:
    value = read(node.value)
    if not isinstance(value, tuple):
        raise BlockTypeError(f"unpacking: given {describe(value)}, accepted a tuple of "
                             f"{node.count}")
    if len(value) != node.count:
        raise BlockTypeError(f"unpacking: given {len(value)} values, accepted {node.count}")
    return value


def _copy(context: Context, node: ir.Expr, read: Read) -> object:
    return read(node.value)


def _iterate(context: Context, node: ir.Expr, read: Read) -> Iteration:
    value = read(node.value)
    if isinstance(value, Iteration):
        return value
    if isinstance(value, range):
        return call(context, range, (value.start, value.stop, value.step), {})
    raise UnsupportedError(
        f"for: given {describe(value)}, accepted range, static_range, spans or a tuple",
        hint=_loop_hint(value))


def _loop_hint(value: object) -> str:
    if isinstance(value, Value) and value.type.shape:
        return "a loop over a tile's elements is an operation on the tile"
    if isinstance(value, Array):
        return f"use for r in bn.spans({value.name.partition(' ')[0]}.shape[0], SIZE)"
    return "use for i in range(...)" if isinstance(value, (int, Value, Number)) else ""


def _start(context: Context, node: ir.Expr, read: Read) -> Value:
    over = read(node.iterator)
    if constant_of(over.step) is None:
        is_step = binary(context, "ne", over.step, 0)
        debug.device_assert.rule(context, is_step, "range: step must not be 0")
    return over.start


def _item(context: Context, node: ir.Expr, read: Read) -> object:
    over = read(node.iterator)
    return over.item(context, over, read(node.counter))


def _valid(context: Context, node: ir.Expr, read: Read) -> Value:
    """Whether the counter has not reached the end, in the direction of the step."""
    over, counter = read(node.iterator), read(node.counter)
    rising = binary(context, "lt", counter, over.stop)
    step = constant_of(over.step)
    if step is not None:
        return rising if step > 0 else binary(context, "gt", counter, over.stop)
    falling = binary(context, "gt", counter, over.stop)
    return context.emit("select", binary(context, "gt", over.step, 0), rising, falling)


def _next(context: Context, node: ir.Expr, read: Read) -> Value:
    """The counter after one step; the end where a step would pass it, which may overflow."""
    over, counter = read(node.iterator), read(node.counter)
    following = binary(context, "add", counter, over.step)
    step = constant_of(over.step)
    if step in (1, -1):
        return following
    down = _is_further(context, counter, over.stop, context.emit("neg", over.step))
    up = _is_further(context, over.stop, counter, over.step)
    if step is None:
        further = context.emit("select", binary(context, "gt", over.step, 0), up, down)
    else:
        further = up if step > 0 else down
    return context.emit("select", further, following, over.stop)


def _is_further(context: Context, high: Value, low: Value, step: Value) -> Value:
    """high - low > step, of high >= low and step > 0, where the difference needs a bit more."""
    unsigned = dtype_of(f"uint{high.type.dtype.bits}")
    difference = context.cast(binary(context, "sub", high, low), unsigned)
    return binary(context, "gt", difference, context.cast(step, unsigned))


def _span(context: Context, node: ir.Expr, read: Read) -> object:
    start = read(node.start)
    return slice(start, start + node.size) if is_constant(start) else SlicedSpan(start, node.size)


def _function(context: Context, node: ir.Expr, read: Read) -> Function:
    return Function(node.nested, tuple(read(variable) for variable in node.kept))


def _kept(context: Context, node: ir.Expr, read: Read) -> object:
    return read(node.value).kept[node.index]


def _undefined(context: Context, node: ir.Expr, read: Read) -> Undefined:
    return UNDEFINED


_HANDLERS = {
    "binop": _operator,
    "inplace_binop": _operator,
    "unary": _unary,
    "call": _call,
    "getattr": _getattr,
    "getitem": _getitem,
    "static_getitem": _static_getitem,
    "build_tuple": _tuple,
    "exhaust_iter": _unpack,
    "cast": _copy,
    "getiter": _iterate,
    SAVED: _copy,
    nested.MAKE: _function,
    nested.KEPT: _kept,
    "undef": _undefined,
    "null": _undefined,
    idioms.START: _start,
    idioms.ITEM: _item,
    idioms.VALID: _valid,
    idioms.NEXT: _next,
    idioms.SPAN: _span,
}
