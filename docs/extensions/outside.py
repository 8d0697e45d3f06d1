"""Files of the repository outside of docs/ in the site: as pages, or to download.

A page of PAGES has the text of its file.  Links of all pages to a file with a page lead to it;
those to other files, as programs, are downloads.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
PAGES = {ROOT / file: DOCS / page for file, page in {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "perf/NOTES.md": "project/measuring.md",
    "tests/triton/suite/README.md": "project/triton_suite.md",
    "examples/README.md": "project/examples.md",
    "examples/aot/README.md": "project/ahead_of_time.md",
    "examples/tutorial/README.rst": "tutorial/index.rst",
    "examples/gallery/README.rst": "gallery/index.rst",
    "docs/README.md": "index.md",
    "README.md": "index.md",
}.items()}
_FILES = {page: file for file, page in PAGES.items() if page.parent.name == "project"}
# code, which is left alone, or the target of a link
_PARTS = re.compile(r"^```.*?^```$|`[^`\n]*`|(?<=\]\()(?P<path>[^)#\s]+)(?=[)#])",
                    re.MULTILINE | re.DOTALL)


def rewritten(text: str, page: str, source: Path) -> str:
    """The text of a source as a page: its links lead where they led from the source's folder."""
    folder = (DOCS / page).parent

    def target(found: re.Match[str]) -> str:
        path = found["path"]
        if path is None or re.match(r"\w+:", path):
            return found[0]
        file = Path(os.path.normpath(source.parent / path))
        if file.is_dir() and file / "README.md" in PAGES:
            file /= "README.md"
        elif file.is_dir():
            file /= "__init__.py"
        return os.path.relpath(PAGES.get(file, file), folder)

    return _PARTS.sub(target, text)


def read(app: Sphinx, page: str, content: list[str]) -> None:
    """Put in the text of a file from outside, and turn the links of a page."""
    own = DOCS / f"{page}.md"
    if not own.exists():
        return  # written by the gallery
    source = _FILES.get(own, own)
    content[0] = rewritten(source.read_text(), page, source)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what reads pages."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
