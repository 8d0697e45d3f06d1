"""From GPU-layout IR to machine code: one thread's program as NVVM IR text."""
