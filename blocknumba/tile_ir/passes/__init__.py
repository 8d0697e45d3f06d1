"""Machine-independent passes over tile IR."""
