"""The interpreter: the meaning of a tile IR function, on NumPy arrays."""

from blocknumba.tile_ir.interpreter.launch import run

__all__ = ["run"]
