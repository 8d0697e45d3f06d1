"""Values that control flow hands on: narrow elements go in words, which saves registers.

A phi of 16 bits takes a register of 32, and its neighbours would be packed anew in every round.
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


def handed_type(type_: TileType) -> str:
    """The LLVM type of each word of a value."""
    in_word = _in_word(type_)
    return register_type(type_.dtype) if in_word == 1 else words_of(type_.dtype, in_word).type


def to_hand_on(emitter: Emitter, type_: TileType, registers: Registers) -> Registers:
    """The words of a value."""
    in_word = _in_word(type_)
    if in_word == 1:
        return registers
    return [word for i in range(0, len(registers), in_word)
            for word in pack(emitter, type_.dtype, registers[i:i + in_word])]


def handed_on(emitter: Emitter, type_: TileType, words: Registers) -> Registers:
    """The registers of a value that came as words."""
    in_word = _in_word(type_)
    if in_word == 1:
        return words
    return [value for word in words for value in unpack(emitter, type_.dtype, [word], in_word)]


def _in_word(type_: TileType) -> int:
    """How many elements go in a word."""
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
        body.place(label)
        with body.scope():
            yielded.append(_to_hand_on(emitter, op.results, emitter.run(region)))
        blocks.append(body.block)
        body.branch(merge)
    body.place(merge)
    results = []
    for value, *sides in zip(op.results, *yielded, strict=True):
        registers = []
        for values in zip(*sides, strict=True):
            phi = body.phi(handed_type(value.type))
            for incoming, block in zip(values, blocks, strict=True):
                phi.add(incoming, block)
            registers.append(phi.name)
        results.append(registers)
    return tuple(_handed_on(emitter, op.results, results))


@code(for_)
def _(emitter: Emitter, op: Op, start: Registers, stop: Registers, step: Registers,
      *carried: Registers) -> tuple[Registers, ...]:
    """A counter runs down from the number of rounds, so that nothing overflows."""
    body, (region,) = emitter.body, op.regions
    index_type = llvm_type(op.start)
    rounds = _round_count(emitter, op.start, start[0], stop[0], step[0])
    head, inside, done = (body.new_label(hint) for hint in ("for", "body", "done"))
    initial = _to_hand_on(emitter, region.args[1:], carried)
    before = body.block
    body.branch(head)
    body.place(head)
    left, index = body.phi(index_type), body.phi(index_type)
    phis = _enter(emitter, region.args[1:], initial, before)
    left.add(rounds, before)
    index.add(start[0], before)
    goes_on = body.compare("icmp ne", index_type, left.name, "0")
    body.branch_if(goes_on, inside, done)
    body.place(inside)
    first_line = body.length
    with body.scope():
        emitter.values[region.args[0]] = [index.name]
        following = _to_hand_on(emitter, region.args[1:], emitter.run(region))
        index.add(body.binary("add", index_type, index.name, step[0]), body.block)
        left.add(body.binary("add", index_type, left.name, "-1"), body.block)
    _repeat(phis, following, body.block)
    body.branch(head, loop=_loop_node(emitter, op, first_line))
    body.place(done)
    return tuple(emitter.values[arg] for arg in region.args[1:])


@code(loop)
def _(emitter: Emitter, op: Op, *carried: Registers) -> tuple[Registers, ...]:
    body, (region,) = emitter.body, op.regions
    head, done = body.new_label("loop"), body.new_label("done")
    initial = _to_hand_on(emitter, region.args, carried)
    before = body.block
    body.branch(head)
    body.place(head)
    phis = _enter(emitter, region.args, initial, before)
    first_line = body.length
    with body.scope():
        condition, *following = emitter.run(region)
        words = _to_hand_on(emitter, region.args, following)
    _repeat(phis, words, body.block)
    body.branch_if(condition[0], head, done, loop=_loop_node(emitter, op, first_line))
    body.place(done)
    return tuple(following)


def _to_hand_on(emitter: Emitter, values: Iterable[Value],
                registers: Iterable[Registers]) -> list[Registers]:
    """What values are handed on as."""
    pairs = zip(values, registers, strict=True)
    return [to_hand_on(emitter, value.type, held) for value, held in pairs]


def _handed_on(emitter: Emitter, values: Iterable[Value],
               words: Iterable[Registers]) -> list[Registers]:
    """The registers of values that were handed on."""
    pairs = zip(values, words, strict=True)
    return [handed_on(emitter, value.type, handed) for value, handed in pairs]


def _enter(emitter: Emitter, args: Sequence[Value], initial: Sequence[Registers],
           before: str) -> list[list[Phi]]:
    """Phis for the carried values of a loop, per value one for each word."""
    phis = []
    for arg, words in zip(args, initial, strict=True):
        tile = [emitter.body.phi(handed_type(arg.type)) for _ in words]
        for phi, word in zip(tile, words, strict=True):
            phi.add(word, before)
        phis.append(tile)
    handed = _handed_on(emitter, args, [[phi.name for phi in tile] for tile in phis])
    for arg, registers in zip(args, handed, strict=True):
        assert len(registers) == count(arg.type), f"{arg.type} is carried in another layout"
        emitter.values[arg] = registers
    return phis


def _repeat(phis: list[list[Phi]], following: list[Registers], latch: str) -> None:
    """What the carried values are when control comes from the end of the body."""
    for tile, values in zip(phis, following, strict=True):
        for phi, value in zip(tile, values, strict=True):
            phi.add(value, latch)


def _loop_node(emitter: Emitter, op: Op, first_line: int) -> str:
    """The metadata of a loop whose body began at a line."""
    rounds = attribute(op, "unroll") if op.opdef is for_ else None
    if rounds is None:
        is_long = emitter.body.length - first_line > UNROLLED_LINES
        rounds = 1 if is_long or _has_stages(op.regions[0]) else None
    return emitter.body.module.unrolling(rounds) if rounds else ""


def _has_stages(region: Region) -> bool:
    """Whether a loop holds a product or a wait for what was fetched: its stages repeat already."""
    return any(op.opdef in STAGED or any(map(_has_stages, op.regions)) for op in region.ops)


def _round_count(emitter: Emitter, bound: Value, start: str, stop: str, step: str) -> str:
    """len(range(start, stop, step)), as an unsigned integer of the same width.

    The distance of the bounds fits into it even where their difference, taken as signed, does not.
    """
    up = _rounds(emitter, bound, start, stop, step) if _may_be(step, positive=True) else "0"
    if not _may_be(step, positive=False) or not bound.type.dtype.is_signed:
        return up
    body, type_ = emitter.body, memory_type(bound.type.dtype)
    size = str(-int(step)) if is_literal(step) else body.binary("sub", type_, "0", step)
    down = _rounds(emitter, bound, stop, start, size)
    if up == "0":
        return down
    is_up = body.compare("icmp sgt", type_, step, "0")
    return body.select(is_up, type_, up, down)


def _may_be(step: str, positive: bool) -> bool:
    return not is_literal(step) or (int(step) > 0) == positive


def _rounds(emitter: Emitter, bound: Value, low: str, high: str, size: str) -> str:
    """ceil((high - low) / size) if low < high, else 0; size > 0."""
    body, dtype = emitter.body, bound.type.dtype
    type_ = memory_type(dtype)
    distance = body.binary("sub", type_, high, low)
    if size != "1":
        last = body.binary("udiv", type_, body.binary("add", type_, distance, "-1"), size)
        distance = body.binary("add", type_, last, "1")
    is_less = body.compare(f"icmp {'slt' if dtype.is_signed else 'ult'}", type_, low, high)
    return body.select(is_less, type_, distance, "0")
