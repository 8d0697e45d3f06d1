"""Links of the documents: to files and headings, which must be there, and to the network.

    python tests/links.py       prints problems and every link to the network, which is not opened

A heading's anchor is its text in lower case without punctuation, blanks as hyphens; a second
heading of the same text gets -1, and so on, as GitHub and the site have it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`(?!\])", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+?)#*$", re.MULTILINE)
_NETWORK = re.compile(r"(?<!xmlns=\")https?://[^\s)>\"'`]*")  # a namespace of XML is no link
_BUILT = ("docs/_build", "docs/tutorial", "docs/gallery")  # by the site
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")


def documents() -> list[Path]:
    """The pages of the repository."""
    folders = ("docs", "examples", "perf", "tests")
    return sorted((*ROOT.glob("*.md"),
                   *(page for folder in folders for page in (ROOT / folder).rglob("*.md")
                     if not page.relative_to(ROOT).as_posix().startswith(_BUILT))))


@cache
def anchors(document: Path) -> frozenset[str]:
    """The anchors of a page's headings."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for heading in _HEADING.findall(_FENCED.sub("", document.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.append(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(found)


def problems(document: Path) -> Iterator[str]:
    """The links of a page that lead nowhere, each in words."""
    for link in _LINK.finditer(_CODE.sub("", document.read_text())):
        target = link["target"]
        if _NETWORK.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{target}: no such heading, there are {', '.join(sorted(anchors(file)))}"


def to_network() -> dict[str, list[str]]:
    """The links to the network, and the files that have them."""
    found: dict[str, list[str]] = {}
    files = (*documents(), ROOT / "setup.cfg", ROOT / "CITATION.cff",
             *(ROOT / "blocknumba").rglob("*.py"))
    for file in files:
        for link in _NETWORK.findall(file.read_text()):
            found.setdefault(link.rstrip(".,;"), []).append(file.relative_to(ROOT).as_posix())
    return found


def is_well_formed(link: str) -> bool:
    """Whether a link to the network has a host with a domain, and https."""
    parts = urlsplit(link)
    return parts.scheme == "https" and bool(_HOST.fullmatch(parts.netloc))


def main() -> int:
    wrong = [f"{document.relative_to(ROOT)}: {problem}"
             for document in documents() for problem in problems(document)]
    for link, files in sorted(to_network().items()):
        print(f"{link}  ({', '.join(dict.fromkeys(files))})")
        if not is_well_formed(link):
            wrong.append(f"{link}: not https with a domain")
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
