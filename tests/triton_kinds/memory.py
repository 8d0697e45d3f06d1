"""Kernels by how they reach memory: block pointers, descriptors, pointers as values, atomics."""

import numpy as np
from triton_kinds.case import case, floats, poison

import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def transposed(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(base=x, shape=(M, N), strides=(N, 1), offsets=(0, 0),
                               block_shape=(BM, BN), order=(1, 0))
    target = tl.make_block_ptr(out, [N, M], [M, 1], [0, 0], [BN, BM], [1, 0])
    for _ in range(0, tl.cdiv(N, BN)):
        tile = tl.load(source, boundary_check=[0, 1], padding_option="zero")
        tl.store(target, tl.trans(tile), boundary_check=(0, 1))
        source, target = tl.advance(source, (0, BN)), tl.advance(target, [BN, 0])


@case(transposed, (1,), BM=32, BN=16)
def block_pointers(generator):
    x = floats(generator, 20, 40)
    return [x, poison(40, 20), 20, 40], {1: x.T}


@triton.jit
def doubled_boxes(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    place = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(place, source.load(place) * 2)


@case(doubled_boxes, (3, 2), BM=8, BN=16)
def descriptors(generator):
    x = floats(generator, 20, 24)
    return [x, poison(20, 24), 20, 24], {1: 2 * x}


@triton.jit
def embedded(table, tokens, out, WIDTH: tl.constexpr, N: tl.constexpr):
    rows = tl.load(tokens + tl.arange(0, N))
    array = tl.make_tensor_descriptor(table, [50, WIDTH], [WIDTH, 1], [1, WIDTH])
    place = tl.arange(0, N)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out + place, array.gather(rows, 0))


@case(embedded, (1,), WIDTH=16, N=8)
def rows_of_a_table(generator):
    table, tokens = floats(generator, 50, 16), generator.integers(0, 50, 8).astype(np.int32)
    return [table, tokens, poison(8, 16)], {2: table[tokens]}


@triton.jit
def chosen_pointer(x, y, out, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = tl.where(i % 2 == 0, x + i, y + i)
    base = x if flag > 0 else y
    tl.store(out + i, tl.load(source) + tl.load(base + i))


@case(chosen_pointer, (1,), BLOCK=32)
def pointers_are_chosen(generator):
    x, y = floats(generator, 32), floats(generator, 32)
    return [x, y, poison(32), 3], {2: np.where(np.arange(32) % 2 == 0, x, y) + x}


@triton.jit
def counted(x, out, BINS: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out + value, 1, sem=None)
    tl.atomic_max(out + BINS, tl.max(value, 0), sem="relaxed", scope="gpu")


@case(counted, (4,), BINS=16, BLOCK=64)
def atomics(generator):
    x = generator.integers(0, 16, 256).astype(np.int32)
    expected = np.append(np.bincount(x, minlength=16), x.max())
    return [x, np.zeros(17, np.int32)], {1: expected}


@triton.jit
def locked(x, lock, total, BLOCK: tl.constexpr):
    value = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case(locked, (6,), BLOCK=32)
def a_lock(generator):
    x = generator.integers(-9, 9, 192).astype(np.int32)
    return [x, np.zeros(1, np.int32), np.zeros(1, np.int32)], {2: np.array([x.sum()])}


@triton.jit
def moved_rows(x, indices, out, stride, N: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.load(indices + tl.program_id(0))
    column = tl.arange(0, WIDTH)
    mask = (row >= 0) & (column < N)
    tl.store(out + row * stride + column, tl.load(x + tl.program_id(0) * stride + column, mask),
             mask=mask)


@case(moved_rows, (6,), N=20, WIDTH=32)
def rows_that_are_scattered(generator):
    x, order = floats(generator, 6, 20), generator.permutation(6).astype(np.int32)
    order[2] = -1
    expected = poison(6, 20)
    expected[order[order >= 0]] = x[order >= 0]
    return [x, order, poison(6, 20), 20], {2: expected}


@triton.jit
def paged(pages, table, out, PAGE: tl.constexpr, PAGES: tl.constexpr):
    i = tl.arange(0, PAGE)
    total = tl.zeros((PAGE,), tl.float32)
    for page in tl.static_range(PAGES):
        start = tl.load(table + tl.program_id(0) * PAGES + page).to(tl.int64)
        if start >= 0:
            total += tl.load(pages + start * PAGE + i, cache_modifier=".cg", eviction_policy=None)
    tl.store(out + tl.program_id(0) * PAGE + i, total)


@case(paged, (3,), error=1e-6, PAGE=32, PAGES=4)
def pages_of_a_table(generator):
    pages, table = floats(generator, 8, 32), generator.integers(-1, 8, (3, 4)).astype(np.int32)
    kept = np.where((table >= 0)[..., None], pages.astype(np.float64)[table], 0)
    return [pages, table, poison(3, 32)], {2: kept.sum(1)}


@triton.jit
def swizzled(out, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    row, column = tl.swizzle2d(pid // N, pid % N, M, N, GROUP)
    tl.store(out + row * N + column, pid)


@case(swizzled, (24,), M=4, N=6, GROUP=2)
def swizzled_programs(generator):
    expected = np.empty(24, np.int32)
    for pid in range(24):
        group, within = divmod(pid, 12)
        expected[(2 * group + within % 2) * 6 + within // 2] = pid
    return [poison(24, dtype=np.int32)], {0: expected}


@triton.jit
def bits(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    word = tl.load(x + i // 8)
    nibble = (word >> (i % 8) * 4) & 0xF
    tl.store(out + i, (nibble.to(tl.float32) - 8) * 0.5)


@case(bits, (1,), BLOCK=64)
def integers_of_four_bits(generator):
    x = generator.integers(0, 2**32, 8, np.uint32)
    nibbles = (x[:, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    return [x, poison(64)], {1: (nibbles.ravel().astype(np.float32) - 8) * 0.5}
