"""Integer and bit instructions equal Python's arithmetic on the same bits."""

import numpy as np
import pytest
from ptx import evaluate

_EDGES = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256, 32767, 32768, 65535]
_SEED = 20


def numbers(dtype, count=256):
    """Edge cases and random bits."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(_SEED).bytes(count * dtype.itemsize)
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, limits.max, limits.max - 1]
    edges += [value for value in _EDGES if value <= limits.max]
    values = np.frombuffer(random, dtype).copy()
    values[:len(edges)] = edges
    return values


def pairs(dtype):
    """Two vectors that bring edge cases together."""
    left = numbers(dtype)
    right = np.random.default_rng(_SEED + 1).permutation(left)
    right[:40] = right[0]
    return left, right


def wrap(value, dtype):
    """An exact integer in a dtype."""
    dtype = np.dtype(dtype)
    value &= (1 << 8 * dtype.itemsize) - 1
    signed = dtype.kind == "i" and value >> (8 * dtype.itemsize - 1)
    return value - (1 << 8 * dtype.itemsize) if signed else value


def truncated(a, b):
    """Division towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_TYPES = {"s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64, "s16": np.int16,
          "u16": np.uint16}
_BINARY = {
    "add.{}": lambda a, b: a + b, "sub.{}": lambda a, b: a - b, "mul.lo.{}": lambda a, b: a * b,
    "min.{}": min, "max.{}": max,
}


@pytest.mark.parametrize("type_", _TYPES)
@pytest.mark.parametrize("opcode", _BINARY)
def test_binary_arithmetic_is_exact_and_wraps(opcode, type_):
    dtype = _TYPES[type_]
    left, right = pairs(dtype)
    expected = [wrap(_BINARY[opcode](int(a), int(b)), dtype) for a, b in zip(left, right)]
    result = evaluate(f"{opcode.format(type_)} $0, $1, $2;", dtype, left, right)
    assert result.tolist() == expected


@pytest.mark.parametrize("type_", _TYPES)
def test_division_is_towards_zero(type_):
    dtype = _TYPES[type_]
    left, right = pairs(dtype)
    right[right == 0] = 3
    exact = [(truncated(int(a), int(b)), int(a) - truncated(int(a), int(b)) * int(b))
             for a, b in zip(left, right)]
    quotient = evaluate(f"div.{type_} $0, $1, $2;", dtype, left, right)
    rest = evaluate(f"rem.{type_} $0, $1, $2;", dtype, left, right)
    assert quotient.tolist() == [wrap(one, dtype) for one, _ in exact]
    assert rest.tolist() == [wrap(one, dtype) for _, one in exact]


@pytest.mark.parametrize("type_", _TYPES)
def test_the_high_half_of_a_product_is_exact(type_):
    dtype = np.dtype(_TYPES[type_])
    left, right = pairs(dtype)
    expected = [wrap(int(a) * int(b) >> 8 * dtype.itemsize, dtype) for a, b in zip(left, right)]
    assert evaluate(f"mul.hi.{type_} $0, $1, $2;", dtype, left, right).tolist() == expected


@pytest.mark.parametrize("type_, wide", [("s32", np.int64), ("u32", np.uint64), ("s16", np.int32),
                                         ("u16", np.uint32)])
def test_a_wide_product_keeps_all_bits(type_, wide):
    left, right = pairs(_TYPES[type_])
    expected = [int(a) * int(b) for a, b in zip(left, right)]
    assert evaluate(f"mul.wide.{type_} $0, $1, $2;", wide, left, right).tolist() == expected


@pytest.mark.parametrize("type_", ["s32", "u32", "s64", "u64"])
def test_shifts_by_the_width_or_more_leave_only_the_sign(type_):
    dtype = np.dtype(_TYPES[type_])
    bits = 8 * dtype.itemsize
    values = numbers(dtype)
    counts = np.resize(np.array([0, 1, 31, 32, 33, 63, 64, 65, 255], np.uint32), len(values))
    left = [wrap(int(v) << int(c), dtype) if c < bits else 0 for v, c in zip(values, counts)]
    right = [int(v) >> min(int(c), bits) for v, c in zip(values, counts)]
    assert evaluate(f"shl.b{bits} $0, $1, $2;", dtype, values, counts).tolist() == left
    assert evaluate(f"shr.{type_} $0, $1, $2;", dtype, values, counts).tolist() == right


@pytest.mark.parametrize("name", ["div", "rem"])
@pytest.mark.parametrize("type_", _TYPES)
def test_all_bits_are_ones_after_a_division_by_zero(type_, name):
    values = numbers(_TYPES[type_])

    result = evaluate(f"{name}.{type_} $0, $1, $2;", values.dtype, values, np.zeros_like(values))

    assert (result == ~values.dtype.type(0)).all()


def python_bit_field(value, position, length, bits, signed):
    """bfe, from the pseudocode of the PTX ISA."""
    unsigned = value & ((1 << bits) - 1)
    highest = bits - 1
    sign = 0
    if signed and length:
        sign = unsigned >> min(position + length - 1, highest) & 1
    result = 0
    for index in range(bits):
        inside = index < length and position + index <= highest
        result |= (unsigned >> (position + index) & 1 if inside else sign) << index
    return result


@pytest.mark.parametrize("type_", ["s32", "u32", "s64", "u64"])
def test_a_bit_field_is_extracted_as_the_manual_says(type_):
    dtype = np.dtype(_TYPES[type_])
    bits = 8 * dtype.itemsize
    values = numbers(dtype)
    random = np.random.default_rng(3)
    position = random.integers(0, bits + 4, len(values)).astype(np.uint32)
    length = random.integers(0, bits + 4, len(values)).astype(np.uint32)
    expected = [wrap(python_bit_field(int(v), int(p), int(n), bits, type_[0] == "s"), dtype)
                for v, p, n in zip(values, position, length)]
    result = evaluate(f"bfe.{type_} $0, $1, $2, $3;", dtype, values, position, length)
    assert result.tolist() == expected


@pytest.mark.parametrize("type_, whole", [("u32", False), ("s32", False), ("u64", True),
                                          ("s64", True)])
def test_fields_beyond_255_bits_wrap_for_32_bits_and_do_not_for_64(type_, whole):
    dtype = np.dtype(_TYPES[type_])
    bits = 8 * dtype.itemsize
    values = numbers(dtype)
    position = np.resize(np.uint32([3, 259, 2**31 + 3, 3]), len(values))
    length = np.resize(np.uint32([257, 5, 12, 2**32 - 1]), len(values))
    mask = 2**32 - 1 if whole else 255

    result = evaluate(f"bfe.{type_} $0, $1, $2, $3;", dtype, values, position, length)

    assert result.tolist() == [
        wrap(python_bit_field(int(v), int(p) & mask, int(n) & mask, bits, type_[0] == "s"), dtype)
        for v, p, n in zip(values, position, length)]


def test_a_bit_field_is_inserted_as_the_manual_says():
    a, b = pairs(np.uint32)
    random = np.random.default_rng(4)
    position, length = random.integers(0, 36, (2, len(a))).astype(np.uint32)

    def insert(new, old, start, count):
        for index in range(count):
            if start + index < 32:
                old = old & ~(1 << start + index) | (new >> index & 1) << start + index
        return old
    expected = [insert(*map(int, one)) for one in zip(a, b, position, length)]
    result = evaluate("bfi.b32 $0, $1, $2, $3, $4;", np.uint32, a, b, position, length)
    assert result.tolist() == expected


@pytest.mark.parametrize("opcode, function", [
    ("popc.b32", lambda v: bin(v).count("1")), ("clz.b32", lambda v: 32 - v.bit_length()),
    ("bfind.u32", lambda v: v.bit_length() - 1 & 0xFFFFFFFF),
    ("brev.b32", lambda v: int(f"{v:032b}"[::-1], 2)), ("not.b32", lambda v: ~v & 0xFFFFFFFF),
    ("cnot.b32", lambda v: int(v == 0)),
])
def test_bits_are_counted_and_found(opcode, function):
    values = numbers(np.uint32)
    expected = [function(int(value)) for value in values]
    assert evaluate(f"{opcode} $0, $1;", np.uint32, values).tolist() == expected


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE8, 0x1B])
def test_lop3_looks_up_each_bit(table):
    a, b = pairs(np.uint32)
    c = numbers(np.uint32)[::-1].copy()

    def look_up(x, y, z):
        return sum((table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1) & 1) << i
                   for i in range(32))
    expected = [look_up(*map(int, one)) for one in zip(a, b, c)]
    assert evaluate(f"lop3.b32 $0, $1, $2, $3, {table};", np.uint32, a, b, c).tolist() == expected


def test_prmt_picks_bytes_and_repeats_signs():
    a, b = pairs(np.uint32)
    selector = numbers(np.uint32) & 0xFFFF

    def permute(x, y, s):
        octets = (x | y << 32).to_bytes(8, "little")
        picked = [octets[s >> 4 * i & 7] for i in range(4)]
        return sum((255 * (o >> 7) if s >> 4 * i & 8 else o) << 8 * i for i, o in enumerate(picked))
    expected = [permute(*map(int, one)) for one in zip(a, b, selector)]
    assert evaluate("prmt.b32 $0, $1, $2, $3;", np.uint32, a, b, selector).tolist() == expected


@pytest.mark.parametrize("direction", ["l", "r"])
@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_a_funnel_shift_moves_bits_across_words(direction, mode):
    a, b = pairs(np.uint32)
    counts = np.resize(np.arange(48, dtype=np.uint32), len(a))

    def shift(low, high, count):
        count = count & 31 if mode == "wrap" else min(count, 32)
        both = high << 32 | low
        return (both << count >> 32 if direction == "l" else both >> count) & 0xFFFFFFFF
    expected = [shift(*map(int, one)) for one in zip(a, b, counts)]
    result = evaluate(f"shf.{direction}.{mode}.b32 $0, $1, $2, $3;", np.uint32, a, b, counts)
    assert result.tolist() == expected


def test_carries_make_a_128_bit_sum_of_words():
    a, b = pairs(np.uint64)
    result = evaluate("""{ .reg .b32 al, ah, bl, bh, sl, sh;
        mov.b64 {al, ah}, $1; mov.b64 {bl, bh}, $2;
        add.cc.u32 sl, al, bl; addc.u32 sh, ah, bh; mov.b64 $0, {sl, sh}; }""", np.uint64, a, b)
    assert result.tolist() == (a + b).tolist()


def test_borrows_make_a_difference_of_words():
    a, b = pairs(np.uint64)
    result = evaluate("""{ .reg .b32 al, ah, bl, bh, sl, sh;
        mov.b64 {al, ah}, $1; mov.b64 {bl, bh}, $2;
        sub.cc.u32 sl, al, bl; subc.u32 sh, ah, bh; mov.b64 $0, {sl, sh}; }""", np.uint64, a, b)
    assert result.tolist() == (a - b).tolist()


def test_products_with_carry_make_a_wide_product():
    a, b = pairs(np.uint32)
    result = evaluate("""{ .reg .b32 lo, hi;
        mad.lo.cc.u32 lo, $1, $2, $1; madc.hi.u32 hi, $1, $2, 0; mov.b64 $0, {lo, hi}; }""",
                      np.uint64, a, b)
    assert result.tolist() == [int(x) * int(y) + int(x) for x, y in zip(a, b)]


@pytest.mark.parametrize("kinds", [("s32", "s32"), ("u32", "u32"), ("s32", "u32")])
def test_dp4a_adds_four_products_of_bytes(kinds):
    a, b = pairs(np.uint32)
    c = numbers(np.int32)
    left, right = [x.view(np.int8 if kind == "s32" else np.uint8).reshape(-1, 4).astype(np.int64)
                   for x, kind in zip((a, b), kinds)]
    expected = [wrap(int(v), np.int32) for v in (left * right).sum(1) + c]
    result = evaluate(f"dp4a.{kinds[0]}.{kinds[1]} $0, $1, $2, $3;", np.int32, a, b, c)
    assert result.tolist() == expected
