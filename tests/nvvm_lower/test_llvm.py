"""The writer of NVVM IR text: literals, names, reuse, metadata."""

import math

import pytest

from blocknumba.nvvm_lower.llvm import Body, Module, floating, integer


@pytest.mark.parametrize("value, bits, wanted", [
    (5, 32, "5"), (-1, 32, "-1"), (255, 8, "-1"), (2**32 + 3, 32, "3"), (2**63, 64, str(-2**63)),
    (1, 1, "1")])
def test_an_integer_is_written_signed_and_reduced(value, bits, wanted):
    assert integer(value, bits) == wanted


@pytest.mark.parametrize("value, wanted", [
    (1.0, "0x3FF0000000000000"), (-0.0, "0x8000000000000000"), (math.inf, "0x7FF0000000000000"),
    (float("nan"), "0x7FF8000000000000")])
def test_a_float_is_written_by_its_bits(value, wanted):
    assert floating(value) == wanted


def test_a_pure_instruction_is_written_once():
    body = Body(Module())

    assert body.binary("add", "i32", "%x", "1") == body.binary("add", "i32", "%x", "1")
    assert body.length == 1


def test_an_instruction_with_an_effect_is_written_each_time():
    body = Body(Module())

    assert body.assign("load i32, i32* %p") != body.assign("load i32, i32* %p")


def test_what_a_scope_computed_is_not_reused_after_it():
    body = Body(Module())
    before = body.binary("add", "i32", "%x", "1")
    with body.scope():
        inside = body.binary("mul", "i32", "%x", "3")
        assert body.binary("add", "i32", "%x", "1") == before

    assert body.binary("mul", "i32", "%x", "3") != inside
    assert body.binary("add", "i32", "%x", "1") == before


def test_a_conversion_to_the_same_type_is_nothing():
    body = Body(Module())

    assert body.convert("bitcast", "i32", "%x", "i32") == "%x"
    assert body.length == 0


def test_a_phi_is_complete_when_the_function_is():
    module = Module()
    body = Body(module)
    body.branch("loop")
    body.begin_block("loop")
    phi = body.phi("i32")
    phi.add("0", "entry")
    phi.add(body.binary("add", "i32", phi.name, "1"), body.block)
    body.branch("loop")
    body.define("k", ("i32 %n",))

    assert "%v1 = phi i32 [ 0, %entry ], [ %v2, %loop ]" in module.text()


def test_equal_metadata_is_one_node_and_loops_have_their_own():
    module = Module()

    assert module.node("!{i32 1}") == module.node("!{i32 1}")
    assert module.unrolling(1) != module.unrolling(1)


def test_a_function_is_declared_once():
    module = Module()
    body = Body(module)
    body.call("float", "llvm.sqrt.f32", "float %x")
    body.call("float", "llvm.sqrt.f32", "float %y")

    assert module.text().count("declare float @llvm.sqrt.f32(float)") == 1


def test_equal_texts_are_one_constant():
    module = Module()

    assert module.constant_bytes(b'a"\\\n\0') == module.constant_bytes(b'a"\\\n\0')
    assert 'c"a\\22\\5C\\0A\\00"' in module.text()


def test_variables_on_the_stack_are_made_when_the_function_begins():
    module = Module()
    body = Body(module)
    body.branch("later")
    body.begin_block("later")
    body.stack_variable("[2 x i64]", 8)
    body.define("k", ())

    lines = module.text().splitlines()
    assert lines[lines.index("entry:") + 1].endswith("alloca [2 x i64], align 8")
