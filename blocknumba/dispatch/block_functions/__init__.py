"""Kernels as functions that all threads of a block call in kernels of Numba."""
