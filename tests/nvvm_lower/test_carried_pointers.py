"""Pointers that a loop carries have the layout in which their loads and stores are done."""

import re

import emulated_gpu
import numpy as np

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba import compile as compiled_for

ALL_ROWS, ROWS, COLUMNS, STEPS = 32, 8, 16, 5


@triton.jit
def recurrence(start, k, v, beta, out, T, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr,
               COLUMNS: tl.constexpr):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    is_row = rows < ALL_ROWS
    at_k, at_v, at_beta, at_out = k + columns, v + rows, beta + rows, out + rows
    h = tl.load(start + columns[None, :] * ALL_ROWS + rows[:, None])
    for _ in range(0, T):
        keys = tl.load(at_k)
        values = tl.load(at_v, mask=is_row, other=0) - tl.sum(h * keys[None, :], axis=1)
        tl.store(at_v, values, mask=is_row)
        values *= tl.load(at_beta, mask=is_row, other=0)
        h += keys[None, :] * values[:, None]
        tl.store(at_out, tl.sum(h * keys[None, :], axis=1), mask=is_row)
        at_k += COLUMNS
        at_v += ALL_ROWS
        at_beta += ALL_ROWS
        at_out += ALL_ROWS


CONSTANTS = {"ALL_ROWS": ALL_ROWS, "ROWS": ROWS, "COLUMNS": COLUMNS}


def test_a_recurrence_moves_nothing_but_its_sums_between_threads():
    code = compiled_for(recurrence, ("*fp32:16",) * 5 + ("i32",), CONSTANTS,
                        target="sm_90a", num_warps=1)

    # 4 steps of two sums over 16 lanes for each of a thread's 4 rows
    assert len(re.findall(r"shfl\.sync\.bfly", code.ptx)) == 32
    assert "shfl.sync.idx" not in code.ptx
    assert not re.search(r"\b(ld|st)\.shared", code.ptx)


def test_a_recurrence_has_numpys_results():
    rng = np.random.default_rng()
    start = rng.standard_normal((COLUMNS, ALL_ROWS)).astype(np.float32)
    k, v, beta = (rng.standard_normal((STEPS, n)).astype(np.float32) / 4
                  for n in (COLUMNS, ALL_ROWS, ALL_ROWS))
    out = np.full_like(v, np.nan)

    emulated_gpu.launch(recurrence, (ALL_ROWS // ROWS,), (start, k, v.copy(), beta, out, STEPS),
                        {"num_warps": 1, **CONSTANTS}, "sm_90a")

    h, wanted = start.T.astype(np.float64), np.empty(v.shape)
    for t in range(STEPS):
        keys = k[t].astype(np.float64)
        h += ((v[t] - h @ keys) * beta[t])[:, None] * keys
        wanted[t] = h @ keys
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
