"""Kernels of any number of arguments, in every peer's language: the first array is the sum of all."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

# arguments -> how many of them are arrays and how many are ints
ARGUMENTS = {0: (0, 0), 1: (1, 0), 4: (3, 1), 5: (4, 1), 10: (8, 2), 20: (16, 4)}
BLOCK = 128

_TILES = """\
{imports}


@{decorator}
def total({formals}BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
"""
_THREADS = """\
from numba import cuda


@cuda.jit
def total({formals}):
    i = cuda.grid(1)
"""
_C = """extern "C" __global__ void total({formals}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}"""
_IMPORTS = {"blocknumba": ("import blocknumba as bn\nimport blocknumba.language as tl", "bn.jit"),
            "Triton": ("import triton\nimport triton.language as tl", "triton.jit")}


def names(count: int) -> tuple[list[str], list[str]]:
    """The arrays and the numbers among a number of arguments, in their order."""
    arrays, numbers = ARGUMENTS[count]
    return [f"x{number}" for number in range(arrays)], [f"n{number}" for number in range(numbers)]


def tile_kernel(language: str, count: int) -> object:
    """The kernel of "blocknumba" or "Triton"."""
    arrays, numbers = names(count)
    imports, decorator = _IMPORTS[language]
    text = _TILES.format(imports=imports, decorator=decorator,
                         formals="".join(f"{name}, " for name in (*arrays, *numbers)))
    if arrays:
        read = [f"tl.load({name} + r)" for name in arrays[1:]] or ["r * 1.0"]
        text += f"    tl.store({arrays[0]} + r, {' + '.join(read + numbers)})\n"
    return _imported(f"{language}_{count}", text).total


def numba_kernel(count: int) -> object:
    """The kernel of numba-cuda."""
    arrays, numbers = names(count)
    text = _THREADS.format(formals=", ".join(arrays + numbers))
    if arrays:
        read = [f"{name}[i]" for name in arrays[1:]] or ["i"]
        text += f"    {arrays[0]}[i] = {' + '.join(read + numbers)}\n"
    return _imported(f"numba_{count}", text).total


def c_source(count: int) -> str:
    """The kernel in CUDA C++."""
    arrays, numbers = names(count)
    formals = [f"float* {name}" for name in arrays] + [f"int {name}" for name in numbers]
    read = [f"{name}[i]" for name in arrays[1:]] or ["i"]
    body = f"    {arrays[0]}[i] = {' + '.join(read + numbers)};" if arrays else ""
    return _C.format(formals=", ".join(formals), body=body)


def written_call(kernel: object, grid: str, arguments: Sequence[object],
                 named: str = "") -> Callable[[], object]:
    """`kernel[grid](a0, a1, ..., named)` as a user writes it: a call with * costs more.

    grid, named: as text.
    """
    given = {f"a{number}": value for number, value in enumerate(arguments)}
    passed = ", ".join(filter(None, (*given, named)))
    return eval(f"lambda: kernel[{grid}]({passed})", {"kernel": kernel, **given})


def _imported(name: str, text: str) -> ModuleType:
    """A module of a text, in a file because Triton reads the source."""
    path = Path(tempfile.mkdtemp(prefix="launch-kernels-"), f"{name}.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
