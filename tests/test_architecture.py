"""What reviews need not talk about: who imports whom, sizes, and where some things may be written."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES_OF_A_FILE = 500
MAX_LINES_OF_A_FUNCTION = 60
MAX_COLUMNS = 100

# What each package may import of ours, besides itself and the modules that everybody may.
FOR_ALL = {"coefficients", "drawing", "errors", "installation", "settings", "tables", "text_files",
           "tracebacks", "wording"}
ALLOWED = {
    "tile_ir": set(),
    "typing": {"tile_ir", "language", "library"},
    "gpu_layout": {"tile_ir"},
    "nvvm_lower": {"tile_ir", "gpu_layout"},
    "cpu_lower": {"tile_ir"},
    "dispatch": {"tile_ir", "typing", "cpu_lower", "gpu_layout", "nvvm_lower", "language", "library",
                 "emulator"},
    # it executes our PTX, and knows nothing of what wrote it
    "emulator": set(),
}
# Packages of others, and the only places that may import them.
FOREIGN = {
    "numba": ("typing", "dispatch"),
    "numba_cuda": ("nvvm_lower/toolchain.py", "dispatch"),
    "numba_cuda_mlir": ("dispatch/block_functions/numba_cuda_mlir.py",),
    "cuda": ("nvvm_lower/toolchain.py", "dispatch"),
    "cupy": ("dispatch",),
    "torch": ("dispatch", "torch"),
}
# numba.cuda is the package numba-cuda, which a base install has not.
NUMBA_CUDA = ("typing/scalars/gpu.py", "nvvm_lower/toolchain.py", "dispatch")
# Where a function may import what an installation may not have, with a comment that says so.
LAZY_IMPORTS = ("typing/scalars/functions.py", "nvvm_lower/toolchain.py", "dispatch")
QUESTION_WORDS = {"What", "Whatever", "Which", "Where", "When", "Who", "Why", "How"}
ASSEMBLY = re.compile(
    r"(?<![\w.])(?:ld|st|mma|ldmatrix|cp|red|atom|cvt|wgmma|mbarrier|bar|shfl|prmt)"
    r"\.(?:[a-z]+[0-9]*\.)*(?:global|shared|sync|async|u32|s32|b32|b64|f32|f16|bf16)\b")


@dataclass(frozen=True)
class Module:
    """One source file of the package."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def within(self) -> str:
        """The path within the package blocknumba."""
        return self.path.relative_to(ROOT / "blocknumba").as_posix()

    @property
    def package(self) -> str:
        """The folder of the first level; the name of the module where there is none."""
        return self.within.partition("/")[0].removesuffix(".py")

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in self.nodes
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @property
    def docstrings(self) -> set[ast.expr]:
        """The nodes of all docstrings, and of strings that stand alone."""
        return {node.value for node in self.nodes if isinstance(node, ast.Expr)}


MODULES = [Module(path) for path in sorted((ROOT / "blocknumba").rglob("*.py"))]
every_module = pytest.mark.parametrize("module", MODULES, ids=str)


def imported(node: ast.AST) -> list[str]:
    """The full names of the modules that a statement imports, or imports from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: a relative import"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def is_in(module: Module, places: tuple[str, ...]) -> bool:
    return any(module.within == place or module.within.startswith(f"{place}/") for place in places)


@every_module
def test_imports_follow_the_data(module):
    if module.package not in ALLOWED:
        return  # the modules at the top put the stages together
    allowed = ALLOWED[module.package] | FOR_ALL | {module.package}

    names = [name.split(".") for node in module.nodes for name in imported(node)]

    ours = {parts[1] for parts in names if parts[0] == "blocknumba" and len(parts) > 1}
    assert ours <= allowed, f"{module} imports {sorted(ours - allowed)}"


@every_module
def test_packages_of_others_are_imported_at_the_edges_only(module):
    for node in module.nodes:
        for name in imported(node):
            places = FOREIGN.get(name.partition(".")[0])
            if name.startswith("numba.cuda"):
                places = NUMBA_CUDA
            assert places is None or is_in(module, places), f"line {node.lineno} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.package == "tile_ir"], ids=str)
def test_tile_ir_needs_numpy_only(module):
    roots = {name.partition(".")[0] for node in module.nodes for name in imported(node)}

    assert roots & {"numba", "llvmlite", "scipy", "cuda", "cupy", "torch"} == set()


@every_module
def test_imports_are_at_the_top(module):
    for function in module.functions:
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            explained = any("#" in line for line in module.lines[node.lineno - 2:node.lineno])
            assert is_in(module, LAZY_IMPORTS), f"line {node.lineno}: imports in {function.name}"
            assert explained, f"line {node.lineno}: no comment says why it imports here"


@every_module
def test_files_functions_and_lines_are_short(module):
    long = {f.name: f.end_lineno - f.lineno + 1 for f in module.functions
            if f.end_lineno - f.lineno >= MAX_LINES_OF_A_FUNCTION}
    wide = [number for number, line in enumerate(module.lines, 1) if len(line) > MAX_COLUMNS]

    assert len(module.lines) <= MAX_LINES_OF_A_FILE
    assert long == {}
    assert wide == [], f"lines longer than {MAX_COLUMNS}"


@every_module
def test_a_module_opens_with_a_sentence(module):
    doc = ast.get_docstring(module.tree)

    first_paragraph = (doc or "").partition("\n\n")[0]
    assert first_paragraph and first_paragraph[-1] in ".!:", f"{module}: {first_paragraph!r}"


@every_module
def test_docstrings_open_with_a_noun_or_an_imperative(module):
    """ "Target of a device.", not "What a device is."."""
    documented = [module.tree, *(node for node in module.nodes if isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))]

    openings = {(ast.get_docstring(node) or "").partition(" ")[0] for node in documented}

    assert openings & QUESTION_WORDS == set()


@every_module
def test_environment_variables_are_read_in_settings_only(module):
    if module.within == "settings.py":
        return
    reads = [node.lineno for node in module.nodes
             if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
             or isinstance(node, ast.ImportFrom) and node.module == "os"
             and {alias.name for alias in node.names} & {"environ", "getenv"}]

    assert reads == []


@every_module
def test_assembly_is_written_in_the_ptx_table_only(module):
    if is_in(module, ("nvvm_lower/ptx", "nvvm_lower/ptx.py", "emulator")):
        return
    docstrings = module.docstrings

    found = [(node.lineno, node.value) for node in module.nodes
             if isinstance(node, ast.Constant) and isinstance(node.value, str)
             and node not in docstrings and ASSEMBLY.search(node.value)]

    assert found == []


@every_module
def test_nothing_is_left_for_later(module):
    marks = [number for number, line in enumerate(module.lines, 1)
             if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)]

    assert marks == []


def _reads_by_number(tree: ast.Module) -> list[int]:
    """Lines where `.operands` is subscripted by a constant, sliced or unpacked."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and _is_operands(node.value):
            index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
            if isinstance(index, ast.Constant | ast.Slice):
                found.append(node.lineno)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
            found += [node.lineno for part in ast.walk(node.value) if _is_unpacked(part, node)]
    return found


def _is_operands(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "operands"


def _is_unpacked(part: ast.AST, assignment: ast.Assign) -> bool:
    """Whether a part of what is assigned to several names is operands, or made of each of them."""
    if isinstance(part, ast.GeneratorExp | ast.ListComp):
        return _is_operands(part.generators[0].iter)
    target = assignment.targets[0]
    values = assignment.value.elts if isinstance(assignment.value, ast.Tuple) else []
    nested = [value for name, value in zip(target.elts, values)
              if isinstance(name, ast.Tuple | ast.List)]
    return _is_operands(part) and (part is assignment.value or part in nested)


@every_module
def test_operands_are_read_by_name(module):
    """Where ops are declared, and where all ops are treated alike, numbers are all there is."""
    if is_in(module, ("tile_ir/ir", "tile_ir/ops", "tile_ir/text", "emulator")):
        return

    assert _reads_by_number(module.tree) == []
