"""`triton.language.extra`: functions of one vendor's hardware."""

from blocknumba.triton.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
