"""Numba IR of a kernel: read from bytecode, specialised, and brought to plain control flow."""
