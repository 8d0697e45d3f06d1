"""Printing, assertions and hints."""

from __future__ import annotations

from blocknumba.errors import BlockAssertionError, BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import bool_
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.functions.elementwise import truth
from blocknumba.typing.static_values import static, static_int
from blocknumba.typing.values import Array, Number, is_constant, leaves, unwrapped


@function
def device_print(context, prefix, *values, hex=False):
    """Print prefix and every element of values, from each program.

    prefix: a compile-time string, after which a colon is written.  hex: print integers in base 16;
    so are pointers, as addresses, and what is printed with them.

    Example:
    >>> bn.evaluate(lambda x: bn.device_print("x", x), [1, 2])
    pid (0, 0, 0) idx (0) x: 1
    pid (0, 0, 0) idx (1) x: 2
    """
    text = static("device_print: prefix", prefix)
    if not isinstance(text, str):
        values, text = (prefix, *values), ""
    shown = [context.value(unwrapped(v), what="device_print") for v in values]
    has_pointers = any(value.type.is_pointer for value in shown)
    hexadecimal = {"hexadecimal": True} if static("device_print: hex", hex) or has_pointers else {}
    shown = [context.emit("address", v) if v.type.is_pointer else v for v in shown]
    context.emit("print", *shown, prefix=_label(text), **hexadecimal)


@function
def print_(context, *values, sep=" "):
    """Python's print: constants are written into the text, tiles and scalars after it."""
    separator = _text("print: sep", sep)
    for value in values:
        require(not isinstance(value, Array), "print: given {}, accepted tiles and numbers",
                describe(value), hint=loading_hint(value))
    text = separator.join(_printed(v) for v in values if is_constant(v))
    shown = [leaf for v in values if not is_constant(v) for leaf in leaves(v)]
    context.emit("print", *shown, prefix=_label(text))


def _label(text: str) -> str:
    """A text before values, which a colon of its own follows."""
    return text.rstrip().removesuffix(":")


@function
def static_print(context, *values, sep=" ", end="\n"):
    """Print values, or their types, while the kernel is compiled.

    Example:
    >>> bn.evaluate(lambda x: bn.static_print("x is", x), [1, 2])
    x is tile<2xint64>
    """
    between, last = _text("static_print: sep", sep), _text("static_print: end", end)
    if not context.is_inference:
        print(*(_printed(v) if is_constant(v) else describe(v) for v in values), sep=between,
              end=last)


@function
def static_assert(context, condition, message=""):
    """Stop the compilation unless a compile-time condition holds.

    Errors: BlockAssertionError with message.

    Example:
    >>> @bn.jit
    ... def halves(x, N: bn.constexpr):
    ...     bn.static_assert(N % 2 == 0, "N must be even")
    >>> try:
    ...     halves[1](np.zeros(4), 3)
    ... except bn.errors.BlockError as error:
    ...     print(error.message)
    static_assert: N must be even
    """
    if not static("static_assert: condition", condition):
        reason = message if isinstance(message, str) else describe(message)
        raise BlockAssertionError(f"static_assert: {reason or 'the condition does not hold'}")


@function
def debug_barrier(context):
    """Nothing: a program sees its own stores, and the compiler places the barriers it needs.

    Accepted for Triton's kernels.

    Example:
    >>> @bn.jit
    ... def turned(x):
    ...     r = bn.span(0, 4)
    ...     x[r] = bn.flip(x[r])
    ...     bn.debug_barrier()
    ...     x[r] = x[r] * 10
    >>> x = np.arange(4)
    >>> _ = turned[1](x)
    >>> x
    array([30, 20, 10,  0])
    """


@function
def device_assert(context, condition, message="", mask=None):
    """With debug=True, stop the kernel where an element of condition is false.

    mask: check only where it is true.

    Example:
    >>> @bn.jit
    ... def root(x, out):
    ...     bn.device_assert(x[0] >= 0, "a negative number")
    ...     out[0] = bn.sqrt(x[0])
    >>> try:
    ...     root[1](np.array([-4.0]), np.zeros(1), debug=True)
    ... except bn.errors.BlockError as error:
    ...     print(error.message)
    a negative number: false in program (0, 0, 0)
    """
    if not context.options.debug:
        return
    checked = context.cast(context.value(unwrapped(condition), what="device_assert"), bool_)
    if mask is not None:
        ignored = context.emit("invert", context.cast(context.value(mask), bool_))
        both = context.broadcast_together([checked, ignored], "device_assert")
        checked = context.emit("or", *both)
    reason = static("device_assert: message", message)
    context.emit("assert", checked,
                 message=reason if isinstance(reason, str) else describe(reason))


@function
def assume(context, condition):
    """Promise that a scalar condition holds; a program in which it does not has no meaning.

    Example:
    >>> @bn.jit
    ... def rows(x, n):
    ...     bn.assume(n % 16 == 0)
    ...     x[bn.span(0, 4)] = n
    >>> x = np.zeros(4, np.int32)
    >>> _ = rows[1](x, 32)
    >>> x
    array([32, 32, 32, 32], dtype=int32)
    """
    context.emit("assume", truth(context, condition, "assume"))


def _printed(value: object) -> str:
    """A constant as print shows it."""
    try:
        return str(value)
    except Exception:  # a user's class may raise anything from its __str__
        return describe(value)


def _text(name: str, value: object) -> str:
    """A string known at compile time."""
    require(isinstance(static(name, value), str), "{}: given {!r}, accepted a string", name, value)
    return value


def _hint(name: str, promise: str, doc: str) -> BlockFunction:
    def rule(context: Context, x, values):
        if promotion.is_literal(x):
            return x
        if isinstance(x, Number):
            return Number(rule(context, x.value, values))
        x = x.pointer if isinstance(x, Array) else x
        if not isinstance(x, Value):
            raise BlockTypeError(f"{name}: given {describe(x)}, accepted a tile or a scalar")
        numbers = values if isinstance(values, tuple) else (values,)
        if len(numbers) == 1 and x.type.shape:
            numbers = numbers * len(x.type.shape)
        return context.emit("hint", x, **{promise: tuple(static_int(name, n) for n in numbers)})

    rule.__doc__ = doc
    return BlockFunction(rule, name)


multiple_of = _hint("multiple_of", "divisibility", """x, assumed to start at a multiple of values.

    Each run of consecutive elements does.  A hint for wide accesses; it changes no value.

    Example:
    >>> bn.evaluate(bn.multiple_of, [0, 16], 16)
    array([ 0, 16])""")
max_contiguous = _hint("max_contiguous", "contiguity", """x, assumed to be runs that rise by 1.

    The runs are aligned and have values elements.  A hint for wide accesses; it changes no value.

    Example:
    >>> bn.evaluate(bn.max_contiguous, [4, 5, 6, 7], 4)
    array([4, 5, 6, 7])""")
max_constancy = _hint("max_constancy", "constancy", """x, assumed to be runs of equal elements.

    The runs are aligned and have values elements.  A hint; it changes no value.

    Example:
    >>> bn.evaluate(bn.max_constancy, [5, 5, 6, 6], 2)
    array([5, 5, 6, 6])""")
