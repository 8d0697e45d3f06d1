"""From a call `kernel[grid](*args)` to a launch on the GPU or a run on the CPU."""
