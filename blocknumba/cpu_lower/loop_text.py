"""Functions of loops over memory, written as LLVM IR text.

    text = LoopText()
    text.loop(0, "%n", 4, lambda i, carried: text.store("<4 x float>", "zeroinitializer",
                                                        text.address("%x", text.product(i, 4)), 4))
    print(text.function("clear", "ptr %x, i64 %n"))

Values are names or literals; indices and offsets in bytes are i64.  Where both operands of an
index computation are known, nothing is written.  A loop runs at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Index = int | str  # an i64: its value where it is known, else its name
Carried = tuple[str, str]  # LLVM type and value


class LoopText:
    """The instructions of one function, in order."""

    def __init__(self):
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    # instructions ---------------------------------------------------------------------------------
    def value(self, instruction: str) -> str:
        """The name of an instruction's result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {instruction}")
        return f"%v{self._count}"

    def load(self, type_: str, address: str, alignment: int) -> str:
        """The value at an address; alignment in bytes."""
        return self.value(f"load {type_}, ptr {address}, align {alignment}")

    def store(self, type_: str, value: str, address: str, alignment: int) -> None:
        """Write a value to an address; alignment in bytes."""
        self._lines.append(f"  store {type_} {value}, ptr {address}, align {alignment}")

    def product(self, x: Index, y: Index) -> Index:
        """x * y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if 0 in (x, y):
            return 0
        if 1 in (x, y):
            return y if x == 1 else x
        return self.value(f"mul i64 {x}, {y}")

    def sum(self, x: Index, y: Index) -> Index:
        """x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if 0 in (x, y):
            return y if x == 0 else x
        return self.value(f"add i64 {x}, {y}")

    def address(self, base: str, offset: Index) -> str:
        """The address offset bytes behind base."""
        return base if offset == 0 else self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def equal(self, x: Index, y: Index) -> str:
        """Whether two indices are equal, an i1."""
        return self.value(f"icmp eq i64 {x}, {y}")

    # control flow ---------------------------------------------------------------------------------
    def loop(self, start: int, stop: Index, step: int,
             body: Callable[[Index, list[str]], Sequence[str] | None],
             carried: Sequence[Carried] = ()) -> list[str]:
        """Run body for start, start + step ... below stop; what it returns is carried on.

        body: takes the index and the carried values, returns the next ones (None for none).
        Returns the last ones.  A loop of one iteration is its body.
        """
        if isinstance(stop, int) and stop <= start + step:
            return list(body(start, [value for _, value in carried]) or ())
        before, head, done = self._block, self._label("loop"), self._label("done")
        self._branch(head)
        self._open(head)
        at = len(self._lines)
        self._count += 1
        index = f"%i{self._count}"
        values = [f"{index}_{k}" for k in range(len(carried))]
        following = list(body(index, values) or ())
        after = self.value(f"add nuw nsw i64 {index}, {step}")
        goes_on = self.value(f"icmp slt i64 {after}, {stop}")
        phis = [("i64", index, str(start), after),
                *((type_, name, first, last) for (type_, first), name, last
                  in zip(carried, values, following, strict=True))]
        self._lines[at:at] = [
            f"  {name} = phi {type_} [ {first}, %{before} ], [ {last}, %{self._block} ]"
            for type_, name, first, last in phis]
        self._lines.append(f"  br i1 {goes_on}, label %{head}, label %{done}")
        self._open(done)
        return following

    def choose(self, condition: str, then: Callable[[], Sequence[str]],
               otherwise: Callable[[], Sequence[str]], types: Sequence[str] = ()) -> list[str]:
        """Run one of two functions, by an i1; types: of the values that they return."""
        yes, no, join = self._label("then"), self._label("else"), self._label("join")
        self._lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")
        ends = []
        for label, branch in ((yes, then), (no, otherwise)):
            self._open(label)
            results = branch()
            ends.append((self._block, results))
            self._branch(join)
        self._open(join)
        (first, xs), (second, ys) = ends
        return [self.value(f"phi {type_} [ {x}, %{first} ], [ {y}, %{second} ]")
                for type_, x, y in zip(types, xs, ys, strict=True)]

    def _label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def _branch(self, label: str) -> None:
        self._lines.append(f"  br label %{label}")

    # the function ---------------------------------------------------------------------------------
    def function(self, symbol: str, parameters: str, attributes: str = "") -> str:
        """The text of a function without result."""
        head = f"define internal void @{symbol}({parameters}) {attributes} {{\nentry:\n"
        return head + "\n".join(self._lines) + "\n  ret void\n}\n"
