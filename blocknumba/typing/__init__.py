"""From a Python function to tile IR: Numba's bytecode analysis and type inference, our types."""
