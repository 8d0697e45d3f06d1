"""The interpreter: the meaning of a tile IR function, on NumPy arrays."""

from blocknumba.tile_ir.interpreter.launch import Interpreter, run

__all__ = ["Interpreter", "run"]
