"""Decisions on a whole kernel before its code is written."""
