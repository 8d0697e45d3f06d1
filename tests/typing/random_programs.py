"""Random programs over ints, which mean the same in Python and in a kernel.

A program has small ints, which may be compile-time constants and stay below 2^20, and wide ones, of
the dtype of the program, which wrap.  Whatever would mean something else in Python is not written:
no zero divisors, no bools in arithmetic, no unbounded loops.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

MAX_DEPTH = 3
MODULUS = 37  # small variables are below it
TABLE = (3, 1, 4, 1, 5)
MAX_LINES = 60  # of a program, more or less


@dataclass(frozen=True)
class Signature:
    """How a function is called.

    kinds: of its parameters by position, "small" or "wide"; optional: how many have a default.
    keyword: name of a keyword-only parameter, if any.   result: kind of what it returns.
    """

    name: str
    kinds: tuple[str, ...]
    optional: int
    keyword: str
    result: str


@dataclass
class Scope:
    """The names that code can use.

    small, wide, flags: variables that can be read; tuples: name -> length, of small ints.
    assigned: variables that can be assigned.   functions: what can be called.
    result: kind of what the function returns, "pair" for two small ints, "" for the program itself.
    loops: how many loops are around, innermost of which kind: "run" or "static".
    """

    small: list[str]
    wide: list[str]
    flags: list[str] = field(default_factory=list)
    tuples: dict[str, int] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    functions: list[Signature] = field(default_factory=list)
    result: str = ""
    loop: str = ""
    depth: int = 0

    def inner(self, loop: str | None = None) -> Scope:
        """The scope of a block: what is defined in it is not known after it."""
        return replace(self, small=list(self.small), wide=list(self.wide),
                       flags=list(self.flags), tuples=dict(self.tuples),
                       functions=list(self.functions),
                       loop=self.loop if loop is None else loop, depth=self.depth + 1)

    def assignable(self, kind: str) -> list[str]:
        """The variables of a kind that can be assigned."""
        return [name for name in getattr(self, kind) if name in self.assigned]


class ProgramMaker:
    """Writes the source of `program(x, out, n)`, and of helpers that it calls, from a seed.

    bits: of the wide ints, 32 or 64.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._names = 0
        self._budget = MAX_LINES
        self._helpers: list[str] = []
        self.bits = self._random.choice((32, 32, 64))

    def source(self) -> str:
        """A module that defines `program`."""
        scope = Scope(["a", "b", "c", "n"], ["v", "w"], ["f"], {"t": 3},
                      {"a", "b", "c", "n", "v", "w", "f", "t"})
        body = ["r = program_id(0)", "a = 1", "b = x[r, 0] % 37", "c = 2", "v = x[r, 1]",
                "w = x[r, 2]", "f = b > 9", "t = (a, b, 2)"]
        for _ in range(self._random.randint(0, 2)):
            self._helper()
        self._budget = MAX_LINES
        scope.functions += self._module_functions
        for _ in range(4):
            body += self._block(scope)
        body += self._results(scope)
        return "\n".join([*self._helpers, "def program(x, out, n):", *_indented(body)]) + "\n"

    _module_functions: list[Signature] = []

    # choices ----------------------------------------------------------------------------------
    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, items):
        return self._random.choice(items)

    def _new_name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    # expressions ------------------------------------------------------------------------------
    def _small(self, scope: Scope, depth: int = 0) -> str:
        """A small int, of at most some thousands."""
        kind = self._random.random()
        if depth > 2 or kind < 0.45:
            return self._small_leaf(scope)
        a, b = self._small(scope, depth + 1), self._small(scope, depth + 1)
        if kind < 0.6:
            return f"({a} {self._pick('+-')} {b})"
        choices = [f"({a} * {self._random.randint(0, 5)})", f"({a} // ({b} % 5 + 1))",
                   f"({a} % ({b} % 7 + 1))", f"({a} & {b})", f"({a} ^ {b})", f"({a} | {b})",
                   f"({a} >> ({b} % 4))", f"((({a}) % 9) << ({b} % 3))", f"abs({a})", f"-{a}",
                   f"min({a}, {b})", f"max({a}, {b})", f"~{a}", f"int({self._condition(scope, 2)})",
                   f"(({a}) % 5) ** 2"]
        if kind < 0.8:
            return self._pick(choices)
        if kind < 0.88:
            return f"({a} if {self._condition(scope, depth + 1)} else {b})"
        if kind < 0.91:
            return f"({a} {self._pick(['and', 'or'])} {b})"
        if kind < 0.94 and scope.assignable("small"):
            return f"({self._pick(scope.assignable('small'))} := ({a}) % {MODULUS})"
        if kind < 0.96:
            return f"({self._wide(scope, depth + 1)} % 19)"
        if kind < 0.965 and scope.tuples:
            over = self._pick([*scope.tuples, "range(3)"])
            return self._pick([f"sum(e * ({a}) for e in {over})",
                               f"max(e + ({b}) for e in (*{self._pick(list(scope.tuples))}, 1))"])
        if kind < 0.97:
            return f"(lambda p, q={a}: p * 2 + q)({b})"
        return self._call(scope, "small") or a

    def _small_leaf(self, scope: Scope) -> str:
        kind = self._random.random()
        if kind < 0.65:
            return self._pick(scope.small)
        if kind < 0.8 or not scope.tuples:
            return str(self._random.randint(0, 6))
        if kind < 0.84:
            return f"TABLE[{self._random.randint(-5, 4)}]"
        name = self._pick(list(scope.tuples))
        length = scope.tuples[name]
        if kind < 0.95 and length:
            return f"{name}[{self._random.randint(-length, length - 1)}]"
        if kind < 0.97 or not length:
            return f"len({name})"
        return f"{self._pick(['sum', 'max'])}({name})"

    def _wide(self, scope: Scope, depth: int = 0) -> str:
        """An int of the dtype of the program."""
        kind = self._random.random()
        if depth > 2 or kind < 0.35 or not scope.wide:
            return self._wide_leaf(scope)
        a = self._wide(scope, depth + 1)
        b = self._wide(scope, depth + 1) if self._chance(0.5) else self._small(scope, depth + 1)
        divisor = f"({self._small(scope, depth + 1)} % 6 + 2)"
        choices = [f"({a} + {b})", f"({b} - {a})", f"({a} * {b})", f"({a} ^ {b})", f"({a} & {b})",
                   f"({a} // {divisor})", f"({a} % {divisor})", f"({a} >> {divisor})",
                   f"({a} << {divisor})", f"(-{a})", f"(~{a})", f"abs({a})", f"min({a}, {b})",
                   f"max({b}, {a})"]
        if kind < 0.8:
            return self._pick(choices)
        if kind < 0.88:
            other = self._wide(scope, depth + 1)
            return f"({a} if {self._condition(scope, depth + 1)} else {other})"
        if kind < 0.92 and scope.assignable("wide"):
            return f"({self._pick(scope.assignable('wide'))} := {a})"
        return self._call(scope, "wide") or a

    def _wide_leaf(self, scope: Scope) -> str:
        if scope.wide and self._chance(0.7):
            return self._pick(scope.wide)
        if self._chance(0.5) and not scope.result:
            return f"x[r, {self._pick(scope.small)} % 8]"
        return f"wide({self._pick(scope.small)})"

    def _condition(self, scope: Scope, depth: int = 0) -> str:
        kind = self._random.random()
        operator = self._pick(["<", ">", "==", "!=", "<=", ">="])
        make = self._wide if self._chance(0.25) and scope.wide else self._small
        a, b = make(scope, 2), make(scope, 2)
        if scope.flags and self._chance(0.12):
            condition = self._pick(scope.flags)
        elif kind < 0.04 and scope.assignable("small"):
            name = self._pick(scope.assignable("small"))
            condition = f"{self._small(scope, 2)} < ({name} := {self._small(scope, 2)} % 37) < {b}"
        elif kind < 0.12:
            condition = f"{a} < {b} {self._pick(['<=', '!=', '>'])} {make(scope, 2)}"
        elif kind < 0.2:
            condition = a
        elif kind < 0.22 and scope.tuples:
            over = self._pick(list(scope.tuples))
            condition = f"{self._pick(['any', 'all'])}(e {operator} {b} for e in {over})"
        elif kind < 0.25 and scope.tuples:
            condition = f"{self._small_leaf(scope)} in {self._pick(list(scope.tuples))}"
        elif kind < 0.3 and scope.assignable("small"):
            name = self._pick(scope.assignable("small"))
            condition = f"({name} := {self._small(scope, 2)} % {MODULUS}) {operator} {b}"
        else:
            condition = f"{a} {operator} {b}"
        if depth < 2 and self._chance(0.25):
            second = self._condition(scope, depth + 1)
            condition = f"({condition}) {self._pick(['and', 'or'])} ({second})"
        return f"not ({condition})" if self._chance(0.1) else condition

    def _call(self, scope: Scope, result: str) -> str:
        """A call of a function that returns a kind; "" when there is none."""
        known = [f for f in scope.functions if f.result == result]
        if not known or self._budget < 0:
            return ""
        self._budget -= 4
        function = self._pick(known)
        given = len(function.kinds) - self._random.randint(0, function.optional)
        arguments = [self._of_kind(scope, kind, 2) for kind in function.kinds[:given]]
        if given == 2 and function.kinds[:2] == ("small", "small") and self._chance(0.3):
            pairs = [name for name, length in scope.tuples.items() if length == 2]
            arguments = [f"*{self._pick(pairs)}"] if pairs else arguments
        if function.keyword and self._chance(0.5):
            arguments.append(f"{function.keyword}={self._small(scope, 2)}")
        return f"{function.name}({', '.join(arguments)})"

    def _of_kind(self, scope: Scope, kind: str, depth: int = 0) -> str:
        return self._wide(scope, depth) if kind == "wide" else self._small(scope, depth)

    # statements -------------------------------------------------------------------------------
    def _block(self, scope: Scope) -> list[str]:
        """Some statements, one at least."""
        lines: list[str] = []
        for _ in range(self._random.randint(1, 4 if scope.depth == 0 else 2)):
            if self._budget > 0:
                lines += self._statement(scope)
        self._budget -= len(lines)
        return lines or ["pass"]

    def _statement(self, scope: Scope) -> list[str]:
        kind = self._random.random()
        if kind < 0.3 or scope.depth >= MAX_DEPTH:
            return self._leave(scope) if self._chance(0.15) else self._assignment(scope)
        for share, make in ((0.44, self._if), (0.56, self._for), (0.64, self._while),
                            (0.70, self._tuple), (0.77, self._nested_function),
                            (0.80, self._carried), (0.82, self._match), (0.85, self._factory),
                            (0.87, self._functions_in_a_tuple), (0.89, self._recursion),
                            (0.91, self._two_results), (0.93, self._pairs),
                            (0.95, self._store)):
            if kind < share:
                return make(scope)
        return self._leave(scope)

    def _assignment(self, scope: Scope) -> list[str]:
        kind = self._random.random()
        if scope.assignable("flags") and self._chance(0.1):
            name, condition = self._pick(scope.assignable("flags")), self._condition(scope)
            return [self._pick([f"{name} = bool({condition})", f"{name} = not ({condition})",
                                f"{name} = {name} != bool({condition})"])]
        small, wide = scope.assignable("small"), scope.assignable("wide")
        if wide and kind < 0.3:
            name = self._pick(wide)
            if kind < 0.1:
                return [f"{name} {self._pick(['+=', '-=', '*=', '^='])} {self._small(scope)}"]
            return [f"{name} = {self._wide(scope)}"]
        if not small:
            return ["pass"]
        name = self._pick(small)
        if kind < 0.4 and len(small) > 1:
            first, second = self._random.sample(small, 2)
            return [self._pick([f"{first}, {second} = {second}, {first}",
                                f"{first} = {second} = {self._small(scope)} % {MODULUS}",
                                f"({first}, {second}), _ = ({second}, {first} % 11), {second}"])]
        if kind < 0.5:
            return [f"{name} = {self._random.randint(0, 9)}"]
        operator = self._pick(["=", "+=", "-=", "*="])
        return [f"{name} {operator} {self._small(scope)}", f"{name} %= {MODULUS}"]

    def _store(self, scope: Scope) -> list[str]:
        if scope.result:
            return ["pass"]
        column = self._random.randint(3, 5)
        return [f"out[r, {column}] = {self._wide(scope)}"]

    def _results(self, scope: Scope) -> list[str]:
        small = self._pick(["a + b * 64 + c * 4096", "sum(t) + a * 64 + b * 4096"])
        return [f"out[r, 0] = {small}",
                "out[r, 1] = v", "out[r, 2] = w"]

    def _leave(self, scope: Scope) -> list[str]:
        """A way out of a loop or of the function, on a condition."""
        if scope.loop and self._chance(0.75):
            way = [self._pick(["break", "continue"])]
        elif scope.result:
            way = [self._return(scope)]
        else:
            way = [*self._pick([[], self._results(scope)]), "return"]
        if self._chance(0.1) and scope.depth:
            return way
        return [f"if {self._condition(scope)}:", *_indented(way)]

    def _return(self, scope: Scope) -> str:
        if scope.result == "pair":
            return f"return ({self._small(scope)}) % {MODULUS}, ({self._small(scope)}) % {MODULUS}"
        value = self._of_kind(scope, scope.result)
        return f"return {value}" if scope.result == "wide" else f"return ({value}) % 1009"

    def _if(self, scope: Scope) -> list[str]:
        condition = self._condition(scope)
        if self._chance(0.1):
            condition = self._pick(['MODE == "fast"', 'MODE != "fast"', "len(t) == 3", "False",
                                    "t is None"])
        lines = [f"if {condition}:", *_indented(self._block(scope.inner()))]
        if self._chance(0.3):
            lines += [f"elif {self._condition(scope)}:", *_indented(self._block(scope.inner()))]
        if self._chance(0.5):
            lines += ["else:", *_indented(self._block(scope.inner()))]
        return lines

    def _match(self, scope: Scope) -> list[str]:
        lines = [f"match {self._small(scope)} % 4:"]
        patterns = ["0", "1 | 2", "3", f"m if m > {self._small(scope)}"]
        for pattern in self._random.sample(patterns, 2):
            inner = scope.inner()
            if pattern.startswith("m"):
                inner.small.append("m")
            lines += _indented([f"case {pattern}:", *_indented(self._block(inner))])
        return [*lines, "    case _:", *_indented(_indented(self._block(scope.inner())))]

    def _for(self, scope: Scope) -> list[str]:
        name, small = self._new_name("i"), self._small
        inner = scope.inner("run")
        kind = self._random.random()
        head = ""
        if kind < 0.45:
            over = self._pick([f"range(({small(scope)}) % 6)", "range(4)",
                               f"range({small(scope)} % 4, 7)",
                               f"range(5, {small(scope)} % 4, -1)",
                               f"range({self._pick(scope.small)} % 5)",
                               f"range({small(scope)} % 3, 4, "
                               f"-1 if {self._condition(scope, 1)} else 2)",
                               f"range(0, 9, 1 + {small(scope)} % 3)", "range(9, -2, -4)"])
            inner.small.append(name)
        elif kind < 0.6:
            over = self._range_at_an_end()
            inner.wide.append(name)
        else:
            inner.loop = "static"
            items = ", ".join(small(scope) for _ in range(self._random.randint(2, 3)))
            names = list(scope.tuples)
            over = self._pick([f"static_range({self._random.randint(0, 3)})", f"({items})",
                               "static_range(3, 0, -1)", "(1, 4)", *(names * 2), "TABLE[:2]",
                               *(f"reversed({t})" for t in names)])
            inner.small.append(name)
            if names and self._chance(0.25):
                other = self._new_name("j")
                inner.small.append(other)
                head = f"for {name}, {other} in " + self._pick(
                    [f"enumerate({self._pick(names)})",
                     f"zip({self._pick(names)}, ({items}))"]) + ":"
        body = []
        if "c" in scope.assigned and self._chance(0.5):
            body = [f"c = (c + {name}) % {MODULUS}"]
        if kind < 0.45 and self._chance(0.3):
            inner.assigned = {*inner.assigned, name}
        body += self._block(inner)
        lines = [head or f"for {name} in {over}:", *_indented(body), *self._else(scope)]
        if self._chance(0.2) and scope.assignable("small"):
            # the loop variable is known after the loop, if there was an iteration
            lines += [f"{self._pick(scope.assignable('small'))} = {name} % {MODULUS}"]
        return lines

    def _range_at_an_end(self) -> str:
        """A range that ends where its dtype ends, or nearly."""
        step, most = self._random.randint(1, 5), 2**(self.bits - 1)
        length = step * self._random.randint(0, 4) + self._random.randint(0, 3)
        gap = self._random.randint(0, 2)
        if self._chance(0.2):
            step, length = 2**(self.bits - 2) + self._random.randint(-1, 5), 2**self.bits - 5
        if self._chance(0.5):
            return f"range({most - 1 - gap - length}, {most - 1 - gap}, {step})"
        return f"range({-most + gap + length}, {-most + gap}, {-step})"

    def _while(self, scope: Scope) -> list[str]:
        name, inner = self._new_name("k"), scope.inner("run")
        condition = self._condition(scope)
        inner.small.append(name)
        limit = self._random.randint(1, 6)
        kind = self._random.random()
        if kind < 0.35:
            head, count = "while True:", [f"{name} += 1", f"if {name} > {limit}:", *_indented(
                [*(self._block(scope.inner("")) if self._chance(0.4) else []), "break"])]
            if self._chance(0.5):
                count = [f"if {name} >= {limit}:", "    break", f"{name} += 1"]
        elif kind < 0.6:
            head, count = f"while ({name} := {name} + 1) < {limit} and ({condition}):", []
        else:
            head, count = f"while {name} < {limit} and ({condition}):", [f"{name} += 1"]
        lines = [f"{name} = 0", head, *_indented([*count, *self._block(inner)])]
        return lines + (self._else(scope) if head != "while True:" else [])

    def _else(self, scope: Scope) -> list[str]:
        return ["else:", *_indented(self._block(scope.inner()))] if self._chance(0.25) else []

    def _carried(self, scope: Scope) -> list[str]:
        """A variable that one iteration assigns for the next."""
        name, before = self._new_name("i"), self._new_name("p")
        inner = scope.inner("run")
        inner.small.append(name)
        body = [f"if {name} > 0:", f"    c = (c + {before}) % {MODULUS}" if "c" in scope.assigned
                else f"    {before}", f"{before} = {self._small(inner)} % {MODULUS}"]
        return [f"for {name} in range({self._random.randint(0, 4)}):", *_indented(body)]

    def _tuple(self, scope: Scope) -> list[str]:
        items = [self._small(scope) + f" % {MODULUS}" for _ in range(3)]
        if "t" not in scope.assigned and scope.result:
            return ["pass"]
        kind = self._random.random()
        if kind < 0.4:
            return [f"t = ({', '.join(items)})"]
        if kind < 0.55:
            return [f"t = (t[2], t[0], (t[1] + {self._pick(scope.small)}) % 37)"]
        name = self._new_name("u")
        if kind < 0.62:
            lines = [f"{name} = tuple((e + {self._pick(scope.small)}) % 37 for e in "
                     f"{self._pick(['range(2)', 't[1:]'])})"]
            scope.tuples[name] = 2
        elif kind < 0.75:
            lines = [f"{name} = ({items[0]}, {items[1]})"]
            scope.tuples[name] = 2
        elif kind < 0.9:
            rounds = self._random.randint(0, 3)
            index = self._new_name("i")
            lines = [f"{name} = ()", f"for {index} in static_range({rounds}):",
                     f"    {name} = {name} + (({items[0]} + {index}) % 37,)",
                     *_indented(self._assignment(scope))]
            scope.tuples[name] = rounds
        else:
            lines = [f"{name} = t[1:] + ({items[0]},) * 2"]
            scope.tuples[name] = 4
        return [*lines, *self._assignment(scope)]

    def _pairs(self, scope: Scope) -> list[str]:
        """A loop over a tuple of tuples, and a tuple with a star in it."""
        small, i, j = scope.assignable("small"), self._new_name("i"), self._new_name("j")
        name = self._pick(small or ["_"])
        inner = scope.inner("static")
        inner.small += [i, j]
        items = [self._small(scope, 1) for _ in range(3)]
        lines = [f"for {i}, {j} in (({items[0]}, {items[1]}), ({items[2]}, 3)):",
                 *_indented([f"{name} = ({i} + {j} * 2) % {MODULUS}", *self._block(inner)])]
        if self._chance(0.5):
            star = self._new_name("u")
            lines += [f"{star} = (*t, {self._small(scope, 1)} % 37)"]
            scope.tuples[star] = 4
        return lines

    # functions --------------------------------------------------------------------------------
    def _two_results(self, scope: Scope) -> list[str]:
        """A function that returns two ints, in two places."""
        name, small = self._new_name("two"), scope.assignable("small")
        if len(small) < 2 or scope.depth > 2:
            return self._assignment(scope)
        first, second = self._random.sample(small, 2)
        k, o = self._new_name("k"), self._new_name("o")
        inner = Scope([*scope.small, k, o], list(scope.wide), list(scope.flags),
                      dict(scope.tuples), {k, o}, list(scope.functions), "pair", "",
                      scope.depth + 1)
        return [f"def {name}({k}, {o}=None):", f"    if {o} is None:",
                f"        {o} = {self._small(scope, 2)}",
                *_indented(self._block(inner)),
                f"    if {self._condition(inner)}:", f"        return {k} % {MODULUS}, {o} % {MODULUS}",
                "    " + self._return(inner),
                *self._assignment(scope),
                f"{first}, {second} = {name}({self._small(scope)}{self._pick(['', ', 3'])})"]

    def _helper(self) -> None:
        """A function of the module, with several returns."""
        name, result = self._new_name("helper"), self._pick(["small", "wide"])
        scope = Scope(["p", "q", "m"], ["g"], [], {"t": 3}, {"p", "q", "g", "t"}, result=result,
                      depth=1)
        scope.functions += self._module_functions
        body = ["t = (p, q, 1)", *self._block(scope), *self._leave(scope), *self._block(scope),
                self._return(scope)]
        self._helpers += [f"def {name}(p, g, q=3, *, m=2):", *_indented(body), "", ""]
        self._module_functions = [*self._module_functions,
                                  Signature(name, ("small", "wide", "small"), 1, "m", result)]

    def _nested_function(self, scope: Scope) -> list[str]:
        """A function of the block: with defaults, free variables, and variables it assigns."""
        if scope.depth > 2:
            return self._assignment(scope)
        name, result = self._new_name("f"), self._pick(["small", "wide"])
        p, q, m = (self._new_name(stem) for stem in "pqm")
        outer = [v for kind in ("small", "wide", "flags") for v in scope.assignable(kind)]
        outer += [name for name in scope.tuples if name in scope.assigned]
        taken = self._random.sample(outer, min(len(outer), self._random.randint(0, 2)))
        inner = Scope([*scope.small, p, q, m], list(scope.wide), list(scope.flags),
                      dict(scope.tuples), {p, q, *taken}, list(scope.functions), result, "",
                      scope.depth + 1)
        body = [f"nonlocal {', '.join(taken)}"] if taken else []
        hidden = [name for name in scope.small if name not in taken]
        if hidden and self._chance(0.3):
            name_again = self._pick(hidden)  # a variable of the function with a name around it
            body.append(f"{name_again} = {self._random.randint(0, 9)}")
            inner.assigned.add(name_again)
        local = self._new_name("l")
        body += [f"{local} = {self._small(inner)} % {MODULUS}"]
        inner.small.append(local)
        inner.assigned.add(local)
        body += [*self._block(inner), *(self._leave(inner) if self._chance(0.5) else []),
                 *self._block(inner), self._return(inner)]
        # no condition in the second default: Numba's analysis does not know it in Python 3.13
        defaults = f"{q}={self._small(scope, 1)}, *, {m}={self._small_leaf(scope)}"
        scope.functions.append(Signature(name, ("small", "small"), 1, m, result))
        return [f"def {name}({p}, {defaults}):", *_indented(body), *self._assignment(scope)]

    def _factory(self, scope: Scope) -> list[str]:
        """Functions that are made in a loop and called after it."""
        made, i, made_in = self._new_name("made"), self._new_name("i"), self._new_name("make")
        f = self._new_name("f")
        target = self._pick(scope.assignable("small") or ["_"])
        of = self._pick(scope.small)
        inner = self._pick([
            [f"{made} += ({made_in}({of} + {i}),)"],
            [f"{made} += (lambda p, q={i} + {of}: p * 2 + q,)"],
            [f"{made} += (lambda p: p * 3 + {i} + {of},)"]])
        return [f"def {made_in}(k):", "    def add(p, s=k * 2):", "        return p + k - s",
                "    return add", f"{made} = ()", f"for {i} in static_range(3):",
                *_indented(inner + self._assignment(scope)),
                f"for {f} in {made}:", f"    {target} = {f}({self._small(scope, 2)}) % {MODULUS}"]

    def _functions_in_a_tuple(self, scope: Scope) -> list[str]:
        small = [f for f in scope.functions if f.result == "small" and f.kinds == ("small",) * 2]
        target = self._pick(scope.assignable("small") or ["_"])
        if not small or self._budget < 10:
            given = "1" if target == "_" else target
            return [f"{target} = (lambda p, *, q={self._small(scope, 2)}: p + q)({given}) % 37"]
        f = self._new_name("f")
        chosen = ", ".join([self._pick(small).name, "lambda p, q=2: p * q"])
        return [f"for {f} in ({chosen}):",
                f"    {target} = {f}({self._small(scope, 2)}) % {MODULUS}"]

    def _recursion(self, scope: Scope) -> list[str]:
        """A function that calls itself a number of times that is known."""
        name, steps = self._new_name("rec"), self._random.randint(1, 4)
        target = self._pick(scope.assignable("small") or ["_"])
        step = self._pick([f"return {name}(d - 1, (p * 2 + d) % 37)",
                           f"return ({name}(d - 1, p) + {name}(d - 2, p + 1)) % 37",
                           f"return {name}(d - 1, p) * 2 % 37 if p else d"])
        return [f"def {name}(d, p):", "    if d <= 0:", "        return p", f"    {step}",
                f"{target} = {name}({steps}, {self._small(scope, 2)}) % {MODULUS}"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
