"""Every row of the inline PTX table, assembled for every target that can do it."""

from dataclasses import replace

import pytest

from blocknumba.nvvm_lower import ptx
from blocknumba.nvvm_lower.llvm import Body, Module
from blocknumba.nvvm_lower.ptx import memory
from blocknumba.nvvm_lower.ptx.assembly import POINTER
from blocknumba.nvvm_lower.ptx.memory import Access
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.nvvm_lower.toolchain import AssembleOptions, ToolchainError, assemble

PARAMETERS = {"i16": "%h", "i32": "%r", "i64": "%l", "float": "%f", "double": "%d",
              **dict(zip(POINTER.values(), ("%p", "%q"), strict=True))}


def module_of(rows):
    """A kernel that executes every row once, on its parameters."""
    module = Module()
    body = Body(module)
    for row in rows:
        # an effect keeps a row whose result nobody uses
        body.assembly(replace(row, has_effect=True), *(PARAMETERS[t] for t in row.operands))
    body.do("ret void")
    body.define("kernel", [f"{type_} {name}" for type_, name in PARAMETERS.items()])
    module.annotate("kernel", f"void ({', '.join(PARAMETERS)})", {"kernel": 1})
    return module.text()


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_every_row_assembles_on_every_target_that_can_do_it(target):
    rows = [row for row in ptx.rows() if row.needs is None or target.has(row.needs)]

    assembled = assemble(module_of(rows), target, AssembleOptions(verify=True))

    assert assembled.warnings == ()
    assert assembled.cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("target", [TARGETS["sm_80"]], ids=str)
@pytest.mark.parametrize("row", [row for row in ptx.rows() if row.needs], ids=lambda row: row.name)
def test_a_row_that_needs_more_than_the_oldest_target_is_refused_there(row, target):
    if target.has(row.needs):
        pytest.skip("the oldest target can do it")

    with pytest.raises(ToolchainError):
        assemble(module_of([row]), target)


def test_names_of_rows_say_what_they_do_and_where_it_is_described():
    rows = ptx.rows()

    assert all(row.name and row.section for row in rows)
    assert len({(row.name, row.text, row.results, row.operands) for row in rows}) == len(rows)


def test_a_predicated_load_keeps_the_other_value_in_the_result_register():
    row = memory.load(Access("global", "float", 4, predicated=True))

    assert row.constraints == "=f,=f,=f,=f,l,r,0,1,2,3"
    assert "@p ld.global.v4.b32 {$0, $1, $2, $3}, [$4];" in row.text


def test_an_eviction_priority_takes_a_policy_as_last_operand():
    row = memory.store(Access("global", "i32", 2, predicated=True, eviction="evict_first"))

    assert row.operands == (POINTER["global"], "i32", "i32", "i32", "i64")
    assert "st.global.L1::evict_first.L2::cache_hint.v2.b32 [$0], {$2, $3}, $4;" in row.text


def test_pure_rows_may_be_merged_and_effects_may_not():
    body = Body(Module())
    pure, effect = ptx.arithmetic.BFLOAT, ptx.warp.shuffle("bfly", "float", 1)

    same = body.assembly(pure, "%x"), body.assembly(pure, "%x")
    different = body.assembly(effect, "%x"), body.assembly(effect, "%x")

    assert same[0] == same[1]
    assert different[0] != different[1]
