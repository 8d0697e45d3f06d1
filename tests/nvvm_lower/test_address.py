"""Index arithmetic: what one register and immediate offsets can address, and what must not be."""

import re

import numpy as np
import pytest
from kernels import assembled, emulated, kernel

from blocknumba.nvvm_lower.llvm import Body, Module
from blocknumba.nvvm_lower.services.address import Threads
from blocknumba.nvvm_lower.toolchain import disassemble

GATHER = """%xp: ptr<int32> = pointer(x) {divisibility=16}
%op: ptr<int32> = pointer(out) {divisibility=16}
%s: int32 = value(s) {}"""
STORE = """%i = arange {size=512, start=0} : tile<512xint32>
%os = splat %op : tile<512xptr<int32>>
%oq = offset %os, %i : tile<512xptr<int32>>
store %oq, %y"""


def gather_kernel(index):
    """Loads x at %at, int32, which index computes."""
    return kernel(GATHER, f"""{index}
%xs = splat %xp : tile<512xptr<int32>>
%xq = offset %xs, %at : tile<512xptr<int32>>
%y = load %xq : tile<512xint32>
{STORE}""")


ROW = gather_kernel("%at = arange {size=512, start=0} : tile<512xint32>")
SHIFTED = gather_kernel("""%j = arange {size=512, start=0} : tile<512xint32>
%ss = splat %s : tile<512xint32>
%at = add %j, %ss : tile<512xint32>""")


def test_a_row_is_addressed_by_one_register_and_immediate_offsets():
    sass = disassemble(assembled(ROW, num_warps=1).cubin)

    assert re.findall(r"LDG\.E\.128 \w+, desc\[\w+\]\[(\w+\.64)", sass) == ["R2.64"] * 4
    assert "+0x200" in sass and "+0x600" in sass


@pytest.mark.parametrize("shift", [0, 1, 100])
def test_an_index_moved_by_a_run_time_value_is_still_right(shift):
    x, out = np.arange(700, dtype=np.int32), np.zeros(512, np.int32)

    emulated(SHIFTED, 1, x, out, shift)

    np.testing.assert_array_equal(out, x[shift:shift + 512])


def test_an_index_that_wraps_addresses_what_it_wraps_to():
    text = gather_kernel("""%j = arange {size=512, start=0} : tile<512xint32>
%big = constant {value=2147483392} : int32
%bigs = splat %big : tile<512xint32>
%a = add %j, %bigs : tile<512xint32>
%b = add %a, %bigs : tile<512xint32>
%c = constant {value=512} : int32
%cs = splat %c : tile<512xint32>
%at = add %b, %cs : tile<512xint32>""")
    x, out = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)

    emulated(text, 1, x, out, 0)

    np.testing.assert_array_equal(out, x)


def test_a_range_that_starts_below_zero_is_not_widened_term_by_term():
    text = gather_kernel("""%j = arange {size=512, start=-512} : tile<512xint32>
%top = constant {value=2147483647} : int32
%tops = splat %top : tile<512xint32>
%a = add %j, %tops : tile<512xint32>
%b = sub %a, %tops : tile<512xint32>
%c = constant {value=512} : int32
%cs = splat %c : tile<512xint32>
%at = add %b, %cs : tile<512xint32>""")
    x, out = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)

    emulated(text, 1, x, out, 0)

    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("columns, instructions", [
    ((1, 2, 4, 8, 16), 2), ((0, 0, 1, 2, 4), 3), ((4, 8, 16, 1, 2), 6), ((0, 0, 0, 0, 0), 1)])
def test_runs_of_bits_are_moved_together(columns, instructions):
    body = Body(Module())

    Threads(body, 1).image(columns)

    assert body.length == instructions


@pytest.mark.parametrize("holds, expected", [(False, 0), (True, 1)])
def test_a_held_image_is_computed_once_at_entry_and_cannot_be_computed_again(holds, expected):
    body = Body(Module())
    threads = Threads(body, 4, holds)

    images = []
    for _ in range(2):
        with body.scope():
            images.append(threads.held_image((1, 2, 4, 16)))
    body.define("f", [])

    held = re.findall(r"(%\w+) = call i32 asm sideeffect", body.module.text())
    assert len(held) == expected
    assert (len(set(images)) == 1) == holds
