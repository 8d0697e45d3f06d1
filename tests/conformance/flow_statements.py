"""Statements of Python's flow: ranges of any step, names first assigned in arms, deep calls."""

from __future__ import annotations

from control_statements import MAX_DEPTH, block, condition
from kernel_parts import indented, statement
from kernel_recipes import ANY, Facts, Made, Variable, recipe
from numpy_tiles import BOOL

_NUMBERS_BELOW = 9  # of those that a kernel counts


def _some(m) -> str:
    """A Python int of run time, a small literal, or a sum."""
    return m.pick([m.pick(m.numbers), str(m.random.randint(-3, 6)),
                   f"{m.pick(m.numbers)} - {m.random.randint(0, 4)}",
                   f"{m.random.randint(0, 5)} - {m.pick(m.numbers)}"])


def _leave(m, *names: str) -> list[str]:
    """A condition of loop variables, and the end of the iteration or the loop."""
    text = m.pick([f"{names[-1]} == {m.random.randint(-1, 3)}",
                   f"({' + '.join(names)}) % 3 == {m.random.randint(0, 2)}",
                   f"{names[0]} > {m.pick(m.numbers)}"])
    return [f"if {text}:", f"    {m.pick(['break', 'continue', 'continue'])}"]


def _counted(m, total: str) -> list[str]:
    """A new number, of what loops have counted."""
    name = m.new_name("m")
    m.scope.numbers.append(name)
    return [f"{name} = {total} % {_NUMBERS_BELOW}"]


@statement(4)
def counted_range(m):
    """A loop over a range whose bounds and step are numbers of run time, and what it leaves."""
    if m.scope.depth >= MAX_DEPTH:
        return None
    i, t, c = m.new_name("i"), m.new_name("t"), m.new_name("c")
    x = m.any_of(lambda v: v.dtype != BOOL)
    if x is None:
        return None
    step = m.pick([f"{m.pick(m.numbers)} % 3 + 1", f"-({m.pick(m.numbers)} % 2 + 1)",
                   str(m.pick([-2, -1, 2, 3]))])
    body = [f"{t} = ({t} * 3 + {i}) % 1000", *_leave(m, t, i),
            f"{c} {m.pick(['+=', '-=', '*='])} {x.name}"]
    lines = [f"{t}, {i}, {c} = 1, 7, {x.name}",
             f"for {i} in range({_some(m)}, {_some(m)}, {step}):", *indented(body)]
    if m.chance(0.4):
        lines += ["else:", f"    {t} += 5"]
    m.scope.variables.append(Variable(c, x.dtype, x.shape, ANY))
    return [*lines, *_counted(m, f"({t} + {i})")]


@statement(3)
def nested_bounds(m):
    """A loop in a loop, where what the bounds were computed of changes meanwhile."""
    if m.scope.depth >= MAX_DEPTH:
        return None
    i, j, t, s = (m.new_name(stem) for stem in "ijts")
    inner = m.pick([f"range({i}, {t} % 5 + 1)", f"range({t} % 4, -1, -1)", f"range({i} % 3)"])
    lines = [f"{t}, {s} = {m.pick(m.numbers)} % 5, 0", f"for {i} in range({t}):",
             f"    {t} = {t} {m.pick('+-')} {m.pick(['1', '2', i])}",
             f"    for {j} in {inner}:", *indented(indented(_leave(m, i, j))),
             f"        {s} = ({s} * 2 + {i} - {j}) % 500"]
    if m.chance(0.5):
        lines += ["    else:", f"        {s} += 3"]
    if m.chance(0.4):
        lines += indented(_leave(m, s, i))
    return [*lines, *_counted(m, f"({s} + {t})")]


@statement(3)
def counted_while(m):
    """A loop with several numbers that it carries, and ends amid it."""
    k, a, b = (m.new_name(stem) for stem in "kab")
    lines = [f"{k}, {a}, {b} = {m.random.randint(0, 6)}, 0, 1", f"while {k} > 0:",
             f"    {k} -= {m.pick(['1', '1', '2', f'{m.pick(m.numbers)} % 2 + 1'])}",
             *indented(_leave(m, a, k)), f"    {a}, {b} = {b}, ({a} + {b}) % 100"]
    if m.chance(0.5):
        lines += [f"    if {condition(m)}:", f"        {m.pick(['break', 'continue'])}",
                  f"    {a} += {k}"]
    if m.chance(0.4):
        lines += ["else:", f"    {b} += 4"]
    return [*lines, *_counted(m, f"({a} + {b})")]


@statement(3)
def first_assigned_in_arms(m):
    """A name that is assigned in every arm of a branch, and not before it."""
    x = m.any_of(lambda v: True)
    same = [v for v in m.scope.variables if v.is_exact and v.dtype == x.dtype
            and v.shape == x.shape]
    name, arms = m.new_name("v"), [m.pick(same).name for _ in range(3)]
    facts = ANY
    if all(v.is_whole for v in same):
        facts = Facts(min(v.facts.low for v in same), max(v.facts.high for v in same))
    last = ["else:", f"    {name} = {arms[2]}"]
    if m.chance(0.4):
        last = ["else:", f"    if {condition(m)}:", f"        {name} = {arms[2]}", "    else:",
                f"        {name} = {arms[0]}"]
    lines = [f"if {condition(m)}:", f"    {name} = {arms[0]}", f"elif {condition(m)}:",
             f"    {name} = {arms[1]}", *last]
    m.scope.variables.append(Variable(name, x.dtype, x.shape, facts))  # no condition reads it
    return lines


@statement(2)
def in_one_arm_alone(m):
    """A variable that one arm of a branch in a branch changes."""
    if m.scope.depth >= MAX_DEPTH:
        return None
    x = m.any_of(lambda v: v.dtype != BOOL)
    if x is None:
        return None
    name = m.new_name("c")
    variable = Variable(name, x.dtype, x.shape, ANY)
    m.scope.variables.append(variable)
    body = block(m, m.scope.inner(carried=[variable]), m.random.randint(0, 1))
    return [f"{name} = {x.name}", f"if {condition(m)}:", f"    if {condition(m)}:",
            *indented(indented(body)), f"elif {condition(m)}:", f"    {name} = -{name}"]


@recipe(4)
def deep_call(m):
    """A call of a function that calls others, by position, by name, and with defaults."""
    x = m.any_of(lambda v: v.is_int)
    y = m.like(x, lambda v: v.dtype == x.dtype) if x else None
    if y is None:
        return None
    numbers = m.unknown_numbers
    given = m.pick([f"{y.name}", f"{y.name}, {x.name}", f"{y.name}, k={x.name}", ""] + (
        [f"{y.name}, k={m.pick(numbers)}", f"{m.pick(numbers)}, {y.name}"] if numbers else []))
    return Made(f"folded({', '.join(filter(None, (x.name, given)))})")


@recipe(3)
def early_result(m):
    """A call of a function that returns from branches and loops."""
    x = m.any_of(lambda v: v.is_int and not v.shape)
    return Made(f"first_above({x.name}, {m.pick(m.numbers)})") if x else None


@recipe(3)
def arithmetic_of_bools(m):
    """Sums and products of bools, which are bools, and with numbers and other tiles."""
    x = m.any_of(lambda v: v.dtype == BOOL)
    y = m.like(x, lambda v: v.is_exact) if x else None
    if y is None:
        return None
    return Made(m.pick([f"({x.name} + {y.name})", f"({x.name} * {y.name})",
                        f"({x.name} + {m.random.randint(-2, 5)})",
                        f"({m.random.randint(-2, 5)} - {x.name})",
                        f"({x.name} // {x.name})", f"({x.name} ** {x.name})"]))


@recipe(3)
def compared_with_far_numbers(m):
    """Ints next to numbers that their dtype does not hold."""
    x = m.any_of(lambda v: v.is_int)
    if x is None:
        return None
    number = m.pick([-1, -129, 255, 256, 32768, -2**31 - 1, 2**32, 2**63, -2**63, 2**64])
    return Made(f"({x.name} {m.pick(['<', '<=', '>', '>=', '==', '!='])} {number})", Facts(0, 1))
