"""`python -m blocknumba port`: which kernels of files that were written for Triton compile."""
