"""Functions of libdevice: exact ones, against Python's integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

L = bn.libdevice
N = 256


@bn.jit
def apply(x, y, z, out, FUNCTIONS: bn.constexpr, COUNT: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    for i in bn.static_range(len(FUNCTIONS)):
        if COUNT == 1:
            out[i, r] = FUNCTIONS[i](x[r])
        elif COUNT == 2:
            out[i, r] = FUNCTIONS[i](x[r], y[r])
        else:
            out[i, r] = FUNCTIONS[i](x[r], y[r], z[r])


def results(device, functions, operands, dtype):
    """A row of results for each function; of the interpreter too, which must be the same bits."""
    x, y, z = (*operands, *operands[:1] * 3)[:3]
    out = np.full((len(functions), N), 77).astype(dtype)
    device.run(apply, 1, x, y, z, out, functions, len(operands), N)
    if device.kind == "cpu":
        again = np.full((len(functions), N), 78).astype(dtype)
        apply[1](x, y, z, again, functions, len(operands), N, interpret=True, debug=True)
        both = (out, again)
        np.testing.assert_allclose(*both, 1e-6 if dtype == np.float32 else 0 if dtype.kind in "iu"
                                   else 1e-13)
    return out


def integers(dtype, seed=None):
    limits = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    x = random.integers(limits.min, limits.max, N, dtype, endpoint=True) >> random.integers(
        0, limits.bits - 1, N).astype(dtype)
    x[:8] = [limits.min, limits.max, 0, 1, 2, limits.max - 1, limits.min + 1, 3]
    return random.permutation(x)


def floats(dtype, size=30):
    random = np.random.default_rng()
    x = (random.choice([-1, 1], N) * 2.0 ** random.uniform(-size, size, N)).astype(dtype)
    x[:12] = [0, -0.0, 1, -1, 0.5, -2.5, 1.5, 2.0**23 + 1, 3, -0.25, 1e-40, 7]
    return random.permutation(x)


def wrapped(x, bits, signed=True):
    x &= (1 << bits) - 1
    return x - (1 << bits) if signed and x >> bits - 1 else x


def reverse(x, bits):
    return wrapped(int(f"{x & (1 << bits) - 1:0{bits}b}"[::-1], 2), bits)


def low24(x, signed):
    return wrapped(x & 0xFFFFFF, 24, signed)


def permuted(x, y, s):
    both = (x & 0xFFFFFFFF) | (y & 0xFFFFFFFF) << 32
    picked = [(both >> 8 * (s >> 4 * i & 7)) & 255 for i in range(4)]
    return wrapped(sum(byte << 8 * i for i, byte in enumerate(picked)), 32)


OF_INTEGERS = {  # dtype of operands -> name -> exact result, of Python's ints
    ("int32", "int32"): {
        "brev": lambda x: reverse(x, 32), "abs": lambda x: wrapped(abs(x), 32),
        "popc": lambda x: (x & 0xFFFFFFFF).bit_count(),
        "clz": lambda x: 32 - (x & 0xFFFFFFFF).bit_length(),
        "ffs": lambda x: (x & -x).bit_length(),
        "hadd": lambda x, y: (x + y) >> 1, "rhadd": lambda x, y: (x + y + 1) >> 1,
        "mulhi": lambda x, y: x * y >> 32, "max": max, "min": min,
        "mul24": lambda x, y: wrapped(low24(x, True) * low24(y, True), 32),
        "byte_perm": permuted},
    ("int32", "uint32"): {"sad": lambda x, y, z: (abs(x - y) + z) & 0xFFFFFFFF},
    ("uint32", "uint32"): {
        "uhadd": lambda x, y: (x + y) >> 1, "urhadd": lambda x, y: (x + y + 1) >> 1,
        "umax": max, "umin": min, "umulhi": lambda x, y: x * y >> 32,
        "umul24": lambda x, y: (low24(x, False) * low24(y, False)) & 0xFFFFFFFF,
        "usad": lambda x, y, z: (abs(x - y) + z) & 0xFFFFFFFF},
    ("int64", "int64"): {
        "brevll": lambda x: reverse(x, 64), "llabs": lambda x: wrapped(abs(x), 64),
        "popcll": lambda x: (x & (1 << 64) - 1).bit_count(),
        "clzll": lambda x: 64 - (x & (1 << 64) - 1).bit_length(),
        "ffsll": lambda x: (x & -x).bit_length(),
        "llmax": max, "llmin": min, "mul64hi": lambda x, y: x * y >> 64},
    ("uint64", "uint64"): {"ullmax": max, "ullmin": min, "umul64hi": lambda x, y: x * y >> 64},
}


@pytest.mark.parametrize("given,result", OF_INTEGERS, ids=str)
def test_functions_of_integers_are_exact(given, result, device):
    for count in (1, 2, 3):
        named = {name: f for name, f in OF_INTEGERS[given, result].items()
                 if (3 if name in ("byte_perm", "sad", "usad") else
                     f.__code__.co_argcount if hasattr(f, "__code__") else 2) == count}
        if not named:
            continue
        operands = [integers(given) for _ in range(count)]
        out = results(device, tuple(getattr(L, name) for name in named), operands,
                      np.dtype(result))
        for (name, exact), row in zip(named.items(), out):
            expected = [exact(*map(int, values)) for values in zip(*operands)]
            assert row.tolist() == expected, name


INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


def directed(exact, nearest, mode, dtype):
    """A fraction as a float, rounded; nearest: a float beside it."""
    r = dtype(nearest)
    if mode == "rn" or Fraction(float(r)) == exact:
        return r
    is_up = mode == "ru" or mode == "rz" and exact < 0
    if (Fraction(float(r)) < exact) == is_up:
        return np.nextafter(r, dtype(np.inf if is_up else -np.inf))
    return r


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_become_floats_in_every_rounding(source, device):
    x = integers(INTEGERS[source])
    for to in ("float", "double"):
        dtype = np.float32 if to == "float" else np.float64
        modes = [m for m in ("rn", "rz", "rd", "ru") if hasattr(L, f"{source}2{to}_{m}")]
        functions = tuple(getattr(L, f"{source}2{to}_{mode}") for mode in modes)
        assert len(modes) == (1 if dtype == np.float64 and x.itemsize == 4 else 4)

        out = results(device, functions, [x], np.dtype(dtype))

        for mode, row in zip(modes, out):
            expected = [directed(Fraction(int(v)), v, mode, dtype) for v in x]
            assert row.tolist() == [float(v) for v in expected], mode


@pytest.mark.parametrize("source", ["float", "double"])
def test_floats_become_integers_in_every_rounding(source, device):
    x = floats(np.float32 if source == "float" else np.float64)
    rules = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
    for to, dtype in INTEGERS.items():
        functions = tuple(getattr(L, f"{source}2{to}_{mode}") for mode in rules)
        signed = abs(x) if dtype[0] == "u" else x

        out = results(device, functions, [signed], np.dtype(dtype))

        for rule, row in zip(rules.values(), out):
            assert row.tolist() == [int(v) for v in rule(signed.astype(np.float64))]


def test_float64_becomes_float32_in_every_rounding(device):
    x = floats(np.float64, 160)
    x[:4] = [1e300, -1e300, 1e-300, 3.4028235677973366e38]
    modes = ("rn", "rz", "rd", "ru")

    out = results(device, tuple(getattr(L, f"double2float_{mode}") for mode in modes), [x],
                  np.dtype(np.float32))

    for mode, row in zip(modes, out):
        with np.errstate(over="ignore"):
            nearest = x.astype(np.float32)
        for value, near, found in zip(x, nearest, row):
            if np.isinf(near):
                away = (value > 0) == (mode == "ru") and mode in ("rd", "ru")
                expected = near if mode == "rn" or away else np.nextafter(near, np.float32(0))
            else:
                expected = directed(Fraction(float(value)), near, mode, np.float32)
            assert found == expected, (mode, value)


def test_bits_are_taken_as_they_are(device):
    x, y = integers(np.int32), integers(np.int32)
    half = np.arange(N, dtype=np.int16) * 60 + 100  # no NaN: which one it becomes is not stated
    half[::2] |= -2**15
    wide = floats(np.float64)

    made = results(device, (L.hiloint2double,), [x, y], np.dtype(np.float64))[0]
    halves = results(device, (L.half2float,), [half], np.dtype(np.float32))[0]
    back = results(device, (L.float2half_rn,), [halves], np.dtype(np.int16))[0]
    parts = results(device, (L.double2hiint, L.double2loint), [wide], np.dtype(np.int32))
    wholes = results(device, (L.float_as_int,), [wide.astype(np.float32)], np.dtype(np.int32))[0]

    bits = (x.astype(np.uint32).astype(np.uint64) << 32) | y.astype(np.uint32)
    np.testing.assert_array_equal(made, bits.view(np.float64))
    np.testing.assert_array_equal(halves, half.view(np.float16))
    np.testing.assert_array_equal(back, half)
    assert [p.tolist() for p in parts] == [(wide.view(np.int64) >> 32).tolist(),
                                           wide.view(np.int64).astype(np.int32).tolist()]
    np.testing.assert_array_equal(wholes, wide.astype(np.float32).view(np.int32))


OPERATIONS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "fma": lambda x, y, z: x * y + z}


@pytest.mark.parametrize("letter,dtype", [("f", np.float32), ("d", np.float64)])
def test_arithmetic_is_rounded_as_its_name_says(letter, dtype, device):
    x, y, z = (np.where(abs(v) < 1e-30, 1.25, v).astype(dtype)
               for v in (floats(dtype) for _ in range(3)))
    modes = ("rn", "rz", "rd", "ru")
    for name, exactly in OPERATIONS.items():
        names = [f"fmaf_{m}" if name == "fma" and letter == "f" else f"fma_{m}"
                 if name == "fma" else f"{letter}{name}_{m}" for m in modes]
        count = 3 if name == "fma" else 2

        out = results(device, tuple(getattr(L, n) for n in names), [x, y, z][:count],
                      np.dtype(dtype))

        for mode, row in zip(modes, out):
            for *values, found in zip(*(x, y, z)[:count], row):
                exact = exactly(*(Fraction(float(v)) for v in values))
                assert is_rounded(Fraction(float(found)), exact, mode, found, dtype), (name, mode)


def is_rounded(found, exact, mode, value, dtype):
    """Whether a float is what a fraction is rounded to."""
    if found == exact:
        return True
    up, down = (Fraction(float(np.nextafter(value, dtype(v)))) for v in (np.inf, -np.inf))
    if mode == "rn":
        return abs(found - exact) <= min(abs(up - exact), abs(down - exact))
    if mode == "ru" or mode == "rz" and exact < 0:
        return down < exact < found
    return found < exact < up


def test_roots_and_reciprocals_are_rounded(device):
    x = np.abs(floats(np.float32))
    x = np.where(x < 1e-20, 1.75, x).astype(np.float32)
    modes = ("rn", "rz", "rd", "ru")
    names = [f"f{kind}_{mode}" for kind in ("sqrt", "rcp") for mode in modes]

    out = results(device, tuple(getattr(L, name) for name in names), [x], np.dtype(np.float32))

    for name, row in zip(names, out):
        for value, found in zip(x, row):
            v, mode = Fraction(float(value)), name[-2:]
            if "rcp" in name:
                assert is_rounded(Fraction(float(found)), 1 / v, mode, found, np.float32), name
            else:
                root = math.isqrt(v.numerator * v.denominator << 400)
                exact = Fraction(root, v.denominator << 200)
                exact = Fraction(float(found)) if Fraction(float(found)) ** 2 == v else exact
                assert is_rounded(Fraction(float(found)), exact, mode, found, np.float32), name


def test_reciprocal_roots_of_float32_are_rounded_to_nearest(device):
    x = np.abs(floats(np.float32, 120))
    x = np.where(x == 0, 3, x).astype(np.float32)

    out = results(device, (L.frsqrt_rn,), [x], np.dtype(np.float32))[0]

    exact = 1 / np.sqrt(x.astype(np.longdouble))
    np.testing.assert_array_equal(out, exact.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_floats_are_exact(dtype, device):
    info = np.finfo(dtype)
    x = floats(dtype, 120)
    x[:8] = [np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal, info.tiny, -info.tiny / 8,
             0]
    n = np.random.default_rng().integers(-300 if dtype == np.float32 else -2200, 300, N, np.int32)
    n[20:24] = [2**31 - 1, -2**31, 0, 1]

    mantissas = results(device, (mantissa, L.logb, fraction, whole), [x], np.dtype(dtype))
    exponents = results(device, (exponent, L.ilogb), [x], np.dtype(np.int32))
    scaled = results(device, (L.ldexp, L.scalbn), [x, n], np.dtype(dtype))

    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissas[0], expected[0])
    np.testing.assert_array_equal(exponents[0], np.where(np.isfinite(x), expected[1], 0))
    with np.errstate(all="ignore"):
        logs = np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, expected[1] - 1.0))
        logs = np.where(np.isnan(x), np.nan, logs)
        np.testing.assert_array_equal(mantissas[1], logs)
        np.testing.assert_array_equal(mantissas[2], np.modf(x)[0])
        np.testing.assert_array_equal(mantissas[3], np.modf(x)[1])
        special = np.where(np.isinf(x), 2**31 - 1, -2**31)
        plain = np.isfinite(x) & (x != 0)
        np.testing.assert_array_equal(exponents[1], np.where(plain, expected[1] - 1, special))
        for row in scaled:
            np.testing.assert_array_equal(row, np.ldexp(x, n))


def mantissa(x):
    m, _ = L.frexp(x)
    return m


def exponent(x):
    _, e = L.frexp(x)
    return e


def fraction(x):
    part, _ = L.modf(x)
    return part


def whole(x):
    _, part = L.modf(x)
    return part


def remquo_rest(x, y):
    rest, _ = L.remquo(x, y)
    return rest


def remquo_count(x, y):
    _, count = L.remquo(x, y)
    return count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype, device):
    x, y = floats(dtype, 20), floats(dtype, 20)
    y[:4], x[4:8], y[8:12] = [0, np.inf, np.nan, -np.inf], np.inf, 0.5
    x[8:12] = [0.75, -0.75, 1.25, 2.5]

    rests = results(device, (L.remainder, remquo_rest), [x, y], np.dtype(dtype))
    counts = results(device, (remquo_count,), [x, y], np.dtype(np.int32))[0]

    for a, b, rest, other, count in zip(x.tolist(), y.tolist(), *rests, counts.tolist()):
        if math.isinf(a) or b == 0 or math.isnan(b):
            assert np.isnan(rest) and count == 0
            continue
        assert rest == other == math.remainder(a, b)
        quotient = 0 if math.isinf(b) else (Fraction(a) - Fraction(float(rest))) / Fraction(b)
        assert count == math.copysign(abs(quotient) % 8, quotient)


def rest_of_a_third(x):
    return L.remainder(x, 0.3)


def test_numbers_take_the_dtype_of_tiles():
    x, out = floats(np.float32, 3), np.full((1, N), 77, np.float32)

    apply[1](x, x, x, out, (rest_of_a_third,), 1, N)

    assert out[0].tolist() == [math.remainder(v, float(np.float32(0.3))) for v in x.tolist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths_do_not_overflow(dtype, device):
    x, y, z = (floats(dtype, 60) for _ in range(3))
    x[0], y[1] = np.finfo(dtype).max / 2, np.inf

    out = results(device, (L.norm3d, L.rnorm3d, fourth, inverse_fourth), [x, y, z],
                  np.dtype(dtype))

    wide = [v.astype(np.longdouble) for v in (x, y, z)]
    with np.errstate(all="ignore"):
        three = np.sqrt(sum(v * v for v in wide))
        four = np.sqrt(sum(v * v for v in wide) + wide[0] * wide[0])
        for row, exact in zip(out, (three, 1 / three, four, 1 / four)):
            np.testing.assert_allclose(row, exact.astype(dtype), 12 * np.finfo(dtype).eps)


def fourth(x, y, z):
    return L.norm4d(x, y, z, x)


def inverse_fourth(x, y, z):
    return L.rnorm4d(x, y, z, x)


# names ------------------------------------------------------------------------------------------

def test_every_function_of_cudas_table_takes_its_types():
    """numba-cuda's table says what libdevice has; results have the number and size it says."""
    table = pytest.importorskip("numba.cuda.libdevicefuncs").functions
    for name, (returned, parameters) in table.items():
        function = getattr(L, name.removeprefix("__nv_"))
        given = [p for p in parameters if not p.is_ptr]
        count = sum(p.is_ptr for p in parameters) + (str(returned) != "none")
        dtype = None if count > 1 or any(part in name for part in OF_OTHER_TYPES) else str(returned)
        x, y, z, w = (*(np.ones(N, str(p.ty)) for p in given), *[np.ones(N, np.int32)] * 3)[:4]

        seen[1](x, y, z, w, function, len(given), count, dtype, interpret=True)


# bools and unsigned integers here are int32 and int64 there; |x| and the like keep their dtype
OF_OTHER_TYPES = ("isnan", "isinf", "finite", "sad", "umul", "max", "min", "urhadd", "uhadd",
                  "2uint", "2ull", "abs")


@bn.jit
def seen(x, y, z, w, F: bn.constexpr, COUNT: bn.constexpr, RESULTS: bn.constexpr,
         DTYPE: bn.constexpr):
    a, b, c, d = x[bn.span(0, 8)], y[bn.span(0, 8)], z[bn.span(0, 8)], w[bn.span(0, 8)]
    made = F(a) if COUNT == 1 else F(a, b) if COUNT == 2 else F(a, b, c) if COUNT == 3 else F(
        a, b, c, d)
    if RESULTS > 1:
        bn.static_assert(len(made) == RESULTS)
    elif DTYPE is not None:
        bn.static_assert(made.dtype == getattr(bn, DTYPE), F)


def test_tritons_names_are_there():
    names = """rcp64h norm3d rnorm3d norm4d rnorm4d rhypot cyl_bessel_i0 cyl_bessel_i1 fast_dividef
        add_rn add_rz add_rd add_ru sub_rn sub_rz sub_rd sub_ru mul_rn mul_rz mul_rd mul_ru div_rn
        div_rz div_rd div_ru rcp_rn rcp_rz rcp_rd rcp_ru sqrt_rn sqrt_rz sqrt_rd sqrt_ru fma_rn
        fma_rz fma_rd fma_ru rsqrt_rn uint_as_float float_as_uint signbit isinf isnan finitef
        isfinited brev sad mulhi byte_perm""".split()
    assert [name for name in names if not callable(getattr(bn.language.math, name, None))] == []
    assert bn.language.extra.cuda.libdevice is L


# mistakes -------------------------------------------------------------------------------------

@bn.jit
def bits_of_floats(x):
    L.brev(x[bn.span(0, 8)])


@bn.jit
def of_an_array(x):
    L.erfinv(x)


@bn.jit
def too_few(x):
    L.byte_perm(x[bn.span(0, 8)])


MISTAKES = [
    (bits_of_floats, "libdevice: given tile<8xfloat32>, accepted ints", ""),
    (of_an_array, "libdevice: given an array, accepted tiles and numbers",
     "load elements first: x[bn.span(0, SIZE)]"),
    (too_few, "byte_perm: missing a required argument: 'y', accepted byte_perm(x, y, s)", ""),
]


@pytest.mark.parametrize("kernel,message,hint", MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_every_mistake_has_one_message(kernel, message, hint):
    with pytest.raises(BlockError) as caught:
        kernel[1](np.ones(8, np.float32), interpret=True)

    assert (caught.value.message, caught.value.hint) == (message, hint)
