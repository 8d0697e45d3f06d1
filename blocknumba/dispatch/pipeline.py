"""The straight line from a Python function to a compiled kernel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType

from blocknumba.dispatch.compiled import Compiled, MachineCode
from blocknumba.dispatch.effects import effects
from blocknumba.dispatch.resources import require_shared_memory
from blocknumba.dispatch.signature import location
from blocknumba.dispatch.specialize import Specialization
from blocknumba.errors import BlockError
from blocknumba.gpu_layout.default_warps import default_num_warps
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import LoweredKernel, assemble_kernel, lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import Assembled
from blocknumba.tile_ir.ir import Function
from blocknumba.tile_ir.pipeline import optimise
from blocknumba.typing.context import Options as TypingOptions
from blocknumba.typing.frontend import build

# Numba's bytecode analysis and type inference keep global state
_ONE_AT_A_TIME = threading.RLock()

# per multiprocessor: fewer do not keep memory busy, and more would leave too few registers each
RESIDENT_THREADS = 1024


def compile_function(function: FunctionType, specialization: Specialization,
                     constants: Mapping[str, object]) -> Compiled:
    """Compile a kernel.

    constants: the values whose frozen form is in the specialization.
    Errors: those of the user's code, as BlockErrors that show it; anything else is a bug of
    ours, and says which kernel met it.
    """
    with _ONE_AT_A_TIME:
        try:
            return _compile(function, specialization, constants)
        except BlockError:
            raise
        except Exception as error:
            error.add_note(f"blocknumba failed to compile {function.__name__} "
                           f"({location(function)}) for "
                           f"{specialization.target or 'the interpreter'}: this is a bug of ours")
            raise


def _compile(function: FunctionType, specialization: Specialization,
             constants: Mapping[str, object]) -> Compiled:
    options, target = specialization.options, specialization.target
    times_ms: dict[str, float] = {}
    with _timed("typing", times_ms):
        tile = build(function, dict(specialization.arguments), constants,
                     TypingOptions(debug=options.debug))
    with _timed("tile", times_ms):
        tile = optimise(tile)
    machine = None if target is None else _machine_code(tile, specialization, times_ms)
    return Compiled(function.__name__, specialization, tile, effects(tile), machine, times_ms)


def _machine_code(tile: Function, specialization: Specialization,
                  times_ms: dict[str, float]) -> MachineCode:
    options, target = specialization.options, specialization.target
    num_warps = options.num_warps or default_num_warps(tile)
    with _timed("layout", times_ms):
        gpu = lay_out(tile, LayoutOptions(num_warps, options.num_stages, options.num_ctas,
                                          arrays_are_disjoint=specialization.disjoint))
    require_shared_memory(gpu, target)
    threads = num_warps * target.warp_size
    blocks = min(max(RESIDENT_THREADS // threads, 1), target.blocks_per_processor)
    code = CodeOptions(num_warps, options.fastmath, options.maxnreg, blocks, options.lineinfo,
                       options.debug)
    lowered, assembled = _assemble(gpu, target, code, times_ms)
    if assembled.spill_bytes and code.min_blocks > 1:
        lowered, assembled = _assemble(gpu, target, replace(code, min_blocks=1), times_ms)
    return MachineCode(gpu, lowered.nvvm_ir, assembled, lowered.name, lowered.parameters, threads,
                       lowered.shared_bytes)


def _assemble(gpu: Function, target: Target, code: CodeOptions,
              times_ms: dict[str, float]) -> tuple[LoweredKernel, Assembled]:
    with _timed("nvvm", times_ms):
        lowered = lower(gpu, target, code)
    with _timed("assemble", times_ms):
        return lowered, assemble_kernel(lowered, target, code)


@contextmanager
def _timed(stage: str, times_ms: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times_ms[stage] = times_ms.get(stage, 0.0) + (time.perf_counter() - start) * 1e3
