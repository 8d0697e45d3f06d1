"""Statements of control flow: loops, branches, early ends, and the variables that they carry."""

from __future__ import annotations

import memory_statements
from kernel_parts import Scope, indented, statement
from kernel_recipes import ANY, Facts, Variable, converted
from numpy_tiles import BOOL

MAX_DEPTH = 2
_SYMBOLS = {"b": ["&", "|", "^"], "i": ["+", "-", "*", "^", "&"], "f": ["+", "-", "*"]}


def block(m, scope: Scope, count: int) -> list[str]:
    """Some statements in a scope of their own, and changes of what is carried."""
    outer, m.scope = m.scope, scope
    lines: list[str] = []
    for _ in range(count):
        lines += m.statement()
    for variable in m.scope.carried:
        lines += _change(m, variable)
    if scope.slot and m.chance(0.4):
        name, trips = scope.slot
        x = m.scope.variables[-1]
        if x.size <= 256:
            lines += memory_statements.store(m, x, ["p", name], [m.programs, trips])
    m.scope = outer
    return lines


def _carry(m) -> tuple[list[str], list[Variable]]:
    """Variables that a block changes, and what makes them: copies of those there are."""
    lines, carried = [], []
    for _ in range(m.random.randint(1, 2)):
        x = m.any_of(lambda v: True)
        name = m.new_name("c")
        facts = Facts(0, 1) if x.dtype == BOOL else ANY  # it may grow
        variable = Variable(name, x.dtype, x.shape, facts)
        m.scope.variables.append(variable)
        carried.append(variable)
        lines.append(f"{name} = {x.name}")
    return lines, carried


def _change(m, c: Variable) -> list[str]:
    """c becomes something else of its dtype and shape."""
    def fits(v: Variable) -> bool:
        return v.name != c.name and v.is_exact and (
            v.shape == c.shape or not v.shape) and converted(v, c.dtype) is not None
    x = m.any_of(fits) or c
    value = converted(x, c.dtype).text
    symbol = m.pick(_SYMBOLS["b" if c.dtype == BOOL else "f" if c.is_float else "i"])
    texts = [f"{c.name} {symbol} {value}"] * 3
    condition = m.any_of(lambda v: v.dtype == BOOL and v.shape == c.shape)
    if condition is not None:
        texts.append(f"bn.where({condition.name}, {c.name}, {value})")
    if c.shape:
        axis = m.axis(c)
        texts += [f"bn.flip({c.name}, {axis})", f"bn.roll({c.name}, 1, {axis})",
                  f"bn.cummax({c.name}, {axis})"]
        if c.size <= 256:
            texts.append(f"bn.sort({c.name}, {axis})")
    if x.shape == c.shape:
        texts.append(value)
    if m.chance(0.2):
        return [f"{c.name} {symbol}= {value}"]
    return [f"{c.name} = {m.pick(texts)}"]


def condition(m) -> str:
    """The text of a scalar condition."""
    scalar = m.any_of(lambda v: not v.shape and not v.is_float)
    choices = ["p == 0", "n > 2", "p < n", f"{m.pick(m.numbers)} % 2 == 1", "0 < n <= 3",
               "p == 0 or n == 1", "p > 0 and not n < 2"]
    if scalar is not None:
        choices += [scalar.name if scalar.dtype == BOOL else f"{scalar.name} > 0"] * 4
    return m.pick(choices)


@statement(8)
def for_loop(m):
    if m.scope.depth >= MAX_DEPTH:
        return None
    lines, carried = _carry(m)
    i, trips = m.new_name("i"), m.random.randint(0, 4)
    over, slot = m.pick([(f"range({trips})", trips), ("range(n)", m.n), (
        f"bn.static_range({trips})", trips), ("range(p)", 0), ("range(1, n + 1)", 0),
        (f"range({trips}, -1, -1)", trips + 1), ("range(n, 0, -2)", 0), (
        f"bn.range({trips}, num_stages={m.random.randint(1, 3)})", trips),
        ("bn.range(n, unroll=2)", m.n)])
    scope = m.scope.inner(carried=carried, slot=(i, slot) if slot else None)
    if "static" not in over:
        scope.numbers.append(i)
    body = block(m, scope, m.random.randint(1, 2))
    if m.chance(0.2) and "static" not in over:
        places = [at for at, line in enumerate(body) if not line.startswith((" ", "el"))]
        leave = f"if {i} == {m.random.randint(0, 2)}: {m.pick(['break', 'continue'])}"
        body.insert(m.pick(places), leave)
    return [*lines, f"for {i} in {over}:", *indented(body)]


@statement(3)
def while_loop(m):
    if m.scope.depth >= MAX_DEPTH:
        return None
    lines, carried = _carry(m)
    k = m.new_name("k")
    scope = m.scope.inner(carried=carried)
    scope.numbers.append(k)
    body = block(m, scope, 1)
    # one line ends the loop, so that it ends whatever else is left out of the kernel
    return [*lines, f"{k} = n + {m.random.randint(0, 1)}",
            f"while ({k} := {k} - 1) >= 0:", *indented(body)]


@statement(5)
def branch(m):
    if m.scope.depth >= MAX_DEPTH:
        return None
    lines, carried = _carry(m)
    lines += [f"if {condition(m)}:",
              *indented(block(m, m.scope.inner(carried=carried), m.random.randint(0, 2)))]
    if m.chance(0.5):
        word = "else" if m.chance(0.7) else f"elif {condition(m)}"
        lines += [f"{word}:", *indented(block(m, m.scope.inner(carried=carried),
                                              m.random.randint(0, 1)))]
    return lines


@statement(0.6)
def early_end(m):
    """The end of some programs."""
    if m.scope.in_function:
        return None
    return [f"if p == {m.random.randint(0, m.programs)} and {condition(m)}:", "    return"]
