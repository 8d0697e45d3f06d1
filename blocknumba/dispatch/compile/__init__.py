"""From a kernel and what it is specialised on to machine code, in memory and on disk."""
