"""Reports say what profilers say."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import Module


def address(expression, base="%rd1"):
    return f"{expression} mul.wide.u32 %rd8, %r2, 4; add.s64 %rd9, {base}, %rd8;"


@pytest.mark.parametrize("expression, sectors", [
    ("mov.u32 %r2, %r1;", 4), ("mul.lo.u32 %r2, %r1, 2;", 8), ("mul.lo.u32 %r2, %r1, 8;", 32),
    ("mov.u32 %r2, 3;", 1), ("xor.b32 %r2, %r1, 13;", 4), ("add.u32 %r2, %r1, 1;", 5),
])
def test_a_request_counts_the_sectors_it_touches(expression, sectors):
    report = run(f"{address(expression)} ld.global.b32 %r3, [%rd9];", np.zeros(512, np.int32))
    assert (report.total.requests, report.total.sectors) == (1, sectors)
    assert report.sectors_per_request == sectors


def test_ideal_sectors_are_those_of_contiguous_bytes():
    report = run(f"{address('mul.lo.u32 %r2, %r1, 8;')} ld.global.b32 %r3, [%rd9];",
                 np.zeros(512, np.int32))
    assert report.total.ideal_sectors == 4


@pytest.mark.parametrize("stride, wavefronts", [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (0, 1)])
def test_a_shared_access_counts_its_bank_conflicts(stride, wavefronts):
    report = run(f"mov.u32 %r2, buffer; mul.lo.u32 %r3, %r1, {4 * stride}; add.u32 %r3, %r3, %r2;"
                 "mov.b32 %r4, 0; st.shared.b32 [%r3], %r4;",
                 variables=".shared .align 16 .b8 buffer[4608];\n")
    assert (report.total.wavefronts, report.bank_conflicts) == (wavefronts, wavefronts - 1)


def test_wide_shared_accesses_take_a_pass_for_each_128_bytes():
    report = run("mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 16, %r2; mov.b32 %r4, 0;"
                 "st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4};",
                 variables=".shared .align 16 .b8 buffer[512];\n")
    assert (report.total.wavefronts, report.bank_conflicts) == (4, 0)


def test_inactive_lanes_touch_nothing():
    report = run(f"{address('mul.lo.u32 %r2, %r1, 8;')} setp.lt.u32 %p1, %r1, 2;"
                 "@%p1 ld.global.b32 %r3, [%rd9];", np.zeros(512, np.int32))
    assert report.total.sectors == 2


def test_counts_belong_to_source_lines_and_opcodes():
    text = module("""
.loc 1 10 1
mad.wide.u32 %rd9, %r1, 4, %rd1;
.loc 1 11 1
ld.global.b32 %r3, [%rd9];
st.global.b32 [%rd9], %r3;
""", variables='.file 1 "kernel.py"\n')
    report = Module.parse(text).launch("k", 3, 64, [np.zeros(64, np.int32)])
    lines = {loc.line: count for loc, count in report.by_line.items() if loc.file}
    assert lines[11].requests == 12 and lines[10].requests == 0 and lines[10].executed == 6
    assert report.by_opcode["ld.global.b32"] == 6
