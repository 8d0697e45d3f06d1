"""Inline PTX of loads and stores that are predicated, vectorised or hinted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import POINTER, Assembly
from blocknumba.nvvm_lower.target import Capability

# LLVM type of a word -> its PTX type; an 8-bit word travels in a 16-bit register.
WORDS = {"i8": "b8", "i16": "b16", "i32": "b32", "i64": "b64", "float": "b32", "double": "b64"}
WORD_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
VECTOR_WORDS = (1, 2, 4)
SHARED_ADDRESS = "i32"

LOAD_CACHE = (".ca", ".cg", ".cs", ".cv")  # Source: PTX ISA, "Cache Operators"
STORE_CACHE = (".wb", ".cg", ".cs", ".wt")
EVICTION = ("evict_first", "evict_last", "no_allocate")


@dataclass(frozen=True, slots=True)
class Access:
    """Modifiers of one access to memory.

    space: "global", "shared" or "generic", which may be either.
    word, count: count words of one LLVM type, a key of WORDS, side by side.
    predicated: an i32 operand says, by not being 0, whether anything is accessed.
    cache: a cache operator, or empty.
    eviction: one of EVICTION, or empty; the first two need a policy operand (see policy).
    volatile: never merged, reordered or cached.
    """

    space: str
    word: str
    count: int = 1
    predicated: bool = False
    cache: str = ""
    eviction: str = ""
    volatile: bool = False

    @property
    def register(self) -> str:
        """The LLVM type of the register that holds one word."""
        return "i16" if self.word == "i8" else self.word

    @property
    def address(self) -> str:
        """The LLVM type of the address."""
        return POINTER.get(self.space, SHARED_ADDRESS)

    @property
    def has_policy(self) -> bool:
        """Whether a cache policy is the last operand."""
        return self.eviction in ("evict_first", "evict_last")

    @property
    def modifiers(self) -> str:
        """Modifiers of the instruction: ".global.L1::evict_first.L2::cache_hint.v4.b32"."""
        modifiers = [in_space(self.space)]
        if self.volatile:
            modifiers.insert(0, ".volatile")
        elif self.eviction:
            modifiers.append(f".L1::{self.eviction}")
            modifiers += [".L2::cache_hint"] * self.has_policy
        else:
            modifiers.append(self.cache)
        modifiers += [f".v{self.count}"] * (self.count > 1)
        return "".join(modifiers) + f".{WORDS[self.word]}"

    @property
    def needs(self) -> Capability | None:
        return Capability.CACHE_POLICY if self.has_policy else None


def in_space(space: str) -> str:
    """The modifier of a state space; none for generic addresses."""
    return "" if space == "generic" else f".{space}"


def listed(first: int, count: int) -> str:
    """Operands first, first+1, ... as a vector, or the only one."""
    names = ", ".join(f"${first + i}" for i in range(count))
    return names if count == 1 else f"{{{names}}}"


@cache
def load(access: Access) -> Assembly:
    """Read words.

    Operands: address; when predicated the predicate and, per word, the value when it is 0; the
    cache policy when there is one.  Results: the words.
    """
    count, guarded = access.count, access.predicated
    operands = [access.address]
    policy = f", ${count + 1 + guarded * (1 + count)}" if access.has_policy else ""
    text = f"ld{access.modifiers} {listed(0, count)}, [${count}]{policy};"
    if guarded:
        operands += ["i32", *[access.register] * count]
        text = f"{{ .reg .pred p; setp.ne.b32 p, ${count + 1}, 0; @p {text} }}"
    return Assembly(
        f"load{access.modifiers}", text, (access.register,) * count,
        (*operands, *["i64"] * access.has_policy), "ld", has_effect=True,
        tied=tuple((2 + i, i) for i in range(count)) if guarded else (), needs=access.needs,
        touches_memory=access.volatile)


@cache
def store(access: Access) -> Assembly:
    """Write words.

    Operands: address; when predicated the predicate; the words; the cache policy when there
    is one.
    """
    count, guarded = access.count, access.predicated
    operands = [access.address, *["i32"] * guarded, *[access.register] * count]
    policy = f", ${len(operands)}" if access.has_policy else ""
    text = f"st{access.modifiers} [$0], {listed(1 + guarded, count)}{policy};"
    if guarded:
        text = f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {text} }}"
    return Assembly(
        f"store{access.modifiers}", text, (), (*operands, *["i64"] * access.has_policy), "st",
        needs=access.needs, has_effect=True, touches_memory=True)


@cache
def policy(eviction: str) -> Assembly:
    """The cache policy of "evict_first" or "evict_last", as an i64."""
    return Assembly(f"policy.{eviction}", f"createpolicy.fractional.L2::{eviction}.b64 $0, 1.0;",
                    ("i64",), (), "createpolicy", needs=Capability.CACHE_POLICY)


def rows() -> list[Assembly]:
    """Every load and store, for tests."""
    plain = [Access(space, word, count, predicated)
             for space in ("global", "shared", "generic")
             for word in WORDS for count in VECTOR_WORDS for predicated in (False, True)
             if WORD_BITS[word] * count <= 128]
    hinted = [Access("global", "i32", 4, predicated, **hint) for predicated in (False, True)
              for hint in ({"volatile": True}, *({"eviction": e} for e in EVICTION))]
    loads = [Access("global", "i32", 4, True, cache=c) for c in LOAD_CACHE]
    stores = [Access("global", "i32", 4, True, cache=c) for c in STORE_CACHE]
    return [*map(load, plain + hinted + loads), *map(store, plain + hinted + stores),
            policy("evict_first"), policy("evict_last")]
