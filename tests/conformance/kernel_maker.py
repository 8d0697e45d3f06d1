"""Writes whole kernels of the array dialect from a seed: loads, expressions, control flow, stores.

What every value must be is known while it is written (`kernel_recipes`), so that all devices and
NumPy (`numpy_functions`) give the same elements, and floats that may differ say by how much.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import axis_recipes  # noqa: F401  each adds its recipes to RECIPES
import elementwise_recipes  # noqa: F401
import numpy as np
import shape_recipes  # noqa: F401
from kernel_recipes import ANY, RECIPES, Facts, Made, Variable, converted, places
from numpy_functions import FUNCTIONS
from numpy_tiles import BOOL, DTYPES, FLOATS, INTS, Array, Tile, is_float, promoted

MAX_SIZE = 1024  # elements of a tile
SHAPES = ((16,), (64,), (256,), (8, 16), (32, 16), (4, 8, 4), (2, 1, 16), (1,), (512,), (16, 16),
          (64, 8), (2, 2, 4, 4))
PRELUDE = """\
def affine(a0, b0, a1, b1):
    return a1 * a0, a1 * b0 + b1

def best(k0, i0, k1, i1):
    later = k1 > k0
    return bn.where(later, k1, k0), bn.where(later, i1, i0)

def larger(a, b):
    return bn.maximum(a, b)

def right(a, b):
    return b

def halvings(v):
    count = 0
    while v > 1 and count < 9:
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        count += 1
    return count, v

"""
MAX_DEPTH = 2
_SAMPLES: dict[str, object] = {"bn": SimpleNamespace(**FUNCTIONS)}
exec(PRELUDE, _SAMPLES)
_SYMBOLS = {"b": ["&", "|", "^"], "i": ["+", "-", "*", "^", "&"], "f": ["+", "-", "*"]}


@dataclass(frozen=True)
class Input:
    """An array that a kernel reads.

    largest: of its whole numbers; 0 for edge values of its dtype and any bits.
    layout: "c", or "f", "strided", "reversed" or "offset" in memory.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    largest: int
    layout: str = "c"


@dataclass(frozen=True)
class Output:
    """An array that a kernel writes.   facts: how far floats may be off; zeros: what it starts as,
    any bits else."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    facts: Facts = ANY
    zeros: bool = False


@dataclass
class Scope:
    """What code can use: variables; numbers, names of Python ints; those that a loop carries."""

    variables: list[Variable]
    numbers: list[str]
    carried: list[Variable] = field(default_factory=list)
    depth: int = 0
    in_loop: bool = False
    slot: tuple[str, int] | None = None  # of a loop with a known number of iterations

    def inner(self, **changes: object) -> Scope:
        """The scope of a block."""
        return replace(self, variables=list(self.variables), numbers=list(self.numbers),
                       depth=self.depth + 1, **changes)


class KernelMaker:
    """The source of `kernel(...)` and its arrays, from a seed.

    inputs, outputs: the arrays; the last parameter is the int `n`.   programs: of the grid.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.programs = self.random.randint(1, 3)
        self.num_warps = self.pick([1, 2, 4, 8])
        self.n = self.random.randint(0, 4)
        self.max_size = MAX_SIZE
        self.shapes = self.random.sample(SHAPES, 2)
        self._names = 0
        self._scope = Scope([], ["p", "n"])
        self._budget = self.random.randint(6, 18)
        self.source = self._kernel()

    # choices ----------------------------------------------------------------------------------
    def chance(self, share: float) -> bool:
        """True that often."""
        return self.random.random() < share

    def pick(self, items: Sequence) -> object:
        """One of them."""
        return self.random.choice(items)

    def shuffled(self, items: Iterable) -> tuple:
        """All of them in another order."""
        found = list(items)
        self.random.shuffle(found)
        return tuple(found)

    def axis(self, x: Variable) -> int:
        """One of the axes of a tile."""
        return self.random.randrange(len(x.shape))

    def factors(self, size: int) -> tuple[int, ...]:
        """A shape of so many elements."""
        found = []
        while size > 1 and len(found) < 3:
            extent = 1 << self.random.randint(0, size.bit_length() - 1)
            found.append(extent)
            size //= extent
        return self.shuffled([*found, size])

    @property
    def numbers(self) -> list[str]:
        """The names of small Python ints of run time."""
        return self._scope.numbers

    # variables --------------------------------------------------------------------------------
    def any_of(self, fits: Callable[[Variable], bool], near: bool = False) -> Variable | None:
        """A variable, of late ones rather than early ones; near: floats that may be off too."""
        found = [v for v in self._scope.variables if (near or v.is_exact) and fits(v)]
        if not found:
            return None
        return found[-1 - min(int(self.random.expovariate(0.3)), len(found) - 1)]

    def like(self, x: Variable, fits: Callable[[Variable], bool]) -> Variable | None:
        """A variable that x can be combined with; x itself where no other fits."""
        if x is None:
            return None
        return self.any_of(lambda v: fits(v) and v.name != x.name and self.joins(x, v)) or (
            x if fits(x) else None)

    def pair(self, fits: Callable[[Variable], bool]) -> tuple[Variable | None, Variable | None]:
        """Two variables that can be combined, of dtypes whose result is no surprise."""
        x = self.any_of(fits)
        y = self.like(x, lambda v: fits(v) and _meet(x, v))
        return (x, y) if y is not None else (None, None)

    def joins(self, x: Variable, y: Variable) -> bool:
        """Whether two variables broadcast together, to no more elements than a tile may have."""
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
        return math.prod(shape) <= self.max_size

    def _sample(self, text: str) -> object:
        """An expression of tiles of ones, by NumPy: its dtypes and shapes."""
        names = {v.name: Tile(np.ones(v.shape, v.dtype)) for v in self._scope.variables}
        names |= {i.name: Array(np.ones(i.shape, i.dtype)) for i in (*self.inputs, *self.outputs)}
        return eval(text, _SAMPLES, names | dict.fromkeys(self._scope.numbers, 1))

    def dtype_of(self, text: str) -> np.dtype:
        """The dtype of an expression."""
        return self._sample(text).dtype

    def _new_name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _add(self, name: str, value: Tile, facts: Facts) -> None:
        if value.dtype == BOOL:
            facts = Facts(0, 1)
        if is_float(value.dtype) and facts.low is not None and facts.ulps:
            facts = replace(facts, low=None, high=None)
        self._scope.variables.append(Variable(name, value.dtype, value.shape, facts))

    # statements -------------------------------------------------------------------------------
    def _kernel(self) -> str:
        body = ["p = bn.program_id(0)"]
        for _ in range(self.random.randint(2, 4)):
            body += self._load()
        while self._budget > 0:
            body += self._statement()
        body += self._stores()
        names = [*(i.name for i in self.inputs), *(o.name for o in self.outputs), "n"]
        lines = "\n".join("    " + line for line in body)
        return f"{PRELUDE}def kernel({', '.join(names)}):\n{lines}\n"

    def _statement(self) -> list[str]:
        self._budget -= 1
        share = self.random.random()
        if self._scope.depth < MAX_DEPTH and share < 0.16:
            return self.pick([self._for, self._if, self._for, self._while])()
        if share < 0.25:
            return self._load()
        if share < 0.29:
            return self.pick([self._atomic, self._read_atomic])()
        if self._scope.depth == 0 and share < 0.34:
            return self.pick([self._sum_over_spans, self._product_over_spans])()
        return self._assignment()

    def _assignment(self) -> list[str]:
        """A new variable, or several."""
        made = None
        weights = [weight for weight, _ in RECIPES]
        while made is None:
            (_, recipe), = self.random.choices(RECIPES, weights)
            made = recipe(self)
        return self._bound(made)

    def _bound(self, made: Made) -> list[str]:
        if isinstance(made.facts, Facts):
            name = self._new_name("v")
            self._add(name, self._sample(made.text), made.facts)
            return [f"{name} = {made.text}"]
        names = [self._new_name("v") for _ in made.facts]
        for name, value, facts in zip(names, self._sample(made.text), made.facts):
            self._add(name, value, facts)
        return [f"{', '.join(names)} = {made.text}"]

    # memory -----------------------------------------------------------------------------------
    def _load(self) -> list[str]:
        """A tile of a new array, or of one that there is."""
        shape = self.pick(self.shapes)
        known = [i for i in self.inputs if len(i.shape) == len(shape) + 1]
        array = self.pick(known) if known and self.chance(0.3) else self._new_input(shape)
        low = 0 if array.dtype.kind in "ub" else -array.largest
        facts = Facts(min(low, 0), array.largest) if array.largest else ANY
        index = ", ".join([self.pick(self.numbers), *self._spans(shape, array.shape[1:])])
        reference = f"{array.name}.at[{index}]"
        mask = self.any_of(lambda v: v.dtype == BOOL and v.shape == shape)
        other = self.pick([0, 1, 2])
        texts = [f"{array.name}[{index}]"]
        if array.dtype != BOOL:
            texts.append(f"bn.load({reference}, other={other})")
            if mask is not None:
                texts += [f"bn.load({reference}, mask={mask.name}, other={other})"] * 3
        elif mask is not None:
            texts.append(f"bn.load({reference}, mask={mask.name})")
        index = self.any_of(lambda v: v.is_int and v.shape)
        size = math.prod(array.shape)
        if index is not None and len(array.shape) == 2:
            texts.append(f"{array.name}[{self.pick(self.numbers)}, {index.name}]")
        if index is not None and array.layout == "c" and size >= 256 and (
                index.dtype.name in ("int32", "int64")):
            texts += [f"bn.load({array.name} + {index.name} % {size})",
                      f"bn.load({array.name} + {index.name} % 256, mask={index.name} > 2, "
                      f"other={other})"]
        if array.largest:
            facts = Facts(min(facts.low, 0), max(facts.high, other))
        return self._bound(Made(self.pick(texts), facts))

    def _new_input(self, shape: tuple[int, ...]) -> Input:
        dtype = self.pick([*FLOATS, *FLOATS, *INTS, DTYPES["int32"], BOOL, DTYPES["float32"]])
        extents = tuple(max(n + self.pick([0, 0, 0, 3, -1, -n // 2]), 1) for n in shape)
        largest = self.pick([0, 3, 9, 9, 100] if dtype != BOOL else [1])
        layout = self.pick(["c", "c", "c", "f", "strided", "reversed", "offset"])
        array = Input(self._new_name("x"), dtype, (self.pick([1, 3, 5]), *extents), largest,
                      layout)
        self.inputs.append(array)
        return array

    def _spans(self, shape: Sequence[int], extents: Sequence[int]) -> list[str]:
        starts = [self.pick(["0", "0", "0", *self.numbers, "1", "4"]) for _ in shape]
        return [f"bn.span({start}, {n})" for start, n in zip(starts, shape)]

    def _atomic(self) -> list[str]:
        """An update of an array by all programs, whose order does not count."""
        x = self.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4 and v.shape)
        if x is None:
            return self._assignment()
        name = self.pick(["add", "max", "min", "and", "or", "xor"])
        mask = self.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
        masked = f", mask={mask.name}" if mask is not None and self.chance(0.4) else ""
        index = self.like(x, lambda v: v.is_int and v.shape == x.shape)
        bins = self.pick([1, 8, 100])
        out = Output(self._new_name("out"), x.dtype, (bins,), zeros=True)
        self.outputs.append(out)
        return [f"bn.atomic_{name}({out.name}.at[{places(index, bins)}], {x.name}{masked})"]

    def _read_atomic(self) -> list[str]:
        """An update of elements that no other program has, and what they were before."""
        x = self.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4 and v.shape)
        if x is None:
            return self._assignment()
        out = Output(self._new_name("out"), x.dtype, (self.programs, *x.shape))
        self.outputs.append(out)
        at = ", ".join(["p", *(f"bn.span(0, {n})" for n in x.shape)])
        name = self.pick(["add", "max", "and", "xor", "xchg", "cas"])
        value = x.name if name != "cas" else f"3, {x.name}"
        return self._bound(Made(f"bn.atomic_{name}({out.name}.at[{at}], {value})"))

    def _whole_input(self, dtype: np.dtype, shape: tuple[int, ...]) -> Input:
        array = Input(self._new_name("x"), dtype, shape, 3, self.pick(["c", "c", "f", "offset"]))
        self.inputs.append(array)
        return array

    def _sum_over_spans(self) -> list[str]:
        """The sum of the tiles of a row of any length."""
        size, columns = self.pick([16, 64, 256]), self.random.randint(1, 600)
        x = self._whole_input(self.pick([*FLOATS[2:], *INTS]), (self.programs, columns))
        name, total = self._new_name("r"), self._new_name("v")
        over = self.pick([f"bn.spans({x.name}.shape[1], {size})",
                          f"bn.spans({x.name}.shape[1], {size}, step={size // 2})"])
        facts = ANY if not is_float(x.dtype) else Facts(-3 * 80, 3 * 80)
        self._scope.variables.append(Variable(total, x.dtype, (size,), facts))
        return [f"{total} = bn.zeros(({size},), bn.{x.dtype.name})", f"for {name} in {over}:",
                f"    {total} = {total} + {x.name}[p, {name}]"]

    def _product_over_spans(self) -> list[str]:
        """The product of two matrices, along a depth of any length."""
        rows, columns, depth = (self.pick([16, 32, 64]) for _ in range(3))
        dtype, length = self.pick([*FLOATS, DTYPES["float16"], DTYPES["int8"]]), (
            self.random.randint(1, 150))
        a = self._whole_input(dtype, (rows - self.pick([0, 0, 3]), length))
        b = self._whole_input(dtype, (length, columns - self.pick([0, 0, 5])))
        sums = {"int8": "int32", "float64": "float64"}.get(dtype.name, "float32")
        k, total = self._new_name("r"), self._new_name("v")
        self._scope.variables.append(Variable(total, DTYPES[sums], (rows, columns), ANY))
        lines = [f"{total} = bn.zeros(({rows}, {columns}), bn.{sums})",
                 f"for {k} in bn.spans({a.name}.shape[1], {depth}):",
                 f"    {total} = bn.dot({a.name}[bn.span(0, {rows}), {k}], "
                 f"{b.name}[{k}, bn.span(0, {columns})], {total})"]
        whole = self._scope.variables[-1]
        lines += [self._store(whole, ["p"], [self.programs]),
                  *self._bound(Made(f"bn.extract({total}, (0, 0), (16, 16))"))]
        self._scope.variables.remove(whole)  # it is larger than others may be
        return lines

    def _stores(self) -> list[str]:
        """What was made last, and some of the rest, in arrays of their own."""
        found, lines = self._scope.variables, []
        chosen = found[-3:] + self.random.sample(found[:-3], min(2, len(found[:-3])))
        for variable in chosen:
            lines.append(self._store(variable, ["p"], [self.programs]))
        return lines

    def _store(self, x: Variable, first: list[str], extents: list[int]) -> str:
        cut = tuple(max(n - self.pick([0, 0, 0, 1]), 1) for n in x.shape)
        out = Output(self._new_name("out"), x.dtype, (*extents, *cut), x.facts)
        self.outputs.append(out)
        index = ", ".join([*first, *(f"bn.span(0, {n})" for n in x.shape)])
        mask = self.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
        if mask is not None and self.chance(0.3):
            return f"bn.store({out.name}.at[{index}], {x.name}, mask={mask.name})"
        if cut == x.shape and len(first) == 1 and len(x.shape) == 1 and self.chance(0.5):
            return (f"bn.store({out.name} + p * {x.size} + bn.arange(0, {x.size}), {x.name})")
        return f"{out.name}[{index}] = {x.name}"

    # control flow -----------------------------------------------------------------------------
    def _block(self, scope: Scope, count: int) -> list[str]:
        """Some statements in a scope of their own, and changes of what is carried."""
        outer, self._scope = self._scope, scope
        lines: list[str] = []
        for _ in range(count):
            lines += self._statement()
        for variable in self._scope.carried:
            lines += self._change(variable)
        if scope.slot and self.chance(0.4):
            name, trips = scope.slot
            x = self._scope.variables[-1]
            if x.size <= 256:
                lines.append(self._store(x, ["p", name], [self.programs, trips]))
        self._scope = outer
        return lines

    def _carry(self) -> tuple[list[str], list[Variable]]:
        """Variables that a block changes, and what makes them: copies of those there are."""
        lines, carried = [], []
        for _ in range(self.random.randint(1, 2)):
            x = self.any_of(lambda v: True)
            name = self._new_name("c")
            facts = Facts(0, 1) if x.dtype == BOOL else ANY  # it may grow
            variable = Variable(name, x.dtype, x.shape, facts)
            self._scope.variables.append(variable)
            carried.append(variable)
            lines.append(f"{name} = {x.name}")
        return lines, carried

    def _change(self, c: Variable) -> list[str]:
        """c becomes something else of its dtype and shape."""
        def fits(v: Variable) -> bool:
            return v.name != c.name and v.is_exact and (
                v.shape == c.shape or not v.shape) and converted(v, c.dtype) is not None
        x = self.any_of(fits) or c
        value = converted(x, c.dtype).text
        symbol = self.pick(_SYMBOLS["b" if c.dtype == BOOL else "f" if c.is_float else "i"])
        texts = [f"{c.name} {symbol} {value}"] * 3
        condition = self.any_of(lambda v: v.dtype == BOOL and v.shape == c.shape)
        if condition is not None:
            texts.append(f"bn.where({condition.name}, {c.name}, {value})")
        if c.shape:
            axis = self.axis(c)
            texts += [f"bn.flip({c.name}, {axis})", f"bn.roll({c.name}, 1, {axis})",
                      f"bn.cummax({c.name}, {axis})"]
            if c.size <= 256:
                texts.append(f"bn.sort({c.name}, {axis})")
        if x.shape == c.shape:
            texts.append(value)
        return [f"{c.name} = {self.pick(texts)}"]

    def _for(self) -> list[str]:
        lines, carried = self._carry()
        i, trips = self._new_name("i"), self.random.randint(0, 4)
        over, slot = self.pick([(f"range({trips})", trips), ("range(n)", self.n), (
            f"bn.static_range({trips})", trips), ("range(p)", 0), ("range(1, n + 1)", 0)])
        scope = self._scope.inner(carried=carried, in_loop=True,
                                  slot=(i, slot) if slot else None)
        if "static" not in over:
            scope.numbers.append(i)
        body = self._block(scope, self.random.randint(1, 2))
        if self.chance(0.2) and "static" not in over:
            places = [at for at, line in enumerate(body) if not line.startswith((" ", "else"))]
            leave = f"if {i} == {self.random.randint(0, 2)}: {self.pick(['break', 'continue'])}"
            body.insert(self.pick(places), leave)
        return [*lines, f"for {i} in {over}:", *("    " + line for line in body)]

    def _while(self) -> list[str]:
        lines, carried = self._carry()
        k = self._new_name("k")
        scope = self._scope.inner(carried=carried, in_loop=True, slot=None)
        scope.numbers.append(k)
        body = self._block(scope, 1)
        # one line ends the loop, so that it ends whatever else is left out of the kernel
        return [*lines, f"{k} = n + {self.random.randint(0, 1)}",
                f"while ({k} := {k} - 1) >= 0:", *("    " + line for line in body)]

    def _if(self) -> list[str]:
        lines, carried = self._carry()
        scalar = self.any_of(lambda v: not v.shape and not v.is_float)
        conditions = ["p == 0", "n > 2", "p < n", f"{self.pick(self.numbers)} % 2 == 1"]
        if scalar is not None:
            conditions += [scalar.name if scalar.dtype == BOOL else f"{scalar.name} > 0"] * 3
        inner = {"carried": carried, "slot": None}
        condition = self.pick(conditions)
        lines += [f"if {condition}:", *("    " + line for line in self._block(
            self._scope.inner(**inner), self.random.randint(0, 2)))]
        if self.chance(0.5):
            lines += ["else:", *("    " + line for line in self._block(
                self._scope.inner(**inner), self.random.randint(0, 1)))]
        return lines


def _meet(x: Variable, y: Variable) -> bool:
    """Whether the dtype of a result is reached by one rounding: not of wide ints to halves."""
    if x.is_float and y.is_float:
        return True
    if not (x.is_float or y.is_float):
        return not is_float(promoted(x.dtype, y.dtype))  # as of int64 and uint64
    whole = y if x.is_float else x
    return whole.dtype == BOOL or whole.is_whole and whole.facts.size <= 256
