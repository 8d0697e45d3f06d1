"""Every op of the registry has a docstring, a meaning and cases."""

import re

import pytest

from blocknumba.tile_ir import interpreter  # noqa: F401  gives ops with effects their meaning
from blocknumba.tile_ir.opdef import OPS, TERMINATOR

from case import CASES
from cases import cases_of


@pytest.mark.parametrize("name", OPS)
def test_every_op_says_what_it_does(name):
    doc = OPS[name].doc
    assert doc and doc.split("\n")[0].endswith("."), doc
    missing = [word for word in (*OPS[name].operands, *OPS[name].attributes)
               if not re.search(rf"\b{word}\b", doc)]
    assert not missing


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_a_meaning(name):
    opdef = OPS[name]
    assert opdef.evaluate or opdef.execute or opdef.has(TERMINATOR)


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_a_case(name):
    assert name in CASES and next(cases_of(name), None) is not None


def test_only_ops_have_cases():
    assert set(CASES) <= set(OPS)
