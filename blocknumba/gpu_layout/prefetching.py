"""Products of pipelined loops whose operands are in registers before their round begins: the plan.

The product of a round is cut along its depth into parts.  Before a part is multiplied, the operands
of the next one are read from shared memory: before the last part of a round, those of the first
part of the next round.  So tensor cores are idle neither for a read nor at the barrier of a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_ops import buffer_view, shared_part
from blocknumba.gpu_layout.dot_ops import mma
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.mma import WORD_BITS, Instruction, Order, matrix_plan
from blocknumba.gpu_layout.register_budget import MOST_REGISTERS
from blocknumba.gpu_layout.registers import log2, register_count
from blocknumba.tile_ir.ir import Attr, Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.types import TileType

SETS = 2  # of fragments: of the part that is multiplied, and of the next
# Addresses, masks, counters: ptxas takes 42 to 60 of GEMMs of float16 for sm_80.
OTHER_REGISTERS = 48


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A product that is done part by part.

    product: an mma of two buffers.  depth: of a part, in elements.
    """

    product: Op
    depth: int

    @property
    def parts(self) -> int:
        """How many there are."""
        return self.product.operands[0].type.shape[-1] // self.depth

    @property
    def attrs(self) -> Mapping[str, Attr]:
        """Of the product of a part: the instructions come in the same order along the depth."""
        return {**self.product.attrs, "depths": _inner(self.product, self.depth)}

    def place(self, operand: int, part: int) -> Mapping[str, int]:
        """Where a part of operand 0 or 1 is, as shared_part says it."""
        rank = len(self.product.operands[operand].type.shape)
        return {"axis": rank - 1 - operand, "start": part * self.depth, "extent": self.depth}

    def held(self, operand: int) -> TileType:
        """A part of operand 0 or 1."""
        tile = self.product.operands[operand].type
        axis = self.place(operand, 0)["axis"]
        return TileType(tile.dtype, (*tile.shape[:axis], self.depth, *tile.shape[axis + 1:]))


def prefetch_of(loop: Op, readers: Iterable[Op], stages: Iterable[Op]) -> Prefetch | None:
    """The product of a loop that is done part by part; None if there is none.

    readers: all that reads the tiles that begin early.  stages: the ops that stand for them.
    """
    product, *others = dict.fromkeys(readers) or (None,)
    if others or product is None or product.opdef is not mma or product not in loop.regions[0].ops:
        return None
    known = set(stages)
    if any(staged_by(operand) not in known for operand in product.operands[:2]):
        return None
    if attribute(product, "precision") == "tf32x3":
        return None  # it sums up several steps apart
    depth = _part_depth(product)
    if depth is None or _registers(product, depth) > MOST_REGISTERS:
        return None
    return Prefetch(product, depth)


def continues(product: Op) -> Op | None:
    """The op that does the part before the one that an op does; None if it does no later part."""
    first, _, acc = (value.owner for value in product.operands)
    is_later = first is not None and first.opdef is shared_part
    return acc if is_later and acc is not None and acc.opdef is mma else None


def staged_by(operand: Value) -> Op | None:
    """The op that put an operand into shared memory."""
    while operand.owner is not None and operand.owner.opdef is buffer_view:
        (operand,) = operand.owner.operands
    return operand.owner


def _part_depth(product: Op) -> int | None:
    """The least depth of a part; None if that is the whole depth.

    A part is a range of the depth, whose instructions come one after the other.
    """
    bits = log2(product.operands[0].type.shape[-1])
    order: Order = attribute(product, "depths") or tuple(range(bits))
    least = log2(Instruction.parse(product.attrs["instruction"]).depth)
    for inner in range(least, bits):
        if sorted(order[:inner]) + list(order[inner:]) == list(range(bits)):
            return 1 << inner
    return None


def _inner(product: Op, depth: int) -> Order:
    """The order of the depth within a part."""
    return attribute(product, "depths")[:log2(depth)]


def _registers(product: Op, depth: int) -> int:
    """The registers of a thread that does a product in parts of a depth."""
    a, b, acc = (value.type for value in product.operands)
    attrs = product.attrs
    orders = attribute(product, "rows"), attribute(product, "columns"), _inner(product, depth)
    plan = matrix_plan(Instruction.parse(attrs["instruction"]), acc.shape, depth, attrs["warps"],
                       attrs["num_warps"], attribute(product, "swapped"), orders)

    def words(layout: LinearLayout, tile: TileType) -> int:
        return register_count(layout) * tile.dtype.bits // WORD_BITS

    fragments = words(plan.a.layout, a) + words(plan.b.layout, b)
    return words(plan.layout, acc) + SETS * fragments + OTHER_REGISTERS
