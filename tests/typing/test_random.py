"""Random numbers: the published bits, the same on every device."""

import math

import numpy as np
import pytest

import blocknumba as bn

N = 64
MASK = 0xFFFFFFFF
# counter, key, result of 10 rounds.  Source: the known answers of the Random123 library
PUBLISHED = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, MASK << 32 | MASK, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822,
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def philox(counter, key, rounds=10):
    """Philox 4x32 on Python's ints."""
    c, k = list(counter), [key & MASK, key >> 32 & MASK]
    for _ in range(rounds):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & MASK, a >> 32 ^ c[3] ^ k[1], a & MASK]
        k = [k[0] + 0x9E3779B9 & MASK, k[1] + 0xBB67AE85 & MASK]
    return tuple(c)


@bn.jit
def words(counter, seed: bn.uint64, out, N: bn.constexpr, ROUNDS: bn.constexpr):
    r = bn.span(0, N)
    made = bn.philox(seed, counter[0, r], counter[1, r], counter[2, r], counter[3, r], ROUNDS)
    for i in bn.static_range(4):
        out[i, r] = made[i]


@bn.jit
def of_offsets(offsets, seed: bn.uint64, bits, uniform, normal, N: bn.constexpr):
    r = bn.span(0, N)
    o = offsets[r]
    four, u, n = bn.randint4x(seed, o), bn.rand4x(seed, o), bn.randn4x(seed, o)
    for i in bn.static_range(4):
        bits[i, r] = four[i]
        uniform[i, r] = u[i]
        normal[i, r] = n[i]
    bits[4, r], uniform[4, r] = bn.randint(seed, o), bn.rand(seed, o)
    normal[4, r] = bn.randn(seed, o)


@pytest.mark.parametrize("counter,key,expected", PUBLISHED)
def test_ten_rounds_are_the_published_ones(counter, key, expected):
    given = np.repeat(np.array(counter, np.uint32)[:, None], N, axis=1)
    out = np.zeros((4, N), np.uint32)

    words[1](given, key, out, N=N, ROUNDS=10)

    assert (out == np.array(expected, np.uint32)[:, None]).all()


@pytest.mark.parametrize("rounds", [1, 7, 10])
def test_every_counter_has_the_bits_of_the_definition(rounds):
    random = np.random.default_rng()
    counter = random.integers(0, 1 << 32, (4, N), np.uint32)
    key = int(random.integers(0, 1 << 64, dtype=np.uint64))
    out = np.zeros((4, N), np.uint32)

    words[1](counter, key, out, N=N, ROUNDS=rounds)

    expected = [philox(column, key, rounds) for column in counter.T.tolist()]
    assert np.array_equal(out.T, np.array(expected, np.uint32))


def launched_arguments(offsets_dtype):
    random = np.random.default_rng()
    high = 1 << (62 if np.dtype(offsets_dtype).itemsize == 8 else 31)
    offsets = random.integers(0, high - 1, N).astype(offsets_dtype)
    key = int(random.integers(0, 1 << 63))
    return offsets, key, np.zeros((5, N), np.uint32), *np.full((2, 5, N), 9, np.float32)


def uniform_of(bits):
    """A float32 in [0, 1) of bits, in exact arithmetic and one rounding."""
    signed = bits.astype(np.int64) - (bits.astype(np.int64) >> 31 << 32)
    folded = np.where(signed < 0, -signed - 1, signed)
    return folded.astype(np.float32) * np.float32(4.6566127342e-10)


def require_offsets_define_all(offsets, key, bits, uniform, normal):
    expected = np.array([philox((o & MASK, o >> 32, 0, 0), key) for o in offsets.tolist()],
                        np.uint32).T
    assert np.array_equal(bits, np.concatenate([expected, expected[:1]]))
    assert np.array_equal(uniform, uniform_of(bits))
    u = uniform.astype(np.float64)
    for i, other in ((0, 1), (2, 3)):
        radius = np.sqrt(-2 * np.log(np.maximum(u[i], 1e-7)))
        angles = math.tau * u[other]
        for got, wanted in ((normal[i], radius * np.cos(angles)),
                            (normal[other], radius * np.sin(angles))):
            # the angle is rounded to float32 before its sine is taken
            assert np.abs(got - wanted).max() <= 3e-6
    assert np.array_equal(normal[4], normal[0])


@pytest.mark.parametrize("offsets", ["int32", "int64", "uint32"])
def test_offsets_and_seed_define_all_numbers(offsets, device):
    arguments = launched_arguments(offsets)

    device.run(of_offsets, 1, *arguments, N=N)

    require_offsets_define_all(*arguments)


@bn.jit
def many(seed, uniform, normal, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    uniform[r], normal[r] = bn.rand(seed, r.index), bn.randn(seed, r.index)


def test_moments_are_those_of_the_distributions():
    uniform, normal = np.zeros((2, 1 << 18), np.float32)

    many[1 << 8](int(np.random.default_rng().integers(1 << 31)), uniform, normal, BLOCK=1 << 10)

    assert 0 <= uniform.min() and uniform.max() < 1
    bound = 6 / math.sqrt(uniform.size)  # six standard errors
    assert abs(uniform.mean() - 1 / 2) < bound * math.sqrt(1 / 12)
    assert abs(normal.mean()) < bound and abs(normal.var() - 1) < bound * math.sqrt(2)
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < bound
