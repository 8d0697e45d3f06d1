"""Asynchronous ops: copies and tensor cores that run beside a program.

A *buffer* is a tile in shared memory (its type's layout has the input offset); shared_allocate with
`copies` makes a ring of them, and `slot` picks one.  A *barrier object* is a buffer of one int64,
an mbarrier; mbarrier_allocate makes a ring of those.  A wait for an mbarrier names the phase that
must end, 0 or 1; the first phase is 0.

Shared memory is accessed through two proxies: the generic one (threads) and the async one (TMA and
tensor cores).  A fence_async of a thread stands between its accesses and those of the async proxy:

    thread writes buffer   fence_async   barrier or arrival   TMA, wgmma read it
    thread reads buffer    fence_async   barrier or arrival   TMA overwrites it

Source: PTX ISA, "Async proxy", "mbarrier", "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import OFFSET, is_buffer
from blocknumba.tile_ir.ir.opdef import CONTROL, EFFECT, PLACED, PURE, READS, op
from blocknumba.tile_ir.ir.types import TileType, bool_, float32, int32, int64
from blocknumba.tile_ir.ir.verifier import REGIONS, RegionSpec

ONE_ELEMENT = LinearLayout(((OFFSET, 0),), (("dim0", 0),), ())
BARRIER = TileType(int64, (1,), ONE_ELEMENT)
WARPGROUP = 4  # warps


def _require_buffer(name: str, tile: TileType) -> None:
    require(is_buffer(tile), "{}: given {}, accepted a tile in shared memory", name, tile)


def _require_barrier(name: str, barrier: TileType) -> None:
    require(barrier == BARRIER, "{}: given {}, accepted a barrier object", name, barrier)


def _require_int32(name: str, *scalars: TileType) -> None:
    for scalar in scalars:
        require(scalar == TileType(int32), "{}: given {}, accepted a scalar int32", name, scalar)


# staging --------------------------------------------------------------------------------------
@op(PURE)
def stage(x, *, layout, as_tf32=False) -> TileType:
    """x in a shared memory buffer of its own.

    x: tile in registers, in any layout; layout: a shared LinearLayout of its shape.
    as_tf32: float32 elements are rounded to 11 significant bits, which only TMA does.
    stage_conversions replaces it by an allocation and a write.
    """
    require(not x.is_scalar and not is_buffer(x), "stage: given {}, accepted registers", x)
    result = TileType(x.dtype, x.shape, layout)
    _require_buffer("stage", result)
    return result


@op(EFFECT)
def shared_tile(buffer) -> TileType:
    """The contents of a buffer as a tile in registers, in any layout.

    stage_conversions replaces it by a shared_read.
    """
    _require_buffer("shared_tile", buffer)
    return TileType(buffer.dtype, buffer.shape)


@op(EFFECT)
def shared_slice(buffer, *, axis, start, extent) -> TileType:
    """A slice of a buffer as a tile in registers, in any layout: a k slice of a dot's operand.

    Along `axis` it has `extent` elements, a power of two, from `start`, a multiple of extent.
    How: like shared_read, or by ldmatrix where that applies.
    """
    _require_buffer("shared_slice", buffer)
    shape = buffer.shape
    require(start % extent == 0 and 0 <= start < shape[axis] and extent <= shape[axis],
            "shared_slice: given {} from {} on of {}", extent, start, buffer)
    return TileType(buffer.dtype, (*shape[:axis], extent, *shape[axis + 1:]))


@op(PURE)
def buffer_view(buffer, *, shape, layout) -> TileType:
    """The bytes of a buffer as another tile, transposed or reshaped.

    shape, layout: of the result, whose layout has the same offsets.
    """
    _require_buffer("buffer_view", buffer)
    result = TileType(buffer.dtype, shape, layout)
    require(is_buffer(result) and result.size == buffer.size,
            "buffer_view: given {} for {}", result, buffer)
    return result


@op(PURE)
def slot(ring, index) -> TileType:
    """One slot of a ring of buffers or barrier objects.

    ring: result of shared_allocate or mbarrier_allocate; index: scalar int32, 0 <= index < copies.
    """
    _require_buffer("slot", ring)
    _require_int32("slot", index)
    return ring


@op(PURE)
def buffer_shard(buffer, index, *, shape, layout) -> TileType:
    """One of the shards of equal size that follow each other in a buffer, as a tile.

    index: scalar int32 below their number; shape, layout: of the result.
    """
    _require_buffer("buffer_shard", buffer)
    _require_int32("buffer_shard", index)
    result = TileType(buffer.dtype, shape, layout)
    require(is_buffer(result) and buffer.size % result.size == 0,
            "buffer_shard: given {} of {}", result, buffer)
    return result


# barrier objects ------------------------------------------------------------------------------
@op(EFFECT)
def mbarrier_allocate(*, copies, arrivals, offset=None) -> TileType:
    """A ring of mbarriers, each phase of which ends after `arrivals` arrivals (and its bytes).

    offset: byte offset from the start of the program's shared memory; None until allocate_shared
    sets it.  The first thread initialises the mbarriers.  They can be used after the next
    warp_roles or mbarriers_ready.
    """
    require(copies > 0 and arrivals > 0, "mbarrier_allocate: given {} copies, {} arrivals", copies,
            arrivals)
    return BARRIER


@op(EFFECT)
def mbarriers_ready(*, blocks=1) -> None:
    """Make earlier mbarriers visible to all threads and to the async proxy.

    blocks: as of warp_roles.
    """


@op(EFFECT)
def mbarrier_wait(barrier, phase) -> None:
    """Wait until a phase ends.  Writes before its arrivals, and its bytes, are visible after it.

    barrier: a barrier object; phase: scalar int32, 0 or 1.  A wait for phase 1 of a new barrier
    returns at once.
    """
    _require_barrier("mbarrier_wait", barrier)
    _require_int32("mbarrier_wait", phase)


@op(EFFECT)
def mbarrier_arrive(barrier, condition=None, *, blocks=1) -> None:
    """Arrive once for each warp that executes this, after all of its lanes have reached it.

    condition: scalar bool; where it is false nothing happens.
    blocks: of the cluster; if more than one, the arrival is made in all of them, at the barrier
        with the same offset.
    """
    _require_barrier("mbarrier_arrive", barrier)
    require(condition is None or condition == TileType(bool_),
            "mbarrier_arrive: condition must be a scalar bool, got {}", condition)


@op(EFFECT)
def mbarrier_expect(barrier, *, size_bytes) -> None:
    """Arrive once, and keep the phase open until size_bytes more bytes have arrived.

    Executed by one warp, of which one lane arrives.
    """
    _require_barrier("mbarrier_expect", barrier)


# bulk copies ----------------------------------------------------------------------------------
@op(EFFECT)
def tma_load(map, buffer, barrier, *starts, blocks=1) -> None:
    """Begin to copy a box of an array into a buffer; the bytes count for the barrier's phase.

    map: pointer, a tensor map parameter; buffer: of the tile's shape (without axes of extent 1 that
    only the array has), in a layout of shared.swizzled; starts: scalar int32, the box's first index
    along every axis of the map, innermost first.  Elements outside of the array are zeros.
    Executed by one warp, of which one lane issues it.
    The map's box may be smaller than the tile, which then takes several copies, in the order of the
    buffer's panels.
    blocks: of the cluster; if more than one, the box is multicast to the same offset in all of
        them, and the bytes count for the barrier at the same offset in each.
    """
    _require_buffer("tma_load", buffer)
    _require_barrier("tma_load", barrier)
    _require_int32("tma_load", *starts)


@op(EFFECT)
def tma_store(map, buffer, *starts) -> None:
    """Begin to copy a buffer to a box of an array; elements outside of the array are dropped.

    Operands are like those of tma_load.  One lane of the first warp of the program issues it.  The
    buffer's contents must be visible to the async proxy: fence_async, then a barrier.
    """
    _require_buffer("tma_store", buffer)
    _require_int32("tma_store", *starts)


@op(EFFECT)
def tma_store_wait(*, reads=True) -> None:
    """Wait until every tma_store has read its buffer (reads), or until all is written."""


@op(EFFECT)
def fence_async() -> None:
    """Order this thread's earlier reads and writes of shared memory before the async proxy's.

    It takes effect through the barrier or the arrival that follows it.
    """


# copies by threads ----------------------------------------------------------------------------
@op(EFFECT | READS)
def async_copy(pointer, buffer, mask=None) -> None:
    """Begin to copy the elements at pointers into a buffer; where mask is false, zeros.

    pointer: tile of pointers; buffer: of its shape; mask: bool of its shape.  Accesses narrower
    than 4 bytes are done through registers.   Source: PTX ISA, "cp.async".
    """
    require(pointer.is_pointer and pointer.shape == buffer.shape
            and buffer.dtype == pointer.dtype.pointee,
            "async_copy: given {} and {}, accepted pointers to what the buffer holds", pointer,
            buffer)
    _require_buffer("async_copy", buffer)


@op(EFFECT)
def async_copy_commit() -> None:
    """Commit the copies that this thread began since the last commit, as one group."""


@op(EFFECT)
def async_copy_wait(*, pending) -> None:
    """Wait until at most `pending` groups of this thread, the latest ones, are incomplete."""


# tensor cores ---------------------------------------------------------------------------------
@op(EFFECT)
def wgmma(a, b, acc, *, num_warps) -> TileType:
    """Begin acc + a @ b on the tensor cores; the result may only be touched after wgmma_wait.

    a: (M, K), a buffer, or a tile in registers in wgmma.operand_layout; b: (K, N), a buffer; acc:
    (M, N), in wgmma.accumulator_layout(shape, num_warps).  Buffers are in layouts of
    shared.swizzled, and their contents are visible to the async proxy.  Its instructions are one
    group, which is committed here.
    """
    _require_buffer("wgmma", b)
    return acc


@op(EFFECT)
def wgmma_wait(value, *, pending) -> TileType:
    """Wait until at most `pending` wgmma, the latest ones, are under way; return the value.

    value: the result of a wgmma, which may be used from here on.
    """
    return value


@op(EFFECT)
def pin(value, scratch) -> None:
    """Keep the ops after this one from moving before the computation of a value.

    value: float32 tile in registers; scratch: a buffer of one int32.  The assembler moves a wait
    for tensor cores up, past arithmetic, unless an op that depends on the arithmetic precedes it:
    a store to scratch, under a condition on the value that is never true.
    """
    require(value.dtype == float32 and scratch.dtype == int32,
            "pin: given {} and {}, accepted float32 and a buffer of int32", value, scratch)


@op(PLACED)
def uniform(value) -> TileType:
    """A scalar int32, computed here and not later, that the assembler knows to be warp-uniform.

    The assembler does not know this of results of integer divisions; otherwise it computes them
    where they are used first, after long waits.
    """
    _require_int32("uniform", value)
    return value


# blocks of a cluster --------------------------------------------------------------------------
@op(EFFECT)
def blocks_done() -> None:
    """Wait until all blocks of the cluster have reached this op.

    After it no other block accesses this block's barriers and buffers, so the block may end; it
    must not end while others arrive at its barriers.  Warps that have ended do not take part.
    """


# roles ----------------------------------------------------------------------------------------
@op(PURE)
def is_first_warp() -> TileType:
    """Scalar bool, the same for all lanes of a warp: whether it is the program's first warp."""
    return TileType(bool_)


@op(CONTROL)
def warp_roles(*, producers, registers=None, blocks=1) -> tuple[TileType, ...]:
    """The program's warps run regions[0]; the first of `producers` more warps runs regions[1].

    Regions have no arguments and yield nothing.  A barrier of the program in regions[0] is one of
    its warps only; regions[1] has no tiles in registers and no barriers of the program.
    registers: of a thread of a producer, which releases the others, and of a thread of the program,
    which takes them: multiples of 8 from 24 to 256.  Producers and program are whole warpgroups.
    blocks: of the cluster that access each other's barriers and buffers in the regions: none begins
        before the barriers of all are ready.
    Source: PTX ISA, "setmaxnreg".
    """
    if registers is not None:
        kept, taken = registers
        require(producers % WARPGROUP == 0
                and all(count % 8 == 0 and 24 <= count <= 256 for count in registers),
                "warp_roles: given {} and {} registers for {} producers", kept, taken, producers)
    return ()


REGIONS.enter(warp_roles, lambda _op: [RegionSpec((), "yield", ())] * 2)
