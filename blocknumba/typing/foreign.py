"""Objects of Triton and of numba.cuda, met in a kernel: ours of the same name, or what to write.

Kernels are of ours, but what they call may come from a package that imported the real Triton, as
Torch's helpers for its generated kernels do.  Names of numba.cuda, whose kernels are written for
one thread, are refused.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.types import dtype_of

THEIRS, OURS = "triton", "blocknumba.triton"
_SHORT = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
          "int1": "bool"}
_NUMBA_CUDA = "numba.cuda"
_PROGRAMS = ("a program is one block: bn.program_id(axis) is its index, bn.num_programs(axis) "
             "their number")
_THREADS = ("a program computes whole tiles: r = bn.block(0, SIZE) are its elements, r.index "
            "their indices, and the compiler gives them to threads")
_BARRIER = "leave it out: a program sees its own stores, and the compiler places the barriers"
_ATOMICS = "use bn.atomic_add(x.at[i], value), and atomic_max, atomic_cas and the like"
_HINTS = {
    "grid": "use r = bn.block(0, SIZE), this program's SIZE elements of axis 0, and x[r]; "
            "bn.program_id(0) is the index of the program",
    "gridsize": "use bn.grid_spans(stop, SIZE) to loop over the elements of all programs",
    "blockIdx": _PROGRAMS, "gridDim": _PROGRAMS,
    "threadIdx": _THREADS, "blockDim": _THREADS, "laneid": _THREADS, "warpsize": _THREADS,
    "shared": "use a tile: x[r] is one; the compiler puts tiles into shared memory where that "
              "is needed",
    "shared_array": "use a tile: x[r] is one; the compiler puts tiles into shared memory",
    "local": "use a tile: bn.zeros((SIZE,), bn.float32) is one",
    "const": "pass the array as an argument, or use a constexpr",
    "atomic": _ATOMICS,
    "syncthreads": _BARRIER, "syncwarp": _BARRIER, "syncthreads_count": "use bn.sum of a tile",
    "syncthreads_and": "use bn.all of a tile", "syncthreads_or": "use bn.any of a tile",
    "threadfence": _BARRIER, "threadfence_block": _BARRIER, "threadfence_system": _BARRIER,
    "shfl_sync": "use bn.sum, bn.max and the like, which reduce a tile",
    "jit": "call a plain Python function: a kernel may call any", "cg": _BARRIER,
}
_ANY = "use tiles and the functions of bn: a program computes whole tiles, not one thread's element"


def native(value: object) -> object:
    """Ours for an object of Triton's; any other value, and what we have not, as it is.

    A module, a function or a dtype by its name; the function of one that is jitted or runs at
    compile time; the value of a constexpr.
    """
    if isinstance(value, ModuleType):
        return sys.modules.get(_renamed(value.__name__), value)
    kind = type(value)
    if not _is_theirs(getattr(kind, "__module__", "")) and not isinstance(value, FunctionType):
        return value
    if kind.__name__ == "constexpr":
        return native(value.value)
    if kind.__name__ == "dtype":
        return dtype_of(_SHORT.get(value.name, value.name))
    is_constant = kind.__name__ == "ConstexprFunction"
    function = value.fn if is_constant or kind.__name__ == "JITFunction" else value
    if not isinstance(function, FunctionType):
        return value
    if not _is_theirs(function.__module__):
        if is_constant:
            function.__compile_time__ = True
        return function
    module = sys.modules.get(_renamed(function.__module__))
    return getattr(module, function.__name__, value)


def _is_theirs(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == THEIRS


def _renamed(module: str) -> str:
    return OURS + module.removeprefix(THEIRS) if _is_theirs(module) else module

def hint_for(name: str) -> str:
    """Advice on a name of CUDA; empty for other names."""
    return _HINTS.get(name, "")


def refuse_numba_cuda(value: object, name: str) -> None:
    """Raise for a name of numba.cuda that a kernel reads; value: what it stands for.

    Errors: UnsupportedError with what to write instead.
    """
    if is_of_numba_cuda(value):
        raise UnsupportedError(f"{name}: not supported in a kernel: numba.cuda is for kernels that "
                               "are written for one thread",
                               hint=_HINTS.get(name.rpartition(".")[2], _ANY))


def is_of_numba_cuda(value: object) -> bool:
    """Whether a value is part of numba.cuda, but not the module itself."""
    if isinstance(value, ModuleType):
        return False
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and f"{module}.".startswith(f"{_NUMBA_CUDA}.")
