"""Tiles that the compiler chooses: `bn.auto` as the value of constants that are extents of tiles."""
