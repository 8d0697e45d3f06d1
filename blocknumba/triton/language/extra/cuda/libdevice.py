"""`triton.language.extra.cuda.libdevice`: CUDA's functions of elements by their names."""

from blocknumba.libdevice import *  # noqa: F403  the module is made of its names
