"""The documents: their Python runs, and prints what they say it prints."""

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import links
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a document: its language, its text, and its first line's number."""

    language: str
    text: str
    line: int


def blocks(document: Path) -> list[Block]:
    text = document.read_text()
    return [Block(found[1], found[2], text[:found.start(2)].count("\n") + 1)
            for found in FENCED.finditer(text)]


WITH_PYTHON = [path for path in DOCUMENTS if any(b.language == "python" for b in blocks(path))]


def run(block: Block, document: Path, namespace: dict) -> str:
    """Run a Python block as lines of its document; what it prints, and its exception if any."""
    code = compile("\n" * (block.line - 1) + block.text, str(document), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", WITH_PYTHON, ids=name)
def test_python_of_a_document_prints_what_the_document_says(document):
    """A `text` block right after a `python` block is what the latter prints."""
    namespace = {"__name__": "document"}
    found = blocks(document)
    with np.printoptions():  # a document may set its own
        for block, following in zip(found, [*found[1:], Block("", "", 0)]):
            if block.language != "python":
                continue
            printed = run(block, document, namespace)
            if following.language == "text":
                assert printed == following.text


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "compiler").glob("*.md")), ids=name)
def test_a_page_on_the_compiler_has_a_picture_or_an_example(page):
    text = page.read_text()

    assert page.stem == "glossary" or FENCED.search(text) or ".svg)" in text


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *(ROOT / "docs/compiler").glob("*.md")],
                         ids=name)
def test_modules_that_a_page_on_the_compiler_names_exist(page):
    named = re.findall(r"`(?:\.\./)?([\w./]+\.py)\b", page.read_text())
    ours = [f"/{path.relative_to(ROOT)}" for folder in ("blocknumba", "tests", "perf", "examples")
            for path in (ROOT / folder).rglob("*.py")]

    assert [one for one in named if not any(path.endswith(f"/{one}") for path in ours)] == []


@pytest.mark.parametrize("document", links.documents(), ids=name)
def test_links_of_a_document_lead_to_files_and_headings(document):
    assert [*links.problems(document)] == []


def test_links_to_the_network_are_well_formed():
    found = links.to_network()

    assert found and [link for link in found if not links.is_well_formed(link)] == []


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Two words: `code`\n# Again\n# Again\n[a](#two-words-code) [b](#again-1)\n"
                    "[c](#again-2) [d](other.md)\n```text\n[e](nowhere.md)\n```\n")

    assert [problem.partition(":")[0] for problem in links.problems(page)] == [
        "#again-2", "other.md"]
