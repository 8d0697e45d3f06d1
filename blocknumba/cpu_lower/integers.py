"""Integer and bitwise ops on vectors of lanes, with NumPy's results where LLVM has none."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.cpu_lower.vectors import Vector, where
from blocknumba.tile_ir.ir.types import DType

Code = Callable[..., Vector]  # (dtype, *operands)


def binary(signed: str, unsigned: str | None = None) -> Code:
    """The code of one instruction; unsigned: where it depends on the signedness."""
    def emit(dtype: DType, x: Vector, y: Vector) -> Vector:
        opcode = signed if unsigned is None or dtype.is_signed else unsigned
        return x.body.emit(f"{opcode} {x.typed}, {y.name}", x.scalar)
    return emit


def compare(signed: str, unsigned: str | None = None) -> Code:
    """The code of a comparison."""
    def emit(dtype: DType, x: Vector, y: Vector) -> Vector:
        word = signed if unsigned is None or dtype.is_signed else unsigned
        return x.body.emit(f"icmp {word} {x.typed}, {y.name}", "i1")
    return emit


def intrinsic(signed: str, unsigned: str | None = None, *flags: str) -> Code:
    """The code of an LLVM intrinsic."""
    def emit(dtype: DType, *operands: Vector) -> Vector:
        first = operands[0]
        name = signed if unsigned is None or dtype.is_signed else unsigned
        typed = ", ".join((*(x.typed for x in operands), *flags))
        return first.body.emit(
            f"call {first.type} @llvm.{name}.{first.body.suffix(first.scalar)}({typed})",
            first.scalar)
    return emit


_SIGNED_DIVISION, _UNSIGNED_DIVISION = binary("sdiv"), binary("udiv")
_SIGNED_REST, _UNSIGNED_REST = binary("srem"), binary("urem")
_UNSIGNED_LESS = compare("ult")


def negate(dtype: DType, x: Vector) -> Vector:
    """-x, modulo 2**bits."""
    return 0 - x


def absolute(dtype: DType, x: Vector) -> Vector:
    """|x|; of the lowest integer, itself."""
    return where(x < 0, 0 - x, x) if dtype.is_signed else x


def invert(dtype: DType, x: Vector) -> Vector:
    """~x; of a bool, not x."""
    return x ^ (1 if x.scalar == "i1" else -1)


def floor_divide(dtype: DType, x: Vector, y: Vector) -> Vector:
    """floor(x / y); 0 where y is 0; the lowest integer divided by -1 is itself."""
    if not dtype.is_signed:
        return where(y == 0, 0, _UNSIGNED_DIVISION(dtype, x, where(y == 0, 1, y)))
    # dividing by 0, and the lowest integer by -1, has no value in LLVM
    safe = where(y == -1, 1, where(y == 0, 1, y))
    quotient = _SIGNED_DIVISION(dtype, x, safe)
    rest = x - quotient * safe
    is_above = ((rest ^ safe) < 0) & (rest != 0)
    floor = where(is_above, quotient - 1, quotient)
    return where(y == 0, 0, where(y == -1, 0 - x, floor))


def remainder(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x - floor(x / y) * y, of y's sign; 0 where y is 0."""
    if not dtype.is_signed:
        return where(y == 0, 0, _UNSIGNED_REST(dtype, x, where(y == 0, 1, y)))
    safe = where(y == -1, 1, where(y == 0, 1, y))
    rest = _SIGNED_REST(dtype, x, safe)
    return where(((rest ^ safe) < 0) & (rest != 0), rest + safe, rest)


def truncating_divide(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x / y towards zero; 0 where y is 0; the lowest integer divided by -1 is itself."""
    if not dtype.is_signed:
        return floor_divide(dtype, x, y)
    safe = where(y == -1, 1, where(y == 0, 1, y))
    return where(y == 0, 0, where(y == -1, 0 - x, _SIGNED_DIVISION(dtype, x, safe)))


def truncating_remainder(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x - truncating_divide(x, y) * y, of x's sign; 0 where y is 0."""
    if not dtype.is_signed:
        return remainder(dtype, x, y)
    return _SIGNED_REST(dtype, x, where(y == -1, 1, where(y == 0, 1, y)))


def shift_left(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x << y; 0 when y is not in [0, bits)."""
    is_inside = _UNSIGNED_LESS(dtype, y, y.like(dtype.bits))
    return where(is_inside, x << where(is_inside, y, 0), 0)


def shift_right(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x >> y; all sign bits when y is not in [0, bits)."""
    is_inside = _UNSIGNED_LESS(dtype, y, y.like(dtype.bits))
    if dtype.is_signed:
        return x.shift_signed(where(is_inside, y, dtype.bits - 1))
    return where(is_inside, x >> where(is_inside, y, 0), 0)


def multiply_high(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The high half of the product of two words taken as unsigned."""
    half = dtype.bits // 2
    x_low, x_high = x & ((1 << half) - 1), x >> half
    y_low, y_high = y & ((1 << half) - 1), y >> half
    if dtype.bits == 32:
        wide = x.to_unsigned("i64") * y.to_unsigned("i64")
        return (wide >> 32).to("i32")
    middle = x_high * y_low + (x_low * y_low >> half)
    carry = x_low * y_high + (middle & ((1 << half) - 1))
    return x_high * y_high + (middle >> half) + (carry >> half)


def first_set(dtype: DType, x: Vector) -> Vector:
    """1 + the index of the lowest set bit, or 0."""
    position = intrinsic("cttz", None, "i1 false")(dtype, x)
    return where(x == 0, 0, position + 1)


def power(dtype: DType, x: Vector, y: Vector) -> Vector:
    """x ** y modulo 2**bits; the truncated reciprocal where y is negative."""
    if dtype.is_signed:
        exponent = where(y < 0, 0, y)
    else:
        exponent = y

    def step(carried: list[Vector]) -> tuple[Vector, list[Vector]]:
        result, square, rest = carried
        multiplied = where((rest & 1) != 0, result * square, result)
        rest = rest >> 1
        return rest != 0, [multiplied, square * square, rest]

    result, *_ = x.body.repeat([x.like(1), x, exponent], step)
    if not dtype.is_signed:
        return result
    of_minus_one = where((y & 1) != 0, x.like(-1), 1)
    inverse = where(x == 1, 1, where(x == -1, of_minus_one, 0))
    return where(y < 0, inverse, result)


_COMPARED: dict[str, Code] = {
    "eq": compare("eq"), "ne": compare("ne"), "lt": compare("slt", "ult"),
    "le": compare("sle", "ule"), "gt": compare("sgt", "ugt"), "ge": compare("sge", "uge")}
_BITWISE: dict[str, Code] = {
    "and": binary("and"), "or": binary("or"), "xor": binary("xor"), "invert": invert}
# bools are unsigned numbers of one bit
LOGICAL: dict[str, Code] = {
    **_BITWISE, **_COMPARED, "minimum": binary("and"), "maximum": binary("or")}
INTEGRAL: dict[str, Code] = {
    **_BITWISE, **_COMPARED,
    "add": binary("add"), "sub": binary("sub"), "mul": binary("mul"),
    "neg": negate, "absolute": absolute,
    "minimum": intrinsic("smin", "umin"), "maximum": intrinsic("smax", "umax"),
    "floordiv": floor_divide, "mod": remainder, "power": power,
    "truncdiv": truncating_divide, "truncmod": truncating_remainder,
    "shl": shift_left, "shr": shift_right, "umulhi": multiply_high,
    "popc": intrinsic("ctpop"), "clz": intrinsic("ctlz", None, "i1 false"), "ffs": first_set}
