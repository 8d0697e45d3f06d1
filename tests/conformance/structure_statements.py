"""Statements of Python's structure: tuples and records of tiles, own functions, conditionals."""

from __future__ import annotations

import numpy as np
from control_statements import block, condition
from kernel_parts import FIELDS, Group, Pair, indented, statement
from kernel_recipes import ANY, Facts, Made, Variable, recipe
from numpy_tiles import BOOL, INTS

MAX_DEPTH = 2  # of functions in functions


def _same(m, x: Variable) -> Variable:
    """A variable of the dtype and the shape of x."""
    return m.like(x, lambda v: v.is_exact and v.dtype == x.dtype and v.shape == x.shape)


def _joined(x: Variable, y: Variable) -> Facts:
    if not (x.is_whole and y.is_whole):
        return ANY
    return Facts(min(x.facts.low, y.facts.low), max(x.facts.high, y.facts.high))


def _combined(x: Variable, first: str, second: str) -> str:
    return f"{first} {'^' if x.dtype == BOOL else '+'} {second}"


@recipe(2)
def conditional(m):
    """One of two tiles."""
    x = m.any_of(lambda v: True)
    y = _same(m, x)
    return Made(f"({x.name} if {condition(m)} else {y.name})", _joined(x, y))


@recipe(4)
def mask_of_indices(m):
    """Where indices are within bounds, on one axis or two."""
    shape = m.pick([v.shape for v in m.scope.variables if v.shape] or [(16,)])
    parts = []
    for axis in m.random.sample(range(len(shape)), min(len(shape), m.random.randint(1, 2))):
        index = f"bn.arange(0, {shape[axis]})"
        if len(shape) > 1:
            index += f"[{', '.join(':' if a == axis else 'None' for a in range(len(shape)))}]"
        index += m.pick(["", "", f" + {m.pick(m.numbers)}", f" + {m.pick(m.numbers)} * 4"])
        bound = m.pick([str(m.random.randint(0, shape[axis] + 1)), m.pick(m.numbers),
                        f"{m.pick(m.numbers)} * 5"])
        parts.append(f"({index} {m.pick(['<', '<', '<=', '>=', '>', '!='])} {bound})")
    text = f" {m.pick('&|')} ".join(parts)
    return Made(f"bn.broadcast_to({text}, {shape})", Facts(0, 1))


@statement(2)
def number(m):
    """A Python int of run time that is counted."""
    x = m.any_of(lambda v: v.shape and v.size <= 256 and v.is_exact)
    if x is None:
        return None
    name = m.new_name("m")
    m.scope.numbers.append(name)
    return [f"{name} = int(bn.count_nonzero({x.name})) % {m.random.randint(2, 9)}"]


@statement(1)
def scalar_argument(m):
    """A scalar of NumPy's that is an argument."""
    if m.scope.in_function or m.scope.depth:
        return None
    name, dtype = m.new_name("s"), m.pick([*INTS, np.dtype("float16"), np.dtype("float32"),
                                           np.dtype("float64"), BOOL])
    value = m.random.randint(0, 1 if dtype == BOOL else 5)
    m.values[name] = dtype.type(value)
    m.scope.variables.append(Variable(name, dtype, (), Facts(value, value)))
    return m.assignment()


@statement(2)
def taken_apart(m):
    """Two variables in a tuple or a record, and out of it."""
    x = m.any_of(lambda v: True)
    y = m.any_of(lambda v: True)
    kind, name = m.pick([tuple, Pair, Group]), m.new_name("t")
    made = f"({x.name}, {y.name})" if kind is tuple else f"{kind.__name__}({x.name}, {y.name})"
    names = [m.new_name("v") for _ in range(2)]
    lines = [f"{name} = {made}"]
    lines += [f"{own} = {name}{field}" for own, field in zip(names, FIELDS[kind])]
    for own, v in zip(names, (x, y)):
        m.scope.variables.append(Variable(own, v.dtype, v.shape, v.facts))
    return lines


@statement(2)
def rotation(m):
    """A loop that carries two tiles, or a record of them, and changes their places."""
    x = m.any_of(lambda v: v.dtype != BOOL)
    if x is None:
        return None
    y, kind, i = _same(m, x), m.pick([None, tuple, Pair, Group]), m.new_name("i")
    trips = m.pick([str(m.random.randint(0, 3)), "n"])
    names = [m.new_name("v") for _ in range(2)]
    m.scope.variables += [Variable(name, x.dtype, x.shape, ANY) for name in names]
    if kind is None:
        first, second = names
        return [f"{first}, {second} = {x.name}, {y.name}", f"for {i} in range({trips}):",
                f"    {first}, {second} = {second}, {_combined(x, first, second)}"]
    t, make = m.new_name("t"), "" if kind is tuple else kind.__name__
    one, two = (t + field for field in FIELDS[kind])
    return [f"{t} = {make}({x.name}, {y.name})", f"for {i} in range({trips}):",
            f"    {t} = {make}({two}, {_combined(x, one, two)})",
            *(f"{name} = {own}" for name, own in zip(names, (one, two)))]


@statement(1.5)
def over_a_tuple(m):
    """A loop over a tuple, or what Python makes of one."""
    x = m.any_of(lambda v: v.dtype != BOOL and v.shape)
    if x is None:
        return None
    y, name, item = _same(m, x), m.new_name("v"), m.new_name("e")
    both = f"({x.name}, {y.name}, {x.name})"
    m.scope.variables.append(Variable(name, x.dtype, x.shape, ANY))
    if m.chance(0.5):
        axis = m.axis(x)
        made = m.new_name("t")
        return [f"{made} = tuple(bn.flip({item}, {axis}) for {item} in {both})",
                f"{name} = {made}[0] + {made}[1] + {made}[-1]"]
    return [f"{name} = bn.zeros_like({x.name})", f"for {item} in {both}:",
            f"    {name} = {name} + {item}"]


@statement(3)
def own_function(m):
    """A function in the kernel that reads what is around it, and its call."""
    if m.scope.depth >= MAX_DEPTH or m.scope.in_function:
        return None
    given = [m.any_of(lambda v: True) for _ in range(m.random.randint(1, 2))]
    name, names = m.new_name("f"), [m.new_name("a") for _ in given]
    inner = m.scope.inner(in_function=True)
    inner.variables += [Variable(own, v.dtype, v.shape, v.facts) for own, v in zip(names, given)]
    body = block(m, inner, m.random.randint(1, 3))
    outer, m.scope = m.scope, inner
    found = m.any_of(lambda v: v not in outer.variables) or inner.variables[-1]
    early = _same(m, found)
    if early is not found and m.chance(0.5):
        body += [f"if {condition(m)}:", f"    return {early.name}"]
    m.scope = outer
    result = m.new_name("v")
    facts = _joined(found, early)
    m.scope.variables.append(Variable(result, found.dtype, found.shape, facts))
    declared = ", ".join([*names[:-1], f"{names[-1]}=None" if m.chance(0.2) else names[-1]])
    return [f"def {name}({declared}):", *indented([*body, f"return {found.name}"]),
            f"{result} = {name}({', '.join(v.name for v in given)})"]
