"""More products in Triton's spelling: experts, sampled products, linear attention by chunks."""

import triton
import triton.language as tl


@triton.jit
def experts(a_ptr, b_ptr, c_ptr, weights_ptr, ids_ptr, expert_ptr, count, n, k, TOP: tl.constexpr,
            M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Rows that ids choose times the matrix of their block's expert, scattered back.

    b is given by columns.  A row of a has TOP ids; ids from count on are none.
    """
    tiles_n = tl.cdiv(n, N)
    block = tl.program_id(0) // tiles_n
    ids = tl.load(ids_ptr + block * M + tl.arange(0, M))
    real = ids < count
    columns = (tl.program_id(0) % tiles_n * N + tl.arange(0, N)) % n
    depth = tl.arange(0, K)
    expert = tl.load(expert_ptr + block).to(tl.int64)
    a_at = a_ptr + (ids[:, None] // TOP).to(tl.int64) * k + depth[None, :]
    b_at = b_ptr + expert * n * k + columns[None, :] * k + depth[:, None]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = k - start
        a = tl.load(a_at, mask=real[:, None] & (depth[None, :] < left), other=0.0)
        b = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total += tl.dot(a, b)
        a_at += K
        b_at += K
    total = total * tl.load(weights_ptr + ids, mask=real, other=0.0)[:, None]
    columns = tl.program_id(0) % tiles_n * N + tl.arange(0, N)
    tl.store(c_ptr + ids[:, None].to(tl.int64) * n + columns[None, :],
             total.to(c_ptr.dtype.element_ty), mask=real[:, None] & (columns[None, :] < n))


@triton.jit
def sampled_product(a_ptr, b_ptr, rows_ptr, columns_ptr, out_ptr, k, M: tl.constexpr,
                    N: tl.constexpr, K: tl.constexpr):
    """The blocks of a @ b.T that lists of blocks of rows and columns name."""
    block = tl.program_id(0)
    m, n, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    rows = tl.load(rows_ptr + block) * M + m
    columns = tl.load(columns_ptr + block) * N + n
    a_at = a_ptr + rows[:, None] * k + depth[None, :]
    b_at = b_ptr + columns[None, :] * k + depth[:, None]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        total += tl.dot(tl.load(a_at), tl.load(b_at))
        a_at += K
        b_at += K
    at = block.to(tl.int64) * M * N + m[:, None] * N + n[None, :]
    tl.store(out_ptr + at, total.to(tl.float16))


@triton.jit
def chunk_states(k_ptr, v_ptr, states_ptr, n, heads, T: tl.constexpr, D: tl.constexpr,
                 K: tl.constexpr, V: tl.constexpr):
    """k.T @ v of each chunk of T tokens; tokens have all heads one after another."""
    chunk, row, column = tl.program_id(0), tl.program_id(1) // (D // V), tl.program_id(1) % (D // V)
    batch, head = tl.program_id(2) // heads, tl.program_id(2) % heads
    t = chunk * T + tl.arange(0, T)
    i, j = row * K + tl.arange(0, K), column * V + tl.arange(0, V)
    base = (batch.to(tl.int64) * n * heads + head) * D
    k = tl.load(k_ptr + base + t[None, :] * heads * D + i[:, None], mask=t[None, :] < n, other=0.0)
    v = tl.load(v_ptr + base + t[:, None] * heads * D + j[None, :], mask=t[:, None] < n, other=0.0)
    at = (tl.program_id(2).to(tl.int64) * tl.num_programs(0) + chunk) * D * D
    tl.store(states_ptr + at + i[:, None] * D + j[None, :], tl.dot(k, v).to(tl.float16))


@triton.jit
def pass_states(states_ptr, decay_ptr, chunks, size, BLOCK: tl.constexpr):
    """In place: the state before each chunk, of what chunks add; older ones decay."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pointers = states_ptr + tl.program_id(1).to(tl.int64) * chunks * size + at
    decay = tl.load(decay_ptr + tl.program_id(1))
    state = tl.zeros((BLOCK,), tl.float32)
    for _ in range(chunks):
        added = tl.load(pointers, mask=at < size, other=0.0).to(tl.float32)
        tl.store(pointers, state.to(tl.float16), mask=at < size)
        state = state * decay + added
        pointers += size


@triton.jit
def chunk_outputs(q_ptr, k_ptr, v_ptr, states_ptr, out_ptr, n, heads, scale, T: tl.constexpr,
                  D: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """Outputs of a chunk: its queries times the state before it, and causally its own keys."""
    chunk, column = tl.program_id(1), tl.program_id(0)
    batch, head = tl.program_id(2) // heads, tl.program_id(2) % heads
    t, j = chunk * T + tl.arange(0, T), column * V + tl.arange(0, V)
    base = (batch.to(tl.int64) * n * heads + head) * D
    state_at = (tl.program_id(2).to(tl.int64) * tl.num_programs(1) + chunk) * D * D
    out = tl.zeros((T, V), tl.float32)
    scores = tl.zeros((T, T), tl.float32)
    for first in range(0, D, K):
        i = first + tl.arange(0, K)
        q = tl.load(q_ptr + base + t[:, None] * heads * D + i[None, :], mask=t[:, None] < n,
                    other=0.0)
        k = tl.load(k_ptr + base + t[None, :] * heads * D + i[:, None], mask=t[None, :] < n,
                    other=0.0)
        state = tl.load(states_ptr + state_at + i[:, None] * D + j[None, :])
        out += tl.dot(q, state)
        scores += tl.dot(q, k)
    inside = tl.arange(0, T)
    scores = tl.where(inside[:, None] >= inside[None, :], scores, 0.0)
    at = base + t[:, None] * heads * D + j[None, :]
    v = tl.load(v_ptr + at, mask=t[:, None] < n, other=0.0)
    out = (out + tl.dot(scores.to(v.dtype), v)) * scale
    tl.store(out_ptr + at, out.to(tl.float16), mask=t[:, None] < n)
