"""Writes whole kernels of the array dialect from a seed: loads, expressions, control flow, stores.

What every value must be is known while it is written (`kernel_recipes`), so that all devices and
NumPy (`numpy_functions`) give the same elements, and floats that may differ say by how much.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import array_statements  # noqa: F401  each module adds its recipes to RECIPES, and STATEMENTS
import axis_recipes  # noqa: F401
import control_statements  # noqa: F401
import elementwise_recipes  # noqa: F401
import flow_statements  # noqa: F401
import memory_statements  # noqa: F401
import numpy as np
import product_statements  # noqa: F401
import shape_recipes  # noqa: F401
import structure_statements  # noqa: F401
from array_layouts import LAYOUTS, READ_ONLY
from kernel_parts import FIELDS, STATEMENTS, Group, Input, Output, Pair, Parameter, Scope
from kernel_recipes import ANY, RECIPES, Facts, Made, Variable
from numpy_functions import FUNCTIONS
from numpy_tiles import BOOL, DTYPES, FLOATS, INTS, Array, Tile, is_float, promoted

MAX_SIZE = 1024  # elements of a tile
SHAPES = ((16,), (64,), (256,), (8, 16), (32, 16), (4, 8, 4), (2, 1, 16), (1,), (512,), (16, 16),
          (64, 8), (2, 2, 4, 4), (128,), (1024,), (1, 32), (128, 4), (1, 1), (2, 4, 2, 2, 2), ())
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

@triton_jit
def larger_by_choice(a, b):
    return tl.where(a > b, a, b)

@triton_jit
def scaled(a, b, SCALE: tl.constexpr):
    if SCALE > 2:
        return a * SCALE + b, b
    return a - b, a * b

def halvings(v):
    count = 0
    while v > 1 and count < 9:
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        count += 1
    return count, v

def weighed(a, b=2, *, c=3):
    return a * c + b, a - b

def twice_weighed(a, b=5, c=1):
    u, v = weighed(a, c=b)
    w, z = weighed(b=c, a=v)
    return u + w, z

def folded(a, *rest, k=4):
    r = a
    for e in rest:
        q, s = twice_weighed(e, k)
        r = r * 7 + q - s
    return r

def first_above(v, limit=3):
    if v > limit:
        return v
    for i in range(6):
        if v + i * i >= limit:
            return v * 2 + i
    return -v

"""
SPACE = {"Pair": Pair, "Group": Group}  # what kernels know besides the language
_IN_NUMPY = SimpleNamespace(**FUNCTIONS)
_SAMPLES: dict[str, object] = {"bn": _IN_NUMPY, "tl": _IN_NUMPY, "triton_jit": lambda f: f, **SPACE}
exec(PRELUDE, _SAMPLES)


class KernelMaker:
    """The source of `kernel(...)` and its arrays, from a seed.

    inputs, outputs: the arrays.   parameters: of the kernel, which hold them.   aliases: parameters
    that are given an output besides, or a part of it.   grid, options: of the launch.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.aliases: dict[str, Parameter] = {}
        self.values: dict[str, object] = {}
        self.grid = self.pick([(1,), (2,), (3,), (1,), (2,), (3,), (2, 2), (1, 3), (2, 1, 2)])
        self.programs = math.prod(self.grid)
        self.options = self._options()
        self.n = self.random.randint(0, 4)
        self.n_is_constant = self.chance(0.25)
        self.max_size = MAX_SIZE
        self.shapes = self.random.sample(SHAPES, 2)
        self._names = 0
        self.scope = Scope([], ["p", "n"])
        self._budget = self.random.randint(6, 18)
        self.parameters: tuple[Parameter, ...] = ()
        self.source = self._kernel()

    def _options(self) -> dict[str, object]:
        found = {"num_warps": self.pick([1, 2, 4, 4, 8, 16])}
        if self.chance(0.3):
            found["num_stages"] = self.random.randint(1, 4)
        return found | ({"lineinfo": True} if self.chance(0.05) else {})

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
        return self.scope.numbers

    @property
    def unknown_numbers(self) -> list[str]:
        """Those that no compiler knows, for what it may refuse."""
        return [name for name in self.numbers if name != "n" or not self.n_is_constant]

    # variables --------------------------------------------------------------------------------
    def any_of(self, fits: Callable[[Variable], bool], near: bool = False) -> Variable | None:
        """A variable, of late ones rather than early ones; near: floats that may be off too."""
        found = [v for v in self.scope.variables if (near or v.is_exact) and fits(v)]
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

    def sample(self, text: str) -> object:
        """An expression of tiles of ones, by NumPy: its dtypes and shapes."""
        names = {v.name: Tile(np.ones(v.shape, v.dtype)) for v in self.scope.variables}
        names |= {i.name: Array(np.ones(i.shape, i.dtype)) for i in (*self.inputs, *self.outputs)}
        names |= {alias.name: alias.argument(names) for alias in self.aliases.values()}
        names |= {name: Tile(np.asarray(value)) for name, value in self.values.items()}
        return eval(text, _SAMPLES, names | dict.fromkeys(self.scope.numbers, 1))

    def dtype_of(self, text: str) -> np.dtype:
        """The dtype of an expression."""
        return self.sample(text).dtype

    def new_name(self, stem: str) -> str:
        """A name that no other thing has."""
        self._names += 1
        return f"{stem}{self._names}"

    def add(self, name: str, value: Tile, facts: Facts) -> None:
        """A new variable like a value."""
        if value.dtype == BOOL:
            facts = Facts(0, 1)
        if is_float(value.dtype) and facts.low is not None and facts.ulps:
            facts = replace(facts, low=None, high=None)
        self.scope.variables.append(Variable(name, value.dtype, value.shape, facts))

    # arrays -----------------------------------------------------------------------------------
    def new_input(self, shape: Sequence[int], dtype: np.dtype | None = None,
                  largest: int | None = None, layouts: Sequence[str] = LAYOUTS) -> Input:
        """An array that is read; layouts: of which it has one, contiguous ones more often."""
        if dtype is None:
            dtype = self.pick([*FLOATS, *FLOATS, *INTS, DTYPES["int32"], BOOL, DTYPES["float32"]])
        if largest is None:
            largest = self.pick([0, 3, 9, 9, 100] if dtype != BOOL else [1])
        array = Input(self.new_name("x"), dtype, tuple(shape), largest,
                      self.pick(["c"] * (len(layouts) // 2 + 1) + list(layouts)))
        self.inputs.append(array)
        return array

    def new_output(self, dtype: np.dtype, shape: Sequence[int], facts: Facts = ANY,
                   zeros: bool = False, layouts: Sequence[str] = LAYOUTS) -> Output:
        """An array that is written."""
        writable = [layout for layout in layouts if layout not in READ_ONLY]
        array = Output(self.new_name("out"), dtype, tuple(shape), facts, zeros,
                       self.pick(["c"] * len(writable) + writable))
        self.outputs.append(array)
        return array

    def spans(self, shape: Sequence[int], starts: Sequence[str] = ("0",)) -> list[str]:
        """The spans of a tile, each at one of the starts."""
        return [f"bn.span({self.pick(starts)}, {n})" for n in shape]

    def _stores(self) -> list[str]:
        """What was made last, and some of the rest, in arrays of their own."""
        found, lines = self.scope.variables, []
        chosen = found[-3:] + self.random.sample(found[:-3], min(2, len(found[:-3])))
        for variable in chosen:
            lines += memory_statements.store(self, variable, ["p"], [self.programs])
        return lines

    # statements -------------------------------------------------------------------------------
    def _kernel(self) -> str:
        body = [self._program()]
        for _ in range(self.random.randint(2, 4)):
            body += memory_statements.load(self)
        while self._budget > 0:
            body += self.statement()
        body += self._stores()
        head = self._head()
        lines = "\n".join("    " + line for line in [*head, *body])
        names = [p.name + (f": {p.annotation}" if p.annotation else "") for p in self.parameters]
        return f"{PRELUDE}def kernel({', '.join(names)}):\n{lines}\n"

    def _program(self) -> str:
        """The line that numbers the programs of a grid."""
        text = "bn.program_id(0)"
        for axis, extent in enumerate(self.grid[1:], 1):
            text = f"({text}) * {self.pick([extent, f'bn.num_programs({axis})'])} + " + (
                f"bn.program_id({axis})")
        return f"p = {text}"

    def _head(self) -> list[str]:
        """Choose the parameters; lines that take the arrays out of those that hold two."""
        names = [array.name for array in (*self.inputs, *self.outputs)]
        parameters, lines = [], []
        while names:
            kind = self.pick([tuple, Pair, Group]) if len(names) > 1 and self.chance(0.1) else None
            held, names = names[:1 + bool(kind)], names[1 + bool(kind):]
            name = self.new_name("both") if kind else held[0]
            parameters.append(Parameter(name, tuple(held), kind))
            lines += [f"{own} = {name}{field}" for own, field in zip(held, FIELDS.get(kind, ()))]
        parameters += self.aliases.values()
        self.random.shuffle(parameters)
        parameters.append(Parameter("n", value=self.n, 
                                    annotation="bn.constexpr" * self.n_is_constant))
        parameters += [Parameter(name, value=value) for name, value in self.values.items()]
        self.parameters = tuple(parameters)
        return lines

    def statement(self) -> list[str]:
        """Some lines of code."""
        self._budget -= 1
        if self.chance(0.6):
            return self.assignment()
        (_, chosen), = self.random.choices(STATEMENTS, [weight for weight, _ in STATEMENTS])
        return chosen(self) or self.assignment()

    def assignment(self) -> list[str]:
        """A new variable, or several."""
        made = None
        weights = [weight for weight, _ in RECIPES]
        while made is None:
            (_, recipe), = self.random.choices(RECIPES, weights)
            made = recipe(self)
        return self.bound(made)

    def bound(self, made: Made) -> list[str]:
        """The assignment of an expression to new variables."""
        if isinstance(made.facts, Facts):
            name = self.new_name("v")
            self.add(name, self.sample(made.text), made.facts)
            return [f"{name} = {made.text}"]
        names = [self.new_name("v") for _ in made.facts]
        for name, value, facts in zip(names, self.sample(made.text), made.facts):
            self.add(name, value, facts)
        return [f"{', '.join(names)} = {made.text}"]


def _meet(x: Variable, y: Variable) -> bool:
    """Whether the dtype of a result is reached by one rounding: not of wide ints to halves."""
    if x.is_float and y.is_float:
        return True
    if not (x.is_float or y.is_float):
        return not is_float(promoted(x.dtype, y.dtype))  # as of int64 and uint64
    whole = y if x.is_float else x
    return whole.dtype == BOOL or whole.is_whole and whole.facts.size <= 256
