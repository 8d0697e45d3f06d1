"""Products of tiles: which instruction multiplies them, and in which layouts."""
