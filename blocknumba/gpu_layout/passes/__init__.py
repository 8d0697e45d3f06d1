"""Passes of the GPU-layout IR: (fn, options) -> fn; they change nothing they were given."""
