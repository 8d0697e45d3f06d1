"""Indices of a gather were read again after it, and kept, before its source was stored to.

Plans did not know gathers and maps as ops that run where they stand: the list of those stood twice.
"""

import re

from blocknumba.cpu_lower.kernel import lower
from blocknumba.cpu_lower.target import host
from blocknumba.tile_ir.text.parser import parse

TEXT = """\
kernel rearranged(
  %x: ptr<float32> = pointer(x)
  %y: ptr<int32> = pointer(y)
) {
  %i = arange {start=0, size=64} : tile<64xint32>
  %xs = splat %x : tile<64xptr<float32>>
  %p = offset %xs, %i : tile<64xptr<float32>>
  %ys = splat %y : tile<64xptr<int32>>
  %q = offset %ys, %i : tile<64xptr<int32>>
  %v = load %p : tile<64xfloat32>
  %at = load %q : tile<64xint32>
  %g = gather %v, %at {axis=0} : tile<64xfloat32>
  store %p, %g
  return
}
"""


def test_a_gather_needs_memory_for_its_source_and_its_result_alone():
    code = lower(parse(TEXT), host()).llvm_ir

    bytes_of_buffers = [int(size) for size in re.findall(r"alloca \[(\d+) x i8\]", code)]
    assert bytes_of_buffers == [2 * 64 * 4]
