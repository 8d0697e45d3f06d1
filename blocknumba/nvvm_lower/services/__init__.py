"""What the code of several op families needs: addresses, memory access, exchange between lanes."""
