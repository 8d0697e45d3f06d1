"""A whole dot: TMA fills a ring, warpgroups multiply, TMA stores the result."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hopper import kernel, mapped, numbers, size_bytes

from blocknumba.gpu_layout.dots.wgmma import accumulator_layout
from blocknumba.gpu_layout.layouts.shared import swizzled, widest_swizzle
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.types import dtype_of


@dataclass(frozen=True)
class RingKernel:
    """out = a @ b of one program, over iterations along K.

    tile: (M, N, K) of an iteration.  dtype: of a and b.   b_minor: the contiguous axis of b.
    pending: dots in flight when an iteration ends; a stage is released when its dot is done.
    """

    tile: tuple[int, int, int]
    dtype: str = "float16"
    b_minor: int = 0
    num_warps: int = 4
    stages: int = 3
    pending: int = 1
    producers: int = 1
    registers: tuple[int, int] | None = None

    @property
    def boxes(self):
        """Of a, b and out: the innermost extent is that of a panel."""
        m, n, k = self.tile
        size = size_bytes((1,), self.dtype)
        inner = [widest_swizzle(k * size, 8) // size,
                 widest_swizzle((n, k)[self.b_minor == 0] * size, 8) // size]
        outer = min(256, (n, k)[self.b_minor])
        return (inner[0], min(256, m)), (inner[1], outer), (64, min(256, m))

    def layouts(self):
        """Of a, b and out in shared memory."""
        m, n, k = self.tile
        bits = dtype_of(self.dtype).bits
        return (swizzled((m, k), 1, bits, self.boxes[0][0] * bits // 8),
                swizzled((k, n), self.b_minor, bits, self.boxes[1][0] * bits // 8),
                swizzled((m, n), 1, 16, 128))


def multiplying(case):
    """The kernel of a case; its parameters: a, b, out (float16) and the iterations."""
    m, n, k = case.tile
    acc = accumulator_layout((m, n), case.num_warps)
    a_layout, b_layout, out_layout = case.layouts()
    stages, warps = case.stages, case.num_warps

    def body(w, a_map, b_map, out_map, iterations):
        a_ring = w.buffer(case.dtype, (m, k), a_layout, copies=stages)
        b_ring = w.buffer(case.dtype, (k, n), b_layout, copies=stages)
        full = w.mbarrier_allocate(copies=stages, arrivals=1)
        empty = w.mbarrier_allocate(copies=stages, arrivals=warps)
        one, zero, last = w.number(1), w.number(0), w.number(stages)

        def following(position, phase):
            wraps = w.eq(w.add(position, one), last)
            return (w.select(wraps, zero, w.add(position, one)),
                    w.select(wraps, w.xor(phase, one), phase))

        def fetch(index, position, phase):
            w.mbarrier_wait(w.slot(empty, position), w.xor(phase, one))
            barrier, start = w.slot(full, position), w.mul(index, w.number(k))
            size = size_bytes((m * k + k * n,), case.dtype)
            w.mbarrier_expect(barrier, size_bytes=size)
            w.tma_load(a_map, w.slot(a_ring, position), barrier, start, zero)
            starts = (start, zero) if case.b_minor == 0 else (zero, start)
            w.tma_load(b_map, w.slot(b_ring, position), barrier, *starts)
            return following(position, phase)

        def multiply(index, position, phase, before, total):
            w.mbarrier_wait(w.slot(full, position), phase)
            total = w.wgmma(w.slot(a_ring, position), w.slot(b_ring, position), total, num_warps=warps)
            total = w.wgmma_wait(total, pending=case.pending)
            if case.pending:
                w.mbarrier_arrive(w.slot(empty, before), w.ne(index, zero))
            else:
                w.mbarrier_arrive(w.slot(empty, position))
            return (*following(position, phase), position, total)

        def program():
            *_, total = w.loop_over(iterations, multiply, zero, zero, zero, w.zeros("float32", acc))
            if case.pending:
                total = w.wgmma_wait(total, pending=0)
            result = w.buffer("float16", (m, n), out_layout)
            w.shared_write(result, w.cast(total, dtype="float16"))
            w.fence_async()
            w.barrier(scope="program")
            w.tma_store(out_map, result, zero, zero)
            w.tma_store_wait(reads=True)

        w.roles(program, lambda: w.loop_over(iterations, fetch, zero, zero),
                producers=case.producers, registers=case.registers)

    axes = ((1, 0), (0, 1) if case.b_minor == 0 else (1, 0), (1, 0))
    swizzles = [box[0] * size_bytes((1,), case.dtype) for box in case.boxes[:2]] + [128]
    maps = [(dtype, mapped(name, box, swizzle, order)) for dtype, name, box, swizzle, order in zip(
        (case.dtype, case.dtype, "float16"), ("a", "b", "out"), case.boxes, swizzles,
        axes)]
    return kernel(warps, [*maps, ("int32", Parameter("value", "iterations"))], body)


def check(case, iterations=5):
    m, n, k = case.tile
    a = numbers((m, k * iterations), case.dtype, 1)
    b = numbers((k * iterations, n), case.dtype, 2)
    if case.b_minor == 0:
        b = np.asfortranarray(b)
    out = np.zeros((m, n), np.float16)

    multiplying(case).launch(a, b, out, iterations)

    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("pending", [0, 1])
@pytest.mark.parametrize("b_minor", [0, 1])
@pytest.mark.parametrize("stages", [2, 3])
def test_a_ring_feeds_a_warpgroup(stages, b_minor, pending):
    check(RingKernel((64, 64, 64), b_minor=b_minor, stages=stages, pending=pending))


@pytest.mark.parametrize("case", [
    RingKernel((128, 128, 64), num_warps=8), RingKernel((256, 64, 32), num_warps=8),
    RingKernel((64, 256, 64), "bfloat16", 1, num_warps=8), RingKernel((128, 64, 128), "float8_e4m3fn")],
    ids=str)
def test_a_ring_feeds_dots_of_other_shapes(case):
    check(case, iterations=4)


@pytest.mark.parametrize("registers", [None, (24, 240), (40, 232)], ids=str)
def test_a_warpgroup_of_producers_fetches_once(registers):
    check(RingKernel((128, 64, 64), num_warps=8, producers=4, registers=registers))


@pytest.mark.parametrize("num_warps, begin_with", [(4, 240), (8, 168)])
def test_registers_go_from_the_producers_to_the_program(num_warps, begin_with):
    case = RingKernel((64, 256, 64), num_warps=num_warps, producers=4, registers=(24, 240))
    built = multiplying(case)

    found = re.findall(r"USETMAXREG\.\w+\.CTAPOOL (?:UP\d, )?0x\w+", built.sass)

    assert found == ["USETMAXREG.DEALLOC.CTAPOOL 0x18", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xf0"]
    assert built.lowered.num_warps == num_warps + 4
    assert built.assembled.registers == begin_with  # of 65536 for all threads
    assert built.assembled.warnings == ()


def test_the_loop_of_a_dot_is_all_uniform():
    built = multiplying(RingKernel((128, 256, 64), num_warps=8))

    loop = built.loop_with("HGMMA")

    assert len(re.findall(r"\bHGMMA\.", loop)) == 4
    assert not re.search(r"\bR2UR\b|\bBSSY\b|\b(LD|ST)L\b", loop)
    assert loop.count("WARPGROUP.DEPBAR") == 1
    assert built.assembled.warnings == ()
    assert built.assembled.spill_bytes == built.assembled.stack_bytes == 0
