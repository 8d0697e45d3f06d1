"""`triton.language.extra.cuda`: functions of NVIDIA's hardware."""

from blocknumba.triton.language.extra.cuda import libdevice

__all__ = ["libdevice"]
