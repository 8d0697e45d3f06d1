"""Random numbers by counters: Philox 4x32, a function of a seed and an offset.

    seed (64 bits) -> key: low and high word         offset -> counter: low and high word, 0, 0
                      10 rounds of 2 multiplications, then 4 words of 32 random bits

The same seed and offset have the same bits in every run, on every device and in every order; other
offsets have independent ones.  The words of key and counter are laid out as Triton's are.
Source: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.types import float32, int32, int64, uint32, uint64
from blocknumba.typing import promotion
from blocknumba.typing.context import describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import FLOAT_FUNCTIONS, maximum
from blocknumba.typing.functions.elementwise import where as choose
from blocknumba.typing.static_values import static_range

_sqrt, _log, _sin, _cos = (FLOAT_FUNCTIONS[name] for name in ("sqrt", "log", "sin", "cos"))

ROUNDS = 10
FACTORS = (0xD2511F53, 0xCD9E8D57)  # of the words 0 and 2; tables 2 and 3 of the paper
WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the words of the key after each round
STEP = 4.6566127342e-10  # the greatest float32 below 1 is 0x7fffffff of these
WIDE_STEP = 1.0842020432385337e-19  # and of 0x7fffffffffffffff
MIN_UNIFORM = 1e-7  # its logarithm is finite
TURN = 6.283185307179586


@function
def _whole(context, name, x):
    """x, a tile or a scalar of ints.   Errors: anything else."""
    require_numbers(f"random numbers: {name}", x)
    require(promotion.result_dtype((x,)).kind in ("int", "uint"),
            "random numbers: {}: given {}, accepted ints", name, describe(x),
            hint="convert it: bn.cast(x, bn.int64)")
    return x


def philox(seed, c0, c1, c2, c3, n_rounds=ROUNDS):
    """Four words of random bits for a counter of four words, each an int tile or scalar.

    seed: an int of 64 bits.  The results are uint32 of the counter's common shape.

    Example:
    >>> bn.evaluate(bn.philox, 42, [0, 1], 0, 0, 0)[0]
    array([2632642643, 4242219303], dtype=uint32)
    """
    key = cast(_whole("seed", seed), uint64)
    k0, k1 = cast(key, uint32), cast(key >> 32, uint32)
    c0, c1, c2, c3 = cast(c0, uint32), cast(c1, uint32), cast(c2, uint32), cast(c3, uint32)
    for _ in static_range(n_rounds):
        # both halves of a product from one multiplication
        low, high = cast(c0, uint64) * FACTORS[0], cast(c2, uint64) * FACTORS[1]
        c0, c2 = cast(high >> 32, uint32) ^ c1 ^ k0, cast(low >> 32, uint32) ^ c3 ^ k1
        c1, c3 = cast(high, uint32), cast(low, uint32)
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


def randint4x(seed, offset, n_rounds=ROUNDS):
    """Four independent tiles of uint32, for each element of offset.

    seed: an int of 64 bits.  offset: an int tile or scalar, of up to 64 bits.
    It costs as much as one of them: use all four where many are needed.

    Example:
    >>> [words[0] for words in bn.evaluate(bn.randint4x, 42, [0, 1])]
    [np.uint32(2632642643), np.uint32(2012563771), np.uint32(314527917), np.uint32(1463989207)]
    """
    wide = cast(_whole("offset", offset), int64)
    return philox(seed, cast(wide, uint32), cast(wide >> 32, uint32), 0, 0, n_rounds)


def randint(seed, offset, n_rounds=ROUNDS):
    """Random uint32, one for each element of offset: 32 independent bits.

    seed, offset: ints of up to 64 bits, offset a tile or a scalar.

    Example:
    >>> bn.evaluate(bn.randint, 42, [0, 1])
    array([2632642643, 4242219303], dtype=uint32)
    >>> bn.evaluate(lambda r: bn.randint(42, r) % 6 + 1, np.arange(8))
    array([6, 4, 2, 6, 1, 6, 5, 4], dtype=uint32)
    """
    bits, _, _, _ = randint4x(seed, offset, n_rounds)
    return bits


def uint_to_uniform_float(x):
    """float32 in [0, 1) from ints of 32 or 64 random bits.

    Example:
    >>> bn.evaluate(bn.uint_to_uniform_float, np.uint32([0, 2**30, 2**31, 2**32 - 1]))
    array([0.        , 0.49999997, 0.99999994, 0.        ], dtype=float32)
    """
    if x.dtype.primitive_bitwidth == 64:
        wide = cast(x, int64)
        return cast(choose(wide < 0, -wide - 1, wide), float32) * WIDE_STEP
    signed = cast(x, int32)
    return cast(choose(signed < 0, -signed - 1, signed), float32) * STEP


def rand(seed, offset, n_rounds=ROUNDS):
    """Uniform float32 in [0, 1), one for each element of offset: the same bits everywhere.

    seed, offset: ints of up to 64 bits, offset a tile or a scalar.

    Example:
    >>> bn.evaluate(bn.rand, 42, [0, 1])
    array([0.77408016, 0.0245627 ], dtype=float32)
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed, offset, n_rounds=ROUNDS):
    """Four independent tiles as of rand.

    Example:
    >>> [numbers[0] for numbers in bn.evaluate(bn.rand4x, 42, [0, 1])]
    [np.float32(0.77408016), np.float32(0.93717295), np.float32(0.14646345), np.float32(0.68172306)]
    """
    i0, i1, i2, i3 = randint4x(seed, offset, n_rounds)
    return (uint_to_uniform_float(i0), uint_to_uniform_float(i1), uint_to_uniform_float(i2),
            uint_to_uniform_float(i3))


def pair_uniform_to_normal(u1, u2):
    """Two independent normal float32 from two uniform ones.

    Source: Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).

    Example:
    >>> u1, u2 = np.float32([np.exp(-0.5)]), np.float32([0.125])
    >>> [n.round(4) for n in bn.evaluate(bn.pair_uniform_to_normal, u1, u2)]
    [array([0.7071], dtype=float32), array([0.7071], dtype=float32)]
    """
    radius = _sqrt(-2.0 * _log(maximum(MIN_UNIFORM, u1)))
    angle = TURN * u2
    return radius * _cos(angle), radius * _sin(angle)


def randn(seed, offset, n_rounds=ROUNDS):
    """Normal float32 of mean 0 and variance 1, one for each element of offset.

    seed, offset: ints of up to 64 bits, offset a tile or a scalar.  Devices agree to a few ulps:
    their logarithms and cosines do.

    Example:
    >>> bn.evaluate(bn.randn, 42, [0, 1]).round(4)
    array([ 0.6606, -1.5427], dtype=float32)
    """
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    n0, _ = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return n0


def randn4x(seed, offset, n_rounds=ROUNDS):
    """Four independent tiles as of randn.

    Example:
    >>> [numbers[0].round(4) for numbers in bn.evaluate(bn.randn4x, 42, [0, 1])]
    [np.float32(0.6606), np.float32(-0.2752), np.float32(-0.8153), np.float32(-1.7825)]
    """
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3
