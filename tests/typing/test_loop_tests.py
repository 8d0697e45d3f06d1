"""Tests of `while` loops in scalar functions, which Python's bytecode has twice, are merged."""

from __future__ import annotations

import emulated_gpu
import numpy as np
import pytest
from numba.core import compiler, ir

import blocknumba as bn
from blocknumba.typing.scalars.loop_tests import merge_loop_tests

COUNT, BLOCK = 300, 128


def both(x, limit):
    count = 0
    while x * x < 9.0 and count < limit:
        x = x * x - 0.5
        count += 1
    return x + count


def either(x, limit):
    count = 0
    while x < -1.0 or count < limit:
        x += 1.5
        count += 1
    return x * count


def negated(x, limit):
    while not (x > 2.0 or x * x * x > limit):
        x += 0.75
    return x


def nested(x, limit):
    total = 0.0
    outer = 0
    while outer < limit:
        inner = outer
        while inner * x < 6.0 and inner < limit:
            total += inner * x
            inner += 1
        outer += 1
    return total


def left(x, limit):
    count = 0
    while count < limit:
        count += 1
        if x > 3.0:
            break
        if x < 0.0:
            x += 2.0
            continue
        x *= 1.5
    else:
        return -x
    return x + count


def twice(x, limit):
    """Two loops with one test."""
    while x * 2.0 < limit:
        x += 1.0
    x -= 2.0
    while x * 2.0 < limit:
        x += 0.5
    return x


def never(x, limit):
    while limit < 0.0:
        x += 1.0
    return x


LOOPS = (both, either, negated, nested, left, twice, never)


def blocks_of(function):
    """Numba's IR before it is in SSA form."""
    return compiler.run_frontend(function).blocks


def of_python_3_12(blocks):
    """The blocks as that Python's bytecode has them: conditional jumps go forward only."""
    for label, block in list(blocks.items()):
        end = block.body[-1]
        for field in ("truebr", "falsebr"):
            header = getattr(end, field, None)
            if header is not None and header <= label:
                jumping = max(blocks) + 1
                blocks[jumping] = ir.Block(block.scope, end.loc)
                blocks[jumping].append(ir.Jump(header, end.loc))
                setattr(end, field, jumping)
    return blocks


def operations(blocks) -> int:
    return sum(getattr(one.value, "op", "") in ("binop", "inplace_binop")
               for block in blocks.values() for one in block.find_insts(ir.Assign))


def kernel_of(*functions):
    @bn.jit
    def kernel(x, limit, out, B: bn.constexpr):
        r = bn.block(0, B)
        for number in bn.static_range(len(functions)):
            out[number, r] = bn.map(functions[number], x[r], limit[r])
    return kernel


def arguments(count: int, functions: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng()
    return (random.uniform(-4, 4, count), random.choice([0.0, 1.0, 7.0], count),
            np.full((functions, count), np.nan))


def in_python(functions, x, limit) -> list[list[float]]:
    return [[function(*one) for one in zip(x.tolist(), limit.tolist())] for function in functions]


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_functions_with_loops_give_what_python_gives(function):
    x, limit, out = arguments(COUNT, 1)

    kernel_of(function)[bn.cdiv(COUNT, BLOCK)](x, limit, out, B=BLOCK, interpret=True)

    np.testing.assert_array_equal(out, in_python([function], x, limit))


def test_they_do_on_a_gpu_too():
    x, limit, out = arguments(64, len(LOOPS))

    emulated_gpu.launch(kernel_of(*LOOPS), 1, (x, limit, out), {"B": 64, "num_warps": 1})

    np.testing.assert_array_equal(out, in_python(LOOPS, x, limit))


@pytest.mark.parametrize("form", [lambda blocks: blocks, of_python_3_12],
                         ids=["this Python", "3.12"])
@pytest.mark.parametrize("function, fewer", [(both, 3), (nested, 4), (left, 1), (twice, 4)])
def test_a_test_is_computed_at_one_place(function, fewer, form):
    blocks = form(blocks_of(function))
    before = operations(blocks)

    assert merge_loop_tests(blocks)
    assert before - operations(blocks) == fewer
    assert not merge_loop_tests(blocks)


def test_products_of_the_test_are_known_in_the_body():
    def escape(x, y):
        u = v = count = 0.0
        while u * u + v * v <= 4.0 and count < 99.0:
            u, v = u * u - v * v + x, 2.0 * u * v + y
            count += 1.0
        return count

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(escape, x[r], x[r])

    ptx = bn.compile(kernel, ("f32[::1]", "f32[::1]"), {"B": 32}, target="sm_90a").asm["ptx"]
    entry = ptx[ptx.index(".entry"):ptx.index("ret;")]
    assert entry.count("mul.rn.f32") == 3  # u * u, v * v, 2 u * v
