"""The reference: each public name has an entry, whose example calls it and prints what it says."""

import doctest
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "extensions"))
from entries import REFERENCE, Entry, Row, entries, placed, rows, tables  # noqa: E402

ENTRIES = entries()
TABLES = tables()
FLAGS = doctest.NORMALIZE_WHITESPACE
# classes of errors are raised, not called; one example for all of them is that of BlockError
RAISED = {name for name in ENTRIES if name.startswith("bn.errors.")} - {"bn.errors.BlockError"}


def names() -> dict[str, object]:
    """What an example may use without an import."""
    return {"np": np, "bn": bn, "triton": triton, "tl": triton.language}


def examples(entry: Entry) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(entry.doc, names(), entry.name, entry.name, 0)


@pytest.mark.parametrize("entry", [entry for name, entry in ENTRIES.items() if name not in RAISED],
                         ids=lambda entry: entry.name)
def test_the_example_of_a_public_name_calls_it_and_prints_what_it_says(entry):
    found = examples(entry)
    said: list[str] = []

    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(found, out=said.append)

    assert any(example.want for example in found.examples), f"{entry.name} has no example"
    assert re.search(rf"\.{entry.short}\b", "".join(e.source for e in found.examples))
    assert not said, "".join(said)


@pytest.mark.parametrize("name", sorted(RAISED))
def test_an_error_has_a_docstring_of_its_own(name):
    assert ENTRIES[name].value.__doc__ and ENTRIES[name].value in vars(bn.errors).values()


def test_a_public_name_is_on_one_page():
    pages = Counter(entry.name for _, entry in placed())

    assert {name: pages[name] for name in ENTRIES if pages[name] != 1} == {}


def called(page: str, row: Row) -> Row:
    """A row with what its call gives now, and with what the docstring of its name says."""
    call, _ = rows(page)
    text = call.replace("NAME", row.name).replace("ARGUMENTS", row.arguments)
    value = TABLES[page][row.name]
    meaning = row.meaning if page == "dtypes" else Entry(row.name, value).summary
    return Row(row.name, row.arguments, repr(eval(text, names())), meaning)


@pytest.mark.parametrize("page", TABLES)
def test_a_table_of_the_reference_says_what_its_calls_give(page, request):
    _, found = rows(page)
    now = [called(page, row) for row in found]
    if request.config.getoption("--bless"):
        file = REFERENCE / f"{page}.md"
        text = file.read_text()
        for old, new in zip(found, now):
            text = text.replace(f"{old}\n", f"{new}\n")
        file.write_text(text)
        return

    assert [row.name for row in found] == sorted(TABLES[page], key=str.lower)
    assert [shown_here(row) for row in found] == [*map(str, now)]


def shown_here(row: Row) -> str:
    """A row of a page with numbers as this release of NumPy writes them."""
    result = row.result
    if result.startswith("np.float32("):
        result = repr(eval(result, names() | {"nan": np.nan, "inf": np.inf}))
    return str(Row(row.name, row.arguments, result, row.meaning))


def test_the_parameters_of_functions_are_shown_by_help():
    import pydoc

    assert "load(pointer, mask=None, other=None" in pydoc.plain(pydoc.render_doc(bn.load))
