"""`triton.language.random`: random numbers by counters."""

from blocknumba.random import (
    pair_uniform_to_normal, philox, rand, rand4x, randint, randint4x, randn, randn4x,
    uint_to_uniform_float,
)

__all__ = ["pair_uniform_to_normal", "philox", "rand", "rand4x", "randint", "randint4x", "randn",
           "randn4x", "uint_to_uniform_float"]
