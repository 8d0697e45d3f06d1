"""Code of elementwise ops: tables from the names of ops to the code of one element."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from blocknumba.nvvm_lower.elements import is_narrow, memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.services import angles, division, floats, integers, narrow_pairs, runs
from blocknumba.nvvm_lower.services.address import added
from blocknumba.nvvm_lower.services.narrow_floats import narrow, widen
from blocknumba.tile_ir.analysis.bounds import counts_from_zero
from blocknumba.tile_ir.analysis.ranges import Range
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.types import DType, bool_, float32, float64, int32, uint32, uint64
from blocknumba.tile_ir.ops import directed, elementwise


def population_count(emitter: Emitter, dtype: DType, x: str) -> str:
    """Number of bits that are set."""
    return _call(emitter, dtype, "ctpop", x)


def leading_zeros(emitter: Emitter, dtype: DType, x: str) -> str:
    """Number of zero bits above the highest set one; all of them for 0."""
    return _call(emitter, dtype, "ctlz", x, "i1 false")


def first_set(emitter: Emitter, dtype: DType, x: str) -> str:
    """1 + the index of the lowest set bit, or 0."""
    body, type_ = emitter.body, memory_type(dtype)
    position = body.binary("add", type_, _call(emitter, dtype, "cttz", x, "i1 false"), "1")
    return body.select(body.compare("icmp eq", type_, x, "0"), type_, "0", position)


def _call(emitter: Emitter, dtype: DType, name: str, x: str, *more: str) -> str:
    type_ = memory_type(dtype)
    return emitter.body.call(type_, f"llvm.{name}.{type_}", f"{type_} {x}", *more,
                             attributes="nounwind readnone")


Element = Callable[..., str]  # (emitter, dtype, *values) -> value


@cache
def element_code(name: str, dtype: DType) -> Element:
    """The function that writes one element of an elementwise op on operands of a dtype.

    float16 and bfloat16 are computed in float32 and rounded, unless the op is in EXACT.
    """
    if name in EXACT:
        return EXACT[name]
    if not dtype.is_float:
        return (LOGICAL if dtype == bool_ else INTEGRAL)[name]
    function = FLOATING[name]
    return _through_float(function, name in PREDICATES) if is_narrow(dtype) else function


def _through_float(function: Element, is_predicate: bool) -> Element:
    def emit(emitter: Emitter, dtype: DType, *values: str) -> str:
        wide = [widen(emitter, dtype, value) for value in values]
        result = function(emitter, float32, *wide)
        return result if is_predicate else narrow(emitter, dtype, result)
    return emit


def _instruction(opcode: str) -> Element:
    """A binary instruction."""
    def emit(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
        return emitter.body.binary(opcode, register_type(dtype), x, y)
    return emit


def _signed(signed: str, unsigned: str) -> Element:
    """A binary instruction that depends on the signedness of integers."""
    def emit(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
        opcode = signed if dtype.is_signed else unsigned
        return emitter.body.binary(opcode, register_type(dtype), x, y)
    return emit


def _negate(emitter: Emitter, dtype: DType, x: str) -> str:
    return (floats if dtype.is_float else integers).negate(emitter, dtype, x)


def _absolute(emitter: Emitter, dtype: DType, x: str) -> str:
    return (floats if dtype.is_float else integers).absolute(emitter, dtype, x)


def _invert(emitter: Emitter, dtype: DType, x: str) -> str:
    return emitter.body.binary("xor", register_type(dtype), x, "true" if dtype == bool_ else "-1")


PREDICATES = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"))

_EQ, _NE = _instruction("icmp eq"), _instruction("icmp ne")
_COMPARED = {
    "eq": _EQ, "ne": _NE,
    "lt": _signed("icmp slt", "icmp ult"), "le": _signed("icmp sle", "icmp ule"),
    "gt": _signed("icmp sgt", "icmp ugt"), "ge": _signed("icmp sge", "icmp uge"),
}
_BITWISE = {"and": _instruction("and"), "or": _instruction("or"), "xor": _instruction("xor"),
            "invert": _invert}

LOGICAL: dict[str, Element] = {
    **_BITWISE, **_COMPARED, "minimum": _instruction("and"), "maximum": _instruction("or")}
INTEGRAL: dict[str, Element] = {
    **_BITWISE, **_COMPARED,
    "add": _instruction("add"), "sub": integers.subtract, "mul": integers.multiply,
    "floordiv": integers.floor_divide, "mod": integers.remainder, "power": integers.power,
    "truncdiv": integers.truncating_divide, "truncmod": integers.truncating_remainder,
    "minimum": integers.minimum, "maximum": integers.maximum,
    "shl": integers.shift_left, "shr": integers.shift_right, "umulhi": integers.multiply_high,
    "popc": population_count, "clz": leading_zeros, "ffs": first_set,
}
FLOATING: dict[str, Element] = {
    "add": floats.arithmetic("fadd"), "sub": floats.arithmetic("fsub"),
    "mul": floats.arithmetic("fmul"), "div": floats.arithmetic("fdiv"),
    "floordiv": floats.floor_divide, "mod": floats.remainder,
    "minimum": floats.minimum, "maximum": floats.maximum,
    "fmin": floats.intrinsic("llvm.minnum"), "fmax": floats.intrinsic("llvm.maxnum"),
    "eq": _instruction("fcmp oeq"), "ne": _instruction("fcmp une"),
    "lt": _instruction("fcmp olt"), "le": _instruction("fcmp ole"),
    "gt": _instruction("fcmp ogt"), "ge": _instruction("fcmp oge"),
    "isnan": floats.is_nan, "isinf": floats.is_infinite, "isfinite": floats.is_finite,
    "sqrt": floats.intrinsic("llvm.sqrt"), "floor": floats.intrinsic("llvm.floor"),
    "ceil": floats.intrinsic("llvm.ceil"),
    "trunc": floats.intrinsic("llvm.nvvm.trunc"),  # no NVVM IR has llvm.trunc
    "rint": floats.intrinsic("llvm.nvvm.round"),
    **{name: floats.library(name) for name in floats.LIBRARY},
}
# the same for all dtypes: on the bits of a float of any width, or by an instruction for each
EXACT: dict[str, Element] = {
    "neg": _negate, "absolute": _absolute, "fma": floats.fused_multiply_add,
    "copysign": floats.copy_sign, "nextafter": floats.next_after}


_MODES = {"rz": "rz", "rd": "rm", "ru": "rp"}  # ours: PTX's
FLOATING |= {name: floats.intrinsic(f"llvm.nvvm.{kind}.{_MODES[mode]}")
             for name in directed.NAMES for kind, mode in [name.split("_")]}


# what the attributes that let code be less exact choose, of float32, or float64 too
_CONTRACTED = {"add": floats.contracted("fadd"), "sub": floats.contracted("fsub"),
               "mul": floats.contracted("fmul")}
_APPROXIMATE = {"div": floats.approximate_quotient, "exp": floats.approximate_exponential,
                "exp2": floats.intrinsic("llvm.nvvm.ex2.approx.ftz"),
                "sqrt": floats.intrinsic("llvm.nvvm.sqrt.approx.ftz"),
                "rsqrt": floats.intrinsic("llvm.nvvm.rsqrt.approx.ftz")}


@cache
def _free_code(name: str, dtype: DType) -> Element:
    """The function that writes one element of an op whose result need not be exact."""
    if dtype == float64:
        return _CONTRACTED.get(name) or element_code(name, dtype)
    function = _CONTRACTED.get(name) or _APPROXIMATE[name]
    return _through_float(function, False) if is_narrow(dtype) else function


def _code(emitter: Emitter, op: Op, *operands: Registers) -> Registers:
    dtype = op.x.type.dtype
    if narrow_pairs.has_pairs(op.name, dtype, operands):
        return narrow_pairs.combine(emitter, op.name, dtype, *operands)
    is_free = dtype.is_float and any(op.attrs.get(name) for name in op.opdef.attributes)
    return _each(emitter, op, (_free_code if is_free else element_code)(op.name, dtype), *operands)


def _each(emitter: Emitter, op: Op, function: Element, *operands: Registers) -> Registers:
    """A function of every register, but for those that have the element of another."""
    dtype = op.x.type.dtype
    equal = runs.equal_registers(emitter, op.result)
    made: Registers = []
    for register, values in enumerate(zip(*operands, strict=True)):
        is_copy = register & equal
        made.append(made[register & ~equal] if is_copy else function(emitter, dtype, *values))
    return made


_ROUNDED_QUOTIENT = {
    "floordiv": integers.floor_divide, "mod": integers.floor_divide,
    "truncdiv": integers.truncating_divide, "truncmod": integers.truncating_divide}
# what an index that counts from 0 has by a power of two: a shift, or a mask, without a correction
_ROUNDED_DOWN = {"truncdiv": integers.floor_divide, "truncmod": integers.remainder}
_NAMES = {*LOGICAL, *INTEGRAL, *FLOATING, *EXACT} - {
    "add", "mul", "div", "sqrt", "sin", "cos", *_ROUNDED_QUOTIENT}
code(*(OPS[name] for name in sorted(_NAMES)))(_code)


@code(OPS["mul"])
def _(emitter: Emitter, op: Op, x: Registers, y: Registers) -> Registers:
    """Products in uint64 of numbers that fit into uint32 are one instruction each.

    Of one that LLVM sees through it takes the halves in 64 bits where their other operands allow,
    and then multiplies these in three.
    """
    ranges = [emitter.axis_infos.ranges[value] for value in op.operands]
    fit = all(range_.high <= uint32.maximum for range_ in ranges)
    is_known = all(range_.low == range_.high for range_ in ranges)
    if op.result.type.dtype != uint64 or is_known or not fit:
        return _code(emitter, op, x, y)
    return _each(emitter, op, integers.product_of_words, x, y)


@code(elementwise.div, OPS["sqrt"])
def _(emitter: Emitter, op: Op, *operands: Registers) -> Registers:
    """Exact quotients and square roots of float32 share a check of what their code assumes."""
    dtype = op.result.type.dtype
    if dtype == float64 or attribute(op, "approximate") or emitter.options.fastmath:
        return _code(emitter, op, *operands)
    together = division.divide if op.opdef is elementwise.div else division.square_roots
    return _together(emitter, dtype, together, *operands)


@code(OPS["sin"], OPS["cos"])
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    """Elements of float32 share a check for angles that are hard to reduce."""
    dtype = op.result.type.dtype
    if dtype == float64 or emitter.options.fastmath:
        return _code(emitter, op, x)
    return _together(emitter, dtype, angles.sines if op.name == "sin" else angles.cosines, x)


def _together(emitter: Emitter, dtype: DType, function: Callable[..., Registers],
              *operands: Registers) -> Registers:
    """A function of float32 elements of a thread, narrow ones in float32 and rounded."""
    if not is_narrow(dtype):
        return function(emitter, *operands)
    wide = ([widen(emitter, dtype, value) for value in values] for values in operands)
    return [narrow(emitter, dtype, value) for value in function(emitter, *wide)]


@code(*(OPS[name] for name in _ROUNDED_QUOTIENT))
def _(emitter: Emitter, op: Op, x: Registers, y: Registers) -> Registers:
    """Quotients and remainders of runs of integers share divisions."""
    made = None
    if op.result.type.dtype.is_integer:
        is_rest = op.name in ("mod", "truncmod")
        of_runs = runs.remainders if is_rest else runs.quotients
        made = of_runs(emitter, op, x, y, _ROUNDED_QUOTIENT[op.name])
        if made is None and op.name in _ROUNDED_DOWN and integers.is_power_of_two(y[0]) and (
                counts_from_zero(op.x, emitter.axis_infos.ranges)):
            function = _ROUNDED_DOWN[op.name]
            made = [function(emitter, op.result.type.dtype, *pair) for pair in zip(x, y)]
    return _code(emitter, op, x, y) if made is None else made


@code(elementwise.add)
def _(emitter: Emitter, op: Op, x: Registers, y: Registers) -> Registers:
    """Sums of int32 may be indices: what the registers have in common is added once."""
    if op.result.type.dtype != int32:
        return _code(emitter, op, x, y)
    ranges = emitter.axis_infos.ranges
    first, second = ranges[op.x], ranges[op.y]
    bounds = Range(first.low + second.low, first.high + second.high)
    return [added(emitter.body, emitter.threads, a, b, bounds) for a, b in zip(x, y, strict=True)]


@code(elementwise.select)
def _(emitter: Emitter, op: Op, condition: Registers, x: Registers, y: Registers) -> Registers:
    type_ = register_type(op.result.type.dtype)
    return [emitter.body.select(c, type_, a, b) for c, a, b in zip(condition, x, y, strict=True)]
