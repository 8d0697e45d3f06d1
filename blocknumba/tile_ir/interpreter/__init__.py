"""The interpreter: runs a tile IR function on NumPy arrays, and defines what it computes."""

from blocknumba.tile_ir.interpreter.launch import Interpreter, run

__all__ = ["Interpreter", "run"]
