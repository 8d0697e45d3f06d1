"""Scalar functions that Numba compiles: `bn.map(f, *tiles)`."""
