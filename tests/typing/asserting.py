"""Kernels that assert, in a module whose asserts pytest does not rewrite."""

from __future__ import annotations

import blocknumba as bn


def asserts_constants(x, y, n, B):
    assert B % 2 == 0, "B must be even"
    x[0] = B


def asserts_plainly(x, y, n, B):
    assert B % 2 == 0
    x[0] = B


def asserts_at_run_time(x, y, n, B):
    assert n > B, f"n must be more than {B}"
    x[0] = n
    assert not (n > 100 or B > 100)
    bn.device_assert(bn.arange(0, 4) < n, "n is small")
    x[1] = n
