"""The ops that let copies and tensor cores run while a program goes on.

A *buffer* is a tile in shared memory (its type's layout has the input offset); shared_allocate with
`copies` makes a ring of them, and `slot` picks one.  A *barrier object* is a buffer of one int64,
an mbarrier; mbarrier_allocate makes a ring of those.  Whoever waits for an mbarrier says which of
its phases, 0 or 1, it waits for the end of; the first phase is 0.

Two kinds of access reach shared memory: threads (the generic proxy) and the copy engine and
tensor cores (the async proxy).  What threads wrote, the async proxy sees only after fence_async,
and what they read it may overwrite only after that.
Source: PTX ISA, "Async proxy", "mbarrier", "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import OFFSET, is_buffer
from blocknumba.tile_ir.ir.opdef import CONTROL, EFFECT, PURE, READS, op
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
    as_tf32: float32 elements are rounded to 11 significant bits, which only the copy engine does.
    stage_conversions makes it an allocation and a write.
    """
    require(not x.is_scalar and not is_buffer(x), "stage: given {}, accepted registers", x)
    result = TileType(x.dtype, x.shape, layout)
    _require_buffer("stage", result)
    return result


@op(EFFECT)
def shared_tile(buffer) -> TileType:
    """What is in a buffer, as a tile in registers, in whichever layout is wanted.

    stage_conversions makes it a shared_read.
    """
    _require_buffer("shared_tile", buffer)
    return TileType(buffer.dtype, buffer.shape)


@op(EFFECT)
def shared_slice(buffer, *, axis, start, extent) -> TileType:
    """A part of what is in a buffer, as a tile in registers, in whichever layout is wanted.

    Along an axis it has extent elements, a power of two, from start on, a multiple of extent.
    How: as of shared_read, or by ldmatrix, if it can.
    """
    _require_buffer("shared_slice", buffer)
    shape = buffer.shape
    require(start % extent == 0 and 0 <= start < shape[axis] and extent <= shape[axis],
            "shared_slice: given {} from {} on of {}", extent, start, buffer)
    return TileType(buffer.dtype, (*shape[:axis], extent, *shape[axis + 1:]))


@op(PURE)
def buffer_view(buffer, *, shape, layout) -> TileType:
    """The bytes of a buffer as another tile: transposed or reshaped.

    shape, layout: of the result, whose layout has the same offsets.
    """
    _require_buffer("buffer_view", buffer)
    result = TileType(buffer.dtype, shape, layout)
    require(is_buffer(result) and result.size == buffer.size,
            "buffer_view: given {} for {}", result, buffer)
    return result


@op(PURE)
def slot(ring, index) -> TileType:
    """One copy of a ring of buffers or barrier objects.

    ring: result of shared_allocate or mbarrier_allocate; index: scalar int32, 0 <= index < copies.
    """
    _require_buffer("slot", ring)
    _require_int32("slot", index)
    return ring


@op(PURE)
def buffer_shard(buffer, index, *, shape, layout) -> TileType:
    """One of the pieces of equal size that follow each other in a buffer, as a tile.

    index: scalar int32, below as many as there are; shape, layout: of the result.
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
    """A ring of mbarriers whose phases end after `arrivals` arrivals each (and their bytes).

    offset: byte offset from the start of the program's shared memory; None until allocate_shared
    gives it.  The first thread initialises them; they can be used from the next warp_roles or
    mbarriers_ready on.
    """
    require(copies > 0 and arrivals > 0, "mbarrier_allocate: given {} copies, {} arrivals", copies,
            arrivals)
    return BARRIER


@op(EFFECT)
def mbarriers_ready(*, blocks=1) -> None:
    """All threads, and the async proxy, see the mbarriers that were allocated before.

    blocks: as of warp_roles.
    """


@op(EFFECT)
def mbarrier_wait(barrier, phase) -> None:
    """Wait until a phase is over; what its arrivals, and its bytes, brought is seen after.

    barrier: a barrier object; phase: scalar int32, 0 or 1.  For a phase that never began (parity 1
    of a new barrier) it does not wait.
    """
    _require_barrier("mbarrier_wait", barrier)
    _require_int32("mbarrier_wait", phase)


@op(EFFECT)
def mbarrier_arrive(barrier, condition=None, *, blocks=1) -> None:
    """One arrival for each warp that executes this, once all of its lanes have come here.

    condition: scalar bool; where it is false nothing happens.
    blocks: of the program; where they are more than one, the arrival is made in all of them, at
        the barrier in the same place.
    """
    _require_barrier("mbarrier_arrive", barrier)
    require(condition is None or condition == TileType(bool_),
            "mbarrier_arrive: condition must be a scalar bool, got {}", condition)


@op(EFFECT)
def mbarrier_expect(barrier, *, size_bytes) -> None:
    """One arrival, and the phase does not end before size_bytes more bytes have come.

    Executed by one warp, of which one lane arrives.
    """
    _require_barrier("mbarrier_expect", barrier)


# bulk copies ----------------------------------------------------------------------------------
@op(EFFECT)
def tma_load(map, buffer, barrier, *starts, blocks=1) -> None:
    """Begin to copy a box of an array into a buffer; the bytes count for the barrier's phase.

    map: pointer, a tensor map parameter; buffer: of the tile's shape (axes of extent 1 that the
    array has and the tile has not are left out), in the layout swizzle.swizzled gave; starts:
    scalar int32, the box's first index along every axis of the map, innermost first.  Elements
    outside of the array are zeros.  Executed by one warp, of which one lane does it.  The map's
    box may be smaller than the tile, which then takes several copies, in the order of the buffer's
    panels.
    blocks: of the program; where they are more than one, the box is copied to the same place in all
        of them, and the bytes count for the barrier in the same place of each.
    """
    _require_buffer("tma_load", buffer)
    _require_barrier("tma_load", barrier)
    _require_int32("tma_load", *starts)


@op(EFFECT)
def tma_store(map, buffer, *starts) -> None:
    """Begin to copy a buffer to a box of an array; what is outside of the array is dropped.

    Operands as of tma_load.  The first warp of the program does it, one lane of it.  Whoever
    executes it has made the buffer's contents visible: fence_async, then a barrier.
    """
    _require_buffer("tma_store", buffer)
    _require_int32("tma_store", *starts)


@op(EFFECT)
def tma_store_wait(*, reads=True) -> None:
    """Wait until every tma_store has read its buffer (reads), or until all is written."""


@op(EFFECT)
def fence_async() -> None:
    """What this thread did to shared memory before, reads too, is done for the async proxy once it
    is told so by a barrier or an arrival."""


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
    """The copies that this thread began since the last commit are one group."""


@op(EFFECT)
def async_copy_wait(*, pending) -> None:
    """Wait until at most `pending` of the latest groups of this thread are not there yet."""


# tensor cores ---------------------------------------------------------------------------------
@op(EFFECT)
def wgmma(a, b, acc, *, num_warps) -> TileType:
    """Begin acc + a @ b on the tensor cores; the result may only be touched after wgmma_wait.

    a: (M, K), a buffer, or a tile in registers in wgmma.operand_layout; b: (K, N), a buffer; acc:
    (M, N), in wgmma.accumulator_layout(shape, num_warps).  Buffers are in layouts that
    swizzle.swizzled gave, and what is in them is visible to the async proxy.  All of one group,
    which is committed here.
    """
    _require_buffer("wgmma", b)
    return acc


@op(EFFECT)
def wgmma_wait(value, *, pending) -> TileType:
    """Wait until at most `pending` of the latest wgmma are under way; the value, now as it is.

    value: the result of a wgmma that is touched after this.
    """
    return value


@op(EFFECT)
def pin(value, scratch) -> None:
    """What comes after this is not moved before the value is there.

    value: float32 tile in registers; scratch: a buffer of one int32.  The assembler moves a wait
    for tensor cores up, past arithmetic, unless something that depends on the arithmetic stands
    before it: a store to scratch, of a value that arithmetic does not give.
    """
    require(value.dtype == float32 and scratch.dtype == int32,
            "pin: given {} and {}, accepted float32 and a buffer of int32", value, scratch)


@op(EFFECT)
def uniform(value) -> TileType:
    """A scalar int32, computed here and not later, that the assembler knows to be one for a warp.

    What follows from integer divisions is not known to be, and is otherwise computed where it is
    used first, after long waits.
    """
    _require_int32("uniform", value)
    return value


# blocks of a program --------------------------------------------------------------------------
@op(EFFECT)
def blocks_done() -> None:
    """No block that a program is spread over goes on before all have come here.

    After this no other one reaches this block's barriers and buffers any more: it may end, which
    none may while others arrive at its barriers.  Warps that ended need not come.
    """


# roles ----------------------------------------------------------------------------------------
@op(PURE)
def is_first_warp() -> TileType:
    """Scalar bool, the same for all lanes of a warp: whether it is the first of the program."""
    return TileType(bool_)


@op(CONTROL)
def warp_roles(*, producers, registers=None, blocks=1) -> tuple[TileType, ...]:
    """The program's warps run regions[0]; the first of `producers` further ones runs regions[1].

    Regions have no arguments and yield nothing.  In regions[0] a barrier of the program is one of
    its warps; regions[1] has no tiles in registers and no barriers of the program.
    registers: of a thread of a producer, and of the program, which takes those that the producers
    give away: multiples of 8 from 24 to 256.  Producers and program are whole warpgroups then.
    blocks: of the program that reach each other's barriers and buffers in the regions: none begins
        before the barriers of all are ready.
    Source: PTX ISA, "setmaxnreg".
    """
    if registers is not None:
        given, taken = registers
        require(producers % WARPGROUP == 0
                and all(count % 8 == 0 and 24 <= count <= 256 for count in registers),
                "warp_roles: given {} and {} registers for {} producers", given, taken, producers)
    return ()


REGIONS["warp_roles"] = lambda _op: [RegionSpec((), "yield", ())] * 2
