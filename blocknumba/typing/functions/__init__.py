"""The functions of the language, one file per family; nothing here needs Numba."""
