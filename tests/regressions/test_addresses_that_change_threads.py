"""Addresses that went from thread to thread were taken for unaligned, and loads of them for narrow.

It halved the speed of paged attention: the rows of a page were loaded 2 bytes at a time.
"""

import pytest

from blocknumba.gpu_layout import ops  # noqa: F401  registers
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.stage_conversions import stage_conversions
from blocknumba.tile_ir.analysis.axis_info import axis_info
from blocknumba.tile_ir.text.parser import parse

LANES = "register:1;lane:2..32;warp:64"
# warps and lanes in turn: through a buffer.  Registers and lanes in turn: by shuffles
OTHERS = {"buffer": "register:1;lane:64.2.4.8.16;warp:32", "shuffles": "register:32;lane:1..16;warp:64"}
TEXT = """
kernel rows(
  %x: ptr<float16> = pointer(x) {{divisibility=16}}
  %n: int32 = value(n) {{divisibility=8}}
) {{
  %i = arange {{start=0, size=128}} : tile<128xint32, {lanes}/dim0:7>
  %ns = splat %n : tile<128xint32, {lanes}/dim0:7>
  %rows = mul %i, %ns : tile<128xint32, {lanes}/dim0:7>
  %xs = splat %x : tile<128xptr<float16>, {lanes}/dim0:7>
  %p = offset %xs, %rows : tile<128xptr<float16>, {lanes}/dim0:7>
  %below = lt %i, %ns : tile<128xbool, {lanes}/dim0:7>
  %q = convert_layout %p : tile<128xptr<float16>, {others}/dim0:7>
  %inside = convert_layout %below : tile<128xbool, {others}/dim0:7>
  %value = load %q, %inside : tile<128xfloat16, {others}/dim0:7>
  return
}}
"""


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_what_is_known_of_addresses_and_masks_goes_with_them(others):
    fn = parse(TEXT.format(lanes=LANES, others=others), LinearLayout.parse)

    made = stage_conversions(fn, LayoutOptions(num_warps=2))

    infos = axis_info(made)
    load = made.body.ops[-2]
    assert infos[load.pointer].axes[0].divisibility == 16
    assert infos[load.mask].axes[0].constancy == 8
