"""Integer, logic and bit instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.syntax import Register
from blocknumba.emulator.values import dtype_of

_CARRY = Register(0, "b32", "%cc")  # the condition code; the parser keeps slot 0 for it
_WIDER = {"u8": "u16", "s8": "s16", "u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b towards zero; all ones where b is 0, as the hardware answers."""
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    safe = np.where(zero, 1, b).astype(b.dtype)
    result = a // safe
    if a.dtype.kind == "i":
        result = result + ((result * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(zero, ~np.zeros(1, a.dtype), result).astype(a.dtype)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - (a / b) * b; all ones where b is 0, as the hardware answers."""
    ones = ~np.zeros(1, a.dtype)
    return np.where(b == 0, ones, a - divide(a, b) * b).astype(a.dtype)


def multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a * b."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{bits // 4}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    unsigned_a, unsigned_b = a.view(np.uint64), b.view(np.uint64)
    high = _multiply_high_unsigned(unsigned_a, unsigned_b)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, unsigned_b, np.uint64(0)) - np.where(
            b < 0, unsigned_a, np.uint64(0))
    return high.view(a.dtype)


def _multiply_high_unsigned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (other >> half)


def shift_left(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """a << count; 0 when count is the width or more."""
    bits = 8 * a.dtype.itemsize
    shifted = a << np.minimum(count, bits - 1).astype(a.dtype)
    return np.where(count >= bits, 0, shifted).astype(a.dtype)


def shift_right(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """a >> count; the sign, or 0, when count is the width or more."""
    bits = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(count, bits - 1).astype(a.dtype)
    if a.dtype.kind == "i":
        return shifted
    return np.where(count >= bits, 0, shifted).astype(a.dtype)


def funnel_shift(direction: str, mode: str) -> Callable[..., np.ndarray]:
    """shf: 64 bits {b, a} shifted, the upper (left) or lower (right) half of them."""
    def shift(a: np.ndarray, b: np.ndarray, count: np.ndarray) -> np.ndarray:
        count = (count & 31 if mode == "wrap" else np.minimum(count, 32)).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
        if direction == "r":
            return (both >> count).astype(np.uint32)
        return ((both << count) >> np.uint64(32)).astype(np.uint32)
    return shift


def population_count(a: np.ndarray) -> np.ndarray:
    """The number of ones."""
    return np.bitwise_count(a).astype(np.uint32)


def find_highest(a: np.ndarray) -> np.ndarray:
    """The position of the highest one, all ones when there is none."""
    value = a.astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        value = value | value >> np.uint64(shift)
    return (np.bitwise_count(value).astype(np.int32) - 1).view(np.uint32)


def leading_zeros(a: np.ndarray) -> np.ndarray:
    """The number of zeros above the highest one."""
    return (8 * a.dtype.itemsize - 1 - find_highest(a).view(np.int32)).astype(np.uint32)


def reverse_bits(a: np.ndarray) -> np.ndarray:
    """The bits in the other order."""
    octets = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, ::-1]
    return np.packbits(bits, axis=1, bitorder="little").view(a.dtype).ravel()


def _ones(count: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """count low ones."""
    return ~shift_left(np.broadcast_to(~np.zeros(1, dtype), count.shape), count)


def extract_field(a: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """bfe: length bits of a from position on, extended by the sign of the field for a signed a.

    PTX allows positions and lengths up to 255.  Of larger ones an H100 takes the low 8 bits for 32
    bits of a, but the whole number for 64.
    """
    bits = 8 * a.dtype.itemsize
    if bits == 32:
        position, length = position & 0xFF, length & 0xFF
    position, length = np.minimum(position, bits), np.minimum(length, bits)
    unsigned = a.view(f"u{a.dtype.itemsize}")
    ones = _ones(length, unsigned.dtype)
    if a.dtype.kind == "u":
        return shift_right(unsigned, position) & ones
    last = np.minimum(position + length - 1, bits - 1)
    sign = shift_right(unsigned, last) & unsigned.dtype.type(1)
    sign = np.where(length == 0, 0, sign).astype(unsigned.dtype)
    field = shift_right(unsigned, position) & ones
    ones = _ones(np.minimum(length, bits - position), unsigned.dtype)
    return np.where(sign == 1, field & ones | ~ones, field).astype(unsigned.dtype).view(a.dtype)


def insert_field(a: np.ndarray, b: np.ndarray, position: np.ndarray,
                 length: np.ndarray) -> np.ndarray:
    """bfi: b with length bits from position on replaced by the low bits of a.

    Positions and lengths beyond 255 are taken as by extract_field.
    """
    bits = 8 * a.dtype.itemsize
    if bits == 32:
        position, length = position & 0xFF, length & 0xFF
    position, length = np.minimum(position, bits), np.minimum(length, bits)
    ones = shift_left(_ones(length, a.dtype), position)
    return b & ~ones | shift_left(a, position) & ones


def permute(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """prmt: each byte of the result is one of the eight of {b, a}, or its sign repeated."""
    both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
    result = np.zeros(1, np.uint32)
    for index in range(4):
        choice = selector >> np.uint32(4 * index)
        octet = (both >> (8 * (choice & 7)).astype(np.uint64) & np.uint64(255)).astype(np.uint32)
        sign = np.where(octet & 128, np.uint32(255), np.uint32(0))
        result = result | np.where(choice & 8, sign, octet) << np.uint32(8 * index)
    return result


def logic3(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    """lop3: bit i of the result is bit (a_i b_i c_i) of the table."""
    result = np.zeros(1, np.uint32)
    for row in range(8):
        if int(table[0]) >> row & 1:
            result = result | ((a if row & 4 else ~a) & (b if row & 2 else ~b)
                               & (c if row & 1 else ~c))
    return result


def absolute_difference_sum(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """sad: c + |a - b|."""
    return c + np.where(a < b, b - a, a - b).astype(c.dtype)


def dot_of_bytes(a: np.ndarray, b: np.ndarray, c: np.ndarray, kinds: tuple[str, str]) -> np.ndarray:
    """dp4a: c plus the sum of four products of bytes."""
    left = np.ascontiguousarray(a).view(kinds[0]).reshape(-1, 4).astype(np.int32)
    right = np.ascontiguousarray(b).view(kinds[1]).reshape(-1, 4).astype(np.int32)
    return c + (left * right).sum(1, dtype=np.int32).astype(c.dtype)


def _type(site: Site) -> str:
    return site.opcode[-1]


def _same(function: Callable[..., np.ndarray], arity: int = 2) -> Decoder:
    """A row whose operands and result have the type that ends the opcode."""
    def decode(site: Site) -> Step:
        type_ = _type(site)
        return site.compute(function, type_, [type_] * arity)
    return decode


def _packed(function: Callable[..., np.ndarray], scalar: str) -> Callable[..., np.ndarray]:
    """A function on halves of 16 bits, applied to both halves of words."""
    dtype = dtype_of(scalar)

    def apply(*words: np.ndarray) -> np.ndarray:
        wide = np.broadcast_arrays(*words)
        halves = [np.ascontiguousarray(word).view(dtype) for word in wide]
        return function(*halves).view(np.uint32)
    return apply


def _saturating(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of s32, clamped to its range."""
    def apply(*values: np.ndarray) -> np.ndarray:
        exact = function(*[value.astype(np.int64) for value in values])
        return np.clip(exact, -2**31, 2**31 - 1).astype(np.int32)
    return apply


def arithmetic(function: Callable[..., np.ndarray]) -> Decoder:
    """add, sub, min or max of integers, with .sat and packed halves; carries are elsewhere."""
    def decode(site: Site) -> Step:
        type_ = _type(site)
        applied = function
        if type_.endswith("x2"):
            applied = _packed(function, type_[:-2])
        if site.has("sat"):
            applied = _saturating(applied)
        if site.has("relu"):
            plain = applied
            applied = lambda a, b: np.maximum(plain(a, b), 0)  # noqa: E731
        return site.compute(applied, type_, [type_] * 2)
    return decode


def multiply(site: Site) -> Step:
    """mul.lo, mul.hi, mul.wide."""
    type_ = _type(site)
    if site.has("wide"):
        return _multiply_wide(site, type_, lambda a, b: a * b, [])
    function = multiply_high if site.has("hi") else np.multiply
    return site.compute(function, type_, [type_] * 2)


def _multiply_wide(site: Site, type_: str, function: Callable[..., np.ndarray],
                   more: list[str]) -> Step:
    wide = _WIDER[type_]
    dtype = dtype_of(wide)

    def apply(a: np.ndarray, b: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        return function(a.astype(dtype), b.astype(dtype), *rest)
    return site.compute(apply, wide, [type_, type_, *more])


def multiply_add(site: Site) -> Step:
    """mad.lo, mad.hi, mad.wide, mad.hi.sat."""
    type_ = _type(site)
    if site.has("wide"):
        return _multiply_wide(site, type_, lambda a, b, c: a * b + c, [_WIDER[type_]])
    product = multiply_high if site.has("hi") else np.multiply
    if site.has("sat"):
        return site.compute(_saturating(lambda a, b, c: (a * b >> 32) + c), type_, [type_] * 3)
    return site.compute(lambda a, b, c: product(a, b) + c, type_, [type_] * 3)


def multiply_24(site: Site) -> Step:
    """mul24 and mad24: products of 24-bit numbers."""
    type_ = _type(site)
    eight = dtype_of(type_).type(8)

    def apply(a: np.ndarray, b: np.ndarray, c: np.ndarray | int = 0) -> np.ndarray:
        a, b = a << eight >> eight, b << eight >> eight
        exact = a.astype(f"{a.dtype.kind}8") * b.astype(f"{a.dtype.kind}8")
        return (exact >> 16 if site.has("hi") else exact).astype(a.dtype) + c
    return site.compute(apply, type_, [type_] * (len(site.operands) - 1))


def with_carry(site: Site) -> Step:
    """add, addc, sub, subc, mad and madc with .cc or with the carry."""
    name, type_ = site.opcode[0], _type(site)
    unsigned = dtype_of(type_.replace("s", "u"))
    reads = [site.read(operand, type_) for operand in site.operands[1:]]
    write = site.write(site.operands[0], type_.replace("s", "u"))
    read_carry, write_carry = site.read(_CARRY, "u32"), site.write(_CARRY, "u32")
    consumes, produces = name in ("addc", "subc", "madc"), site.has("cc")
    product = multiply_high if site.has("hi") else np.multiply
    subtracts = name.startswith("sub")

    def step(cohort) -> None:
        values = [read(cohort) for read in reads]
        if len(values) == 3:
            values = [product(values[0], values[1]), values[2]]
        left, right = [np.asarray(value).view(unsigned) for value in values]
        borrow = read_carry(cohort).astype(unsigned) if consumes else np.zeros(1, unsigned)
        if subtracts:
            first = left - right
            result = first - borrow
            out = (left < right) | (first < borrow)
        else:
            first = left + right
            result = first + borrow
            out = (first < left) | (result < first)
        write(cohort, result)
        if produces:
            write_carry(cohort, out.astype(np.uint32))
    return step


def add_or_carry(plain: Decoder) -> Decoder:
    """A row that has a variant with the carry."""
    return lambda site: with_carry(site) if site.has("cc") else plain(site)


def _counted(function: Callable[[np.ndarray], np.ndarray]) -> Decoder:
    return lambda site: site.compute(function, "u32", [_type(site)])


def _shift(function: Callable[..., np.ndarray]) -> Decoder:
    return lambda site: site.compute(function, _type(site), [_type(site), "u32"])


def find(site: Site) -> Step:
    """bfind and bfind.shiftamt."""
    type_ = _type(site)
    bits = 8 * dtype_of(type_).itemsize

    def apply(a: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "i":
            a = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
        found = find_highest(a)
        if not site.has("shiftamt"):
            return found
        return np.where(found == 0xFFFFFFFF, found, bits - 1 - found).astype(np.uint32)
    return site.compute(apply, "u32", [type_])


def dot4(site: Site) -> Step:
    """dp4a."""
    kinds = tuple("int8" if type_ == "s32" else "uint8" for type_ in site.opcode[1:3])
    result = "s32" if "int8" in kinds else "u32"
    return site.compute(lambda a, b, c: dot_of_bytes(a, b, c, kinds), result,
                        ["u32", "u32", result])


def _negated_where(site: Site) -> Step:
    return site.compute(lambda a: (a == 0).astype(a.dtype), _type(site), [_type(site)])


def mask_of_bits(site: Site) -> Step:
    """bmsk: length ones from a position on, clamped or wrapped at 32."""
    wraps = site.has("wrap")

    def apply(position: np.ndarray, length: np.ndarray) -> np.ndarray:
        if wraps:
            position, length = position & 31, length & 31
        return shift_left(_ones(length, np.dtype(np.uint32)), position)
    return site.compute(apply, "u32", ["u32", "u32"])


TABLE: dict[str, Decoder] = {
    "add": add_or_carry(arithmetic(np.add)),
    "sub": add_or_carry(arithmetic(np.subtract)),
    "addc": with_carry, "subc": with_carry, "madc": with_carry,
    "mul": multiply, "mad": add_or_carry(multiply_add),
    "mul24": multiply_24, "mad24": multiply_24,
    "div": _same(divide), "rem": _same(remainder),
    "abs": _same(np.abs, 1), "neg": _same(np.negative, 1),
    "min": arithmetic(np.minimum), "max": arithmetic(np.maximum),
    "sad": _same(absolute_difference_sum, 3),
    "and": _same(np.bitwise_and), "or": _same(np.bitwise_or), "xor": _same(np.bitwise_xor),
    "not": _same(np.invert, 1), "cnot": _negated_where,
    "shl": _shift(shift_left), "shr": _shift(shift_right),
    "shf": lambda site: site.compute(funnel_shift(site.opcode[1], site.opcode[2]), "b32",
                                     ["b32", "b32", "u32"]),
    "popc": _counted(population_count), "clz": _counted(leading_zeros), "bfind": find,
    "brev": _same(reverse_bits, 1),
    "bfe": lambda site: site.compute(extract_field, _type(site), [_type(site), "u32", "u32"]),
    "bfi": lambda site: site.compute(insert_field, _type(site),
                                     [_type(site), _type(site), "u32", "u32"]),
    "bmsk": mask_of_bits,
    "prmt": lambda site: site.compute(permute, "b32", ["b32"] * 3),
    "lop3": lambda site: site.compute(logic3, "b32", ["b32"] * 4),
    "dp4a": dot4,
}
