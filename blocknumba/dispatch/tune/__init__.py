"""Kernels that choose some of their arguments themselves, and measurements."""
