"""Kernels of public repositories, loaded from folders of their sources, whatever else these need.

A module of theirs is run statement by statement, and only those that kernels need: a large package
is not imported for one kernel.  A statement that fails, because a package is missing or there is
no device, is left out, so that the kernels around it can be had.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from blocknumba.triton.loading import with_our_imports

BLOCKS = {"XBLOCK": 64, "YBLOCK": 16, "ZBLOCK": 8, "R0_BLOCK": 128, "R1_BLOCK": 16}
LEFT_OUT = ("test", "benchmark", "ascend", "_amd", "npu", "gluon", "runtime/backend/_")


def files_of(folders: Sequence[Path]) -> Iterator[Path]:
    """The files that define kernels, without tests and what is for other vendors' devices."""
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            within = file.relative_to(folder).as_posix()
            if not any(part in within for part in LEFT_OUT) and "@triton.jit" in file.read_text(
                    encoding="utf-8", errors="ignore"):
                yield file


def declared_types(file: Path, kernel: str) -> tuple[dict[str, str], dict[str, object]] | None:
    """The types and constants of a kernel that torch.compile wrote: its decorator says the types.

    None for any other kernel.
    """
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="ignore"))):
        if not isinstance(function, ast.FunctionDef) or function.name != kernel:
            continue
        for decorator in function.decorator_list:
            for keyword in getattr(decorator, "keywords", ()):
                if keyword.arg == "triton_meta" and isinstance(keyword.value, ast.Dict):
                    meta = {key.value: value for key, value in
                            zip(keyword.value.keys, keyword.value.values, strict=True)}
                    return _of_signature(*(ast.literal_eval(meta[name])
                                           for name in ("signature", "constants")))
    return None


def _of_signature(signature: dict[str, str], known: dict[str, object]) -> tuple[
        dict[str, str], dict[str, object]]:
    types = {name: f"{spelled}:16" if spelled.startswith("*") else spelled
             for name, spelled in signature.items() if spelled != "constexpr"}
    return types, {name: known.get(name, BLOCKS.get(name)) for name in signature
                   if name not in types}


class Sources:
    """The modules of some folders, with ours or the real one for triton."""

    def __init__(self, folders: Sequence[Path], ours: bool):
        self._folders = tuple(f"{folder.resolve()}{os.sep}" for folder in folders)
        self._ours, self._modules = ours, {}
        self._searching = False

    def load(self, file: Path) -> ModuleType:
        """The module of a file."""
        file = file.resolve()
        folder, names = file.parent, [file.stem]
        while (folder / "__init__.py").exists():
            names.insert(0, folder.name)
            folder = folder.parent
        outside = dict(sys.modules)
        before = list(sys.path)
        sys.modules.update(self._modules)
        # some folder of a package may have no __init__.py: names begin at the repository's, too
        sys.path[:0] = [str(folder), *(root for root in self._folders
                                       if str(file).startswith(root))]
        sys.meta_path.insert(0, self)
        try:
            module = importlib.import_module(".".join(names))
            vars(module)[_KERNELS]()
            return module
        finally:
            sys.meta_path.remove(self)
            sys.path[:] = before
            for name, module in list(sys.modules.items()):
                if self._is_theirs(getattr(getattr(module, "__spec__", None), "origin", None)):
                    self._modules[name] = module
                    del sys.modules[name]
            for name in self._modules:
                if name in outside:
                    sys.modules[name] = outside[name]

    def _is_theirs(self, origin: object) -> bool:
        return isinstance(origin, str) and origin.endswith(".py") and _resolved(
            origin).startswith(self._folders)

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is None or not self._is_theirs(found.origin):
            return None
        found.loader = _Tolerant(found.loader)
        return with_our_imports(found) if self._ours else found


@functools.cache
def _resolved(path: str) -> str:
    return os.path.realpath(path)


class _Tolerant:
    """A loader that runs what it can of a module, and what kernels need or others ask for alone."""

    def __init__(self, loader: importlib.machinery.SourceFileLoader):
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """See importlib.abc.Loader."""

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        code = _Code(module)
        vars(module)["__getattr__"] = code.value
        vars(module)[_KERNELS] = code.define_kernels


_KERNELS = "__define_kernels__"  # of a module: runs what defines its kernels


class _Code:
    """The statements of a module, each of which runs when one of its names is asked for."""

    def __init__(self, module: ModuleType):
        self._module, self._file = module, module.__spec__.origin
        body = ast.parse(Path(self._file).read_text(encoding="utf-8")).body
        self._parts = [part for statement in body for part in _parts(statement)]
        self._left = dict(enumerate(self._parts))
        self._binding: dict[str, list[int]] = {}
        for number, part in enumerate(self._parts):
            for name in _bound(part):
                self._binding.setdefault(name, []).append(number)

    def define_kernels(self) -> None:
        """Run the statements that make kernels, and what these need."""
        for number, part in enumerate(self._parts):
            if _makes_kernels(part):
                self._run(number)

    def value(self, name: str) -> object:
        """The module's `__getattr__`.  Errors: AttributeError."""
        self._define(name)
        found = vars(self._module)
        if name in found and found[name] != self.value:
            return found[name]
        own = found.get("__getattr__")
        if own is not None and own != self.value:
            return own(name)
        raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}")

    def _define(self, name: str) -> None:
        for number in self._binding.get(name, self._binding.get("__getattr__", ())):
            self._run(number)
        if name not in vars(self._module) and not name.startswith("__"):
            for number in self._binding.get("*", ()):
                self._take(self._parts[number], name)

    def _take(self, statement: ast.ImportFrom, name: str) -> None:
        """Bind a name by `from module import *`, if it has it."""
        one = ast.ImportFrom(statement.module, [ast.alias(name)], statement.level)
        with contextlib.suppress(Exception, SystemExit):
            self._execute(ast.copy_location(one, statement))

    def _run(self, number: int) -> None:
        part = self._left.pop(number, None)
        if part is None or (isinstance(part, ast.ImportFrom) and part.names[0].name == "*"):
            return
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id not in vars(self._module):
                self._define(node.id)
        try:
            self._execute(part)
        except (Exception, SystemExit):
            _without_decorators(part, self._module, self._file)

    def _execute(self, part: ast.stmt) -> None:
        made = ast.fix_missing_locations(ast.Module([part], []))
        exec(compile(made, self._file, "exec"), vars(self._module))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names of a module that a statement may bind; "*" by `from module import *`."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield statement.name
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            yield child.id
        elif not isinstance(child, ast.expr) or isinstance(child, ast.Tuple | ast.List):
            yield from _bound(child)


def _makes_kernels(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return any("jit" in ast.unparse(decorator) for decorator in statement.decorator_list)
    if isinstance(statement, ast.ClassDef | ast.Import | ast.ImportFrom | ast.Expr):
        return False
    return any(isinstance(node, ast.Name | ast.Attribute) and "jit" in ast.unparse(node)
               for node in ast.walk(statement))


def _parts(statement: ast.stmt) -> Iterator[ast.stmt]:
    """An import of several names as one for each."""
    if isinstance(statement, ast.ImportFrom) and len(statement.names) > 1:
        for name in statement.names:
            yield ast.copy_location(
                ast.ImportFrom(statement.module, [name], statement.level), statement)
    else:
        yield statement


def _without_decorators(statement: ast.stmt, module: ModuleType, file: str) -> None:
    """A kernel without the decorators above triton's own, which may need what is missing."""
    if not isinstance(statement, ast.FunctionDef):
        return
    kept = [decorator for decorator in statement.decorator_list
            if "jit" in ast.unparse(decorator)]
    if kept and len(kept) < len(statement.decorator_list):
        statement.decorator_list = kept
        try:
            exec(compile(ast.Module([statement], []), file, "exec"), vars(module))
        except Exception:
            return
