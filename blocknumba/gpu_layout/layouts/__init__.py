"""The algebra of layouts: which thread or which offset holds which element of a tile."""
