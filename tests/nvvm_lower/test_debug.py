"""Printing, assertions and checks of accesses, as far as machine code shows them."""

import re

import pytest
from kernels import assembled, kernel, lowered

CHECKED = kernel("%n: int32 = extent(x, 0) {}", """
%i = arange {size=256, start=0} : tile<256xint32>
%ns = splat %n : tile<256xint32>
%mask = lt %i, %ns : tile<256xbool>
check_index %i, %ns, %mask {array="x", axis=0}""")
ASSERTED = kernel("%n: int32 = value(n) {}", """
%zero = constant {value=0} : int32
%ok = gt %n, %zero : bool
assert %ok {message="n is positive"}""")
PRINTED = kernel("%n: int32 = value(n) {}", """
%i = arange {size=2, start=0} : tile<2xint32>
%f = cast %i : tile<2xfloat16>
print %i, %f, %n {prefix="100% \\"x\\" = "}""")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("text", [CHECKED, ASSERTED, PRINTED], ids=["check", "assert", "print"])
def test_calls_into_the_driver_assemble_everywhere(text, target):
    found = assembled(text, target)

    assert found.warnings == ()


def test_a_failed_assertion_has_its_message_and_its_location():
    found = lowered(ASSERTED).nvvm_ir

    assert 'c"n is positive\\00"' in found
    assert re.search(r"call void @__assertfail\(.*i32 \d+", found)


def test_a_check_names_array_and_axis():
    assert 'c"index out of range of axis 0 of x\\00"' in lowered(CHECKED).nvvm_ir


def test_a_printed_element_comes_with_program_and_index():
    found = lowered(PRINTED).nvvm_ir
    start = 'c"pid (%d, %d, %d) idx '

    assert start + '(%1d) 100%% \\22x\\22 = : (operand 0) %d\\0A\\00"' in found
    assert start + '(%1d) 100%% \\22x\\22 = : (operand 1) %f\\0A\\00"' in found
    assert start + '() 100%% \\22x\\22 = : (operand 2) %d\\0A\\00"' in found


def test_a_hint_costs_nothing():
    parameters = "%op: ptr<int32> = pointer(out) {}\n%n: int32 = value(n) {}"
    with_hint = kernel(parameters, "%m = hint %n {divisibility=(8,)} : int32\nstore %op, %m")
    without = kernel(parameters, "store %op, %n")

    assert lowered(with_hint).nvvm_ir == lowered(without).nvvm_ir
