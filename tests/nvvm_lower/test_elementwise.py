"""Elementwise ops on the GPU's arithmetic against NumPy's, special values included."""

import numpy as np
import pytest
from kernels import elementwise_kernel, emulated

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OPS
from blocknumba.tile_ir.ir.types import DTYPES, TileType, bool_

SIZE = 256
# correctly rounded, or on integers; the others have an error bound
EXACT = frozenset(
    "add sub mul div floordiv mod neg absolute minimum maximum fmin fmax fma and or xor invert shl "
    "shr umulhi popc clz ffs eq ne lt le gt ge isnan isinf isfinite sqrt floor ceil trunc rint "
    "copysign nextafter".split())
SIGN_OF_ZERO_IS_OPEN = frozenset(("minimum", "maximum", "fmin", "fmax"))  # as in NumPy
UNITS_IN_LAST_PLACE = 8
# near its roots; CUDA Math API, "Mathematical Functions Appendix", bounds it nowhere there
ABSOLUTE_ERROR = {"lgamma": 8}  # in units of the last place of 1
MIN_FRACTION = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23,
                  "float64": 2.0 ** -52}


def accepted(opdef, dtype):
    """The dtype of the op's result on tiles of a dtype, or None if it does not take them."""
    try:
        return opdef.infer(*[TileType(dtype, (SIZE,))] * len(opdef.operands)).dtype
    except BlockError:
        return None


OPDEFS = [op for op in OPS.values()
          if op.has(ELEMENTWISE) and not op.attributes and op.name not in ("select", "offset")]
CASES = [(op, dtype) for op in OPDEFS for dtype in DTYPES.values() if accepted(op, dtype)]


def special_values(dtype):
    """Where arithmetic goes wrong: bounds, both zeros, subnormals, infinities, NaN."""
    if dtype == bool_:
        return np.array([False, True])
    if dtype.is_integer:
        values = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, dtype.minimum, dtype.minimum + 1,
                  dtype.maximum - 1, dtype.maximum]
        return np.array(values + [-1, -2, -3, -7] * dtype.is_signed, dtype.numpy)
    values = np.array([0.0, -0.0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan, 1e-3, 1.5, -2.5,
                       100.25, -7, 0.3]).astype(dtype.numpy)
    subnormal = np.array([1, 3], f"u{dtype.bytes}").view(dtype.numpy)
    return np.concatenate([values, subnormal])


def operands_of(opdef, dtype):
    """All pairs of special values; of three operands, a sample of the triples."""
    values = special_values(dtype)
    if len(opdef.operands) == 3:
        chosen = np.random.default_rng(3).integers(0, len(values), (3, 500))
        return [values[row] for row in chosen]
    return [axis.ravel() for axis in np.meshgrid(*[values] * len(opdef.operands))]


def agree(found, wanted, opdef, dtype):
    """Per element whether it is what NumPy gives, within the op's error bound."""
    if wanted.dtype.kind in "biu":
        return found == wanted
    both_nan = (found != found) & (wanted != wanted)
    bits = f"u{found.dtype.itemsize}"
    equal = found.view(bits) == wanted.view(bits)
    if opdef.name in SIGN_OF_ZERO_IS_OPEN:
        equal |= found == wanted
    if opdef.name not in EXACT:
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        fraction = MIN_FRACTION[dtype.name]
        least = float(np.array(1, bits).view(found.dtype).astype(np.float64))
        with np.errstate(all="ignore"):
            equal |= np.abs(a - b) <= UNITS_IN_LAST_PLACE * (fraction * np.abs(b) + least)
            equal |= np.abs(a - b) <= ABSOLUTE_ERROR.get(opdef.name, 0) * fraction
    return both_nan | equal


@pytest.mark.parametrize("opdef, dtype", CASES, ids=lambda case: str(getattr(case, "name", case)))
def test_an_op_gives_what_numpy_gives(opdef, dtype):
    operands = operands_of(opdef, dtype)
    result = accepted(opdef, dtype)
    found = np.zeros(len(operands[0]), result.numpy)
    names = ", ".join(f"%{name}" for name in "abc"[:len(operands)])
    text = elementwise_kernel(f"%result = {opdef.name} {names} : tile<{SIZE}x{result}>",
                              *[dtype.name] * len(operands), result=result.name, size=SIZE)

    emulated(text, -(-len(found) // SIZE), *operands, found, len(found))

    with np.errstate(all="ignore"):
        wanted = opdef.evaluate(*(operand[None] for operand in operands))[0]
    wrong = np.flatnonzero(~agree(found, wanted.astype(result.numpy), opdef, dtype))
    assert not len(wrong), [(*(operand[i] for operand in operands), found[i], wanted[i])
                            for i in wrong[:5]]


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint16"])
@pytest.mark.parametrize("name", ["floordiv", "mod", "shl", "shr", "power"])
@pytest.mark.parametrize("constant", [0, 1, 2, 3, 5, 8, 40])
def test_a_constant_operand_gives_the_same_as_a_loaded_one(name, dtype, constant):
    x = special_values(DTYPES[dtype])
    found = np.zeros_like(x)
    body = (f"%c = constant {{value={constant}}} : {dtype}\n%b = splat %c : tile<{SIZE}x{dtype}>\n"
            f"%result = {name} %a, %b : tile<{SIZE}x{dtype}>")

    emulated(elementwise_kernel(body, dtype, result=dtype, size=SIZE), 1, x, found, len(x))

    wanted = OPS[name].evaluate(x[None], np.full_like(x, constant)[None])[0]
    np.testing.assert_array_equal(found, wanted)


def test_a_product_and_a_sum_are_rounded_separately():
    x = np.float32([1 + 2.0 ** -12] * 4)
    y = np.float32([-(1 + 2.0 ** -11)] * 4)
    found = np.zeros(4, np.float32)
    body = (f"%p = mul %a, %a : tile<{SIZE}xfloat32>\n"
            f"%result = add %p, %b : tile<{SIZE}xfloat32>")

    emulated(elementwise_kernel(body, "float32", "float32", size=SIZE), 1, x, y, found, 4)

    assert (found == x * x + y).all()
    assert (found == 0).all()  # a fused one would keep 2**-24


def test_fastmath_lets_them_be_fused():
    body = (f"%p = mul %a, %a : tile<{SIZE}xfloat32>\n"
            f"%result = add %p, %b : tile<{SIZE}xfloat32>")
    x, found = np.float32([1 + 2.0 ** -12]), np.zeros(1, np.float32)

    emulated(elementwise_kernel(body, "float32", "float32", size=SIZE), 1, x,
             np.float32([-(1 + 2.0 ** -11)]), found, 1, fastmath=True)

    assert found[0] == 2.0 ** -24


def test_select_takes_each_element_from_one_side():
    a, b = np.arange(8, dtype=np.int16), -np.arange(8, dtype=np.int16)
    found = np.zeros(8, np.int16)
    body = f"""%one = constant {{value=1}} : int16
%ones = splat %one : tile<{SIZE}xint16>
%odd = and %a, %ones : tile<{SIZE}xint16>
%is.odd = eq %odd, %ones : tile<{SIZE}xbool>
%result = select %is.odd, %a, %b : tile<{SIZE}xint16>"""
    text = elementwise_kernel(body, "int16", "int16", result="int16", size=SIZE)

    emulated(text, 1, a, b, found, 8)

    np.testing.assert_array_equal(found, np.where(a & 1, a, b))
