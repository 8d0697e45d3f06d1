"""Triton's dialect: `dialect.py` is the table that typing asks, imported when a kernel is typed."""
