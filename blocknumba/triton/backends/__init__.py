"""Backends: targets, as `triton.compile` takes them."""
