"""Shared memory of a program: chunks, offsets and barriers."""
