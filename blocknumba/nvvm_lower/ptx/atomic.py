"""Inline PTX of atomic read-modify-write on memory, relaxed; fences give it an order."""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import POINTER, Assembly
from blocknumba.nvvm_lower.ptx.memory import in_space
from blocknumba.nvvm_lower.target import Capability

SCOPES = ("cta", "gpu", "sys")

# (operation, PTX type) -> LLVM type of its register.  Source: PTX ISA, "atom", table of types.
OPERATIONS: dict[tuple[str, str], str] = {
    **{("add", t): r for t, r in (("u32", "i32"), ("u64", "i64"), ("f32", "float"),
                                  ("f64", "double"), ("noftz.f16", "i16"),
                                  ("noftz.bf16", "i16"))},
    **{(op, t): r for op in ("min", "max") for t, r in (("s32", "i32"), ("u32", "i32"),
                                                       ("s64", "i64"), ("u64", "i64"))},
    **{(op, t): r for op in ("and", "or", "xor", "exch") for t, r in (("b32", "i32"),
                                                                     ("b64", "i64"))},
}
CAS_TYPES = {"b16": "i16", "b32": "i32", "b64": "i64"}


def _needs(type_: str) -> Capability | None:
    return Capability.ATOM_BF16 if type_ == "noftz.bf16" else None


@cache
def update(operation: str, type_: str, scope: str, space: str = "global") -> Assembly:
    """Replace a word by operation(word, value), if the predicate is not 0.

    Operands: address, predicate, value, the result when the predicate is 0.
    Result: the old word.
    """
    register = OPERATIONS[operation, type_]
    name = f"atom.relaxed.{scope}{in_space(space)}.{operation}.{type_}"
    return Assembly(
        name, f"{{ .reg .pred p; setp.ne.b32 p, $2, 0; @p {name} $0, [$1], $3; }}", (register,),
        (POINTER[space], "i32", register, register), "atom", tied=((3, 0),), needs=_needs(type_),
        has_effect=True, touches_memory=True)


@cache
def reduce(operation: str, type_: str, scope: str, space: str = "global") -> Assembly:
    """Replace a word by operation(word, value), if the predicate is not 0; no result.

    Operands: address, predicate, value.
    """
    register = OPERATIONS[operation, type_]
    name = f"red.relaxed.{scope}{in_space(space)}.{operation}.{type_}"
    return Assembly(
        name, f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {name} [$0], $2; }}", (),
        (POINTER[space], "i32", register), "red", needs=_needs(type_), has_effect=True,
        touches_memory=True)


@cache
def compare_and_swap(type_: str, scope: str, space: str = "global") -> Assembly:
    """Replace a word by value if it equals compare and the predicate is not 0.

    Operands: address, predicate, compare, value, the result when the predicate is 0.
    Result: the old word.
    """
    register = CAS_TYPES[type_]
    name = f"atom.relaxed.{scope}{in_space(space)}.cas.{type_}"
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
    return [
        *(update(*operation, scope, space)
          for operation in OPERATIONS for scope in SCOPES for space in POINTER),
        *(reduce(*operation, scope, space)
          for operation in OPERATIONS for scope in SCOPES for space in POINTER
          if operation[0] != "exch"),
        *(compare_and_swap(type_, scope, space)
          for type_ in CAS_TYPES for scope in SCOPES for space in POINTER),
        *map(fence, SCOPES)]
