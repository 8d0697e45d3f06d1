"""Lowering of tile IR to native code of the CPU, through LLVM IR."""
