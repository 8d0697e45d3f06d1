"""The writer of one LLVM function: named instructions, blocks, loops.

Types and values are plain strings, "<8 x float>" and "%v12" or a literal, as in nvvm_lower; the
dialect is that of LLVM 15 and later, with opaque pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

UNLIKELY = "!prof !{!\"branch_weights\", i32 1, i32 1000}"


def vector(scalar: str, lanes: int) -> str:
    """The type of a number of lanes; one lane is a scalar."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(scalar: str, lanes: int) -> str:
    """The suffix of an intrinsic on such vectors."""
    name = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(scalar, scalar)
    return name if lanes == 1 else f"v{lanes}{name}"


class Module:
    """Declarations, constants and functions of one translation unit, each once."""

    def __init__(self):
        self._parts: dict[str, str] = {}

    def add(self, symbol: str, text: str) -> None:
        """Add the text that defines or declares a symbol, unless it is there."""
        self._parts.setdefault(symbol, text)

    def declare(self, result: str, symbol: str, types: Sequence[str]) -> None:
        """Declare an intrinsic or an external function."""
        self.add(symbol, f"declare {result} @{symbol}({', '.join(types)})\n")

    def text(self, triple: str) -> str:
        """The whole module."""
        return f'target triple = "{triple}"\n' + "\n".join(self._parts.values())


class Writer:
    """The instructions of one function, in the order in which they run.

    block: the label of the block that is being written.
    """

    def __init__(self, module: Module):
        self.module, self.block = module, "entry"
        self._lines: list[str] = []
        self._count = 0

    def name(self) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"%v{self._count}"

    def assign(self, instruction: str) -> str:
        """Append an instruction that has a result."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def call(self, result: str, symbol: str, *arguments: tuple[str, str]) -> str:
        """Call a function or an intrinsic, declaring it; arguments: (type, value)."""
        self.module.declare(result, symbol, [type_ for type_, _ in arguments])
        written = ", ".join(f"{type_} {value}" for type_, value in arguments)
        call = f"call {result} @{symbol}({written})"
        if result == "void":
            self.do(call)
            return ""
        return self.assign(call)

    def convert(self, opcode: str, source: str, x: str, result: str) -> str:
        """x of one type as another; x itself if they are equal."""
        return x if source == result else self.assign(f"{opcode} {source} {x} to {result}")

    # integers, folded where they are literals ---------------------------------------------------
    def add(self, x: str, y: str, type_: str = "i32") -> str:
        """x + y, which does not overflow."""
        if x == "0" or y == "0":
            return x if y == "0" else y
        if is_number(x) and is_number(y):
            return str(int(x) + int(y))
        return self.assign(f"add nsw {type_} {x}, {y}")

    def multiply(self, x: str, y: str, type_: str = "i32") -> str:
        """x * y, which does not overflow."""
        if "0" in (x, y):
            return "0"
        if "1" in (x, y):
            return x if y == "1" else y
        if is_number(x) and is_number(y):
            return str(int(x) * int(y))
        return self.assign(f"mul nsw {type_} {x}, {y}")

    def divide(self, x: str, y: int) -> str:
        """The quotient of two i32, of which none is negative."""
        if is_number(x):
            return str(int(x) // y)
        return x if y == 1 else self.assign(f"udiv i32 {x}, {y}")

    def remainder(self, x: str, y: int) -> str:
        """The remainder of two i32, of which none is negative."""
        if is_number(x):
            return str(int(x) % y)
        return "0" if y == 1 else self.assign(f"urem i32 {x}, {y}")

    # vectors ------------------------------------------------------------------------------------
    def splat(self, scalar: str, x: str, lanes: int) -> str:
        """A scalar in all lanes."""
        if lanes == 1:
            return x
        if not x.startswith("%"):
            return f"splat ({scalar} {x})" if x not in ("null", "poison") else "zeroinitializer"
        type_ = vector(scalar, lanes)
        one = self.assign(f"insertelement {type_} poison, {scalar} {x}, i64 0")
        return self.assign(f"shufflevector {type_} {one}, {type_} poison, "
                           f"<{lanes} x i32> zeroinitializer")

    def extract(self, scalar: str, x: str, lanes: int, lane: str) -> str:
        """One lane of a vector."""
        if lanes == 1:
            return x
        return self.assign(f"extractelement {vector(scalar, lanes)} {x}, i32 {lane}")

    # control flow -------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        """A label that no other block has."""
        self._count += 1
        return f"{hint}{self._count}"

    def begin(self, label: str) -> None:
        """Begin a block: the insertion point of what follows."""
        self._lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        """Go to a block."""
        self.do(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str, hint: str = "") -> None:
        """Go to one of two blocks."""
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}"
                + (f", {hint}" if hint else ""))

    def loop(self, extent: int, step: int, body: Callable[..., Sequence[str] | None],
             carried: Sequence[tuple[str, str]] = (), index: str | None = None,
             counter: str = "i32") -> list[str]:
        """Run body(i, *values) for i of range(0, extent, step); one iteration or more.

        carried: (type, initial value); the body returns the next values.  Returns the last ones.
        index: the name that i gets.  counter: the type of i.
        """
        index = index or self.name()
        if extent <= step:
            self.do(f"{index} = add {counter} 0, 0")
            return list(body(index, *[value for _, value in carried]) or ())
        head, before = self.label("loop"), self.block
        self.branch(head)
        self.begin(head)
        slot, names = len(self._lines), [self.name() for _ in carried]
        made = body(index, *names) or ()
        following = self.assign(f"add nuw nsw {counter} {index}, {step}")
        more = self.assign(f"icmp ult {counter} {following}, {extent}")
        after = self.label("after")
        values = [(f"{index}", counter, "0", following),
                  *((name, type_, first, new)
                    for name, (type_, first), new in zip(names, carried, made, strict=True))]
        self._lines[slot:slot] = [
            f"  {name} = phi {type_} [ {first}, %{before} ], [ {new}, %{self.block} ]"
            for name, type_, first, new in values]
        self.branch_if(more, head, after)
        self.begin(after)
        return list(made)

    def reserve(self) -> int:
        """The position of the next line, for `insert`."""
        return len(self._lines)

    def insert(self, position: int, lines: Sequence[str]) -> None:
        """Insert lines, phis for instance, that become known later."""
        self._lines[position:position] = [f"  {line}" for line in lines]

    @contextmanager
    def only_if(self, condition: str, hint: str = "") -> Iterator[tuple[str, str]]:
        """A block that runs if an i1 holds; yields the labels before it and after it."""
        then, after, before = self.label("then"), self.label("after"), self.block
        self.branch_if(condition, then, after, hint)
        self.begin(then)
        yield before, after
        self.branch(after)
        self.begin(after)

    def choose(self, condition: str, type_: str, then: Callable[[], str], otherwise: str) -> str:
        """The value that `then` makes, in a block of its own, if an i1 holds; else another one."""
        yes, after, before = self.label("then"), self.label("after"), self.block
        self.branch_if(condition, yes, after)
        self.begin(yes)
        value, last = then(), self.block
        self.branch(after)
        self.begin(after)
        return self.assign(f"phi {type_} [ {otherwise}, %{before} ], [ {value}, %{last} ]")

    def define(self, head: str, entry: Sequence[str] = ()) -> str:
        """The text of the function; entry: lines that come first."""
        first = "".join(f"  {line}\n" for line in entry)
        return f"{head} {{\nentry:\n{first}" + "\n".join(self._lines) + "\n}\n"


def is_number(x: str) -> bool:
    """Whether a value is the literal of an integer."""
    return x.lstrip("-").isdigit()
