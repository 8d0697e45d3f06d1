"""`python perf/bench_njit.py` found no module `heat`: examples/ is on the path of tests alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "perf").glob("*.py"))
EXAMPLES = {file.stem for file in (ROOT / "examples").glob("*.py")}
OWN = {file.stem for file in SCRIPTS}


def imported(tree: ast.Module) -> set[str]:
    """The modules that a script imports first, by their own names."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_are_imported_by_the_module_that_knows_where_they_are(script):
    text = script.read_text()

    assert "sys.path.insert" in text or not imported(ast.parse(text)) & (EXAMPLES - OWN)
