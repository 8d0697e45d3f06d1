"""Integers and pointers as sums of scalars and of multiples of the indices in their tile.

What is found holds as long as index arithmetic in signed integers of 32 bits or more does not
overflow; a program in which it does reads and writes at places that it does not mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.tile_ir.analysis.polynomial import Atom, Polynomial
from blocknumba.tile_ir.ir.carried import carried, is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Parameter, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.tensor_map import Number
from blocknumba.tile_ir.ir.types import DType, TileType, int32

MOST_TERMS = 16  # of a form; longer ones are of no use, and slow

ONE = Polynomial.constant(1)


@dataclass(frozen=True, slots=True)
class Form:
    """base + sum(steps[axis] * index[axis]).

    base, steps: polynomials in scalars; a step is 0 along an axis of extent 1.
    origin: of a pointer: the parameter that it counts elements from.
    """

    base: Polynomial
    steps: tuple[Polynomial, ...] = ()
    origin: Value | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all elements of the tile are equal."""
        return not any(self.steps)

    def __add__(self, other: Form) -> Form:
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return Form(self.base + other.base, steps, self.origin)

    def __sub__(self, other: Form) -> Form:
        steps = tuple(a - b for a, b in zip(self.steps, other.steps, strict=True))
        return Form(self.base - other.base, steps, self.origin)

    def times(self, factor: Polynomial) -> Form:
        return Form(self.base * factor, tuple(step * factor for step in self.steps))


class Forms:
    """forms[value]: the Form of an integer or pointer value of a function.

    Or, of a tile that has none and of a pointer of which the array is not known, a sentence that
    says why.  An integer scalar always has one, at worst itself.
    parameters: what the arguments of the function are.
    counters: per counter of a `for`, the loop.
    """

    def __init__(self, fn: Function):
        self.parameters: dict[Value, Parameter] = dict(
            zip(fn.body.args, fn.parameters, strict=True))
        self.counters: dict[Value, Op] = {}
        self._found: dict[Value, Form | str] = {}
        self._atoms: dict[Value, Atom] = {}
        self._narrow: set[Polynomial] = set()
        for arg in fn.body.args:
            self._record(arg, Form(Polynomial(), (), arg) if arg.type.is_pointer else None)
        self._region(fn.body)

    def __getitem__(self, value: Value) -> Form | str:
        return self._found[value]

    def parameter(self, atom: Atom) -> Parameter | None:
        """The number given at launch that a scalar is, promises about it aside."""
        value = atom.value
        while value.owner is not None and value.owner.name == "hint":
            value = value.owner.x
        return self.parameters.get(value)

    def fits_32_bits(self, number: Polynomial) -> bool:
        """Whether it is what an int32 of the function, or a narrower integer, starts with."""
        return number in self._narrow

    def atom(self, value: Value) -> Polynomial:
        """A scalar that is not taken apart."""
        if value not in self._atoms:
            self._atoms[value] = Atom(len(self._atoms), value)
        return Polynomial.of(self._atoms[value])

    def _record(self, value: Value, form: Form | str | None) -> None:
        """Note what was found; an integer scalar of which nothing was is an atom."""
        type_ = value.type
        if not type_.is_pointer and not type_.dtype.is_integer:
            return
        if isinstance(form, Form) and len(form.base.terms) > MOST_TERMS:
            form = "an index is a long sum"
        if not isinstance(form, Form) and type_.is_scalar and not type_.is_pointer:
            form = Form(self.atom(value))
        assert form is not None, f"no form and no reason for {type_}"
        self._found[value] = form
        if isinstance(form, Form) and not type_.is_pointer and _fits_32_bits(type_.dtype):
            self._narrow.add(form.base)

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
                self._record(value, self._form(op))

    def _form(self, op: Op) -> Form | str:
        rule = RULES.get(op.name)
        if rule is None:
            return self._wrapped(op) if op.name == "mod" else _reason(op)
        operands = []
        for value in op.operands:
            found = self._found.get(value)
            if not isinstance(found, Form):
                return found or _reason(op)
            operands.append(found)
        return rule(op, *operands) or _reason(op)

    def _wrapped(self, op: Op) -> str:
        """Why a remainder of a tile has no form: of tiles that are whole, scalars are taken."""
        divisor = self._found.get(op.y)
        terms = divisor.base.terms if isinstance(divisor, Form) and op.result.type.shape else ()
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
                 inside: set[Value]) -> Form | str:
        """A carried value in terms of the counter of its loop: initial + round * distance."""
        first = self._found[initial]
        if following is arg or not isinstance(first, Form):
            return first
        moved = self._distance(following, arg, inside)
        if moved is None or not moved.is_uniform:
            return "an index changes from round to round in a way that is no fixed distance"
        if loop.name != "for":
            return "an index moves on in a loop that does not count its rounds"
        start, step = (self._found[value].base for value in (loop.start, loop.step))
        per_count, rest = moved.base.divided(step)
        if rest:
            return "an index moves by a distance that is no multiple of the loop's step"
        counted = self._found[loop.regions[0].args[0]].base - start
        return Form(first.base + per_count * counted, first.steps, first.origin)

    def _distance(self, following: Value, arg: Value, inside: set[Value]) -> Form | None:
        """How far following is from arg, the same in each round; None when that is not known."""
        total = Form(Polynomial(), (Polynomial(),) * len(arg.type.shape))
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
            if moved in inside or not isinstance(distance, Form):
                return None
            total = total - distance if op.name == "sub" else total + distance
        return total


def is_index(dtype: DType) -> bool:
    """Whether arithmetic in a dtype is taken not to overflow."""
    return dtype.is_integer and dtype.is_signed and dtype.bits >= 32


def _fits_32_bits(dtype: DType) -> bool:
    return dtype.bits < 32 or dtype == int32


# why a value has no form ----------------------------------------------------------------------

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


# rules: (op, forms of the operands) -> the form of the result, or None --------------------------

Rule = Callable[..., Form | None]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of the ops of these names."""

    def declare(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, f"two rules for {name}"
            RULES[name] = function
        return function

    return declare


def _none(type_: TileType) -> tuple[Polynomial, ...]:
    return (Polynomial(),) * len(type_.shape)


@rule("constant")
def _(op: Op) -> Form | None:
    value = attribute(op, "value")
    return None if isinstance(value, float) else Form(Polynomial.constant(int(value)))


@rule("arange")
def _(op: Op) -> Form:
    step = ONE if attribute(op, "size") > 1 else Polynomial()
    return Form(Polynomial.constant(attribute(op, "start")), (step,))


@rule("offset")
def _(_: Op, pointer: Form, count: Form) -> Form:
    return pointer + count


@rule("add")
def _(op: Op, x: Form, y: Form) -> Form | None:
    return x + y if is_index(op.result.type.dtype) else None


@rule("sub")
def _(op: Op, x: Form, y: Form) -> Form | None:
    return x - y if is_index(op.result.type.dtype) else None


@rule("neg")
def _(op: Op, x: Form) -> Form | None:
    return x.times(Polynomial.constant(-1)) if is_index(op.result.type.dtype) else None


@rule("mul")
def _(op: Op, x: Form, y: Form) -> Form | None:
    if not is_index(op.result.type.dtype) or not (x.is_uniform or y.is_uniform):
        return None
    return x.times(y.base) if y.is_uniform else y.times(x.base)


@rule("shl")
def _(op: Op, x: Form, count: Form) -> Form | None:
    number = count.base.number if count.is_uniform else None
    dtype = op.result.type.dtype
    if number is None or not 0 <= number < dtype.bits or not is_index(dtype):
        return None
    return x.times(Polynomial.constant(1 << number))


@rule("cast")
def _(op: Op, x: Form) -> Form | None:
    """Of integers to signed ones; those that are narrower are atoms, or have no form.

    Unsigned ones of the same size or wider have none: they may become negative.
    """
    source, target = op.x.type.dtype, op.result.type.dtype
    if not source.is_integer or not is_index(target):
        return None
    return x if source.is_signed or source.bits < target.bits else None


@rule("hint")
def _(op: Op, x: Form) -> Form | None:
    # what is promised of a scalar is known of the scalar that the op gives
    return None if op.result.type.is_scalar and not op.result.type.is_pointer else x


@rule("splat")
def _(op: Op, x: Form) -> Form:
    return Form(x.base, _none(op.result.type), x.origin)


@rule("broadcast")
def _(_: Op, x: Form) -> Form:
    return x


@rule("transpose")
def _(op: Op, x: Form) -> Form:
    return Form(x.base, tuple(x.steps[axis] for axis in attribute(op, "axes")), x.origin)


@rule("reshape")
def _(op: Op, x: Form) -> Form | None:
    """Axes of extent 1 come and go; others only where all elements are equal."""
    before, after = op.x.type.shape, op.result.type.shape
    if x.is_uniform:
        return Form(x.base, _none(op.result.type), x.origin)
    if [n for n in before if n > 1] != [n for n in after if n > 1]:
        return None
    kept = iter([step for step, extent in zip(x.steps, before, strict=True) if extent > 1])
    steps = tuple(next(kept) if extent > 1 else Polynomial() for extent in after)
    return Form(x.base, steps, x.origin)
