"""Random programs over ints, which mean the same in Python and in a kernel."""

from __future__ import annotations

import random

VARIABLES = ("a", "b", "c")
MAX_DEPTH = 3
MODULUS = 37  # keeps values small, so that 32 bits are Python's ints


class ProgramMaker:
    """Writes the source of `program(out, n)`, and of helpers that it calls, from a seed."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._names = 0
        self._helpers: list[str] = []

    def source(self) -> str:
        """A module that defines `program`."""
        body = ["a = 1", "b = n", "c = 2", *self._block(0, False), *self._block(0, False),
                "out[0] = a", "out[1] = b", "out[2] = c"]
        lines = ["def program(out, n):", *_indented(body)]
        return "\n".join([*self._helpers, *lines]) + "\n"

    # expressions ------------------------------------------------------------------------------
    def _expression(self, depth: int = 0) -> str:
        choose = self._random.choice
        plain = ["a", "b", "c", "n", str(self._random.randint(0, 5)), "a + 1", "b - a", "c * 2",
                 "a + b", "(b // 2)", "(c % 5)", "-a", "(a & 6)", "(b ^ c)", "abs(b)", "min(a, c)",
                 "max(b, 3)", "(a >> 1)"]
        if depth > 2 or self._random.random() < 0.8:
            return choose(plain)
        if self._random.random() < 0.6:
            first, second = self._expression(depth + 1), self._expression(depth + 1)
            return f"({first} if {self._condition(depth + 1)} else {second})"
        return f"({self._expression(depth + 1)} {choose('+-*')} {self._expression(depth + 1)})"

    def _condition(self, depth: int = 0) -> str:
        operator = self._random.choice(["<", ">", "==", "!=", "<=", ">="])
        kind = self._random.random()
        if kind < 0.1:
            condition = f"{self._expression()} < {self._expression()} <= {self._expression()}"
        elif kind < 0.2:
            condition = self._random.choice(VARIABLES)
        else:
            condition = f"{self._expression()} {operator} {self._expression()}"
        if depth < 2 and self._random.random() < 0.35:
            word = self._random.choice(["and", "or"])
            condition = f"({condition}) {word} ({self._condition(depth + 1)})"
        return f"not ({condition})" if self._random.random() < 0.1 else condition

    # statements -------------------------------------------------------------------------------
    def _block(self, depth: int, in_loop: bool, result: str = "return") -> list[str]:
        """Some statements; result: how to leave the function early."""
        lines: list[str] = []
        for _ in range(self._random.randint(1, 3 if depth == 0 else 2)):
            lines += self._statement(depth, in_loop, result)
        return lines or ["a += 1"]

    def _statement(self, depth: int, in_loop: bool, result: str) -> list[str]:
        kind = self._random.random()
        if kind < 0.35 or depth >= MAX_DEPTH:
            return self._assignment()
        if kind < 0.55:
            return self._if(depth, in_loop, result)
        if kind < 0.68:
            return self._for(depth, in_loop, result)
        if kind < 0.8:
            return self._while(depth, in_loop, result)
        if kind < 0.86 and depth < 2 and result == "return":
            return self._call()
        if in_loop:
            return [f"if {self._condition()}:", "    " + self._random.choice(["break", "continue"])]
        if kind < 0.94:
            stores = ["    out[3] = a"] if result == "return" else []
            return [f"if {self._condition()}:", *stores, f"    {result}"]
        return []

    def _assignment(self) -> list[str]:
        variable = self._random.choice(VARIABLES)
        kind = self._random.random()
        if kind < 0.15:
            return ["a, b = b, a"] if kind < 0.08 else ["a, b, c = c, a % 11, b"]
        operator = self._random.choice(["=", "+=", "-="])
        return [f"{variable} {operator} {self._expression()}",
                f"{variable} = {variable} % {MODULUS}"]

    def _if(self, depth: int, in_loop: bool, result: str) -> list[str]:
        lines = [f"if {self._condition()}:", *_indented(self._block(depth + 1, in_loop, result))]
        if self._random.random() < 0.3:
            lines += [f"elif {self._condition()}:",
                      *_indented(self._block(depth + 1, in_loop, result))]
        if self._random.random() < 0.6:
            lines += ["else:", *_indented(self._block(depth + 1, in_loop, result))]
        return lines

    def _for(self, depth: int, in_loop: bool, result: str) -> list[str]:
        name = self._new_name("i")
        ranges = ["range(a % 6)", "range(4)", "range(n)", "range(b % 5, 7)", "range(5, c % 4, -1)",
                  "range(0, 9, 1 + a % 3)", "static_range(2)", "(1, 4)"]
        lines = [f"for {name} in {self._random.choice(ranges)}:", f"    c += {name}",
                 *_indented(self._block(depth + 1, True, result))]
        return lines + self._else(depth, in_loop, result)

    def _while(self, depth: int, in_loop: bool, result: str) -> list[str]:
        name = self._new_name("w")
        head = f"while {name} < 6 and ({self._condition()}):"
        if self._random.random() < 0.4:
            head = "while True:"
        lines = [f"{name} = 0", head, f"    {name} += 1", f"    if {name} > 7:", "        break",
                 *_indented(self._block(depth + 1, True, result))]
        return lines + (self._else(depth, in_loop, result) if head != "while True:" else [])

    def _else(self, depth: int, in_loop: bool, result: str) -> list[str]:
        if self._random.random() > 0.3:
            return []
        return ["else:", *_indented(self._block(depth + 1, in_loop, result))]

    def _call(self) -> list[str]:
        name = self._new_name("helper")
        body = [*self._block(2, False, "return a + c"), "return b % 7"]
        self._helpers += ["", f"def {name}(a, b, c=3, *, n=2):", *_indented(body), ""]
        variable = self._random.choice(VARIABLES)
        arguments = self._random.choice(["a, b", "c, n, b", "a, b, n=c", "b=2, a=c"])
        return [f"{variable} = {name}({arguments})", f"{variable} = {variable} % {MODULUS}"]

    def _new_name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
