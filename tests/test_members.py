"""Methods and attributes of the reference: all of them, and each row gives what it says."""

import sys
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "extensions"))
from entries import entries  # noqa: E402
from members import CLASSES, PAGE, Row, Section, meaning, members, public, sections  # noqa: E402

MEMBERS = {title: names for title, names in members().items() if names}
SECTIONS = {section.title: section for section in sections()}


def shown(value: object) -> str:
    """A value on one line; of floats of NumPy four decimals, which all devices share."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    if isinstance(value, (np.ndarray, np.generic)):
        is_float = value.dtype.kind == "f"
        value = (value.astype(float).round(4) if is_float else value).tolist()
    return " ".join(repr(value).split())


def evaluated(section: Section) -> list[Row]:
    """The rows with what their expressions give now, and with what docstrings say of the names."""
    names = {"np": np, "bn": bn, "triton": triton, "tl": triton.language, "__name__": "members"}
    # kernels look for their source in the page
    first = PAGE.read_text().split(section.code)[0].count("\n")
    last = first + section.setup.count("\n") + 1
    exec(compile("\n" * first + section.setup, str(PAGE), "exec"), names)
    return [Row(row.name, row.expression,
                shown(eval(compile("\n" * last + section.call(row), str(PAGE), "eval"), names)),
                meaning(section.title, row.name) or row.meaning) for row in section.rows]


def test_every_public_member_has_a_row():
    rows = {title: [row.name for row in section.rows] for title, section in SECTIONS.items()}

    assert {title: sorted(names) for title, names in MEMBERS.items()} == {
        title: sorted(names) for title, names in rows.items()}


def test_a_public_class_has_a_section():
    """Its own, or that of a base with the same members."""
    described = {cls: public(cls) for cls, _ in CLASSES.values()}
    missing = [name for name, entry in entries().items() if isinstance(entry.value, type)
               and public(entry.value) and public(entry.value) not in
               [names for cls, names in described.items() if issubclass(entry.value, cls)]]

    assert missing == []


def test_a_member_that_is_not_public_is_there():
    gone = {title: hidden - set(dir(cls)) - public(cls)
            for title, (cls, hidden) in CLASSES.items() if hidden}

    assert {title: names for title, names in gone.items() if names} == {}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=lambda section: section.title)
def test_rows_of_members_use_them_and_say_what_they_give(section, request):
    now = evaluated(section)
    if request.config.getoption("--bless"):
        text = PAGE.read_text()
        before, heading, after = text.partition(f"## {section.title}\n")
        for old, new in zip(section.rows, now):
            after = after.replace(f"{old}\n", f"{new}\n", 1)
        PAGE.write_text(before + heading + after)
        return

    assert [*map(str, now)] == [*map(str, section.rows)]
    unused = [row.name for row in section.rows if f".{row.name}" not in row.expression]
    assert unused == [] and all(row.meaning for row in section.rows)
