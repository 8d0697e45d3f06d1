"""Loops and branches become the regions that fit them best."""

from __future__ import annotations

import numpy as np
import pytest
from launching import kernel_of, launch, op_names

import blocknumba as bn

from blocknumba.tile_ir.ir.function import walk

OUT = np.zeros(4, np.int32)


def ops(function, **arguments) -> list[str]:
    return op_names(kernel_of(function, out=OUT, n=3, **arguments))


def test_a_range_loop_is_a_for():
    def kernel(out, n):
        total = 0
        for i in range(n):
            total += i
        out[0] = total

    names = ops(kernel)

    assert names.count("for") == 1
    assert {"loop", "if"} & set(names) == set()


def test_a_loop_with_continue_stays_a_for():
    def kernel(out, n):
        total = 0
        for i in range(n):
            if i == 2:
                continue
            total += i
        out[0] = total

    names = ops(kernel)

    assert names.count("for") == 1 and "loop" not in names


def test_a_loop_that_is_left_in_the_middle_is_a_loop():
    def kernel(out, n):
        total = 0
        for i in range(n):
            if i == 2:
                break
            total += i
        out[0] = total

    names = ops(kernel)

    assert names.count("loop") == 1 and "for" not in names


def test_a_while_loop_carries_what_changes_and_no_more():
    def kernel(out, n):
        i, same = 0, n * 5
        while i < n:
            i += same
        out[0] = i

    (loop,) = [op for op in walk(kernel_of(kernel, out=OUT, n=3).body) if op.name == "loop"]

    assert len(loop.operands) == 1


def test_tiles_that_a_branch_does_not_change_do_not_pass_through_it():
    def kernel(x, out, n):
        r = bn.span(0, 4)
        tile = x[r]
        for i in range(n):
            if i == 5:
                break
            tile += 1
        out[r] = tile

    fn = kernel_of(kernel, x=OUT, out=OUT, n=3)

    branches = [op for op in walk(fn.body) if op.name == "if"]
    assert max(sum(1 for v in op.results if v.type.shape) for op in branches) <= 1


def test_conditions_of_scalars_short_circuit():
    def kernel(x, out, n):
        if n > 0 and x[0] > 0 or n == -5:
            out[0] = 1
        else:
            out[0] = 2

    fn = kernel_of(kernel, x=OUT, out=OUT, n=3)

    branches = [op for op in walk(fn.body) if op.name == "if"]
    loads_in_a_branch = [op for branch in branches for region in branch.regions
                         for op in region.ops if op.name == "load"]
    assert len(loads_in_a_branch) == 1
    assert op_names(fn).count("store") == 2


def test_an_early_return_ends_the_program():
    out = np.zeros(8, np.int32)

    def kernel(out, n):
        i = bn.program_id(0)
        if i >= n:
            return
        for j in range(10):
            if j * i > 6:
                return
            out[i] = j
        out[i] = 99

    launch(kernel, 8, out=out, n=5)

    np.testing.assert_array_equal(out, [99, 6, 3, 2, 1, 0, 0, 0])


@pytest.mark.parametrize("bounds", [(88, -1, -8), (5, 10, -3), (10, 5, 1), (0, 0, 1), (0, 7, 3)])
@pytest.mark.parametrize("leaves", [False, True])
def test_ranges_run_as_often_as_pythons(bounds, leaves):
    """triton-lang/triton#10950"""
    out = np.zeros(1, np.int32)

    def kernel(out, start, stop, step, LEAVES):
        total = 0
        for i in range(start, stop, step):
            if LEAVES and total > 150:
                break
            total += i + 1
        out[0] = total

    start, stop, step = bounds
    launch(kernel, out=out, start=start, stop=stop, step=step, constants={"LEAVES": leaves})

    expected = 0
    for i in range(*bounds):
        if leaves and expected > 150:
            break
        expected += i + 1
    assert out[0] == expected


def test_rebinding_the_loop_variable_does_not_change_the_loop():
    """triton-lang/triton PR#8750"""
    out = np.zeros(2, np.int32)

    def kernel(out, n):
        total = 0
        for i in range(n):
            i = i * 2
            total += i
        out[0] = total
        out[1] = i

    launch(kernel, out=out, n=8)

    assert out.tolist() == [56, 14]


def test_a_read_before_an_atomic_stays_before_it():
    """tile-ai/tilelang#2594"""
    a, out = np.array([3], np.int32), np.zeros(1, np.int32)

    def kernel(a, out):
        if a[0] > 0:
            v = a[0]
            bn.atomic_add(a.at[0], 10)
            out[0] = v

    launch(kernel, a=a, out=out)

    assert (a[0], out[0]) == (13, 3)


def test_ints_and_floats_join_and_tiles_of_bools_stay_bools():
    """triton-lang/triton#2151"""
    x, out = np.array([False, True, False, False] * 2), np.zeros(4, np.float32)

    def kernel(x, out, n):
        value, found = 0, bn.zeros((4,), bn.bool_)
        for i in range(n):
            value = value + 0.5
            found = found | x[i * 4 : i * 4 + 4]
        y = 1 if n > 5 else value
        out[0] = y
        out[1] = bn.any(found)

    launch(kernel, x=x, out=out, n=2)

    assert out.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_pointers_advance_in_loops():
    x, out = np.arange(32, dtype=np.float32), np.zeros(8, np.float32)

    def kernel(x, out, n):
        offsets = bn.arange(0, 8)
        pointers, first = x + offsets, x
        total = bn.zeros((8,))
        for _ in range(n):
            total += bn.load(pointers) + bn.load(first)
            pointers += 8
            first += 1
        bn.store(out + offsets, total)

    launch(kernel, x=x, out=out, n=4)

    np.testing.assert_array_equal(out, x.reshape(4, 8).sum(0) + x[:4].sum())


def test_a_tile_of_one_element_is_a_scalar_where_one_is_needed():
    """NVIDIA/cutile-python#66"""
    x, out = np.array([2, 5], np.int32), np.zeros(4, np.int32)

    def kernel(x, out):
        one = x[bn.span(0, 1)]
        if one > 1:
            for i in range(one):
                out[bn.span(one, 1)] = i + 7

    launch(kernel, x=x, out=out)

    assert out.tolist() == [0, 0, 8, 0]


def test_loop_hints_change_no_result():
    out = np.zeros(4, np.int32)

    def kernel(out, n):
        for i in bn.range(1, n, num_stages=3, flatten=True):
            out[0] += i
        for r in bn.spans(n, 2, num_stages=2):
            out[r] = out[r] + 1

    launch(kernel, out=out, n=4)

    assert out.tolist() == [7, 1, 1, 1]


def loops_of(function, **arguments):
    """The attributes of the loops of a kernel, in order."""
    return [dict(op.attrs) for op in walk(kernel_of(function, **arguments).body)
            if op.name == "for"]


def test_loop_hints_become_attributes_of_the_loop():
    def kernel(x, n, STAGES):
        for i in bn.range(n):
            x[i] = 0
        for i in bn.range(n, num_stages=STAGES, unroll=4):
            x[i] = 1
        for i in bn.range(n, loop_unroll_factor=1, warp_specialize=False):
            x[i] = 2
        for r in bn.spans(n, 2, num_stages=2):
            x[r] = 3
        for r in bn.grid_spans(n, 2, unroll=2):
            x[r] = 4
        for r, c in bn.persistent((n, n), (2, 2), warp_specialize=True):
            x[r] = 5

    loops = loops_of(kernel, x=np.zeros(8), n=4, constants={"STAGES": 3})

    assert loops == [{}, {"num_stages": 3, "unroll": 4}, {"unroll": 1, "warp_specialize": False},
                     {"num_stages": 2}, {"unroll": 2}, {"warp_specialize": True}]


def test_ranges_that_meet_keep_the_hints_on_which_they_agree():
    def kernel(x, n):
        rounds = bn.range(n, unroll=2) if n > 3 else bn.range(2, unroll=3)
        for i in rounds:
            x[i] = 0
        rounds = bn.range(n, unroll=2) if n > 3 else bn.range(2, unroll=2)
        for i in rounds:
            x[i] = 0

    assert loops_of(kernel, x=np.zeros(8), n=4) == [{}, {"unroll": 2}]


def test_long_functions_do_not_nest():
    """Every statement after an `if` follows it; Python's stack would not do for the other way."""
    lines = ["def kernel(out, n):", "    a = 0"]
    for i in range(400):
        lines += [f"    if n > {i}:", f"        a += {i}",
                  "    for j in range(n):", "        a += j"]
    lines.append("    out[0] = a")
    namespace: dict = {}
    exec("\n".join(lines), namespace)
    out = np.zeros(4, np.int32)

    launch(namespace["kernel"], out=out, n=3)

    assert out[0] == 0 + 1 + 2 + 400 * 3
