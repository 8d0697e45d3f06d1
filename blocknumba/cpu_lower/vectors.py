"""Vectors of lanes in LLVM IR: values with Python's operators, written as one function's text.

    body = Body(8, "square_plus_one")
    x = body.argument("float")
    y = fma(x, x, 1.0)             # a Python number beside a vector is repeated in all lanes
    text = body.function([x], y)   # define internal <8 x float> @square_plus_one(<8 x float> ...)

A vector of one lane is a scalar.  The arithmetic is IEEE's and nothing is contracted: `x * y + z`
rounds twice, `fma(x, y, z)` once.  Comparisons are false where a lane is NaN, but for `!=`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.cpu_lower.writer import Writer

ROUNDED = {"float": np.float32, "double": np.float64}
SUFFIX = {"float": "f32", "double": "f64"}
LONG_POLYNOMIAL = 8  # coefficients
RARELY_CALLED = "noinline cold optsize nounwind"
_SIGNED = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_ORDERED = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    scalar: its LLVM type; integer: that of its bits; fraction: bits of the fraction that are
    stored; bias: of the exponent.
    """

    scalar: str
    integer: str
    fraction: int
    bias: int

    @property
    def bits(self) -> int:
        """The width of a number."""
        return int(self.integer[1:])

    @property
    def epsilon(self) -> float:
        """The distance of 1 to the next number."""
        return 2.0 ** -self.fraction

    @property
    def least_normal(self) -> float:
        """The least positive number that is not subnormal."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign(self) -> int:
        """The bits of -0.0."""
        return 1 << self.bits - 1


FLOAT32 = Format("float", "i32", 23, 127)
FLOAT64 = Format("double", "i64", 52, 1023)
FORMATS = {format_.scalar: format_ for format_ in (FLOAT32, FLOAT64)}


def literal(value: float | int, scalar: str) -> str:
    """The literal of a number, rounded to the type; integers wrap."""
    if scalar in ROUNDED:
        with np.errstate(over="ignore"):
            rounded = float(ROUNDED[scalar](value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    if scalar == "i1":
        return "true" if value else "false"
    bits = int(scalar[1:])
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> bits - 1 else value)


class Body:
    """The instructions of one function on vectors, in the order in which they are made.

    symbol: its name in the module; what it needs besides is named after it.
    """

    def __init__(self, lanes: int, symbol: str):
        self.lanes, self.symbol = lanes, symbol
        self._needed: dict[str, str] = {}  # symbol -> text of a function or a constant
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def type(self, scalar: str) -> str:
        """The LLVM type of a vector."""
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def suffix(self, scalar: str) -> str:
        """The suffix of an intrinsic on such vectors."""
        suffix = SUFFIX.get(scalar, scalar)
        return suffix if self.lanes == 1 else f"v{self.lanes}{suffix}"

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def argument(self, scalar: str) -> Vector:
        """The next argument of the function."""
        return Vector(self, scalar, self._name())

    def constant(self, value: float | int, scalar: str) -> Vector:
        """A number in all lanes."""
        text = literal(value, scalar)
        return Vector(self, scalar, text if self.lanes == 1 else f"splat ({scalar} {text})")

    def emit(self, text: str, scalar: str) -> Vector:
        """The result of an instruction."""
        name = self._name()
        self._lines.append(f"  {name} = {text}")
        return Vector(self, scalar, name)

    def perform(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {text}")

    def call(self, function: str, scalar: str, *operands: Vector) -> Vector:
        """The result of a function on vectors."""
        typed = ", ".join(operand.typed for operand in operands)
        return self.emit(f"call {self.type(scalar)} @{function}({typed})", scalar)

    def any(self, mask: Vector) -> str:
        """The name of an i1: whether any lane is true."""
        if self.lanes == 1:
            return mask.name
        name = self._name()
        self._lines.append(f"  {name} = call i1 @llvm.vector.reduce.or.{self.suffix('i1')}"
                           f"({mask.typed})")
        return name

    def where_any(self, mask: Vector, rare: Callable[[], Sequence[Vector]],
                  usual: Sequence[Vector]) -> list[Vector]:
        """Values that `rare` makes if the mask is true in any lane, else those that are there.

        The code of `rare` is skipped where it is not needed; it answers for all lanes.
        """
        number, before = self._count, self._block
        self._lines.append(f"  br i1 {self.any(mask)}, label %rare{number}, label %join{number}, "
                           "!prof !{!\"branch_weights\", i32 1, i32 1000}")
        self._open(f"rare{number}")
        results = rare()
        after = self._block
        self._lines.append(f"  br label %join{number}")
        self._open(f"join{number}")
        return [self.emit(f"phi {u.type} [ {u.name}, %{before} ], [ {r.name}, %{after} ]", u.scalar)
                for u, r in zip(usual, results, strict=True)]

    def repeat(self, values: Sequence[Vector],
               step: Callable[[list[Vector]], tuple[Vector, list[Vector]]]) -> list[Vector]:
        """Values carried through a loop that goes on while any lane of a mask is true.

        step: takes the values, returns the mask, and the next values.
        """
        number, before = self._count, self._block
        self._lines.append(f"  br label %loop{number}")
        self._open(f"loop{number}")
        carried = [Vector(self, v.scalar, self._name()) for v in values]
        head = len(self._lines)
        mask, following = step(carried)
        self._lines[head:head] = [
            f"  {c.name} = phi {c.type} [ {v.name}, %{before} ], [ {n.name}, %{self._block} ]"
            for c, v, n in zip(carried, values, following, strict=True)]
        self._lines.append(f"  br i1 {self.any(mask)}, label %loop{number}, label %done{number}")
        self._open(f"done{number}")
        return following

    def _open(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self._block = block

    def each_lane(self, name: str, function: Callable[[Vector], Vector],
                  x: Vector) -> Callable[[], Vector]:
        """A function of one lane; what is returned makes its call for all lanes, in a loop."""
        symbol = f"{self.symbol}.{name}"
        single = Body(1, symbol)
        argument = single.argument(x.scalar)
        result = function(argument)
        self._needed[symbol] = single.function([argument], result, RARELY_CALLED)
        if self.lanes > 1:
            self._needed[f"{symbol}.lanes"] = self._loop_over_lanes(symbol, x, result.scalar)
            symbol = f"{symbol}.lanes"
        return lambda: self.call(symbol, result.scalar, x)

    def _loop_over_lanes(self, single: str, x: Vector, scalar: str) -> str:
        """The text of a function on vectors that calls one of a single lane."""
        vector = self.type(scalar)
        return f"""define internal {vector} @{single}.lanes({x.type} %x) {RARELY_CALLED} {{
entry:
  %operands = alloca {x.type}
  %results = alloca {vector}
  store {x.type} %x, ptr %operands
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr {x.scalar}, ptr %operands, i64 %lane
  %one = load {x.scalar}, ptr %from
  %answer = call {scalar} @{single}({x.scalar} %one)
  %to = getelementptr {scalar}, ptr %results, i64 %lane
  store {scalar} %answer, ptr %to
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, {self.lanes}
  br i1 %more, label %loop, label %done
done:
  %all = load {vector}, ptr %results
  ret {vector} %all
}}
"""

    def load_constant(self, name: str, numbers: Sequence[int], scalar: str,
                      index: Vector) -> Vector:
        """One of a row of integers, in a function of one lane; index: an i64 within the row."""
        assert self.lanes == 1, "loads are of one lane"
        symbol = f"{self.symbol}.{name}"
        row = ", ".join(f"{scalar} {literal(number, scalar)}" for number in numbers)
        array = f"[{len(numbers)} x {scalar}]"
        self._needed[symbol] = f"@{symbol} = internal unnamed_addr constant {array} [{row}]\n"
        address = self._name()
        self._lines.append(f"  {address} = getelementptr inbounds {scalar}, ptr @{symbol}, "
                           f"{index.typed}")
        return self.emit(f"load {scalar}, ptr {address}", scalar)

    def function(self, arguments: Sequence[Vector], result: Vector,
                 attributes: str = "alwaysinline nounwind") -> str:
        """The text of the function, and before it of what it needs."""
        typed = ", ".join(argument.typed for argument in arguments)
        lines = [f"define internal {result.type} @{self.symbol}({typed}) {attributes} {{",
                 "entry:", *self._lines, f"  ret {result.typed}", "}"]
        return "".join(self._needed.values()) + "\n".join(lines) + "\n"


class Vector:
    """A value: its element's LLVM type and its name, or the literal of a constant."""

    __slots__ = ("body", "name", "scalar")
    __hash__ = None

    def __init__(self, body: Body, scalar: str, name: str):
        self.body, self.scalar, self.name = body, scalar, name

    @property
    def type(self) -> str:
        return self.body.type(self.scalar)

    @property
    def typed(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def format(self) -> Format:
        """The format of floats."""
        return FORMATS[self.scalar]

    @property
    def is_float(self) -> bool:
        return self.scalar in FORMATS

    def like(self, value: Vector | float | int) -> Vector:
        """A number as a vector of this type."""
        return value if isinstance(value, Vector) else self.body.constant(value, self.scalar)

    def _binary(self, word: str, x: Vector, y: Vector) -> Vector:
        prefix = "f" if self.is_float and word in ("add", "sub", "mul", "div") else ""
        return self.body.emit(f"{prefix}{word} {self.type} {x.name}, {y.name}", self.scalar)

    def __add__(self, other):
        return self._binary("add", self, self.like(other))

    def __radd__(self, other):
        return self._binary("add", self.like(other), self)

    def __sub__(self, other):
        return self._binary("sub", self, self.like(other))

    def __rsub__(self, other):
        return self._binary("sub", self.like(other), self)

    def __mul__(self, other):
        return self._binary("mul", self, self.like(other))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._binary("div", self, self.like(other))

    def __rtruediv__(self, other):
        return self._binary("div", self.like(other), self)

    def __and__(self, other):
        return self._binary("and", self, self.like(other))

    def __or__(self, other):
        return self._binary("or", self, self.like(other))

    def __xor__(self, other):
        return self._binary("xor", self, self.like(other))

    def __lshift__(self, other):
        return self._binary("shl", self, self.like(other))

    def __rshift__(self, other):
        """The shift that fills with zeros."""
        return self._binary("lshr", self, self.like(other))

    def shift_signed(self, other: Vector | int) -> Vector:
        """The shift that fills with the sign."""
        return self._binary("ashr", self, self.like(other))

    def __invert__(self):
        return self ^ -1

    def __neg__(self):
        if self.is_float:
            return self.body.emit(f"fneg {self.typed}", self.scalar)
        return 0 - self

    def _compare(self, sign: str, other) -> Vector:
        word = f"fcmp {_ORDERED[sign]}" if self.is_float else f"icmp {_SIGNED[sign]}"
        return self.body.emit(f"{word} {self.typed}, {self.like(other).name}", "i1")

    def __lt__(self, other):
        return self._compare("<", other)

    def __le__(self, other):
        return self._compare("<=", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __ge__(self, other):
        return self._compare(">=", other)

    def __eq__(self, other):
        return self._compare("==", other)

    def __ne__(self, other):
        return self._compare("!=", other)

    def _cast(self, word: str, scalar: str) -> Vector:
        return self.body.emit(f"{word} {self.typed} to {self.body.type(scalar)}", scalar)

    @property
    def as_bits(self) -> Vector:
        """The bits of floats, as integers."""
        return self._cast("bitcast", self.format.integer)

    def as_float(self, format_: Format) -> Vector:
        """The floats of bits."""
        return self._cast("bitcast", format_.scalar)

    def to(self, scalar: str) -> Vector:
        """Conversion: floats round to nearest, integers are signed and wrap."""
        if scalar == self.scalar:
            return self
        if self.is_float and scalar in FORMATS:
            return self._cast("fpext" if scalar == "double" else "fptrunc", scalar)
        if self.is_float or scalar in FORMATS:
            return self._cast("fptosi" if self.is_float else "sitofp", scalar)
        return self._cast("sext" if int(scalar[1:]) > int(self.scalar[1:]) else "trunc", scalar)

    def to_unsigned(self, scalar: str) -> Vector:
        """Integers widened with zeros."""
        return self._cast("zext", scalar)


class Inline(Body):
    """Vectors whose instructions go into the function that is being written."""

    def __init__(self, writer: Writer, lanes: int):
        super().__init__(lanes, "")
        self._writer = writer

    def emit(self, text: str, scalar: str) -> Vector:
        """See Body.emit."""
        return Vector(self, scalar, self._writer.assign(text))


def _intrinsic(name: str, *operands: Vector) -> Vector:
    first = operands[0]
    return first.body.call(f"llvm.{name}.{first.body.suffix(first.scalar)}", first.scalar,
                           *operands)


def fma(x: Vector, y: Vector | float, z: Vector | float) -> Vector:
    """x * y + z, rounded once; one of the operands may be a number, but the first."""
    return _intrinsic("fma", x, x.like(y), x.like(z))


def sqrt(x: Vector) -> Vector:
    """Square root, correctly rounded."""
    return _intrinsic("sqrt", x)


def absolute(x: Vector) -> Vector:
    """|x|."""
    return _intrinsic("fabs", x)


def copysign(x: Vector, y: Vector) -> Vector:
    """|x| with the sign of y."""
    return _intrinsic("copysign", x, y)


def rounded(word: str, x: Vector) -> Vector:
    """x as an integral float; word: one of floor, ceil, trunc, rint."""
    return _intrinsic(word, x)


def where(condition: Vector, x: Vector | float, y: Vector | float) -> Vector:
    """x in the lanes that are true, else y; one of them is a vector."""
    x, y = (x, x.like(y)) if isinstance(x, Vector) else (y.like(x), y)
    return condition.body.emit(f"select {condition.typed}, {x.typed}, {y.typed}", x.scalar)


def at_most(x: Vector, limit: Vector | float) -> Vector:
    """The lesser; x where that is NaN."""
    limit = x.like(limit)
    return where(limit < x, limit, x)


def at_least(x: Vector, limit: Vector | float) -> Vector:
    """The greater; x where that is NaN."""
    limit = x.like(limit)
    return where(limit > x, limit, x)


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """A polynomial near 0; coefficients: the constant first.

    Of a long one the even and the odd powers are summed apart: neither waits for the other.  The
    constant, which weighs most, is added last.
    """
    if len(coefficients) < LONG_POLYNOMIAL:
        return horner(x, coefficients)
    constant, *rest = coefficients
    square = x * x
    return fma(fma(x, horner(square, rest[1::2]), horner(square, rest[::2])), x, constant)


def horner(x: Vector, coefficients: Sequence[float]) -> Vector:
    """A polynomial by Horner's rule, which errs less where terms cancel."""
    total = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = fma(total, x, coefficient)
    return total
