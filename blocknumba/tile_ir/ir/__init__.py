"""Values, ops and functions of the tile IR, and how they are made, copied and checked."""
