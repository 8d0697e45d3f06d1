"""Limits on the sizes of compile-time values, checked before Python makes them.

Constants are folded by Python itself, which would fill all memory with `(1,) * 10**10`, and take
hours for `pow(3, 10**10)`.  A tuple or a string that was made before, as a global, may be larger.
"""

from __future__ import annotations

import builtins
import inspect
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from blocknumba.errors import BlockValueError, require

MAX_BITS = 1 << 12  # of an int
MAX_ITEMS = 1 << 16  # of a tuple, those of tuples in it included, and characters of a string
MAX_DEPTH = 64  # of tuples in tuples
_OUTSIDE = "compute it outside of the kernel, as a global or as an argument that is a constant"
_DIGITS = re.compile(r"\d+")
_WIDTH_IS_GIVEN = re.compile(r"\*|:[^}]*\{")  # by another value: "%*d", "{:{}}"


def require_small_result(function: Callable, arguments: Sequence[object],
                         keywords: Mapping[str, object]) -> None:
    """Check the size of function(*arguments, **keywords), which has not been called.

    Errors: BlockValueError.
    """
    receiver = getattr(function, "__self__", None)
    if isinstance(receiver, (str, bytes, int)):
        estimate, arguments = _METHODS.get(function.__name__), (receiver, *arguments)
    else:
        estimate = _by_identity(function)
    if estimate is None:
        return
    try:
        bound = _SIGNATURES[estimate].bind(*arguments, **keywords)
    except TypeError:
        return  # Python refuses the call, and says why
    estimate(*bound.args, **bound.kwargs)


def require_small(value: object) -> None:
    """Check the size of a value that was made.

    Errors: BlockValueError.
    """
    if isinstance(value, int):
        _require_bits(value.bit_length())
    elif isinstance(value, (str, bytes, tuple)):
        _require_items(item_count(value))


def item_count(value: object, depth: int = 0) -> int:
    """Items of a tuple, with those of tuples in it, or characters of a string, at least 1.

    depth: of tuples in tuples, around the value.
    Counting stops soon after MAX_ITEMS: tuples of one tuple have far more items than memory.
    """
    if isinstance(value, (str, bytes)):
        return max(len(value), 1)
    items = value if isinstance(value, tuple) else getattr(value, "items", None)
    if not isinstance(items, tuple):  # nor folding.Items, a tuple that is known in part
        return 1
    require(depth < MAX_DEPTH, "a compile-time value: accepted at most {} tuples in each other",
            MAX_DEPTH, error=BlockValueError)
    count = 0
    for item in items:
        count += item_count(item, depth + 1)
        if count > MAX_ITEMS:
            break
    return max(count, 1)


def _require_bits(bits: float) -> None:
    require(bits <= MAX_BITS, "a compile-time int: accepted at most {} bits", MAX_BITS,
            error=BlockValueError)


def _require_items(count: int) -> None:
    require(count <= MAX_ITEMS, "a compile-time value: given {} items or characters, accepted at "
            "most {}", count, MAX_ITEMS, error=BlockValueError, hint=_OUTSIDE)


def _by_identity(function: Callable) -> Callable | None:
    try:
        return _FUNCTIONS.get(function)
    except TypeError:  # unhashable
        return None


def _is_int(*values: object) -> bool:
    return all(isinstance(value, int) for value in values)


def _multiply(x: object, y: object) -> None:
    if _is_int(x, y):
        _require_bits(x.bit_length() + y.bit_length())
    elif isinstance(x, (str, bytes, tuple)) and _is_int(y):
        _require_items(item_count(x) * max(y, 0))
    elif isinstance(y, (str, bytes, tuple)) and _is_int(x):
        _require_items(item_count(y) * max(x, 0))


def _add(x: object, y: object) -> None:
    if isinstance(x, (str, bytes, tuple)) and type(x) is type(y):
        _require_items(item_count(x) + item_count(y))


def _power(base: object, exp: object, mod: object = None) -> None:
    if _is_int(base, exp) and mod is None and abs(base) > 1 and exp > 0:
        _require_bits(exp)
        _require_bits(math.log2(abs(base)) * exp)


def _shift_left(x: object, distance: object) -> None:
    if _is_int(x, distance) and x:
        _require_bits(x.bit_length() + distance)


def _factorial(n: object) -> None:
    if _is_int(n):
        _require_bits(n)
        _require_bits(n * math.log2(max(n, 1)))


def _choices(n: object, k: object = None) -> None:
    """Of comb and perm."""
    if _is_int(n) and n > 0 and (k is None or _is_int(k)):
        chosen = n if k is None else max(k, 0)
        _require_bits(chosen)
        _require_bits(chosen * math.log2(n))


def _combinations(n: object, k: object) -> None:
    _choices(n, min(k, n - k) if _is_int(n, k) else k)


def _round(number: object, ndigits: object = None) -> None:
    if _is_int(number, ndigits):
        _require_bits(abs(ndigits))


def _consume(*iterables: object, **_: object) -> None:
    """Of what goes through all items of its arguments."""
    for iterable in iterables:
        if isinstance(iterable, range):
            _require_items((iterable.stop - iterable.start) // iterable.step)
        elif hasattr(iterable, "__iter__"):
            length = operator.length_hint(iterable, -1)
            require(length >= 0, "a compile-time expression: given an iterator, accepted a tuple",
                    hint=_OUTSIDE)
            _require_items(max(length, item_count(iterable)))


def _format(text: object, *values: object, **named: object) -> None:
    """Of `%`, format and str.format: all widths, and each value wherever one can stand."""
    if not isinstance(text, (str, bytes)):
        return
    text = text if isinstance(text, str) else text.decode("latin-1")
    values = (*values, *named.values())
    widths = [MAX_ITEMS + 1 if len(digits) > 9 else int(digits) for digits in _DIGITS.findall(text)]
    if _WIDTH_IS_GIVEN.search(text):
        widths += [max(value, 0) for value in _flat(values) if _is_int(value)]
    fields = text.count("%") + text.count("{")
    longest = max(map(item_count, values), default=0)
    _require_items(len(text) + sum(widths) + fields * longest)


def _flat(values: Sequence[object]) -> list[object]:
    return [item for value in values
            for item in (value if isinstance(value, tuple) else (value,))]


def _format_value(value: object, spec: object = "") -> None:
    _format(spec, value)


def _modulo(x: object, y: object) -> None:
    if isinstance(x, (str, bytes)):
        _format(x, y)


def _pad(text: object, length: object = 0, *_: object, **__: object) -> None:
    if _is_int(length):
        _require_items(length)


def _expand_tabs(text: str | bytes, tabsize: object = 8) -> None:
    if _is_int(tabsize):
        tabs = text.count("\t" if isinstance(text, str) else b"\t")
        _require_items(len(text) + tabs * max(tabsize, 0))


def _replace(text: object, old: object, new: object, *_: object) -> None:
    if isinstance(new, type(text)) and isinstance(old, type(text)):
        _require_items(len(text) + text.count(old) * len(new))


def _join(text: object, items: object) -> None:
    if isinstance(items, tuple):
        _require_items(item_count(items) + len(text) * len(items))
    else:
        _consume(items)


# Those whose results may be much larger than their arguments, or that take long.
_FUNCTIONS: dict[Callable, Callable[..., None]] = {
    operator.add: _add, operator.mul: _multiply, operator.pow: _power, operator.mod: _modulo,
    operator.lshift: _shift_left, builtins.pow: _power, builtins.round: _round,
    builtins.format: _format_value, math.factorial: _factorial, math.comb: _combinations,
    math.perm: _choices,
} | dict.fromkeys((sum, max, min, any, all, tuple, sorted, zip, enumerate, reversed, math.fsum,
                   math.prod, math.dist), _consume)
_METHODS: dict[str, Callable[..., None]] = {
    "ljust": _pad, "rjust": _pad, "center": _pad, "zfill": _pad, "to_bytes": _pad,
    "expandtabs": _expand_tabs, "replace": _replace, "join": _join, "format": _format,
}
_SIGNATURES = {estimate: inspect.signature(estimate)
               for estimate in (*_FUNCTIONS.values(), *_METHODS.values())}
