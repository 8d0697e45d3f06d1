"""Inline PTX that makes tensor maps on the device.

A map is put together in shared memory, field by field, and copied to global memory, where TMA
reads it.  Blocks take slots there: the slots of a multiprocessor are bits of a word, set while a
block has the slot.
"""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import POINTER, Assembly
from blocknumba.nvvm_lower.ptx.memory import SHARED_ADDRESS
from blocknumba.nvvm_lower.ptx.warp import ALL_LANES
from blocknumba.nvvm_lower.target import Capability

# Words of slots.  Multiprocessors with numbers that are further apart than that share one.
WORDS, WORD_BYTES = 256, 4
_WAIT_NS = 100  # where all slots are taken, or another block was faster
SIZE_BYTES = 128  # PTX ISA, "Tensor-map"
# PTX ISA, "tensormap.replace", values of .elemtype and .swizzle_mode; tf32 is written with it too
ELEMENT_TYPES = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7,
                 "f64": 9, "bf16": 10, "tf32": 11}
_SWIZZLE_MODES = {0: 0, 32: 1, 64: 2, 128: 3}
_IN_GLOBAL = POINTER["global"]


def _assembly(name: str, section: str, text: str, results: tuple[str, ...], *operands: str,
              needs: Capability | None = None) -> Assembly:
    return Assembly(name, text, results, operands, section, needs=needs, has_effect=True,
                    touches_memory=True, converges=True)


@cache
def take_slot(slots: int, num_warps: int) -> Assembly:
    """A whole warp takes one of the slots of its multiprocessor; waits while there is none.

    It tries one first that few others try: by where its block of num_warps warps is there.
    Result: the number of the slot, below WORDS * slots.   Operand: the words, which are 0 at first.
    """
    return _assembly(f"tensor_map.take.{slots}.{num_warps}", "atom", (
        "{ .reg .pred p; .reg .b32 lane, word, busy, bit, mask; .reg .b64 at; "
        f"mov.u32 word, %smid; and.b32 word, word, {WORDS - 1}; "
        f"mad.wide.u32 at, word, {WORD_BYTES}, $1; mov.u32 lane, %laneid; mov.u32 bit, %warpid; "
        f"shr.u32 bit, bit, {num_warps.bit_length() - 1}; min.u32 bit, bit, {slots - 1}; "
        "setp.ne.u32 p, lane, 0; @p bra taken; bra try; "
        f"again: nanosleep.u32 {_WAIT_NS}; "
        "ld.relaxed.gpu.global.b32 busy, [at]; not.b32 bit, busy; brev.b32 bit, bit; "
        f"clz.b32 bit, bit; setp.ge.u32 p, bit, {slots}; @p bra again; "
        "try: mov.u32 mask, 1; shl.b32 mask, mask, bit; "
        "atom.acquire.gpu.global.or.b32 busy, [at], mask; and.b32 busy, busy, mask; "
        "setp.ne.u32 p, busy, 0; @p bra again; "
        f"taken: bar.warp.sync {ALL_LANES}; shfl.sync.idx.b32 bit, bit, 0, 31, {ALL_LANES}; "
        f"mad.lo.u32 $0, word, {slots}, bit; }}"), ("i32",), _IN_GLOBAL)


@cache
def give_slot(slots: int) -> Assembly:
    """The thread where the predicate holds gives a slot back.

    It orders nothing: what the slot holds was fenced when it was written, and read since.
    Operands: the words, number of the slot, predicate.
    """
    return _assembly(f"tensor_map.give.{slots}", "red", (
        "{ .reg .pred p; .reg .b32 word, bit, mask; .reg .b64 at; setp.ne.b32 p, $2, 0; "
        f"div.u32 word, $1, {slots}; rem.u32 bit, $1, {slots}; "
        f"mad.wide.u32 at, word, {WORD_BYTES}, $0; "
        "mov.u32 mask, 1; shl.b32 mask, mask, bit; not.b32 mask, mask; "
        "@p red.relaxed.gpu.global.and.b32 [at], mask; }"), (), _IN_GLOBAL, "i32", "i32")


@cache
def write_fields(element_type: str, box: tuple[int, ...], swizzle_bytes: int) -> Assembly:
    """A whole warp writes a map to shared memory, at a multiple of SIZE_BYTES.

    element_type: of ELEMENT_TYPES.   box: innermost first.
    Operands: shared address, generic address of the array, extents, strides in bytes of all axes
    but the first.
    """
    rank = len(box)
    first_stride = 2 + rank
    replace = "@p tensormap.replace.tile.{field}.shared::cta.b1024.{type} [$0], {value};"
    fields = [("global_address", "b64", "$1"), ("rank", "b32", f"{rank - 1}"),
              *((f"box_dim.{axis}", "b32", str(extent)) for axis, extent in enumerate(box)),
              *((f"global_dim.{axis}", "b32", f"${2 + axis}") for axis in range(rank)),
              *((f"global_stride.{axis}", "b64", f"${first_stride + axis}")
                for axis in range(rank - 1)),
              *((f"element_stride.{axis}", "b32", "1") for axis in range(rank)),
              ("elemtype", "b32", str(ELEMENT_TYPES[element_type])),
              ("interleave_layout", "b32", "0"),
              ("swizzle_mode", "b32", str(_SWIZZLE_MODES[swizzle_bytes])),
              ("fill_mode", "b32", "0")]
    text = ""
    for name, type_, value in fields:
        field, _, axis = name.partition(".")
        text += " " + replace.format(field=field, type=type_,
                                     value=f"{axis}, {value}" if axis else value)
    name = f"tensor_map.write.{element_type}.{'x'.join(map(str, box))}.{swizzle_bytes}"
    return _assembly(name, "tensormap.replace", (
        "{ .reg .pred p; .reg .b32 lane, at; mov.u32 lane, %laneid; mad.lo.u32 at, lane, 4, $0; "
        f"st.shared.b32 [at], 0; bar.warp.sync {ALL_LANES}; setp.eq.u32 p, lane, 0;{text} "
        f"bar.warp.sync {ALL_LANES}; }}"), (), SHARED_ADDRESS, "i64", *["i32"] * rank,
        *["i64"] * (rank - 1), needs=Capability.TENSOR_MAP_REPLACE)


# A whole warp copies a map from shared to global memory, where its TMA instructions may use it.
# Operands: address in global memory, shared address; both multiples of SIZE_BYTES.
PUBLISH = _assembly("tensor_map.publish", "tensormap.cp_fenceproxy", (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    f"[$0], [$1], {SIZE_BYTES}; fence.proxy.tensormap::generic.acquire.gpu [$0], {SIZE_BYTES};"),
    (), _IN_GLOBAL, SHARED_ADDRESS, needs=Capability.TMA)
# After a slot was written: whoever takes it next sees that.
FENCE_DEVICE = Assembly("fence.device", "fence.acq_rel.gpu;", (), (), "membar, fence",
                        has_effect=True, touches_memory=True)
# Before a barrier: TMA sees what this thread has written, wherever it lies.
FENCE_ALL = Assembly("fence.async.all", "fence.proxy.async;", (), (), "membar, fence",
                     needs=Capability.TMA, has_effect=True, touches_memory=True)


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    return [take_slot(16, 4), give_slot(16), write_fields("f16", (64, 64), 128),
            write_fields("f32", (32, 16, 1, 1, 1), 0), write_fields("u8", (16,), 32), PUBLISH,
            FENCE_DEVICE, FENCE_ALL]
