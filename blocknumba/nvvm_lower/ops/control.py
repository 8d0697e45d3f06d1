"""Code of control flow: branches and loops; values that regions yield are phis.

Narrow elements are yielded in words of 32 bits, which saves registers: a phi of 16 bits takes a
register of 32, and its neighbours would be packed anew in every iteration.

    entry:                        for:
      br for                        %left = phi [ iterations, entry ], [ %left - 1, body ]
                                    %word = phi [ packed initial, entry ], [ packed next, body ]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blocknumba.gpu_layout.async_copies.ops import async_copy_wait, mbarrier_wait, wgmma
from blocknumba.gpu_layout.dots.ops import fma_dot, mma
from blocknumba.nvvm_lower.elements import is_literal, memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count, llvm_type
from blocknumba.nvvm_lower.llvm import Phi
from blocknumba.nvvm_lower.services.words import WORD_BITS, pack, unpack, words_of
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType, TileType
from blocknumba.tile_ir.ops.control import for_, if_, loop


def yielded_type(type_: TileType) -> str:
    """The LLVM type of each word of a yielded value."""
    in_word = _in_word(type_)
    return register_type(type_.dtype) if in_word == 1 else words_of(type_.dtype, in_word).type


def as_yielded(emitter: Emitter, type_: TileType, registers: Registers) -> Registers:
    """The words in which a value is yielded."""
    in_word = _in_word(type_)
    if in_word == 1:
        return registers
    return [word for i in range(0, len(registers), in_word)
            for word in pack(emitter, type_.dtype, registers[i:i + in_word])]


def from_yielded(emitter: Emitter, type_: TileType, words: Registers) -> Registers:
    """The registers of a value that was yielded in words."""
    in_word = _in_word(type_)
    if in_word == 1:
        return words
    return [value for word in words for value in unpack(emitter, type_.dtype, [word], in_word)]


def _in_word(type_: TileType) -> int:
    """Number of elements in a word."""
    narrow = isinstance(type_.dtype, DType) and 8 <= type_.dtype.bits < WORD_BITS
    if type_.is_scalar or not narrow:
        return 1
    in_word = WORD_BITS // type_.dtype.bits
    return in_word if count(type_) % in_word == 0 else 1


# A longer body is not unrolled by LLVM: that multiplies compile time and gains nothing.
UNROLLED_LINES = 64
STAGED = (mma, fma_dot, wgmma, mbarrier_wait, async_copy_wait)


@code(if_)
def _(emitter: Emitter, op: Op, condition: Registers) -> tuple[Registers, ...]:
    body = emitter.body
    labels = body.new_label("then"), body.new_label("else")
    merge = body.new_label("merge")
    body.branch_if(condition[0], *labels)
    yielded, blocks = [], []
    for label, region in zip(labels, op.regions, strict=True):
        body.begin_block(label)
        with body.scope():
            yielded.append(_as_yielded(emitter, op.results, emitter.run(region)))
        blocks.append(body.block)
        body.branch(merge)
    body.begin_block(merge)
    results = []
    for value, *sides in zip(op.results, *yielded, strict=True):
        registers = []
        for values in zip(*sides, strict=True):
            phi = body.phi(yielded_type(value.type))
            for incoming, block in zip(values, blocks, strict=True):
                phi.add(incoming, block)
            registers.append(phi.name)
        results.append(registers)
    return tuple(_from_yielded(emitter, op.results, results))


@code(for_)
def _(emitter: Emitter, op: Op, start: Registers, stop: Registers, step: Registers,
      *carried: Registers) -> tuple[Registers, ...]:
    """A second counter runs down from the number of iterations, so that nothing overflows."""
    body, (region,) = emitter.body, op.regions
    index_type = llvm_type(op.start)
    iterations = _trip_count(emitter, op.start, start[0], stop[0], step[0])
    head, inside, done = (body.new_label(hint) for hint in ("for", "body", "done"))
    initial = _as_yielded(emitter, region.args[1:], carried)
    before = body.block
    body.branch(head)
    body.begin_block(head)
    left, index = body.phi(index_type), body.phi(index_type)
    phis = _enter(emitter, region.args[1:], initial, before)
    left.add(iterations, before)
    index.add(start[0], before)
    goes_on = body.compare("icmp ne", index_type, left.name, "0")
    body.branch_if(goes_on, inside, done)
    body.begin_block(inside)
    first_line = body.length
    with body.scope():
        emitter.values[region.args[0]] = [index.name]
        following = _as_yielded(emitter, region.args[1:], emitter.run(region))
        index.add(body.binary("add", index_type, index.name, step[0]), body.block)
        left.add(body.binary("add", index_type, left.name, "-1"), body.block)
    _repeat(phis, following, body.block)
    body.branch(head, loop=_loop_node(emitter, op, first_line))
    body.begin_block(done)
    return tuple(emitter.values[arg] for arg in region.args[1:])


@code(loop)
def _(emitter: Emitter, op: Op, *carried: Registers) -> tuple[Registers, ...]:
    body, (region,) = emitter.body, op.regions
    head, done = body.new_label("loop"), body.new_label("done")
    initial = _as_yielded(emitter, region.args, carried)
    before = body.block
    body.branch(head)
    body.begin_block(head)
    phis = _enter(emitter, region.args, initial, before)
    first_line = body.length
    with body.scope():
        condition, *following = emitter.run(region)
        words = _as_yielded(emitter, region.args, following)
    _repeat(phis, words, body.block)
    body.branch_if(condition[0], head, done, loop=_loop_node(emitter, op, first_line))
    body.begin_block(done)
    return tuple(following)


def _as_yielded(emitter: Emitter, values: Iterable[Value],
                registers: Iterable[Registers]) -> list[Registers]:
    """The words in which values are yielded."""
    pairs = zip(values, registers, strict=True)
    return [as_yielded(emitter, value.type, held) for value, held in pairs]


def _from_yielded(emitter: Emitter, values: Iterable[Value],
               words: Iterable[Registers]) -> list[Registers]:
    """The registers of values that were yielded in words."""
    pairs = zip(values, words, strict=True)
    return [from_yielded(emitter, value.type, yielded) for value, yielded in pairs]


def _enter(emitter: Emitter, args: Sequence[Value], initial: Sequence[Registers],
           before: str) -> list[list[Phi]]:
    """Phis for the loop-carried values: per value one for each word."""
    phis = []
    for arg, words in zip(args, initial, strict=True):
        tile = [emitter.body.phi(yielded_type(arg.type)) for _ in words]
        for phi, word in zip(tile, words, strict=True):
            phi.add(word, before)
        phis.append(tile)
    tiles = _from_yielded(emitter, args, [[phi.name for phi in tile] for tile in phis])
    for arg, registers in zip(args, tiles, strict=True):
        assert len(registers) == count(arg.type), f"{arg.type} is carried in another layout"
        emitter.values[arg] = registers
    return phis


def _repeat(phis: list[list[Phi]], following: list[Registers], latch: str) -> None:
    """Add the next loop-carried values to the phis, for the jump from the end of the body."""
    for tile, values in zip(phis, following, strict=True):
        for phi, value in zip(tile, values, strict=True):
            phi.add(value, latch)


def _loop_node(emitter: Emitter, op: Op, first_line: int) -> str:
    """The metadata of a loop whose body began at a line."""
    iterations = attribute(op, "unroll") if op.opdef is for_ else None
    if iterations is None:
        is_long = emitter.body.length - first_line > UNROLLED_LINES
        iterations = 1 if is_long or _has_stages(op.regions[0]) else None
    return emitter.body.module.unrolling(iterations) if iterations else ""


def _has_stages(region: Region) -> bool:
    """Whether a loop holds a dot or waits for a copy: then it is unrolled into stages already."""
    return any(op.opdef in STAGED or any(map(_has_stages, op.regions)) for op in region.ops)


def _trip_count(emitter: Emitter, bound: Value, start: str, stop: str, step: str) -> str:
    """len(range(start, stop, step)), as an unsigned integer of the same width.

    The distance of the bounds fits into it even where their difference, taken as signed, does not.
    """
    up = _iterations(emitter, bound, start, stop, step) if _may_be(step, positive=True) else "0"
    if not _may_be(step, positive=False) or not bound.type.dtype.is_signed:
        return up
    body, type_ = emitter.body, memory_type(bound.type.dtype)
    size = str(-int(step)) if is_literal(step) else body.binary("sub", type_, "0", step)
    down = _iterations(emitter, bound, stop, start, size)
    if up == "0":
        return down
    is_up = body.compare("icmp sgt", type_, step, "0")
    return body.select(is_up, type_, up, down)


def _may_be(step: str, positive: bool) -> bool:
    return not is_literal(step) or (int(step) > 0) == positive


def _iterations(emitter: Emitter, bound: Value, low: str, high: str, size: str) -> str:
    """ceil((high - low) / size) if low < high, else 0; size > 0."""
    body, dtype = emitter.body, bound.type.dtype
    type_ = memory_type(dtype)
    distance = body.binary("sub", type_, high, low)
    if size != "1":
        last = body.binary("udiv", type_, body.binary("add", type_, distance, "-1"), size)
        distance = body.binary("add", type_, last, "1")
    is_less = body.compare(f"icmp {'slt' if dtype.is_signed else 'ult'}", type_, low, high)
    return body.select(is_less, type_, distance, "0")
