"""Services for several op families: addresses, memory access, exchange between lanes, casts."""
