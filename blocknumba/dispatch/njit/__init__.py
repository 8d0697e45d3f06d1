"""Launches from functions that Numba compiles: `kernel[grid](x, y, n, BLOCK=1024)` in @njit."""
