"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays."""
