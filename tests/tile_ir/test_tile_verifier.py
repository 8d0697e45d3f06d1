"""The verifier: what it finds wrong."""

import pytest

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.verifier import Level, problems
from blocknumba.tile_ir.ir.verifier import TILE  # noqa: E402
from blocknumba.tile_ir.ir.verifier import verify  # noqa: E402
from blocknumba.tile_ir.text.parser import parse


def kernel(*lines: str) -> Function:
    return parse("\n".join(["kernel f(", "  %n: int32 = value(n)", "  %c: bool = value(c)", ") {",
                            *lines, "}"]), LinearLayout.parse)


WRONG = {
    "returns (int32), not (int64)": ["%0 = neg %n : int64", "return"],
    "given int32 and bool, accepted operands of one type": ["%0 = add %n, %c : int32", "return"],
    "region does not end in return": ["%0 = neg %n : int32"],
    "a region must end in a terminator": ["%0 = neg %n : int32"],
    "not at the end": ["return", "return"],
    "region yields (bool), not (int32)": [
        "%0 = if %c : int32 {", "yield %c", "} else {", "yield %n", "}", "return"],
    "1 regions, not 2": ["if %c {", "yield", "}", "return"],
    "region takes (), not (int32)": ["for %n, %n, %n {", "yield", "}", "return"],
    "region does not end in continue_if": ["loop {", "yield", "}", "return"],
    "operand 0 (int32) is not defined there": [
        "if %c {", "%0 = neg %n : int32", "yield", "} else {", "yield", "}",
        "%1 = neg %0 : int32", "return"],
    "condition must be a scalar bool, got int32": [
        "if %n {", "yield", "} else {", "yield", "}", "return"],
    "view<1xint32> crosses a region": [
        "%v = undefined {dtype=\"ptr<int32>\"} : ptr<int32>",
        "%w = view %v {extents=(4,), strides=(1,)} : view<1xint32>",
        "%0 = for %n, %n, %n, %w : view<1xint32> (%i: int32, %u: view<1xint32>) {", "yield %u",
        "}", "return"],
    "given 1 indices of view<2xint32>": [
        "%p = undefined {dtype=\"ptr<int32>\"} : ptr<int32>",
        "%w = view %p {extents=(4, 4), strides=(4, 1)} : view<2xint32>",
        "%q, %m = elements %w, %n {sizes=(8,), nonnegative=(True,)} : "
        "tile<8xptr<int32>>, tile<8xbool>", "return"],
    "has a layout already": [
        "%0 = arange {start=0, size=2} : tile<2xint32, lane:1/dim0:1>", "return"],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_named(message):
    fn = kernel(*WRONG[message])

    found = list(problems(fn, TILE))

    assert any(message in problem for problem in found), found


def test_a_function_that_is_right_has_no_problems():
    fn = kernel("%0 = for %n, %n, %n, %c : bool (%i: int32, %b: bool) {", "yield %b", "}", "return")

    found = list(problems(fn, TILE))

    assert found == []


def test_a_value_defined_twice_is_named():
    builder = Builder(folding=False)
    with builder.region() as (body, _):
        builder.constant(1, OPS["arange"].infer(start=0, size=1).dtype)
        builder.emit(OPS["return"])
    op = body.ops[0]
    fn = Function("f", (), Region((), (op, op, body.ops[1])))

    found = list(problems(fn))

    assert any("is defined twice" in problem for problem in found)


def test_a_result_of_another_op_is_named():
    one = OPS["constant"]
    result = Value(one.infer(value=1, dtype="int32"))
    op = Op(one, (), {"value": 1, "dtype": "int32"}, (result,))
    fn = Function("f", (), Region((), (op, Op(OPS["return"], (), {}))))

    found = list(problems(fn))

    assert any("a result is not its own" in problem for problem in found)


def test_a_level_adds_its_own_invariants():
    no_negation = Level("positive", of_op=(lambda op: "negates" if op.name == "neg" else None,))
    fn = kernel("%0 = neg %n : int32", "return")

    with pytest.raises(AssertionError, match="not well formed at positive:\nneg at .*: negates"):
        verify(fn, no_negation)
