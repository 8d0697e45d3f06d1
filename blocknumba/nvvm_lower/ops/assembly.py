"""Code of the user's own PTX, and of functions of libdevice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I16, I32, I64
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.assembly import cuda_function, inline_asm

WORD_BITS = 32
# Source: NVVM IR Specification, "Inline Assembler Expressions", supported constraints.
TYPES = {"h": I16, "r": I32, "l": I64, "f": FLOAT, "d": DOUBLE}
BITS = {I16: 16, I32: 32, I64: 64, FLOAT: 32, DOUBLE: 64}


@code(inline_asm)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    pack = attribute(op, "pack")
    row, held = _assembly(op), len(tiles[0])
    if held % pack:
        raise BlockValueError(
            f"inline_asm_elementwise: pack: given {pack}, accepted what divides the {held} "
            "elements of a thread", loc=op.loc, hint="use larger tiles, or fewer num_warps")
    results: list[Registers] = [[] for _ in op.results]
    for first in range(0, held, pack):
        given = [word for tile, value in zip(tiles, op.tiles)
                 for word in _words(emitter, value, tile[first:first + pack])]
        taken = _as_types(emitter, given, row.operands, op)
        made = iter(zip(emitter.assembly(row, *taken), row.results))
        for registers, value in zip(results, op.results):
            registers += _elements(emitter, value.type.dtype, made, pack, op)
    return tuple(results)


@code(cuda_function)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> Registers:
    """A call for each register; libNVVM links and inlines it."""
    types = [register_type(value.type.dtype) for value in op.tiles]
    name = f"__nv_{op.attrs['symbol']}{'f' if types[-1] == FLOAT else ''}"
    return [emitter.body.call(types[-1], name, *map(" ".join, zip(types, values)),
                              attributes="nounwind readnone")
            for values in zip(*tiles, strict=True)]


_MEMORY = "~{memory}"  # a constraint: the text may read and write memory


def _assembly(op: Op) -> Assembly:
    """The user's text as a row of assembly.

    Errors: BlockValueError for constraints that are not of TYPES.
    """
    results, operands = [], []
    text, constraints = op.attrs["assembly"], op.attrs["constraints"]
    items = [part for part in map(str.strip, constraints.split(",")) if part]
    touches_memory = _MEMORY in items
    for item in items:
        if item == _MEMORY:
            continue
        letter = item.lstrip("=&")
        if letter not in TYPES:
            raise BlockValueError(
                f"inline_asm_elementwise: constraints: given {item!r}, accepted "
                f"{', '.join(TYPES)}, and = before those of results", loc=op.loc)
        (results if item.startswith("=") else operands).append(TYPES[letter])
    wanted = sum(_count(value, attribute(op, "pack")) for value in op.results)
    if len(results) != wanted:
        raise BlockTypeError(f"inline_asm_elementwise: given {len(results)} results in the "
                             f"constraints, accepted {wanted}", loc=op.loc)
    escaped = text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
    return Assembly("inline_asm", escaped, tuple(results), tuple(operands), "",
                    has_effect=not attribute(op, "pure") or touches_memory,
                    touches_memory=touches_memory)


def _count(value: Value, pack: int) -> int:
    """Number of registers of a group of elements."""
    bits = value.type.dtype.bits
    return pack if bits >= WORD_BITS else -(-pack * bits // WORD_BITS)


def _words(emitter: Emitter, value: Value, elements: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Elements in registers as (value, LLVM type): narrow ones packed into 32 bits, or alone."""
    body, dtype = emitter.body, value.type.dtype
    type_, bits = register_type(dtype), dtype.bits
    if bits >= WORD_BITS:
        yield from ((element, type_) for element in elements)
        return
    per_word = WORD_BITS // bits
    for first in range(0, len(elements), per_word):
        word = "0"
        for i, element in enumerate(elements[first:first + per_word]):
            wide = body.convert("zext", type_, element, I32)
            shifted = wide if i == 0 else body.binary("shl", I32, wide, str(i * bits))
            word = shifted if i == 0 else body.binary("or", I32, word, shifted)
        yield word, I32


def _as_types(emitter: Emitter, given: Sequence[tuple[str, str]], types: Sequence[str],
              op: Op) -> list[str]:
    """Registers as the types that the constraints ask for.

    Errors: BlockTypeError for another number of registers, or other sizes.
    """
    if len(given) != len(types):
        raise BlockTypeError(f"inline_asm_elementwise: given {len(types)} operands in the "
                             f"constraints, accepted {len(given)}", loc=op.loc)
    return [_converted(emitter, *pair, type_, op) for pair, type_ in zip(given, types)]


def _converted(emitter: Emitter, value: str, source: str, wanted: str, op: Op) -> str:
    if source == wanted:
        return value
    if source == I32 and wanted == I16:
        return emitter.body.convert("trunc", I32, value, I16)
    if BITS[source] != BITS[wanted]:
        raise BlockTypeError(f"inline_asm_elementwise: given a register of {BITS[source]} bits for "
                             f"a constraint of {BITS[wanted]}", loc=op.loc)
    return emitter.body.convert("bitcast", source, value, wanted)


def _elements(emitter: Emitter, dtype: DType, made: Iterator[tuple[str, str]],
              pack: int, op: Op) -> Registers:
    """The elements of a result, of the registers that hold them."""
    body, type_, bits = emitter.body, register_type(dtype), dtype.bits
    if bits >= WORD_BITS:
        return [_widened(emitter, *next(made), type_, op) for _ in range(pack)]
    elements: Registers = []
    per_word = WORD_BITS // bits
    for first in range(0, pack, per_word):
        word = _widened(emitter, *next(made), I32, op)
        for i in range(min(per_word, pack - first)):
            shifted = body.binary("lshr", I32, word, str(i * bits)) if i else word
            elements.append(body.convert("trunc", I32, shifted, type_))
    return elements


def _widened(emitter: Emitter, value: str, source: str, wanted: str, op: Op) -> str:
    """A result's register as a type of its size, or a larger integer, whose other bits are 0.

    Errors: BlockTypeError for a smaller one.
    """
    if source == wanted:
        return value
    if wanted in (I32, I64) and source in (I16, I32) and BITS[source] < BITS[wanted]:
        return emitter.body.convert("zext", source, value, wanted)
    if BITS[source] != BITS[wanted]:
        raise BlockTypeError(f"inline_asm_elementwise: given a result of {BITS[source]} bits in "
                             f"the constraints, accepted {BITS[wanted]}", loc=op.loc)
    return emitter.body.convert("bitcast", source, value, wanted)
