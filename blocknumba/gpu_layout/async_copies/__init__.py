"""Copies to shared memory beside computation: TMA with rings and roles, and cp.async."""
