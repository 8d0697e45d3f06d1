"""The public names of blocknumba with the pages that describe them; a Sphinx directive for these.

A page lists modules and names in ```{entries} blocks; the text of an entry is the docstring.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import blocknumba as bn
from blocknumba import errors, language, testing, triton
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.function import signature_text

REFERENCE = Path(__file__).resolve().parent.parent / "reference"
_ENTRIES = re.compile(r"^```\{entries\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<arguments>[^`]*)` \| `(?P<result>[^`]*)` "
                  r"\| (?P<meaning>.*) \|$", re.MULTILINE)
_TEMPLATE = re.compile(r"^```py\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
# modules of classes that users make
_MADE_BY_USERS = ("dispatch.tune.key", "testing.report", "triton.runtime.autotuner",
                  "triton.runtime.tensors", "typing.static_values")
# a line of a docstring that begins with names and a colon describes them
_ITEM = re.compile(r"^(?P<names>\w+(?:, \w+)*): ")
# and so does what follows a sentence and two blanks
_INLINE_ITEM = re.compile(r"(?<=[.;])  (?=\w+(?:, \w+)*: )")


@dataclass(frozen=True)
class Entry:
    """A public name.

    name: as users write it, `bn.sum` or `triton.jit`.   value: the object.
    """

    name: str
    value: object

    @property
    def short(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]

    @property
    def module(self) -> str:
        """The module that defines it, within blocknumba."""
        source = self.value
        if isinstance(source, ModuleType):
            return source.__name__.removeprefix("blocknumba.")
        for inner in ("rule", "fget"):  # of functions of the language, and of properties
            source = getattr(source, inner, source)
        return source.__module__.removeprefix("blocknumba.")

    @property
    def doc(self) -> str:
        """Its docstring, without indentation."""
        return inspect.cleandoc(self.value.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring as one line of Markdown, up to a `Source:`."""
        first = self.doc.partition("\n\n")[0].replace("\n", " ")
        return _escaped(re.split(r"\s+Source: ", first)[0])

    @property
    def parameters(self) -> list[inspect.Parameter] | None:
        """Its parameters without annotations; None of a module or of what has none."""
        if isinstance(self.value, ModuleType):
            return None
        try:
            found = inspect.signature(self.value)
        except (TypeError, ValueError):
            return None
        return [p.replace(annotation=p.empty) for p in found.parameters.values()]

    @property
    def signature(self) -> str:
        """Its parameters, in parentheses; "" of a module or of what has none."""
        found = self.parameters
        return "" if found is None else signature_text(inspect.Signature(found))

    def describes(self, names: list[str]) -> bool:
        """Whether names before a colon are of what its docstring describes, and no sentence."""
        if isinstance(self.value, type) or self.parameters is None:
            return True
        return {*names} <= {p.name for p in self.parameters} | {"Errors", "Returns", "Source"}


def entries() -> dict[str, Entry]:
    """The public names that have an entry of their own, by name.

    Names of dtypes and of libdevice are rows of tables: see rows.
    """
    found = {f"bn.{name}": getattr(bn, name) for name in dir(bn) if not name.startswith("_")}
    found = {name: value for name, value in found.items()
             if not isinstance(value, DType) and name != "bn.libdevice"}
    found |= {f"bn.testing.{name}": getattr(testing, name) for name in testing.__all__}
    found |= {f"bn.errors.{name}": value for name, value in vars(errors).items()
              if isinstance(value, type) and issubclass(value, errors.BlockError)}
    found |= {f"triton.{name}": getattr(triton, name) for name in triton.__all__}
    return {name: Entry(name, value) for name, value in found.items()}


def tables() -> dict[str, dict[str, object]]:
    """The pages that are tables, and the public names of each."""
    return {"dtypes": {name: value for name, value in vars(language).items()
                       if isinstance(value, DType) and name in language.__all__},
            "libdevice": {name: getattr(bn.libdevice, name) for name in bn.libdevice.__all__}}


@dataclass(frozen=True)
class Row:
    """A row of a table: a name, the arguments of a call, what it gives, and what the name means."""

    name: str
    arguments: str
    result: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.name}` | `{self.arguments}` | `{self.result}` | {self.meaning} |"


def rows(page: str) -> tuple[str, list[Row]]:
    """The call of a table, in which NAME and ARGUMENTS stand for those of a row, and the rows."""
    text = (REFERENCE / f"{page}.md").read_text()
    return _TEMPLATE.search(text)[1], [Row(**row.groupdict()) for row in _ROW.finditer(text)]


def placed() -> Iterator[tuple[str, Entry]]:
    """(page, entry) of what the pages list."""
    known = entries()
    for page in sorted(REFERENCE.glob("*.md")):
        for block in _ENTRIES.findall(page.read_text()):
            for entry in listed(block.split(), known):
                yield page.stem, entry


def listed(words: list[str], known: dict[str, Entry]) -> list[Entry]:
    """The entries that words name, in their order.

    A word is a name; a module, which stands for the names that it defines; a member of a named
    class, `bn.Kernel.bind`; or a class that users meet but do not name, by its whole path.
    Errors: LookupError or AttributeError for any other word.
    """
    found = []
    for word in words:
        own = [entry for name, entry in known.items()
               if entry.module == word and not isinstance(entry.value, ModuleType)
               and name.startswith("triton.") == word.startswith("triton")]
        found += sorted(own, key=lambda entry: entry.short) or [known.get(word) or _found(word)]
    return found


def _found(path: str) -> Entry:
    """An entry of what a path leads to, a member by its class and its name."""
    owner, _, name = path.rpartition(".")
    if owner in (known := entries()):
        cls = known[owner].value
        return Entry(f"{known[owner].short}.{name}", inspect.getattr_static(cls, name))
    return Entry(name, getattr(importlib.import_module(f"blocknumba.{owner}"), name))


def markdown(entry: Entry) -> str:
    """An entry as a directive of Sphinx's Python domain, in Markdown."""
    value, is_member = entry.value, "." in entry.name.removeprefix("bn.").removeprefix("triton.")
    kind = ("data" if isinstance(value, (ModuleType, property)) else
            "class" if isinstance(value, type) else "method" if is_member else "function")
    # how classes are made that users do not make themselves is nobody's business
    signature = "" if kind in ("data", "class") and entry.module not in _MADE_BY_USERS else (
        re.sub(r"^\(self(, )?", "(", entry.signature))
    body = "\n".join(_body(entry))
    return f"````{{py:{kind}}} {entry.name}{signature}\n\n{body}\n````\n"


def _body(entry: Entry) -> Iterator[str]:
    """The lines of its docstring as Markdown: items as lists, examples as code."""
    text, _, example = entry.doc.partition("\nExample:\n")
    text = _INLINE_ITEM.sub("\n", text)
    is_item = False
    for line in text.splitlines():
        item = _ITEM.match(line)
        if item is not None and entry.describes(item["names"].split(", ")):
            if not is_item:
                yield ""
            yield f"- **{item['names']}**: {_escaped(line[item.end():])}"
            is_item = True
        elif not line.strip():
            yield ""
            is_item = False
        else:
            yield f"  {_escaped(line.strip())}" if is_item else _escaped(line.strip())
    if example:
        yield from ("", "```python", *example.splitlines(), "```")


def _escaped(text: str) -> str:
    """Text in which only what is between backticks has a meaning in Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|])", r"\\\1", part)
                   for part in parts)
