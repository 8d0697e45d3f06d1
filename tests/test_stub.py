"""The stubs say what the package has: they are made anew and compared."""

import ast

import pytest

import blocknumba as bn
from stub_file import PACKAGE, stubs

STUBS = stubs()


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_stub_is_what_is_made_of_the_public_names(path, request):
    if request.config.getoption("--bless"):
        path.write_text(STUBS[path])

    assert path.read_text() == STUBS[path], "pytest tests/test_stub.py --bless rewrites it"


def declared(text):
    """The names that a stub declares or imports."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            yield from (name.asname for name in node.names if name.asname)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def test_the_stub_declares_each_public_name_and_no_other():
    found = {name for name in declared(STUBS[PACKAGE / "__init__.pyi"])
             if not name.startswith("_")}

    assert found == {name for name in dir(bn) if not name.startswith("_")}
