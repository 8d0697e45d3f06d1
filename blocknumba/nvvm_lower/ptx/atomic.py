"""Inline PTX of atomic read-modify-write on memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import POINTER, Assembly
from blocknumba.nvvm_lower.ptx.memory import in_space, listed
from blocknumba.nvvm_lower.target import Capability

# LLVM types of addresses; in shared memory they are numbers, see memory.py
ADDRESS = {**POINTER, "shared": "i32"}
SCOPES = ("cta", "gpu", "sys")
SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")

# (operation, PTX type) -> LLVM type of its register.  Source: PTX ISA, "atom", table of types.
OPERATIONS: dict[tuple[str, str], str] = {
    **{("add", t): r for t, r in (("u32", "i32"), ("u64", "i64"), ("f32", "float"),
                                  ("f64", "double"), ("noftz.f16", "i16"),
                                  ("noftz.bf16", "i16"), ("noftz.f16x2", "i32"),
                                  ("noftz.bf16x2", "i32"))},
    **{(op, t): r for op in ("min", "max") for t, r in (("s32", "i32"), ("u32", "i32"),
                                                       ("s64", "i64"), ("u64", "i64"))},
    **{(op, t): r for op in ("and", "or", "xor", "exch") for t, r in (("b32", "i32"),
                                                                     ("b64", "i64"))},
}
CAS_TYPES = {"b16": "i16", "b32": "i32", "b64": "i64"}


# Types of which one instruction updates several words, in global memory, each by itself.
# Source: PTX ISA, "atom", .vec_32_bit.
VECTOR_TYPES = ("f32", "noftz.f16x2", "noftz.bf16x2")
VECTOR_WORDS = (2, 4)


@dataclass(frozen=True, slots=True)
class Update:
    """One update of memory: words[i] becomes operation(words[i], values[i]).

    operation, type: a key of OPERATIONS.   scope: one of SCOPES.
    space: "global", "generic", which may be any, or "shared", of the block.
    semantics: one of SEMANTICS.   count: words side by side, aligned together.
    """

    operation: str
    type: str
    scope: str
    space: str = "global"
    semantics: str = "relaxed"
    count: int = 1

    @property
    def register(self) -> str:
        """The LLVM type of a word."""
        return OPERATIONS[self.operation, self.type]

    @property
    def needs(self) -> Capability | None:
        """The capability that the instruction needs."""
        if self.count > 1:
            return Capability.ATOM_VECTOR
        return Capability.ATOM_BF16 if "bf16" in self.type else None

    @property
    def modifiers(self) -> str:
        """Modifiers of the instruction: "relaxed.gpu.global.add.noftz.v4.f16x2"."""
        type_ = self.type
        if self.count > 1:
            *rounding, element = type_.split(".")
            type_ = ".".join((*rounding, f"v{self.count}", element))
        return f"{self.semantics}.{self.scope}{in_space(self.space)}.{self.operation}.{type_}"


@cache
def update(form: Update) -> Assembly:
    """Replace words by operation(word, value), if the predicate is not 0.

    Operands: address, predicate, values, the results when the predicate is 0.
    Results: the old words.
    """
    count, register, name = form.count, form.register, f"atom.{form.modifiers}"
    text = f"@p {name} {listed(0, count)}, [${count}], {listed(count + 2, count)};"
    return Assembly(
        name, f"{{ .reg .pred p; setp.ne.b32 p, ${count + 1}, 0; {text} }}", (register,) * count,
        (POINTER[form.space], "i32", *[register] * (2 * count)), "atom",
        tied=tuple((2 + count + i, i) for i in range(count)), needs=form.needs, has_effect=True,
        touches_memory=True)


@cache
def reduce(form: Update) -> Assembly:
    """Replace words by operation(word, value), if the predicate is not 0; no result.

    Operands: address, predicate, values.   The form's semantics are not to acquire.
    """
    count, name = form.count, f"red.{form.modifiers}"
    return Assembly(
        name, f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {name} [$0], {listed(2, count)}; }}", (),
        (ADDRESS[form.space], "i32", *[form.register] * count), "red", needs=form.needs,
        has_effect=True, touches_memory=True)


@cache
def compare_and_swap(type_: str, scope: str, space: str = "global",
                     semantics: str = "relaxed") -> Assembly:
    """Replace a word by value if it equals compare and the predicate is not 0.

    Operands: address, predicate, compare, value, the result when the predicate is 0.
    Result: the old word.
    """
    register = CAS_TYPES[type_]
    name = f"atom.{semantics}.{scope}{in_space(space)}.cas.{type_}"
    return Assembly(
        name, f"{{ .reg .pred p; setp.ne.b32 p, $2, 0; @p {name} $0, [$1], $3, $4; }}",
        (register,), (POINTER[space], "i32", register, register, register), "atom", tied=((4, 0),),
        has_effect=True, touches_memory=True)


@cache
def fence(scope: str) -> Assembly:
    """Order this thread's accesses before it and after it, as seen by a scope."""
    return Assembly(f"fence.{scope}", f"fence.acq_rel.{scope};", (), (), "membar, fence",
                    has_effect=True, touches_memory=True)


def rows() -> list[Assembly]:
    """Every atomic, for tests."""
    plain = [Update(*operation, scope, space)
             for operation in OPERATIONS for scope in SCOPES for space in POINTER]
    ordered = [Update("add", "u32", scope, space, semantics)
               for scope in SCOPES for space in POINTER for semantics in SEMANTICS[1:]]
    vectors = [Update("add", type_, scope, count=count)
               for type_ in VECTOR_TYPES for scope in SCOPES for count in VECTOR_WORDS]
    counter = Update("add", "u32", "cta", "shared")
    return [
        *map(update, plain + ordered + vectors), reduce(counter),
        *(reduce(form) for form in plain + ordered + vectors
          if form.operation != "exch" and form.semantics in ("relaxed", "release")),
        *(compare_and_swap(type_, scope, space, semantics)
          for type_ in CAS_TYPES for scope in SCOPES for space in POINTER
          for semantics in SEMANTICS),
        *map(fence, SCOPES)]
