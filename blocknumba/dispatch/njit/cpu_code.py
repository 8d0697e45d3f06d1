"""Versions of a kernel in native code of the CPU device."""

from __future__ import annotations

import weakref

from blocknumba.cpu_lower.kernel import FIRST_SLOT, SLOT_BYTES, lower
from blocknumba.cpu_lower.ops import ELEMENTS, ROOTS
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assemble
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.forks import COMPILATIONS, Lock
from blocknumba.dispatch.njit.launch_table import CpuCode
from blocknumba.settings import SETTINGS
from blocknumba.tile_ir.ir.function import walk

_HARMLESS = "memory"  # the failure that comes before anything was stored
_LOCK = Lock()
_MADE: weakref.WeakKeyDictionary[Compiled, dict[bool, CpuCode | None]] = (
    weakref.WeakKeyDictionary())
_LOADED: list[Loaded] = []  # forever, as tables have their addresses


def cpu_code(compiled: Compiled, disjoint: bool) -> CpuCode | None:
    """Native code of a kernel that was compiled for the CPU; None where Python must run it.

    That is with debug, where the interpreter was asked for, and where programs print, fail or call
    scalar functions.
    disjoint: no array that it stores to shares memory with another.
    """
    if compiled.specialization.options.debug or SETTINGS.interpret:
        return None
    with _LOCK:
        made = _MADE.setdefault(compiled, {})
        if disjoint not in made:
            with COMPILATIONS.running():
                made[disjoint] = _compiled(compiled, disjoint)
        return made[disjoint]


def _compiled(compiled: Compiled, disjoint: bool) -> CpuCode | None:
    if any(op.name not in ELEMENTS and op.name not in ROOTS for op in walk(compiled.tile.body)):
        return None  # scalar functions of Numba
    lowered = lower(compiled.tile, host(), disjoint=disjoint)
    if lowered.prints or any(failure.kind != _HARMLESS for failure in lowered.failures):
        return None
    loaded = Loaded(assemble(lowered.llvm_ir, host()), host())
    _LOADED.append(loaded)
    offsets = [(FIRST_SLOT + index) * SLOT_BYTES for index in range(len(lowered.parameters))]
    return CpuCode(loaded.address(lowered.name), lowered.parameters, offsets)
