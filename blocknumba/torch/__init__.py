"""Block kernels as operators of PyTorch: under autograd, torch.compile, export and vmap.

    import torch
    import blocknumba as bn
    import blocknumba.torch

    @blocknumba.torch.op("shop::double")
    def double(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        double_kernel[bn.cdiv(x.numel(), 1024)](x, out, BLOCK=1024)
        return out
"""

from blocknumba.torch.operator import next_power_of_2, op

__all__ = ["next_power_of_2", "op"]
