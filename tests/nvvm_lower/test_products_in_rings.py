"""A whole product: tiles through a ring by the copy engine, warpgroups, results stored by it."""

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
class Product:
    """out = a @ b of one program, over rounds of K.

    tile: (M, N, K) of a round.  dtype: of a and b.   b_minor: the contiguous axis of b.
    pending: products under way when a round ends; a stage is released when its product is done.
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


def multiplying(product):
    """The kernel of a product; its parameters: a, b, out (float16) and the rounds."""
    m, n, k = product.tile
    acc = accumulator_layout((m, n), product.num_warps)
    a_layout, b_layout, out_layout = product.layouts()
    stages, warps = product.stages, product.num_warps

    def body(w, a_map, b_map, out_map, rounds):
        a_ring = w.buffer(product.dtype, (m, k), a_layout, copies=stages)
        b_ring = w.buffer(product.dtype, (k, n), b_layout, copies=stages)
        full = w.mbarrier_allocate(copies=stages, arrivals=1)
        empty = w.mbarrier_allocate(copies=stages, arrivals=warps)
        one, zero, last = w.number(1), w.number(0), w.number(stages)

        def following(place, phase):
            wraps = w.eq(w.add(place, one), last)
            return (w.select(wraps, zero, w.add(place, one)),
                    w.select(wraps, w.xor(phase, one), phase))

        def fetch(index, place, phase):
            w.mbarrier_wait(w.slot(empty, place), w.xor(phase, one))
            barrier, start = w.slot(full, place), w.mul(index, w.number(k))
            size = size_bytes((m * k + k * n,), product.dtype)
            w.mbarrier_expect(barrier, size_bytes=size)
            w.tma_load(a_map, w.slot(a_ring, place), barrier, start, zero)
            starts = (start, zero) if product.b_minor == 0 else (zero, start)
            w.tma_load(b_map, w.slot(b_ring, place), barrier, *starts)
            return following(place, phase)

        def multiply(index, place, phase, before, total):
            w.mbarrier_wait(w.slot(full, place), phase)
            total = w.wgmma(w.slot(a_ring, place), w.slot(b_ring, place), total, num_warps=warps)
            total = w.wgmma_wait(total, pending=product.pending)
            if product.pending:
                w.mbarrier_arrive(w.slot(empty, before), w.ne(index, zero))
            else:
                w.mbarrier_arrive(w.slot(empty, place))
            return (*following(place, phase), place, total)

        def program():
            *_, total = w.loop_over(rounds, multiply, zero, zero, zero, w.zeros("float32", acc))
            if product.pending:
                total = w.wgmma_wait(total, pending=0)
            result = w.buffer("float16", (m, n), out_layout)
            w.shared_write(result, w.cast(total, dtype="float16"))
            w.fence_async()
            w.barrier(scope="program")
            w.tma_store(out_map, result, zero, zero)
            w.tma_store_wait(reads=True)

        w.roles(program, lambda: w.loop_over(rounds, fetch, zero, zero),
                producers=product.producers, registers=product.registers)

    axes = ((1, 0), (0, 1) if product.b_minor == 0 else (1, 0), (1, 0))
    swizzles = [box[0] * size_bytes((1,), product.dtype) for box in product.boxes[:2]] + [128]
    maps = [(dtype, mapped(name, box, swizzle, order)) for dtype, name, box, swizzle, order in zip(
        (product.dtype, product.dtype, "float16"), ("a", "b", "out"), product.boxes, swizzles,
        axes)]
    return kernel(warps, [*maps, ("int32", Parameter("value", "rounds"))], body)


def check(product, rounds=5):
    m, n, k = product.tile
    a = numbers((m, k * rounds), product.dtype, 1)
    b = numbers((k * rounds, n), product.dtype, 2)
    if product.b_minor == 0:
        b = np.asfortranarray(b)
    out = np.zeros((m, n), np.float16)

    multiplying(product).launch(a, b, out, rounds)

    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("pending", [0, 1])
@pytest.mark.parametrize("b_minor", [0, 1])
@pytest.mark.parametrize("stages", [2, 3])
def test_a_ring_feeds_a_warpgroup(stages, b_minor, pending):
    check(Product((64, 64, 64), b_minor=b_minor, stages=stages, pending=pending))


@pytest.mark.parametrize("product", [
    Product((128, 128, 64), num_warps=8), Product((256, 64, 32), num_warps=8),
    Product((64, 256, 64), "bfloat16", 1, num_warps=8), Product((128, 64, 128), "float8_e4m3fn")],
    ids=str)
def test_a_ring_feeds_products_of_other_shapes(product):
    check(product, rounds=4)


@pytest.mark.parametrize("registers", [None, (24, 240), (40, 232)], ids=str)
def test_a_warpgroup_of_producers_fetches_once(registers):
    check(Product((128, 64, 64), num_warps=8, producers=4, registers=registers))


@pytest.mark.parametrize("num_warps, begin_with", [(4, 240), (8, 168)])
def test_registers_go_from_the_producers_to_the_program(num_warps, begin_with):
    product = Product((64, 256, 64), num_warps=num_warps, producers=4, registers=(24, 240))
    built = multiplying(product)

    found = re.findall(r"USETMAXREG\.\w+\.CTAPOOL (?:UP\d, )?0x\w+", built.sass)

    assert found == ["USETMAXREG.DEALLOC.CTAPOOL 0x18", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xf0"]
    assert built.lowered.num_warps == num_warps + 4
    assert built.assembled.registers == begin_with  # of 65536 for all threads
    assert built.assembled.warnings == ()


def test_the_loop_of_a_product_is_all_uniform():
    built = multiplying(Product((128, 256, 64), num_warps=8))

    loop = built.loop_with("HGMMA")

    assert len(re.findall(r"\bHGMMA\.", loop)) == 4
    assert not re.search(r"\bR2UR\b|\bBSSY\b|\b(LD|ST)L\b", loop)
    assert loop.count("WARPGROUP.DEPBAR") == 1
    assert built.assembled.warnings == ()
    assert built.assembled.spill_bytes == built.assembled.stack_bytes == 0
