"""Loads and stores of arrays: as wide as possible, predicated where masks require it.

Arrays are in global memory.  Those of a block function may be in any memory: their pointers hold
generic addresses, and are used as such.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.elements import element_bits, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import GENERIC, GLOBAL, I1, I32, I64, I8, pointer, vector
from blocknumba.nvvm_lower.ptx import memory as ptx
from blocknumba.nvvm_lower.services.address import special_register
from blocknumba.nvvm_lower.services.words import Words, pack, unpack, words_of
from blocknumba.tile_ir.ir.types import DType, PointerType, bool_

ALWAYS, NEVER = ("", "true"), "false"  # predicates that are known


@dataclass(frozen=True, slots=True)
class Hints:
    """Cache hints of an access, as of the ops `load` and `store`."""

    cache: str = ""
    eviction: str = ""
    volatile: bool = False

    def __bool__(self) -> bool:
        return bool(self.cache or self.eviction or self.volatile)


def load(emitter: Emitter, dtype: DType, pointers: Registers, masks: Registers, others: Registers,
         width: int, hints: Hints) -> Registers:
    """The elements at pointers; where masks are false, others.

    width: so many neighbouring registers are neighbours in memory, aligned, under one mask.
    """
    words = words_of(dtype, width)
    result: Registers = []
    for first in range(0, len(pointers), width):
        run = slice(first, first + width)
        if masks[first] == NEVER:
            result += others[run]
        elif masks[first] in ALWAYS and not hints:
            loaded = _plain_load(emitter, dtype, pointers[first], words)
            result += unpack(emitter, dtype, loaded, width)
        else:
            other = pack(emitter, dtype, others[run])
            loaded = _hinted_load(emitter, dtype, pointers[first], masks[first], other, words,
                                  hints)
            result += unpack(emitter, dtype, loaded, width)
    return result


def store(emitter: Emitter, dtype: DType, pointers: Registers, values: Registers,
          masks: Registers, width: int, hints: Hints) -> None:
    """Write values to pointers where masks are true; width as of load."""
    words = words_of(dtype, width)
    for first in range(0, len(pointers), width):
        if masks[first] == NEVER:
            continue
        packed = pack(emitter, dtype, values[first:first + width])
        if masks[first] in ALWAYS and not hints:
            _plain_store(emitter, dtype, pointers[first], packed, words)
        else:
            _hinted_store(emitter, dtype, pointers[first], masks[first], packed, words, hints)


def awaiting(emitter: Emitter, dtype: DType, values: Registers, loaded: Registers,
             width: int) -> Registers:
    """The same values, of which the first of each vector is there when what was loaded is.

    Where a store meets the fetch of its own line, memory does both again and again: 619 us instead
    of 157 for the states of a linear attention on an H200, 571 for Triton's code.  So one register
    of each vector takes part in an operation with what was loaded.  It changes nothing, but only
    the hardware knows: the masks of the lanes before and behind a lane have no bit in common.
    """
    body, bits = emitter.body, I1 if dtype == bool_ else f"i{element_bits(dtype)}"
    before, behind = (special_register(body, f"lanemask.{side}") for side in ("lt", "gt"))
    nothing = body.binary("and", I32, before, behind)
    if bits != I32:
        nothing = body.convert("trunc" if element_bits(dtype) < 32 else "zext", I32, nothing, bits)
    waiting = list(values)
    for register in range(0, len(values), width):
        value, other = (_as(emitter, register_type(dtype), registers[register], bits)
                        for registers in (values, loaded))
        mixed = body.binary("or", bits, value, body.binary("and", bits, other, nothing))
        waiting[register] = _as(emitter, bits, mixed, register_type(dtype))
    return waiting


def _as(emitter: Emitter, given: str, value: str, wanted: str) -> str:
    return value if given == wanted else emitter.body.convert("bitcast", given, value, wanted)


def byte_address(emitter: Emitter, dtype: DType, address: str) -> str:
    """A pointer to dtype as the type that inline PTX takes."""
    return _typed_address(emitter, dtype, address, I8)


def _pointer(emitter: Emitter, type_: str) -> str:
    """The LLVM type of a pointer to type_ in the space of arrays."""
    return pointer(type_, GLOBAL if emitter.space == "global" else GENERIC)


def _typed_address(emitter: Emitter, dtype: DType, address: str, type_: str) -> str:
    """A pointer to dtype as one to type_ in the space of arrays.

    A generic address goes by way of a number: a cast of address spaces would tell libNVVM that it
    is global.
    """
    body, given = emitter.body, register_type(PointerType(dtype))
    if emitter.space == "global":
        return body.convert("bitcast", given, address, _pointer(emitter, type_))
    number = body.convert("ptrtoint", given, address, I64)
    return body.convert("inttoptr", I64, number, _pointer(emitter, type_))


def _plain_load(emitter: Emitter, dtype: DType, address: str, words: Words) -> list[str]:
    body = emitter.body
    type_ = words.type if words.count == 1 else vector(words.type, words.count)
    address = _typed_address(emitter, dtype, address, type_)
    loaded = body.assign(
        f"load {type_}, {_pointer(emitter, type_)} {address}, align {_bytes(dtype, words)}")
    if words.count == 1:
        return [loaded]
    return [body.pure(f"extractelement {type_} {loaded}, i32 {i}") for i in range(words.count)]


def _plain_store(emitter: Emitter, dtype: DType, address: str, packed: list[str],
                 words: Words) -> None:
    body = emitter.body
    type_, value = words.type, packed[0]
    if words.count > 1:
        type_, value = vector(words.type, words.count), "undef"
        for i, word in enumerate(packed):
            value = body.pure(f"insertelement {type_} {value}, {words.type} {word}, i32 {i}")
    address = _typed_address(emitter, dtype, address, type_)
    body.do(f"store {type_} {value}, {_pointer(emitter, type_)} {address}, "
            f"align {_bytes(dtype, words)}")


def _hinted_load(emitter: Emitter, dtype: DType, address: str, mask: str, other: list[str],
                 words: Words, hints: Hints) -> list[str]:
    access = _access(emitter, mask, words, hints)
    operands = [byte_address(emitter, dtype, address)]
    if access.predicated:
        operands += [emitter.flag(mask), *_to_registers(emitter, access, other)]
    loaded = emitter.assembly(ptx.load(access), *operands, *_policy(emitter, access))
    return [emitter.body.convert("trunc", access.register, word, access.word)
            if access.register != access.word else word for word in loaded]


def _hinted_store(emitter: Emitter, dtype: DType, address: str, mask: str, packed: list[str],
                  words: Words, hints: Hints) -> None:
    access = _access(emitter, mask, words, hints)
    operands = [byte_address(emitter, dtype, address)]
    operands += [emitter.flag(mask)] * access.predicated
    emitter.assembly(ptx.store(access), *operands, *_to_registers(emitter, access, packed),
                     *_policy(emitter, access))


def _access(emitter: Emitter, mask: str, words: Words, hints: Hints) -> ptx.Access:
    # PTX ISA, "ld": priorities of eviction are for addresses of global memory
    eviction = hints.eviction if emitter.space == "global" else ""
    return ptx.Access(emitter.space, words.type, words.count, mask not in ALWAYS, hints.cache,
                      eviction, hints.volatile)


def _to_registers(emitter: Emitter, access: ptx.Access, words: list[str]) -> list[str]:
    """Words in the registers that the instruction takes: a byte travels in 16 bits."""
    if access.register == access.word:
        return words
    return [emitter.body.convert("zext", access.word, word, access.register) for word in words]


def _policy(emitter: Emitter, access: ptx.Access) -> tuple[str, ...]:
    return emitter.assembly(ptx.policy(access.eviction)) if access.has_policy else ()


def _bytes(dtype: DType, words: Words) -> int:
    return words.count * words.elements * element_bits(dtype) // 8


def always(count: int) -> Registers:
    """Masks that are always true."""
    return [ALWAYS[0]] * count


def zeros(dtype: DType, count: int) -> Registers:
    """Elements of a load without `other` where it reads nothing."""
    return [zero(dtype)] * count


def with_predicate(emitter: Emitter, masks: Registers, predicate: str) -> Registers:
    """Masks that hold only where predicate, "" or an i1, does."""
    if not predicate:
        return masks
    return [predicate if mask in ALWAYS else emitter.body.binary("and", I1, mask, predicate)
            for mask in masks]
