"""Triton's tutorials, unchanged: each with blocknumba.triton, or with Triton, and what it says.

    python tests/triton/suite/tutorials.py CHECKOUT [--with blocknumba|triton] [--only 06]

CHECKOUT: a folder with Triton's python/tutorials.  Needs Torch, pytest and a GPU.  Each runs in a
process of its own; what they measure is left out, and the profiler that only measures too.  The
products of Triton's private binding of cuBLAS, which 09 compares with, are Torch's then.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "tutorials_of_triton"


def main() -> None:
    """Run the tutorials, and print what they say and a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--with", dest="which", choices=("blocknumba", "triton"),
                        default="blocknumba")
    parser.add_argument("--only", default="")
    parser.add_argument("--one", action="store_true", help="in this process")
    options = parser.parse_args()
    files = sorted((options.checkout / "python" / "tutorials").glob(f"{options.only}*-*.py"))
    if options.one:
        _run(files[0], options.which)
        return
    rows = [_started(options.checkout, path, options.which) for path in files]
    print("\n".join(rows))


def _started(checkout: Path, path: Path, which: str) -> str:
    """One tutorial in a process; its row of the table."""
    command = [sys.executable, __file__, str(checkout), "--with", which, "--only", path.name[:2],
               "--one"]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    wrong = done.returncode != 0 or "❌" in done.stdout
    print(f"== {path.name}", *lines[-12 if wrong else -40:], sep="\n", flush=True)
    return f"{path.name:36} {'failed' if wrong else 'ran'} {time.monotonic() - begin:5.1f} s"


def _run(path: Path, which: str) -> None:
    """Import a tutorial, which is all that most do, and check what its main program checks."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, PACKAGE)
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "tutorial.py").write_text(path.read_text())
        sys.path.insert(0, folder)
        _prepare(which, path.parents[1] / "triton" / "tools")
        tutorial = importlib.import_module(f"{PACKAGE}.tutorial")
        _CHECKS.get(path.name[:2], lambda tutorial: None)(tutorial)


def _prepare(which: str, tools: Path) -> None:
    """Let imports of triton find what is asked for; without measurements, and no profiler.

    tools: Triton's own, of which a tutorial imports functions of the host.
    """
    if which == "blocknumba":
        sys.path.insert(0, str(ROOT))
    name = {"triton": "triton", "blocknumba": "blocknumba.triton"}[which]
    triton = importlib.import_module(name)
    importlib.import_module(f"{name}.testing").perf_report = lambda *_: _unmeasured
    importlib.import_module(f"{name}.tools").__path__.append(str(tools))
    profiler = types.ModuleType(f"{name}.profiler")
    profiler.scope = lambda *_, **__: contextlib.nullcontext()
    sys.modules[f"{name}.profiler"] = triton.profiler = profiler
    if which == "blocknumba":
        sys.modules.update(_products_of_torch(f"{name}._C"))
        triton.install(PACKAGE)


def _products_of_torch(package: str) -> dict[str, types.ModuleType]:
    """The modules of a stand-in for Triton's binding of cuBLAS, by their names."""
    blas = types.SimpleNamespace(CublasLt=_Products)
    binding = types.ModuleType(f"{package}.libtriton")
    binding.nvidia = types.SimpleNamespace(cublas=blas)
    around = types.ModuleType(package)
    around.libtriton = binding
    return {package: around, binding.__name__: binding}


class _Products:
    """CublasLt: c = a @ b.T, the workspace being of no use."""

    def __init__(self, workspace: object):
        pass

    def matmul(self, a, b, c) -> None:
        """Products of floats, of 8 bits too, by way of float32."""
        c.copy_(a.float() @ b.float().T)


def _unmeasured(function):
    return types.SimpleNamespace(run=lambda **_: None)


def _attention(tutorial) -> None:
    shapes = itertools.product((1, 4), (2,), (128, 1024), (64, 128), (False, True))
    for given in shapes:
        tutorial.test_op(*given, False, "bwd", "triton-fp16")
        tutorial.test_op(*given, False, "fwd", "triton-fp8")
        print("attention of", *given, "is right")


def _persistent(tutorial) -> None:
    torch = tutorial.torch
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.float8_e4m3fn):
        tutorial.validate(32, 32, 32, dtype)
        tutorial.validate(2048, 2048, 512, dtype)


def _scaled(tutorial) -> None:
    print("the GPU has block-scaled products:", tutorial.supports_block_scaling())


def _programmatic(tutorial) -> None:
    tutorial.validate(1024)


_CHECKS = {"06": _attention, "09": _persistent, "10": _scaled, "11": _programmatic}

if __name__ == "__main__":
    main()
