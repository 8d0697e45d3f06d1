"""The pipeline: from a Python function to a compiled kernel, stage by stage.

    build -> optimise -> lay_out -> lower -> assemble_kernel
    typing   tile_ir     gpu_layout nvvm_lower

The last three are repeated with other numbers of warps or registers if the code spills.
"""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FunctionType

from blocknumba.cpu_lower.kernel import lower as lower_natively
from blocknumba.cpu_lower.kernel import unsupported
from blocknumba.cpu_lower.printing import PrintOp
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import assemble as assemble_natively
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.compile.native import NativeCode, StopReason
from blocknumba.dispatch.compile.resources import (
    require_memory, require_registers, require_room, require_shared_memory,
)
from blocknumba.dispatch.launch.forks import Lock, renew_in_children
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.errors import BlockError, BlockValueError, Loc
from blocknumba.gpu_layout.clusters.partition import partition_blocks
from blocknumba.gpu_layout.cost_model import Attempt, attempts, default_num_warps
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import LoweredKernel, assemble_kernel, lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import Assembled, ToolchainError
from blocknumba.tile_ir.analysis.provenance import effects
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ops.assembly import inline_asm
from blocknumba.tile_ir.passes.pipeline import optimise
from blocknumba.tile_ir.text.printer import text
from blocknumba.typing.context import Options as TypingOptions
from blocknumba.typing.frontend import build

_REASON = re.compile(r"(?:error|fatal)\s*:\s*(.+)")
# Numba's bytecode analysis and type inference keep global state; all after them does not, and
# libNVVM and nvJitLink release the GIL, so that several threads compile at once
_ONE_AT_A_TIME = Lock()
# modules of Numba's compilers that have a `global_compiler_lock`
_OTHER_COMPILERS = ("numba.core.compiler_lock", "numba.cuda.core.compiler_lock")


def compile_function(function: FunctionType, specialization: Specialization,
                     constants: Mapping[str, object]) -> Compiled:
    """Compile a kernel.

    constants: the values whose keys are in the specialization.
    Errors: those of the user's code, as BlockErrors that show it; anything else is a bug of
    ours, with a note that names the kernel.
    """
    with compiling(function, specialization.target):
        return _compile(function, specialization, constants)


@contextmanager
def compiling(function: FunctionType, target: Target | None) -> Iterator[None]:
    """Context of a compilation: errors that are not the user's say that they are bugs of ours."""
    try:
        with _garbage_left():
            yield
    except BlockError:
        raise
    except Exception as error:
        error.add_note(f"blocknumba failed to compile {function.__name__} "
                       f"({Loc.of(function)}) for "
                       f"{target or 'the interpreter'}: this is a bug of ours")
        raise


def tile_function(function: FunctionType, specialization: Specialization,
                  constants: Mapping[str, object], times_ms: dict[str, float]) -> Function:
    """The optimised tile IR of a kernel."""
    with _in_turn(), timed("typing", times_ms):
        tile = build(function, dict(specialization.arguments), constants,
                     typing_options(specialization))
    with timed("tile", times_ms):
        return optimise(tile, keep_views=specialization.target is not None)


def typing_options(specialization: Specialization) -> TypingOptions:
    """The options of typing, from a specialization."""
    options = specialization.options
    return TypingOptions(debug=options.debug, target=str(specialization.target or ""),
                         dialect=options.dialect, contract=options.contract,
                         num_warps=options.num_warps)


def layout_options(specialization: Specialization, num_warps: int) -> LayoutOptions:
    """The options of the layout passes, from a specialization."""
    options, target = specialization.options, specialization.target
    num_stages = 1 if options.num_stages == 0 else options.num_stages
    return LayoutOptions(num_warps, num_stages, specialization.disjoint,
                         specialization.numbers_describe, target.capabilities,
                         target.shared_bytes_per_block, options.num_ctas)


def _compile(function: FunctionType, specialization: Specialization,
             constants: Mapping[str, object]) -> Compiled:
    target, times_ms = specialization.target, {}
    tile = tile_function(function, specialization, constants, times_ms)
    if target is None:
        require_memory(tile)
    machine = None if target is None else _best_machine_code(tile, specialization, times_ms)
    native = None if specialization.processor is None else _native_code(
        tile, specialization.disjoint, specialization.options.fastmath, times_ms)
    return Compiled(function.__name__, specialization, tile, effects(tile), machine, times_ms,
                    native)


def _native_code(fn: Function, disjoint: bool, fastmath: bool,
                 times_ms: dict[str, float]) -> NativeCode | None:
    """Code for this processor; None where a function has to be interpreted.

    disjoint: no array that it stores to shares memory with another.
    """
    if unsupported(fn):
        return None
    with timed("llvm", times_ms):
        lowered = lower_natively(fn, host(), disjoint=disjoint, fastmath=fastmath)
    with timed("native", times_ms):
        code = assemble_natively(lowered.llvm_ir, host())
    stops = tuple(StopReason(
        f.kind, f.op.attrs["message"] if f.kind == "assert" else "",
        f.op.condition.type.shape if f.kind == "assert" else (),
        fn.loc if f.op is None else f.op.loc) for f in lowered.failures)
    prints = tuple(PrintOp(op.attrs["prefix"], attribute(op, "hexadecimal"), tuple(
        (str(value.type.dtype), value.type.shape) for value in op.operands))
        for op in lowered.prints)
    return NativeCode(lowered.llvm_ir, code, lowered.name, lowered.parameters, stops, prints,
                      lowered.versions)


def _best_machine_code(tile: Function, specialization: Specialization,
                       times_ms: dict[str, float]) -> MachineCode:
    """The first of the attempts that does not spill, else the one that spills least.

    An attempt is not repeated with as many warps and registers.
    """
    require_room(tile, specialization.target, specialization.options.num_ctas)
    tried: dict[tuple[int, int], MachineCode] = {}
    for attempt in _attempts(tile, specialization):
        num_warps, min_blocks = attempt.num_warps, attempt.min_blocks
        gpu = _laid_out(tile, specialization, num_warps, times_ms)
        min_blocks = min(min_blocks, gpu.attrs.get("resident_programs", min_blocks))
        key = num_warps, specialization.target.register_limit(num_warps, min_blocks)
        if key in tried:
            continue
        machine = _machine_code(gpu, specialization, num_warps, min_blocks, times_ms)
        if not machine.assembled.spill_bytes:
            return machine
        tried[key] = machine
    return min(tried.values(), key=lambda machine: machine.assembled.spill_bytes)


def _attempts(tile: Function, specialization: Specialization) -> Iterator[Attempt]:
    """Attempts: more programs at once first, more registers each last."""
    chosen, target = specialization.options.num_warps, specialization.target
    tile = partition_blocks(tile, layout_options(specialization, 1))  # warps are those of a block
    if specialization.options.maxnreg is not None:
        yield Attempt(chosen or default_num_warps(tile, target.capabilities), 1)
        return
    yield from attempts(tile, target.capabilities, chosen, target.blocks_per_processor)


def _laid_out(tile: Function, specialization: Specialization, num_warps: int,
              times_ms: dict[str, float]) -> Function:
    """The kernel in the GPU-layout IR, for a number of warps."""
    with timed("layout", times_ms):
        gpu = lay_out(tile, layout_options(specialization, num_warps))
    require_shared_memory(gpu, specialization.target)
    require_registers(gpu, num_warps)
    return gpu


def _machine_code(gpu: Function, specialization: Specialization, num_warps: int, min_blocks: int,
                  times_ms: dict[str, float]) -> MachineCode:
    options, target = specialization.options, specialization.target
    code = CodeOptions(num_warps, options.fastmath, options.maxnreg, min_blocks, options.lineinfo,
                       options.debug, options.launch_pdl)
    with timed("nvvm", times_ms):
        lowered = lower(gpu, target, code)
    with timed("assemble", times_ms):
        assembled = _assembled(gpu, lowered, target, code)
    return MachineCode(text(gpu), lowered.nvvm_ir, assembled, lowered.name, lowered.parameters,
                       lowered.num_warps * target.warp_size, lowered.shared_bytes,
                       lowered.cluster, lowered.remarks)


def _assembled(gpu: Function, lowered: LoweredKernel, target: Target,
               code: CodeOptions) -> Assembled:
    """Machine code of a kernel.

    Errors: BlockValueError where the assembler refuses the user's own PTX.
    """
    try:
        return assemble_kernel(lowered, target, code)
    except ToolchainError as error:
        own = [op for op in walk(gpu.body) if op.opdef is inline_asm]
        reason = _REASON.search(error.log)
        if not own or reason is None:
            raise
        hint = f"it may be another one of the kernel's {len(own)} texts" if len(own) > 1 else ""
        raise BlockValueError("inline_asm_elementwise: the assembler refuses the text: "
                              f"{reason[1]}", loc=own[0].loc, hint=hint) from None


@contextmanager
def _in_turn() -> Iterator[None]:
    """Hold the locks of Numba's compilers that are loaded, then ours.

    Numba holds its lock while it asks for a block function; a kernel that calls a scalar function
    asks Numba for it.  All take the locks in this order, so that no two wait for each other.
    """
    with ExitStack() as held:
        for name in _OTHER_COMPILERS:
            if name in sys.modules:
                lock = sys.modules[name].global_compiler_lock
                renew_in_children(lock)
                held.enter_context(lock)
        held.enter_context(_ONE_AT_A_TIME)
        yield


@contextmanager
def _garbage_left() -> Iterator[None]:
    """Turn the garbage collector off for the body.

    Ops and values refer to each other, and most live to the end: looking for dead ones on the way
    finds few, and walks all objects of the user's program.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def timed(stage: str, times_ms: dict[str, float]) -> Iterator[None]:
    """Context of a stage, whose time is added."""
    start = time.perf_counter()
    yield
    times_ms[stage] = times_ms.get(stage, 0.0) + (time.perf_counter() - start) * 1e3
