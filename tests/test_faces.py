"""What stages know of ops is of ops that exist, once, and can be found."""

import re

import pytest
from faces import faces

from blocknumba.tile_ir.ir.opdef import OP_TABLES, OPS, OpTable


@pytest.fixture
def table():
    yield OpTable("number")
    OP_TABLES.pop()


@pytest.mark.parametrize("table", OP_TABLES, ids=lambda table: table.what)
def test_tables_have_entries_of_ops_alone(table):
    assert table and set(table) <= set(OPS)


def test_an_op_has_one_entry(table):
    table("add", "sub")(1)

    assert table == {"add": 1, "sub": 1}
    with pytest.raises(AssertionError, match="number of sub twice"):
        table.enter(OPS["sub"], 2)


def test_what_is_known_of_an_op_is_found_at_each_stage():
    found = dict(faces("scan"))

    assert {what: place.partition(":")[0] for what, place in found.items()} == {
        "declaration": "blocknumba/tile_ir/ops/scan.py",
        "type rule": "blocknumba/tile_ir/ops/scan.py",
        "numerics": "blocknumba/tile_ir/ops/scan.py",
        "placement (rules.py)": "blocknumba/gpu_layout/placement/rules.py",
        "code for GPUs": "blocknumba/nvvm_lower/ops/scan.py",
        "code for CPUs": "blocknumba/cpu_lower/ops/scan.py"}


@pytest.mark.parametrize("name", OPS)
def test_the_ops_module_of_each_op_is_found(name):
    assert any(re.match(r"blocknumba/(tile_ir|gpu_layout)/(\w+/)?ops\b", place)
               for _, place in faces(name))
