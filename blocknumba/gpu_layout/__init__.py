"""Layouts: which thread holds which element, and the passes that decide it."""
