"""Passes of the GPU-layout IR: functions (fn, options) -> fn that change nothing they were given."""
