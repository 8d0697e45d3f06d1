"""Small kernels in Triton's spelling, one for each cause of slow code.  `triton` is what is loaded.

`micro.py` loads this file twice: with Triton, and with `blocknumba.triton` under Triton's name.
"""

import triton
import triton.language as tl


@triton.jit
def scatter_add(x, rows, out, N: tl.constexpr):
    """Sums of 16-bit rows in float32, by atomics: the gradient of an embedding."""
    row = tl.load(rows + tl.program_id(0))
    c = tl.arange(0, N)
    tl.atomic_add(out + row * N + c, tl.load(x + tl.program_id(0) * N + c).to(tl.float32),
                  sem="relaxed")


@triton.jit
def add_halves(x, out, N: tl.constexpr):
    """Sums of parts in float16, by atomics: a product split along its depth."""
    c = tl.arange(0, N)
    tl.atomic_add(out + tl.program_id(0) % 512 * N + c, tl.load(x + tl.program_id(0) * N + c),
                  sem="relaxed")


@triton.jit
def greatest(x, out, N: tl.constexpr):
    """The greatest of rows, by atomics on float32."""
    c = tl.arange(0, N)
    tl.atomic_max(out + tl.program_id(0) % 512 * N + c, tl.load(x + tl.program_id(0) * N + c),
                  sem="relaxed")


@triton.jit
def divide_row(x, out, n, N: tl.constexpr):
    """Rows divided by one number, twice."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + c)
    tl.store(out + c, v / tl.sum(v, 0) / n)


@triton.jit
def gate(a, b, out, N: tl.constexpr):
    """silu(a) * b: a division by each number, a product in bfloat16."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(a + c).to(tl.float32)
    tl.store(out + c, (v / (1 + tl.exp(-v))).to(tl.bfloat16) * tl.load(b + c))


@triton.jit
def adam(p, g, m, v, rate, N: tl.constexpr):
    """A step of an optimiser: a square root and a quotient for each number."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    gradient = tl.load(g + c)
    first = 0.9 * tl.load(m + c) + 0.1 * gradient
    second = 0.999 * tl.load(v + c) + 0.001 * gradient * gradient
    tl.store(m + c, first)
    tl.store(v + c, second)
    tl.store(p + c, tl.load(p + c) - rate * first / (tl.sqrt(second) + 1e-8))


@triton.jit
def pixels(x, out, W, H, CS, C: tl.constexpr, P: tl.constexpr):
    """Channels of pixels: nothing that is contiguous is known."""
    p, c = tl.program_id(0) * P + tl.arange(0, P), tl.arange(0, C)
    at = (p // W * W + p % W)[:, None] + (c * CS)[None, :]
    tl.store(out + p[:, None] * C + c[None, :], tl.load(x + at, mask=(p < W * H)[:, None]))


@triton.jit
def locked_add(x, out, locks, N: tl.constexpr):
    """Rows added under a lock."""
    c, lock = tl.arange(0, N), tl.program_id(0) % 64
    v = tl.load(x + tl.program_id(0) * N + c)
    while tl.atomic_cas(locks + lock, 0, 1) == 1:
        pass
    tl.store(out + lock * N + c, tl.load(out + lock * N + c) + v)
    tl.debug_barrier()  # Triton's release orders the stores of one thread alone
    tl.atomic_xchg(locks + lock, 0)


@triton.jit
def tickets(counter, out, N: tl.constexpr):
    """A scalar atomic whose result every thread needs."""
    ticket = tl.atomic_add(counter, 1) % 65536
    c = tl.arange(0, N)
    tl.store(out + ticket * N + c, c)


@triton.jit
def int_times_half(q, s, out, N: tl.constexpr):
    """Small ints by float16 numbers."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + c, (((tl.load(q + c) >> 4) & 15) * tl.load(s + c)).to(tl.float16))


@triton.jit
def row_sums(x, y, out, rows, G, N: tl.constexpr):
    """A row that is carried through a loop: the gradient of a norm's weights."""
    c, acc = tl.arange(0, N), tl.zeros((N,), tl.float32)
    for r in range(tl.program_id(0), rows, G):
        v = tl.load(x + r * N + c).to(tl.float32)
        w = tl.load(y + r * N + c).to(tl.float32)
        acc += v * w - v * tl.sum(v * w, 0)
    tl.store(out + tl.program_id(0) * N + c, acc)


@triton.jit
def bfloat_scale(x, y, out, N: tl.constexpr):
    """A product in float32 rounded to bfloat16: conversions."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + c, (tl.load(x + c).to(tl.float32) * tl.load(y + c)).to(tl.bfloat16))
