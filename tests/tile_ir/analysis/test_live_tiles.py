"""Tiles that are alive at once."""

import blocknumba as bn
import pytest

from blocknumba.tile_ir.analysis.live_tiles import LiveTiles, live_tiles

N = 1024


@bn.jit
def three_loads(x, y, z, out, N: bn.constexpr):
    r = bn.block(0, N)
    out[r] = x[r] * y[r] + z[r] * bn.exp(x[r])


@bn.jit
def one_after_the_other(x, y, z, out, N: bn.constexpr):
    r = bn.block(0, N)
    total = x[r] * 2
    total += y[r]
    total += z[r]
    out[r] = total


@bn.jit
def softmax(x, y, z, out, N: bn.constexpr):
    r = bn.span(0, N)
    e = bn.exp(x[r] - bn.max(x[r]))
    out[r] = e / bn.sum(e)


@bn.jit
def kept_beside_a_row(x, y, z, out, N: bn.constexpr):
    r = bn.span(0, N)
    a, b = x[r], y[r]
    out[r] = a - b * bn.sum(a * b)


@bn.jit
def carried(x, y, z, out, N: bn.constexpr):
    r = bn.span(0, N)
    weights, total = y[r], bn.zeros(N, bn.float32)
    for i in range(z.shape[0]):
        row = x[r + i]
        total += (row - bn.sum(row)) * weights
    out[r] = total


@bn.jit
def one_of_two(x, y, z, out, N: bn.constexpr):
    r = bn.span(0, N)
    a = x[r]
    if z[0] > 0:
        a = a * y[r]
    out[r] = a


@bn.jit
def indices(x, y, z, out, N: bn.constexpr):
    i = bn.arange(N)
    bn.store(out.at[i], bn.load(x.at[i * 3 % 1000]), mask=i < 900)


@pytest.mark.parametrize("kernel, held, exchanged", [
    (three_loads, 3, 0), (one_after_the_other, 2, 0), (softmax, 1, 1), (kept_beside_a_row, 2, 2),
    # weights, the total, the row
    (carried, 3, 3), (one_of_two, 2, 0), (indices, 1, 0)])
def test_what_a_program_holds(kernel, held, exchanged):
    compiled = bn.compile(kernel, ("f32[::1]",) * 4, {"N": N}, target="sm_90a")

    assert live_tiles(compiled.tile) == LiveTiles(held * N, exchanged * N, held * N)


@pytest.mark.parametrize("kernel, packed", [(indices, 0.5), (carried, 3)])
def test_loaded_halves_share_words_outside_of_loops(kernel, packed):
    compiled = bn.compile(kernel, ("f16[::1]",) * 4, {"N": N}, target="sm_90a")

    assert live_tiles(compiled.tile).packed == packed * N


def test_doubles_take_two_words_and_halves_one():
    for kind, words in (("f64", 2), ("f16", 1)):
        compiled = bn.compile(three_loads, (f"{kind}[::1]",) * 4, {"N": N}, target="sm_90a")

        assert live_tiles(compiled.tile).held == 3 * words * N
