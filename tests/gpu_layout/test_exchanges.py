"""What one thread accesses for all goes through shared memory: which accesses share a barrier."""

import re

import pytest

import blocknumba as bn

SIGNATURE = "i32[::1]:16, i32[::1]:16, i32[::1]:16"
N = 32


@bn.jit
def two_loads(x, y, out):
    r = bn.span(0, N)
    one, other = bn.load(x.at[r], volatile=True), bn.load(y.at[r], volatile=True)
    out[r] = one + other


@bn.jit
def dependent_loads(x, y, out):
    r = bn.span(0, N)
    one = bn.load(x.at[r], volatile=True)
    out[r] = bn.load(y.at[one], volatile=True)


@bn.jit
def load_after_atomic(x, y, out):
    r = bn.span(0, N)
    one = bn.atomic_add(x.at[r], 1)
    out[r] = one + bn.load(y.at[r], volatile=True)


@bn.jit
def atomic_after_load(x, y, out):
    r = bn.span(0, N)
    one = bn.load(x.at[r], volatile=True)
    out[r] = one + bn.atomic_add(y.at[r], 1)


@pytest.mark.parametrize("kernel, is_between", [
    (two_loads, False), (dependent_loads, True), (load_after_atomic, True),
    (atomic_after_load, True)],
    ids=lambda value: getattr(value, "__name__", value))
def test_only_volatile_loads_share_a_barrier(kernel, is_between):
    """Whatever follows an atomic waits for it, as it may acquire for all threads."""
    compiled = bn.compile(kernel, SIGNATURE, {}, target="sm_90a", num_warps=4)

    ops = re.findall(r"= (load|atomic_rmw) .*volatile|= (atomic_rmw)|^\s*(barrier)$",
                     compiled.asm["gpu"], re.MULTILINE)
    names = ["".join(found) for found in ops]
    first, second = (i for i, name in enumerate(names) if name != "barrier")
    assert ("barrier" in names[first + 1:second]) == is_between
    assert "barrier" in names[second:]
