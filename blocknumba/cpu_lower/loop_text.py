"""A writer of loops over memory: indices and offsets in bytes are i64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocknumba.cpu_lower.vectors import Inline, Vector
from blocknumba.cpu_lower.writer import Module, Writer

Index = int | str  # an i64: its value where it is known, else its name


class LoopText(Writer):
    """The instructions of a function that stands alone."""

    def __init__(self):
        super().__init__(Module())

    def vector(self, lanes: int, scalar: str, name: str) -> Vector:
        """A value with the operators of vectors."""
        return Vector(Inline(self, lanes), scalar, name)

    def load(self, type_: str, address: str, alignment: int) -> str:
        """The value at an address; alignment in bytes."""
        return self.assign(f"load {type_}, ptr {address}, align {alignment}")

    def store(self, type_: str, value: str, address: str, alignment: int) -> None:
        """Write a value to an address; alignment in bytes."""
        self.do(f"store {type_} {value}, ptr {address}, align {alignment}")

    def prefetch_to_write(self, address: str) -> None:
        """Fetch a cache line that will be written soon to the nearest cache."""
        self.call("void", "llvm.prefetch.p0", ("ptr", address), ("i32", "1"), ("i32", "3"),
                  ("i32", "1"))

    def prefetch(self, address: str) -> None:
        """Fetch a cache line that will be read soon to the second cache."""
        self.call("void", "llvm.prefetch.p0", ("ptr", address), ("i32", "0"), ("i32", "2"),
                  ("i32", "1"))

    def product(self, x: Index, y: Index) -> str:
        """x * y."""
        return self.multiply(str(x), str(y), "i64")

    def sum(self, x: Index, y: Index) -> str:
        """x + y."""
        return self.add(str(x), str(y), "i64")

    def address(self, base: str, offset: Index) -> str:
        """The address offset bytes behind base."""
        if str(offset) == "0":
            return base
        return self.assign(f"getelementptr i8, ptr {base}, i64 {offset}")

    def equal(self, x: Index, y: Index) -> str:
        """Whether two indices are equal, an i1."""
        return self.assign(f"icmp eq i64 {x}, {y}")

    def each(self, extent: int, step: int, body: Callable[..., Sequence[str] | None],
             carried: Sequence[tuple[str, str]] = ()) -> list[str]:
        """Writer.loop, with an i64 that counts."""
        return self.loop(extent, step, body, carried, counter="i64")

    def either(self, condition: str, then: Callable[[], Sequence[str]],
               otherwise: Callable[[], Sequence[str]], types: Sequence[str] = ()) -> list[str]:
        """Run one of two functions, by an i1; types: of the values that they return."""
        yes, no, join = (self.label(hint) for hint in ("then", "else", "join"))
        self.branch_if(condition, yes, no)
        ends = []
        for label, branch in ((yes, then), (no, otherwise)):
            self.begin(label)
            results = branch()
            ends.append((self.block, results))
            self.branch(join)
        self.begin(join)
        (first, xs), (second, ys) = ends
        return [self.assign(f"phi {type_} [ {x}, %{first} ], [ {y}, %{second} ]")
                for type_, x, y in zip(types, xs, ys, strict=True)]

    def function(self, symbol: str, parameters: str, attributes: str) -> str:
        """The text of the function, which has no result."""
        self.do("ret void")
        return self.define(f"define internal void @{symbol}({parameters}) {attributes}")
