"""Affine expressions of integers and pointers: base + sum(step * index), per element of a tile.

    p = program_id {axis=0}             p
    r = p * 128 + arange(0, 128)        128 * p + 1 * i
    x + r[:, None] * s + k[None, :]     x + 128 * p * s  + s * i  + 1 * j

The results assume that index arithmetic in signed integers of 32 bits or more does not overflow.
A program in which it overflows accesses other addresses than its author meant.
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.tile_ir.analysis.accesses import Access, access
from blocknumba.tile_ir.analysis.polynomial import (
    ONE, AffineExpression, Atom, Polynomial, reach_differing_places,
)
from blocknumba.tile_ir.ir.function import Function, Op, Parameter, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import OpTable, attribute
from blocknumba.tile_ir.ir.tensor_map import Number
from blocknumba.tile_ir.ir.types import DType, TileType, int32
from blocknumba.tile_ir.ir.uses import carried, is_loop
from blocknumba.tile_ir.ops.views import elements, raised_elements

MAX_TERMS = 16  # of an expression; longer ones are slow, and no analysis uses them


class AffineExpressions:
    """expressions[value]: the affine expression of an integer or pointer value of a function.

    It is a sentence with the reason where a tile has no expression, or where the array of a
    pointer is not known.  An integer scalar always has an expression, at worst itself.
    parameters: argument of the function -> its Parameter.
    counters: counter of a `for` -> the loop.
    """

    def __init__(self, fn: Function):
        self.parameters: dict[Value, Parameter] = dict(
            zip(fn.body.args, fn.parameters, strict=True))
        self.counters: dict[Value, Op] = {}
        self._found: dict[Value, AffineExpression | str] = {}
        self._atoms: dict[Value, Atom] = {}
        self._narrow: set[Polynomial] = set()
        self._accesses: dict[Op, Access | str] = {}
        for arg in fn.body.args:
            pointer = AffineExpression(Polynomial(), (), arg)
            self._record(arg, pointer if arg.type.is_pointer else None)
        self._region(fn.body)

    def __getitem__(self, value: Value) -> AffineExpression | str:
        return self._found[value]

    def parameter(self, atom: Atom) -> Parameter | None:
        """The launch parameter that a scalar is, hints on the way ignored; None for others."""
        value = atom.value
        while value.owner is not None and value.owner.name == "hint":
            value = value.owner.x
        return self.parameters.get(value)

    def differ(self, pointers: Value, strides_are_given: bool = False) -> bool:
        """Whether no two elements of a tile of pointers are equal: rows of arrays do not overlap.

        strides_are_given: nor do rows that are any steps of run time apart.
        """
        found = self[pointers]
        return (isinstance(found, AffineExpression)
                and (strides_are_given or self.has_steps_of_array(found))
                and reach_differing_places(
                    zip(found.steps, pointers.type.shape, strict=True)))

    def has_steps_of_array(self, pointers: AffineExpression) -> bool:
        """Whether the steps of pointers are multiples of the strides of their array, or known."""
        factors = (monomial for step in pointers.steps for monomial, _ in step.terms if monomial)
        return all(len(monomial) == 1 and self._is_stride(monomial[0], pointers.origin)
                   for monomial in factors)

    def _is_stride(self, atom: Atom, origin: Value | None) -> bool:
        known, array = self.parameter(atom), self.parameters.get(origin)
        return (known is not None and array is not None and known.kind == "stride"
                and known.argument == array.argument)

    def fits_32_bits(self, number: Polynomial) -> bool:
        """Whether a polynomial is the base of an int32, or narrower integer, of the function."""
        return number in self._narrow

    def atom(self, value: Value) -> Polynomial:
        """A scalar that is not expressed by others, as a polynomial."""
        if value not in self._atoms:
            self._atoms[value] = Atom(len(self._atoms), value)
        return Polynomial.of(self._atoms[value])

    def _record(self, value: Value, expression: AffineExpression | str | None) -> None:
        """Record an expression, or the reason; an integer scalar without one becomes an atom."""
        type_, is_pointer = value.type, value.type.is_pointer
        if not is_pointer and not type_.dtype.is_integer:
            return
        if isinstance(expression, AffineExpression) and len(expression.base.terms) > MAX_TERMS:
            expression = "an index is a long sum"
        if not isinstance(expression, AffineExpression) and type_.is_scalar and not is_pointer:
            expression = AffineExpression(self.atom(value))
        assert expression is not None, f"no expression and no reason for {type_}"
        self._found[value] = expression
        if isinstance(expression, AffineExpression) and not is_pointer:
            if _fits_32_bits(type_.dtype):
                self._narrow.add(expression.base)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            if is_loop(op):
                self._loop(op)
                continue
            for inner in op.regions:
                for arg in inner.args:
                    self._record(arg, _reason(op))
                self._region(inner)
            for value in op.results:
                self._record(value, self._expression(op))

    def access(self, op: Op) -> Access | str:
        """The access of `elements`, or the reason, a sentence, why it is not affine."""
        if op not in self._accesses:
            self._accesses[op] = access(op, self._found.__getitem__)
        return self._accesses[op]

    def _expression(self, op: Op) -> AffineExpression | str:
        if op.opdef in (elements, raised_elements):
            found = self.access(op)
            return found if isinstance(found, str) else found.pointer
        rule = RULES.get(op.name)
        if rule is None:
            return self._wrapped(op) if op.name == "mod" else _reason(op)
        operands = []
        for value in op.operands:
            found = self._found.get(value)
            if not isinstance(found, AffineExpression):
                return found or _reason(op)
            operands.append(found)
        return rule(op, *operands) or _reason(op)

    def _wrapped(self, op: Op) -> str:
        """The reason why the remainder of a tile has no expression.

        `scalar_remainders` has moved it to the tile's start where no tile wraps around.
        """
        divisor = self._found.get(op.y)
        is_known = isinstance(divisor, AffineExpression) and op.result.type.shape
        terms = divisor.base.terms if is_known else ()
        match terms:
            case (((atom,), 1),) if parameter := self.parameter(atom):
                name = Number(parameter.kind, parameter.argument, parameter.axis).spelled
                return (f"an index wraps around (% {name}), and {name} is not known to be a "
                        f"multiple of {max(op.result.type.shape)}: use a mask (< {name})")
        return _reason(op)

    def _loop(self, loop: Op) -> None:
        (region,), values = loop.regions, carried(loop)
        inside = {value for op in walk(region) for value in op.results} | set(region.args)
        if loop.name == "for":
            self.counters[region.args[0]] = loop
            self._record(region.args[0], None)
        for arg, initial, following in zip(values.args, values.initial, values.following,
                                           strict=True):
            if initial in self._found:
                self._record(arg, self._carried(loop, arg, initial, following, inside))
        self._region(region)
        for result, arg, initial, following in zip(
                loop.results, values.args, values.initial, values.following, strict=True):
            same = self._found.get(initial) if following is arg else None
            self._record(result, same or "an index is what a loop has left")

    def _carried(self, loop: Op, arg: Value, initial: Value, following: Value,
                 inside: set[Value]) -> AffineExpression | str:
        """A carried value in terms of its loop's counter: initial + iteration * distance."""
        first = self._found[initial]
        if following is arg or not isinstance(first, AffineExpression):
            return first
        moved = self._distance(following, arg, inside)
        if moved is None or not moved.is_uniform:
            return "an index does not change by a fixed distance in each iteration"
        if loop.name != "for":
            return "an index moves on in a loop that does not count its iterations"
        start, step = (self._found[value].base for value in (loop.start, loop.step))
        per_count, rest = moved.base.divided(step)
        if rest:
            return "an index moves by a distance that is no multiple of the loop's step"
        counted = self._found[loop.regions[0].args[0]].base - start
        return AffineExpression(first.base + per_count * counted, first.steps, first.origin)

    def _distance(self, following: Value, arg: Value,
                  inside: set[Value]) -> AffineExpression | None:
        """The distance from arg to following, equal in all iterations; None if it is not known."""
        total = AffineExpression(Polynomial(), (Polynomial(),) * len(arg.type.shape))
        while following is not arg:
            op = following.owner
            if op is None or op.name not in ("add", "sub", "offset", "hint"):
                return None
            if op.name == "hint":
                following = op.x
                continue
            following, moved = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
            if op.name == "add" and following not in inside:
                following, moved = moved, following
            distance = self._found.get(moved)
            if moved in inside or not isinstance(distance, AffineExpression):
                return None
            total = total - distance if op.name == "sub" else total + distance
        return total


def is_index(dtype: DType) -> bool:
    """Whether arithmetic in a dtype is assumed not to overflow."""
    return dtype.is_integer and dtype.is_signed and dtype.bits >= 32


def _fits_32_bits(dtype: DType) -> bool:
    return dtype.bits < 32 or dtype == int32


# reasons for values without an expression -----------------------------------------------------

_REASONS = {
    "load": "indices are loaded from memory",
    "atomic_rmw": "indices are loaded from memory",
    "mod": "an index wraps around (%)",
    "and": "an index wraps around (%)",
    "floordiv": "an index is the quotient of a division",
    "shr": "an index is the quotient of a division",
    "select": "an index is chosen by a condition",
    "if": "an index is chosen by a condition",
    "reshape": "an axis of indices is cut into several",
    "mul": "an index is a product of indices",
}


def _reason(op: Op) -> str:
    return _REASONS.get(op.name, f"an index is computed by {op.name}")


# rules: (op, expressions of the operands) -> the expression of the result, or None ---------------

Rule = Callable[..., AffineExpression | None]
rule = RULES = OpTable[Rule]("affine expression")


def _none(type_: TileType) -> tuple[Polynomial, ...]:
    return (Polynomial(),) * len(type_.shape)


@rule("constant")
def _(op: Op) -> AffineExpression | None:
    value = attribute(op, "value")
    return None if isinstance(value, float) else AffineExpression(Polynomial.constant(int(value)))


@rule("arange")
def _(op: Op) -> AffineExpression:
    step = ONE if attribute(op, "size") > 1 else Polynomial()
    return AffineExpression(Polynomial.constant(attribute(op, "start")), (step,))


@rule("offset")
def _(_: Op, pointer: AffineExpression, count: AffineExpression) -> AffineExpression:
    return pointer + count


@rule("add")
def _(op: Op, x: AffineExpression, y: AffineExpression) -> AffineExpression | None:
    return x + y if is_index(op.result.type.dtype) else None


@rule("sub")
def _(op: Op, x: AffineExpression, y: AffineExpression) -> AffineExpression | None:
    return x - y if is_index(op.result.type.dtype) else None


@rule("neg")
def _(op: Op, x: AffineExpression) -> AffineExpression | None:
    return x.times(Polynomial.constant(-1)) if is_index(op.result.type.dtype) else None


@rule("mul")
def _(op: Op, x: AffineExpression, y: AffineExpression) -> AffineExpression | None:
    if not is_index(op.result.type.dtype) or not (x.is_uniform or y.is_uniform):
        return None
    return x.times(y.base) if y.is_uniform else y.times(x.base)


@rule("shl")
def _(op: Op, x: AffineExpression, count: AffineExpression) -> AffineExpression | None:
    number = count.base.number if count.is_uniform else None
    dtype = op.result.type.dtype
    if number is None or not 0 <= number < dtype.bits or not is_index(dtype):
        return None
    return x.times(Polynomial.constant(1 << number))


@rule("cast")
def _(op: Op, x: AffineExpression) -> AffineExpression | None:
    """Casts of integers to signed indices; a narrower result is an atom, or has no expression.

    An unsigned source of the same size or wider has none: its value may become negative.
    """
    source, target = op.x.type.dtype, op.result.type.dtype
    if not source.is_integer or not is_index(target):
        return None
    return x if source.is_signed or source.bits < target.bits else None


@rule("hint")
def _(op: Op, x: AffineExpression) -> AffineExpression | None:
    # a hint on a scalar holds of the op's result: it must stay an atom of its own
    return None if op.result.type.is_scalar and not op.result.type.is_pointer else x


@rule("splat")
def _(op: Op, x: AffineExpression) -> AffineExpression:
    return AffineExpression(x.base, _none(op.result.type), x.origin)


@rule("broadcast")
def _(_: Op, x: AffineExpression) -> AffineExpression:
    return x


@rule("transpose")
def _(op: Op, x: AffineExpression) -> AffineExpression:
    steps = tuple(x.steps[axis] for axis in attribute(op, "axes"))
    return AffineExpression(x.base, steps, x.origin)


@rule("reshape")
def _(op: Op, x: AffineExpression) -> AffineExpression | None:
    """Axes of extent 1 may be added and dropped; others only where all elements are equal."""
    before, after = op.x.type.shape, op.result.type.shape
    if x.is_uniform:
        return AffineExpression(x.base, _none(op.result.type), x.origin)
    if [n for n in before if n > 1] != [n for n in after if n > 1]:
        return None
    kept = iter([step for step, extent in zip(x.steps, before, strict=True) if extent > 1])
    steps = tuple(next(kept) if extent > 1 else Polynomial() for extent in after)
    return AffineExpression(x.base, steps, x.origin)
