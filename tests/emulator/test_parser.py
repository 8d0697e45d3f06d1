"""PTX text becomes instructions with resolved names."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import Module, PtxSyntaxError
from blocknumba.emulator.parser import parse
from blocknumba.emulator.syntax import Address, Group, Immediate, Inverted, Pair, Register


def instruction(text):
    """The one instruction before ret."""
    return parse(module(text)).functions["k"].body[-2]


def test_an_opcode_is_split_at_its_dots():
    assert instruction("add.rn.ftz.f32 %f0, %f1, %f2;").opcode == ("add", "rn", "ftz", "f32")


def test_a_guard_is_a_register_and_a_sign():
    found = instruction("@!%p3 add.s32 %r2, %r3, 1;")
    assert (found.guard.name, found.inverted) == ("%p3", True)


@pytest.mark.parametrize("text, value, bits", [
    ("17", 17, 0), ("-3", -3, 0), ("0x1F", 31, 0), ("0b101", 5, 0), ("017", 15, 0),
    ("0f3F800000", 0x3F800000, 32), ("0d3FF0000000000000", 0x3FF0000000000000, 64), ("1.5", 1.5, 0),
    ("4U", 4, 0),
])
def test_a_literal_has_its_value(text, value, bits):
    assert instruction(f"mov.b32 %r2, {text};").operands[1] == Immediate(value, bits)


def test_an_address_has_a_base_an_offset_and_coordinates():
    found = instruction("ld.global.b32 %r2, [%rd3+-8];").operands[1]
    tensor = instruction("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                         "[%rd1, {%r2, %r3}], [%r4];").operands[0]
    assert isinstance(found, Address) and found.offset == -8
    assert [one.name for one in tensor.coordinates] == ["%r2", "%r3"]


def test_braces_bars_and_exclamation_marks_group_operands():
    vector = instruction("ld.global.v2.b32 {%r2, %r3}, [%rd1];").operands[0]
    pair = instruction("shfl.sync.bfly.b32 %r2|%p1, %r3, 1, 31, -1;").operands[0]
    inverted = instruction("and.pred %p1, %p2, !%p3;").operands[2]
    assert isinstance(vector, Group) and isinstance(pair, Pair) and isinstance(inverted, Inverted)


def test_inner_braces_hide_the_names_around_them():
    body = parse(module("{ .reg .pred %p<2>; .reg .b32 t; setp.eq.s32 %p1, %r1, 0; mov.b32 t, 1; }"
                        "setp.eq.s32 %p1, %r1, 0;")).functions["k"].body
    inner, outer = body[-4].operands[0], body[-2].operands[0]
    assert isinstance(inner, Register) and inner.name == outer.name and inner.slot != outer.slot


def test_a_label_in_braces_belongs_to_them():
    output = np.zeros(1, np.int32)
    run("""mov.b32 %r2, 0;
        { .reg .pred q; L: add.s32 %r2, %r2, 1; setp.lt.s32 q, %r2, 3; @q bra L; }
        { .reg .pred q; L: add.s32 %r2, %r2, 10; setp.lt.s32 q, %r2, 30; @q bra L; }
        st.global.b32 [%rd1], %r2;""", output, block=1)
    assert output[0] == 33


def test_loc_holds_the_source_line_and_where_it_was_inlined():
    text = module("""
.loc 1 12 5
add.s32 %r2, %r1, 1;
.loc 2 7 3, function_name $L__info, inlined_at 1 14 9
add.s32 %r2, %r2, 1;
""", variables='.file 1 "kernel.py"\n.file 2 "library.py"\n')
    plain, inlined, _ = parse(text).functions["k"].body[-3:]
    assert str(plain.loc) == "kernel.py:12"
    assert (str(inlined.loc), str(inlined.loc.caller)) == ("library.py:7", "kernel.py:14")


def test_initial_values_are_bytes_in_memory_order():
    program = parse(module("", variables=".global .align 4 .u16 table[4] = {1, 0x203, 5};"))
    assert program.variables["table"].initial == bytes([1, 0, 3, 2, 5, 0, 0, 0])


def test_comments_sections_and_pragmas_are_skipped():
    text = module('/* two\nlines */ .pragma "nounroll"; // end')
    assert Module.parse(text + '.section .debug_str { .b8 1, 2\n }').kernels == ["k"]


def test_what_is_no_ptx_is_refused_with_its_line():
    with pytest.raises(PtxSyntaxError) as caught:
        parse(".version 8.0\n.target sm_80\nadd.s32 ?")
    assert caught.value.ptx_line == 3


def test_an_undeclared_guard_is_refused_with_its_line():
    with pytest.raises(PtxSyntaxError, match="'%q1'.*register") as caught:
        parse(module("@%q1 bra L; L:"))
    assert caught.value.ptx_line > 0


@pytest.mark.parametrize("attributes", [".ptr .global .align 1", ".ptr .align 1", ".ptr .global",
                                        ".align 8 .ptr .global .align 2", ".ptr"])
def test_the_alignment_behind_ptr_is_not_that_of_the_parameter(attributes):
    text = module("", 0).replace("k()", f"k(.param .u32 n, .param .u64 {attributes} p)")

    (n, p) = parse(text).functions["k"].parameters

    assert (p.align, p.size, p.name, n.align) == (8, 8, "p", 4)
