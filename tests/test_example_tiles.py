"""The tiles that examples choose: those that were the fastest when they were measured."""

import attention
import numpy as np
import pytest

from blocknumba.dispatch.launch.device import CPU, Device
from blocknumba.nvvm_lower.target import Target

H100 = Device("H100", Target.parse("sm_90a"), 132)
A100 = Device("A100", Target.parse("sm_80"), 108)


@pytest.mark.parametrize("D, dtype, device, rows", [
    (128, np.float16, H100, 128), (64, np.float16, H100, 64), (64, np.float32, H100, 64),
    (256, np.float16, H100, 64), (128, np.float16, A100, 64), (128, np.float16, CPU, 64)])
def test_attention_takes_large_blocks_where_they_are_faster(D, dtype, device, rows):
    assert attention.blocks_for(D, np.dtype(dtype), device, causal=False)["BM"] == rows
