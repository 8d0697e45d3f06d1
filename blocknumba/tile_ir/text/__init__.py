"""The text of functions: one syntax for all ops."""
