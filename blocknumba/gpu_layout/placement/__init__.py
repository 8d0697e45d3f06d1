"""The choice of a layout for every tile: coalescing, rules of ops, conversions, reductions."""
