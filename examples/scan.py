"""Cumulative sums of a whole array in one pass: each program looks back at those before it.

A program takes a tile of the array by an atomic ticket, sums it and publishes its sum, adds what
the programs before it have published, and publishes the sum of all elements up to its own last
one. It reads the state of a window of programs at once, from the nearest to the first that knows
its prefix; programs take tickets in the order in which they begin, so all that it waits for run.

    tile      0    1    2    3    4         state: P prefix is known, S sum is known, - neither
    state     P    P    S    S    (own)     prefix of 4 = prefix of 1 + sums of 2 and 3

A state is one word, the number of the launch and the kind in its upper half and the sum in its
lower one, so no order of memory is needed between them: whoever sees the kind sees the sum. Sums
of 64 bits are two such words, which are read again until they are of one kind. Source: Merrill,
Garland: "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA NVR-2016-002.
"""

import numpy as np

import blocknumba as bn
from array_libraries import ArrayLibrary, run

BLOCK = 4096
WINDOW = 32
WARPS = 4
SUM, PREFIX = 1, 2  # kinds of states


def publish(states, tile, launch, kind: bn.constexpr, value):
    """Set the state of a tile.   value: a scalar of 32 or 64 bits."""
    high = (launch * 2 + kind).to(bn.int64) << 32
    if value.dtype.bits == 64:
        bits = value.view(bn.int64)
        bn.atomic_xchg(states.at[1, tile], high | (bits >> 32 & 0xFFFFFFFF), sem="relaxed")
    else:
        bits = value.view(bn.int32).to(bn.int64)
    bn.atomic_xchg(states.at[0, tile], high | (bits & 0xFFFFFFFF), sem="relaxed")


def before(states, tile, launch, WINDOW: bn.constexpr, dtype: bn.constexpr):
    """The sum of all elements before a tile, as soon as it can be known."""
    total = bn.zeros((), dtype)
    start, searching = tile - WINDOW, True
    while searching:
        window = bn.span(start, WINDOW)
        state = bn.load(states.at[0, window], volatile=True)
        other = bn.load(states.at[1, window], volatile=True) if dtype.bits == 64 else state
        kind = (state >> 32).to(bn.int32) - launch * 2
        low = state & 0xFFFFFFFF
        if dtype.bits == 64:
            kind = bn.where(other >> 32 == state >> 32, kind, 0)
            value = (low | (other << 32)).view(dtype)
        else:
            value = low.to(bn.int32).view(dtype)
        # before the first tile there is nothing to add
        kind = bn.where(window.index < 0, PREFIX, kind)
        place = bn.arange(0, WINDOW)
        # the nearest tile that ends the search, and whether its state is still unknown
        last = bn.max(bn.where(kind == SUM, -1, place * 2 + (kind < SUM).to(bn.int32)))
        if last < 0 or last % 2 == 0:
            counts = (place * 2 >= last) & (window.index >= 0)
            total += bn.sum(bn.where(counts, value, bn.zeros((), dtype)))
            start -= WINDOW
            searching = last < 0
    return total


@bn.jit
def cumulative_sum(x, out, states, ticket, BLOCK: bn.constexpr, WINDOW: bn.constexpr):
    """out[i] = x[0] + ... + x[i]; one program for BLOCK elements.

    x: (size,); out: (size,) of a dtype of 32 or 64 bits.   states: (2, programs) and ticket: (1,),
    both int64, are zeros before the first launch, and may be used for any number of launches, one
    after the other. The upper half of the ticket counts launches.
    Sums of integers are exact; those of floats are rounded in an order that may differ each time.
    """
    taken = bn.atomic_add(ticket.at[0], 1, sem="relaxed")
    tile, launch = taken.to(bn.int32), (taken >> 32).to(bn.int32)
    r = bn.span(tile * BLOCK, BLOCK)
    values = x[r].to(out.dtype)
    total = bn.sum(values, dtype=out.dtype)
    if tile > 0:
        publish(states, tile, launch, SUM, total)
    # meanwhile others see the sum
    sums, prefix = bn.cumsum(values, dtype=out.dtype), bn.zeros((), out.dtype)
    if tile > 0:
        prefix = before(states, tile, launch, WINDOW, out.dtype)
    publish(states, tile, launch, PREFIX, prefix + total)
    out[r] = prefix + sums
    if tile == bn.num_programs(0) - 1:
        # no program of this launch takes one any more
        bn.atomic_xchg(ticket.at[0], (launch + 1).to(bn.int64) << 32, sem="relaxed")


def launch(library: ArrayLibrary, x, out, block: int = BLOCK, window: int = WINDOW) -> None:
    """The cumulative sums of x, with states of its own."""
    programs = bn.cdiv(x.shape[0], block)
    states = library.array(np.zeros((2, programs), np.int64))
    ticket = library.array(np.zeros(1, np.int64))
    # 32 elements a thread: with twice their registers four programs share a multiprocessor
    cumulative_sum[programs](x, out, states, ticket, BLOCK=block, WINDOW=window, num_warps=WARPS,
                             maxnreg=16 * out.dtype.itemsize)


def check(library: ArrayLibrary) -> None:
    """Sums of integers are NumPy's; floats are whole numbers, so that the order cannot matter."""
    random = np.random.default_rng(0)
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        values = random.integers(-100, 100, 10_001).astype(dtype)
        out = library.array(np.full(values.shape, 77, dtype))
        launch(library, library.array(values), out, 128, 32)
        np.testing.assert_array_equal(library.numpy(out), np.cumsum(values, dtype=dtype))


if __name__ == "__main__":
    run(check)
