"""`triton.language.extra.cuda`: functions of NVIDIA's hardware."""

from blocknumba.language import inline_asm_elementwise as _inline
from blocknumba.tile_ir.ir.types import int32 as _int32, int64 as _int64
from blocknumba.triton.language.extra.cuda import libdevice
from blocknumba.typing.dialect import TRITON_NAME as _TRITON_NAME
from blocknumba.typing.triton.functions import num_threads, num_warps

__all__ = ["gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads",
           "num_warps", "smid"]


def gdc_wait():
    """Wait for the kernel before this one: it is done, since launches never overlap here."""


def gdc_launch_dependents():
    """Let the next kernel begin early; it begins when this one is done."""


def globaltimer():
    """Nanoseconds, int64; on GPUs."""
    return _inline("mov.u64 $0, %globaltimer;", "=l", [], dtype=_int64, is_pure=False, pack=1)


def smid():
    """The number of the multiprocessor that a program is on, int32; on GPUs."""
    return _inline("mov.u32 $0, %smid;", "=r", [], dtype=_int32, is_pure=True, pack=1)


for _function in (gdc_wait, gdc_launch_dependents, globaltimer, smid):
    _function.__dialect__ = _TRITON_NAME
