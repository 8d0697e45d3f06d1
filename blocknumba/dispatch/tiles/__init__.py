"""Tiles that the compiler chooses: `bn.auto` for constants that are extents of tiles."""
