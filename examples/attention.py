"""Fused attention, forward: softmax(q @ k.T * scale) @ v without the matrix in the middle."""

import ml_dtypes
import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

LOG2_E = 1.4426950408889634


@bn.jit
def attend(queries, k, v, rows, columns, length, scale, state, CAUSAL: bn.constexpr,
           MASKED: bn.constexpr):
    """The state (sums of v, sums of weights, greatest scores) after the keys in a span.

    k, v: (length, D) views; scale: of scores that are exponents of 2.
    MASKED: the span reaches beyond the last key, or beyond the diagonal.
    """
    sums, total, greatest = state
    d = bn.span(0, queries.shape[1])
    scores = queries @ k[columns, d].T
    if MASKED:
        visible = columns.index[None, :] < length
        if CAUSAL:
            visible &= columns.index[None, :] <= rows.index[:, None]
        scores = bn.where(visible, scores, float("-inf"))
    top = bn.maximum(greatest, bn.max(scores, axis=1) * scale)
    weights = bn.exp2(scores * scale - top[:, None])
    fading = bn.exp2(greatest - top)
    total = total * fading + bn.sum(weights, axis=1)
    sums = sums * fading[:, None] + weights.to(v.dtype) @ v[columns, d]
    return sums, total, top


@bn.jit
def attention(q, k, v, out, scale, CAUSAL: bn.constexpr, D: bn.constexpr, BM: bn.constexpr,
              BN: bn.constexpr, SUM: bn.constexpr = bn.float32):
    """out[i, h] = softmax(q[i, h] @ k[i, h].T * scale) @ v[i, h], in one pass over the keys.

    q, k, v, out: (batches, heads, length, D); BM queries a program.  CAUSAL: a query sees no key
    after it.  Columns that need no mask come first.  SUM: dtype of sums.
    """
    i, h, rows = bn.program_id(2), bn.program_id(1), bn.block(0, BM)
    length = k.shape[2]
    stop = min(rows.stop, length) if CAUSAL else length
    whole = (min(rows.start + 1, length) if CAUSAL else length) // BN * BN
    queries = q[i, h, rows, bn.span(0, D)]
    state = bn.zeros((BM, D), SUM), bn.zeros((BM,), SUM), bn.full((BM,), float("-inf"), SUM)
    for columns in bn.spans(whole, BN):
        state = attend(queries, k[i, h], v[i, h], rows, columns, length, scale * LOG2_E, state,
                       CAUSAL, False)
    for columns in bn.spans(stop, BN, start=whole):
        state = attend(queries, k[i, h], v[i, h], rows, columns, length, scale * LOG2_E, state,
                       CAUSAL, True)
    sums, total, _ = state
    out[i, h, rows, bn.span(0, D)] = sums / total[:, None]


@bn.jit
def attention_pointers(q, k, v, out, length, scale, CAUSAL: tl.constexpr, D: tl.constexpr,
                       BM: tl.constexpr, BN: tl.constexpr):
    """The same in Triton's dialect; the arrays are contiguous."""
    start_m = tl.program_id(0) * BM
    head = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)).to(tl.int64) * length * D
    offs_m, offs_n, offs_d = start_m + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q_ptrs = q + head + offs_m[:, None] * D + offs_d[None, :]
    kt_ptrs = k + head + offs_n[None, :] * D + offs_d[:, None]
    v_ptrs = v + head + offs_n[:, None] * D + offs_d[None, :]
    queries = tl.load(q_ptrs, mask=offs_m[:, None] < length, other=0.0)
    m_i = tl.full((BM,), float("-inf"), tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    qk_scale = scale * LOG2_E
    stop = min(start_m + BM, length) if CAUSAL else length
    for start_n in range(0, stop, BN):
        offs = start_n + offs_n
        keys = tl.load(kt_ptrs, mask=offs[None, :] < length, other=0.0)
        visible = offs[None, :] < length
        if CAUSAL:
            visible = visible & (offs[None, :] <= offs_m[:, None])
        qk = tl.where(visible, tl.dot(queries, keys) * qk_scale, float("-inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_ij[:, None])
        alpha = tl.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        values = tl.load(v_ptrs, mask=offs[:, None] < length, other=0.0)
        acc = tl.dot(p.to(v.dtype.element_ty), values, acc * alpha[:, None])
        m_i = m_ij
        kt_ptrs += BN * D
        v_ptrs += BN * D
    out_ptrs = out + head + offs_m[:, None] * D + offs_d[None, :]
    tl.store(out_ptrs, acc / l_i[:, None], mask=offs_m[:, None] < length)


def blocks_for(D: int, dtype, device, causal: bool) -> dict[str, int]:
    """BM, BN and compile options for heads of D elements; measured with perf/compare.py.

    dtype: of the arrays.  device: as of bn.current_device.
    """
    if dtype.itemsize != 2 or not device.has("wgmma") or D > 128:
        return {"BM": 64, "BN": 64}
    if D > 64:
        return {"BM": 128, "BN": 128, "num_warps": 8}
    # several programs on a multiprocessor: one multiplies while others compute exponents
    return {"BM": 64, "BN": 64 if causal else 128, "num_warps": 4}


# The caller may want the option fastmath=True.  Then numbers below 2**-126 become 0, for which an
# exponent takes one instruction instead of four, and computing exponents is what attention waits
# for; scores * scale - top is rounded once; the last division is off by 2 units in the last place.
# The weights are rounded to 16 bits either way.

def launch(q, k, v, out, scale, causal=False, **options) -> None:
    """Attention in the array dialect."""
    batches, heads, length, D = q.shape
    blocks = blocks_for(D, q.dtype, bn.current_device(), causal) | options
    attention[bn.cdiv(length, blocks["BM"]), heads, batches](q, k, v, out, scale, causal, D,
                                                             **blocks)


def launch_pointers(q, k, v, out, scale, causal=False, **options) -> None:
    """Attention in Triton's dialect."""
    batches, heads, length, D = q.shape
    blocks = blocks_for(D, q.dtype, bn.current_device(), causal) | options
    attention_pointers[bn.cdiv(length, blocks["BM"]), heads, batches](
        q, k, v, out, length, scale, causal, D, **blocks)


# checks ---------------------------------------------------------------------------------------

def reference(q, k, v, scale: float, causal: bool) -> np.ndarray:
    """Attention in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores[..., ~np.tri(*scores.shape[-2:], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


# D, length, causal
SHORT = (64, 100, False), (128, 70, True)
CASES = (*SHORT, (64, 128, True), (128, 64, False))


def check_dtype(library: ArrayLibrary, dtype: type, start, tolerance: float, cases=SHORT,
                **options) -> None:
    """One dtype: heads of 64 and of 128 elements, with the mask and without."""
    generator = np.random.default_rng(0)
    for D, length, causal in cases:
        q, k, v = generator.standard_normal((3, 2, 2, length, D)).astype(dtype)
        scale = D**-0.5 if dtype != np.float64 else np.float64(D)**-0.5
        out = library.array(np.zeros(q.shape, np.float32 if dtype != np.float64 else dtype))
        start(*map(library.array, (q, k, v)), out, scale, causal, **options)
        np.testing.assert_allclose(library.numpy(out), reference(q, k, v, scale, causal),
                                   rtol=0, atol=tolerance)


def check(library: ArrayLibrary) -> None:
    """Every dtype that the library has agrees with NumPy in float64.

    The weights are rounded to the dtype of v: to 11, 8, 4 and 3 bits.
    """
    check_dtype(library, np.float32, launch, 2e-6)
    check_dtype(library, np.float64, launch, 1e-14, SUM=bn.float64)
    for start in (launch, launch_pointers):
        check_dtype(library, np.float16, start, 2e-3, CASES)
    if library.is_narrow:
        check_dtype(library, ml_dtypes.bfloat16, launch, 2e-2)
        check_dtype(library, ml_dtypes.float8_e4m3fn, launch, 0.2)
        check_dtype(library, ml_dtypes.float8_e5m2, launch, 0.4)


if __name__ == "__main__":
    run(check)
