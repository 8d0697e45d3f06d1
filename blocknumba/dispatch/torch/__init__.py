"""Launches beside PyTorch: its tracer, its tensors, their gradients and versions."""
