"""Public methods and attributes: which there are, and the tables of the page that lists them.

A section of reference/members.md is a heading, a block of Python whose last line is an expression
with EXPRESSION in it, and a table of names, expressions, what they give and what they mean.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from entries import REFERENCE, Entry

import blocknumba as bn
from blocknumba import errors, testing, triton
from blocknumba.dispatch.block_functions.block_function import DeviceBlockFunction
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.layouts import KernelLayout, Layouts
from blocknumba.dispatch.compile.native import NativeStats
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.stats import Access, Dot, Ring, Stats
from blocknumba.dispatch.launch.bound import LaunchEvent
from blocknumba.dispatch.launch.device import Device
from blocknumba.dispatch.tune.autotune import Autotuner
from blocknumba.dispatch.tune.key import Pruning
from blocknumba.dispatch.tune.layers import Heuristics
from blocknumba.dispatch.tune.store import Row as TimedRow, Timing, Timings
from blocknumba.errors import BlockError
from blocknumba.testing.report import Results
from blocknumba.tile_ir.ir.types import DType
from blocknumba.triton.compiler.compiler import ASTSource
from blocknumba.triton.runtime import autotuner as triton_tuning
from blocknumba.triton.runtime.jit import KernelParam
from blocknumba.triton.tools.tensor_descriptor import TensorDescriptor
from blocknumba.typing import attributes
from blocknumba.typing.values import Array, BlockPointer, Descriptor, Span

PAGE = REFERENCE / "members.md"
_SECTION = re.compile(
    r"^## (?P<title>.+?)\n.*?^```py\n(?P<code>.*?)\n```$(?P<table>.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<expression>[^`]*)` \| `(?P<result>[^`]*)` "
                  r"\| (?P<meaning>.*) \|$", re.MULTILINE)
# an item of a docstring: names, a colon, and text up to the next item or an empty line
_ITEM = re.compile(r"(?:^|\.\s\s+|\n)(?P<names>\w+(?:, \w+)*): (?P<text>.*?)"
                   r"(?=\.\s\s+\w+(?:, \w+)*: |\n\w+(?:, \w+)*: |\n\n|\Z)", re.DOTALL)

# the parts of the compiler that call each other by these names are nobody's business
_OF_LAUNCHES = {"captures", "chosen", "compile", "execute", "last_choice",
                "new_code", "origin", "prepare", "prepare_read", "remake", "require_name",
                "specialize"}
# and so are those of tuners and heuristics
_OF_LAYERS = {"all_chosen", "chosen", "complete", "last_choice", "named", "origin", "remake",
              "require_free", "require_name"}
CLASSES = {
    "Kernels": (bn.Kernel, _OF_LAUNCHES),
    "Compiled kernels": (Compiled, {"chosen", "effects", "handle", "interpreter", "is_for",
                                    "is_text", "launcher", "machine", "native", "source",
                                    "tile_text"}),
    "Statistics": (Stats, {"of"}),
    "Statistics of native code": (NativeStats, set()),
    "Accesses": (Access, {"cells"}),
    "Dots": (Dot, {"cells"}),
    "Rings": (Ring, {"cells"}),
    "Layouts": (Layouts, set()),
    "A layout": (KernelLayout, set()),
    "Options": (Options, {"changed", "contract", "dialect", "named", "override"}),
    "Devices": (Device, set()),
    "Launch events": (LaunchEvent, set()),
    "Configurations": (bn.Config, set()),
    "Tuned kernels": (Autotuner, _OF_LAYERS),
    "Pruning": (Pruning, {"keep"}),
    "Kernels with heuristics": (Heuristics, _OF_LAYERS - {"all_chosen"}),
    "Block functions": (DeviceBlockFunction, {"bind", "code", "promise", "taken_apart"}),
    "Timings": (Timings, set()),
    "A row of timings": (TimedRow, set()),
    "A timing": (Timing, {"failed"}),
    "Benchmarks": (testing.Benchmark, set()),
    "Reports": (testing.Report, set()),
    "Results of a benchmark": (Results, set()),
    "Errors": (BlockError, {"at", "called_from"}),
    "Errors of resources": (errors.ResourceError, {"at", "called_from", "hint", "loc", "message"}),
    "Dtypes": (DType, None),
    "Kernels of Triton's dialect": (triton.JITFunction, {
        *_OF_LAUNCHES, "inspect_asm", "inspect_llvm", "inspect_sass", "inspect_tile", "options",
        "python_function", "signature", *filter(str.isidentifier, vars(bn.Kernel))}),
    "Parameters of kernels of Triton's dialect": (KernelParam, set()),
    "Launchers of your own": (triton.KernelInterface, set()),
    "Triton's configurations": (triton.Config, set()),
    "Triton's tuned kernels": (triton_tuning.Autotuner, set()),
    "Triton's heuristics": (triton_tuning.Heuristics, set()),
    "Stand-ins for tensors": (triton.MockTensor, set()),
    "Tensors read as others": (triton.TensorWrapper, set()),
    "Tensor descriptors on the host": (TensorDescriptor, set()),
    "Sources for compile": (ASTSource, set()),
    "Errors of compilation, Triton's": (triton.CompilationError, set()),
    "Errors of resources, Triton's": (triton.OutOfResources, set()),
}
"""The classes of objects that users meet outside of kernels, by section; and their members that
are not public."""


@dataclass(frozen=True)
class Row:
    """A row of a table: a name, an expression with it, what that gives, and what it means."""

    name: str
    expression: str
    result: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.name}` | `{self.expression}` | `{self.result}` | {self.meaning} |"


@dataclass(frozen=True)
class Section:
    """A section of the page: code before its rows, and the call of each row."""

    title: str
    code: str
    rows: tuple[Row, ...]

    @property
    def setup(self) -> str:
        """The block without its last line."""
        return self.code.rpartition("\n")[0]

    def call(self, row: Row) -> str:
        """The last line of the block, of a row."""
        return self.code.rpartition("\n")[2].replace("EXPRESSION", row.expression)


def sections() -> Iterator[Section]:
    """The sections of the page."""
    for found in _SECTION.finditer(PAGE.read_text()):
        rows = tuple(Row(**row.groupdict()) for row in _ROW.finditer(found["table"]))
        yield Section(found["title"], found["code"], rows)


def members() -> dict[str, set[str]]:
    """The public names of each section."""
    of_tiles = set(attributes.METHODS)
    of_pointers = {name for name in of_tiles if name.startswith("atomic_")} | {"load", "store"}
    structures = {title: set(attributes._STRUCTURE_ATTRIBUTES[cls]) for title, cls in {
        "Arrays": Array, "Spans": Span, "Descriptors": Descriptor,
        "Block pointers": BlockPointer}.items()}
    return {"Tiles": of_tiles - of_pointers | set(attributes._TILE_ATTRIBUTES),
            "Tiles of pointers": of_pointers, **structures,
            **{title: public(cls) - (hidden or set()) for title, (cls, hidden) in CLASSES.items()}}


def public(cls: type) -> set[str]:
    """The names of a class of ours without an underscore, those that its docstring names too."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("blocknumba")]
    names = {name for base in ours
             for name in (*vars(base), *vars(base).get("__annotations__", ()), *items(base))}
    return {name for name in names if not name.startswith("_") and name != "Errors"}


def items(cls: type) -> dict[str, str]:
    """The names that the docstring of a class describes, as lines of Markdown."""
    doc = inspect.cleandoc(cls.__doc__ or "").partition("\nExample:\n")[0]
    _, _, rest = doc.partition("\n\n")
    return {name: " ".join(found["text"].split()) for found in _ITEM.finditer(rest)
            for name in found["names"].split(", ") if name not in ("Errors", "Source", "Example")}


def meaning(title: str, name: str) -> str:
    """What a member means, by its docstring or its class's; "" where neither says it."""
    if title.startswith("Tiles"):
        method = attributes.METHODS.get(name)
        return Entry(name, method).summary if method else ""
    cls, _ = CLASSES.get(title, (None, None))
    if cls is None:
        return ""
    for base in cls.__mro__:
        if name in (found := items(base)):
            text = Entry(name, type(name, (), {"__doc__": found[name]})).summary
            return text[0].upper() + text[1:].rstrip(".") + "."
    member = inspect.getattr_static(cls, name, None)
    documented = isinstance(member, property) or callable(member) or hasattr(member, "func")
    return Entry(name, getattr(member, "func", member)).summary if documented else ""
