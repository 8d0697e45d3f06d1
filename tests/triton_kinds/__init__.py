"""Kernels in plain Triton, by what they use."""
