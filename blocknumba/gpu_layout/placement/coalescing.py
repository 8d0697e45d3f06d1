"""Layouts in which accesses to memory are coalesced, and the cost of accesses in other layouts.

The analysis of pointers (AxisInfos) says along which axis neighbours are contiguous.  The layout
gives each thread one vector of them, and the lanes of a warp consecutive vectors:

    float32 row:  | lane 0: 16 bytes | lane 1: 16 bytes | .. | lane 31: 16 bytes |   4 lines of 128
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import async_copy, shared_tile
from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import (
    LANE, blocked, contiguous_registers, log2, register_count,
)
from blocknumba.gpu_layout.layouts.shared import access as shared_access, contiguous_run
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.rule import placement_of
from blocknumba.tile_ir.analysis.axis import Axis
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.likely_strides import FAR, LikelyStrides
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, READS, WRITES
from blocknumba.tile_ir.ir.uses import carried, is_loop
from blocknumba.tile_ir.ops.memory import atomic_rmw

VECTOR_BYTES = 16  # PTX ISA, 'ld': the widest access of one thread
LINE_BYTES = 128  # CUDA Best Practices Guide, 'Coalesced Access': one L1 wavefront
WRITE_FACTOR = 2  # stores go through to L2, at half the rate
SECTOR_BYTES = 32  # CUDA Best Practices Guide, 'Coalesced Access': L2 updates one at a time

# Bytes that one instruction adds to neighbours in global memory, of which each is updated by
# itself; other updates, and those in other memory than global, are of single elements.
# Source: PTX ISA, "atom": .vec_32_bit of .f32, .f16x2, .bf16x2; then .f16x2, .bf16x2.
_ADDED_BYTES = {
    "float32": (("atom_vector", VECTOR_BYTES),),
    "float16": (("atom_vector", VECTOR_BYTES), ("mma", 4)),
    "bfloat16": (("atom_vector", VECTOR_BYTES), ("atom_bf16", 4)),
}


def atomic_width(op: Op, features: frozenset[str], is_global: bool = True) -> int:
    """The number of neighbouring elements that one instruction of an atomic op may update.

    features: of the target.   is_global: whether the pointers are known to be of global memory.
    """
    dtype = op.pointer.type.dtype.pointee
    if op.opdef is not atomic_rmw or op.attrs["kind"] != "add":
        return 1
    for feature, size_bytes in _ADDED_BYTES.get(dtype.name, ()):
        if feature in features and (is_global or feature != "atom_vector"):
            return size_bytes // dtype.bytes
    return 1


def share_of_copier(size: int, width: int, threads: int) -> int:
    """The elements that a thread copies asynchronously at once, where it may copy width of them.

    size: of the tile.  All threads copy, unless there is less than such a vector for each: then
    few threads with wide copies are as fast, and cp.async takes no less than 4 bytes.
    """
    return width if size < width * threads else max(1, size // threads)


@dataclass(frozen=True, slots=True)
class _Access:
    """One load, store or atomic of a tile, or one read of a buffer.

    base: the pointers, or the buffer.  order: axes, most contiguous first.
    width: neighbours along order[0] that one instruction may take.
    strides: of axes, in elements, as far as they are guesses: order was chosen by them.
    value: that has the layout of the access: the result of a load, the operand of a store.
    """

    op: Op
    base: Value
    order: tuple[int, ...]
    width: int
    value: Value
    strides: tuple[float, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return self.base.type.shape

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.base.type.dtype.pointee.bytes


_Group = tuple[Value, tuple[int, ...]]  # a component of values, an order of axes


class Accesses:
    """The tile accesses of a function: the layout that suits each, and the cost of others.

    Accesses whose values are combined by elementwise ops get one layout if they agree on the order
    of axes, in which they cost least together, so that nothing moves between them.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._options = options
        self._infos = AxisInfos(fn)
        self._strides = {of_stores: LikelyStrides(fn, self._infos, of_stores)
                         for of_stores in (False, True)}
        self._accesses: dict[Op, _Access] = {}
        self._components = _Components()
        reduced: list[tuple[Value, Op]] = []
        for op in walk(fn.body):
            self._components.add(op)
            if "axis" in op.attrs and op.opdef.has(PURE):
                reduced += [(tile, op) for tile in op.operands]
            if op.opdef is shared_tile:
                self._accesses[op] = _buffer_access(op)
            elif op.opdef.has(READS | WRITES) and op.pointer.type.shape:
                self._accesses[op] = self._access(op)
        # by component: the ops that work along an axis of it
        self._along: dict[Value, dict[Op, None]] = {}
        for value, op in reduced:
            self._along.setdefault(self._components.root(value), {}).setdefault(op)
        together: dict[_Group, list[_Access]] = {}
        for access in self._accesses.values():
            together.setdefault(self._group(access), []).append(access)
        self._vectors = {group: self._vector(accesses) for group, accesses in together.items()}

    def layout(self, op: Op) -> LinearLayout | None:
        """The coalesced layout of an access to a tile; None for other ops."""
        access = self._accesses.get(op)
        if access is None:
            return None
        size = math.prod(access.shape)
        per_thread = max(1, size // self._options.threads)
        if op.opdef is async_copy:
            per_thread = share_of_copier(size, access.width, self._options.threads)
        return self._coalesced(access, min(self._vectors[self._group(access)], per_thread))

    def _coalesced(self, access: _Access, vector: int) -> LinearLayout:
        """The layout with vectors of an access along its order."""
        axes = {op.attrs["axis"] for op in self._along.get(self._components.root(access.value), ())}
        warp_order = None
        if axes:
            # a reduction across warps goes through shared memory: keep rows in one warp
            warp_order = tuple(sorted(access.order, key=lambda axis: axis in axes))
        return blocked(access.shape, access.order, vector, self._options.num_warps, warp_order)

    def is_scattered(self, op: Op) -> bool:
        """Whether neighbours never have neighbouring addresses: no layout is coalesced."""
        access = self._accesses.get(op)
        if access is None:
            return False
        if access.strides and access.strides[access.order[0]] * access.element_bytes < LINE_BYTES:
            return False
        return all(axis.contiguity == axis.constancy == 1 for axis in self._axes(access))

    def slots(self, op: Op, layout: LinearLayout) -> int:
        """The cost of an access in a layout: issue slots of one warp (instructions, wavefronts)."""
        if op.opdef is shared_tile:
            buffer = op.buffer.type
            return shared_access(layout, buffer.layout, buffer.dtype.bits).wavefronts
        access = self._accesses[op]
        axis = access.order[0]
        vector = min(access.width, contiguous_registers(layout, axis))
        instructions = register_count(layout) // vector
        if op.opdef.has(READS) and op.opdef.has(WRITES):
            return instructions * (1 + WRITE_FACTOR * self._pieces(access, layout, SECTOR_BYTES))
        factor = WRITE_FACTOR if op.opdef.has(WRITES) else 1
        return instructions * (1 + factor * self._pieces(access, layout, LINE_BYTES))

    def _access(self, op: Op) -> _Access:
        pointer = op.pointer
        axes = self._infos[pointer].axes
        shape, strides = pointer.type.shape, ()
        runs = [min(axis.contiguity, extent) for axis, extent in zip(axes, shape, strict=True)]
        if max(runs) == 1:
            likely = self._strides[not op.opdef.has(READS)]
            strides = tuple(likely.of(pointer, axis) for axis in range(len(shape)))
        order = tuple(sorted(
            reversed(range(len(axes))),
            key=lambda axis: (-runs[axis], shape[axis] == 1, strides[axis] or FAR) if strides
            else -runs[axis]))
        limit = max(1, VECTOR_BYTES // pointer.type.dtype.pointee.bytes)
        if op.opdef.has(READS) and op.opdef.has(WRITES):
            limit = atomic_width(op, self._options.features)
        width = min(limit, self._infos.access_width(pointer, None, order[0]))
        # a store's value, or an async_copy's buffer, is laid out as the pointers are
        value = op.buffer if op.opdef is async_copy else op.result if op.results else op.value
        return _Access(op, pointer, order, width, value, strides)

    def _group(self, access: _Access) -> _Group:
        """The group of accesses that should have one layout with this one."""
        return self._components.root(access.value), access.order

    def _vector(self, accesses: list[_Access]) -> int:
        """The width of vectors with which accesses that have one layout cost least together.

        Where a thread holds more neighbours than an instruction takes, its instructions are each
        spread over twice the lines: wide vectors of bytes are no gain beside float32.  Scans are
        the cheaper the more neighbours a thread holds.
        """
        widest = max(access.width for access in accesses)
        narrowest = min(access.width for access in accesses)
        per_thread = max(1, math.prod(accesses[0].shape) // self._options.threads)
        candidates = [1 << bit for bit in range(log2(narrowest), log2(widest) + 1)
                      if 1 << bit <= max(per_thread, narrowest)]
        if len(candidates) == 1:
            return widest
        scans = [op for op in self._along.get(self._components.root(accesses[0].value), ())
                 if placement_of(op).slots_in is not None]

        def cost(vector: int) -> int:
            layouts = [self._coalesced(access, vector) for access in accesses]
            return sum(map(self.slots, (access.op for access in accesses), layouts)) + sum(
                placement_of(op).cost(op, layouts[0]) for op in scans
                if placement_of(op).accepts(op, layouts[0]))

        return min(reversed(candidates), key=cost)

    def _axes(self, access: _Access) -> tuple[Axis, ...]:
        return self._infos[access.base].axes

    def _pieces(self, access: _Access, layout: LinearLayout, size_bytes: int) -> int:
        """Distinct lines or sectors of one instruction: lane bits that leave that of lane 0."""
        near = size_bytes // access.element_bytes
        same, first_bit = 0, 0
        for axis, along in reversed(list(enumerate(self._axes(access)))):
            likely = int(near / max(access.strides[axis], 1)) if access.strides else 1
            near_ones = max(min(along.contiguity, near), along.constancy, likely, 1)
            run = min(access.shape[axis], 1 << near_ones.bit_length() - 1)
            same |= ((1 << log2(run)) - 1) << first_bit
            first_bit += log2(access.shape[axis])
        return 1 << gf2.rank(tuple(column & ~same for column in layout[LANE]))


def _buffer_access(op: Op) -> _Access:
    """A read of a buffer, along its rows."""
    buffer = op.buffer.type
    runs = [contiguous_run(buffer.layout, axis) for axis in range(len(buffer.shape))]
    order = tuple(sorted(reversed(range(len(runs))), key=runs.__getitem__, reverse=True))
    width = min(runs[order[0]], VECTOR_BYTES // buffer.dtype.bytes)
    return _Access(op, op.buffer, order, width, op.result)


class _Components:
    """Tiles that elementwise ops combine, which should have one layout (union-find)."""

    def __init__(self):
        self._parent: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        """The representative of the component of a tile."""
        parent = self._parent.get(value, value)
        while parent is not value:
            value, parent = parent, self._parent.get(parent, parent)
        return value

    def add(self, op: Op) -> None:
        """Join the values that an op combines, or that its regions yield."""
        if op.opdef.has(ELEMENTWISE) or op.opdef.has(READS) and op.opdef.has(WRITES):
            self._join(op.operands + op.results)
        if not op.results:
            return
        entering = carried(op) if is_loop(op) else None
        for region in op.regions:
            sides = (entering.initial, entering.args) if entering else ()
            for values in zip(op.results, region.terminator.values, *sides, strict=True):
                self._join(values)

    def _join(self, values: tuple[Value, ...]) -> None:
        tiles = [value for value in values if value.type.shape]
        for tile in tiles[1:]:
            if tile.type.shape == tiles[0].type.shape:
                self._parent[self.root(tile)] = self.root(tiles[0])
