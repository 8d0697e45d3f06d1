"""Runs cases on the native CPU device."""

from __future__ import annotations

import ctypes

import numpy as np

from blocknumba.cpu_lower.kernel import SLOT_BYTES, lower
from blocknumba.cpu_lower.ops import ELEMENTS, ROOTS
from blocknumba.cpu_lower.printing import FIRST_SLOT
from blocknumba.cpu_lower.target import CpuTarget, host
from blocknumba.cpu_lower.toolchain import Loaded, assemble
from blocknumba.tile_ir.ir.function import walk

from case import Case


def run_natively(case: Case, target: CpuTarget | None = None) -> dict[str, np.ndarray]:
    """The arrays that a case writes."""
    target = target or host()
    lowered = lower(case.function, target)
    loaded = Loaded(assemble(lowered.llvm_ir, target), lowered.llvm_ir)
    run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                           *[ctypes.c_int32] * 3)(loaded.address(lowered.name))
    arrays = case.copies()
    record = np.zeros(2, np.int64)
    slots = np.zeros(FIRST_SLOT + len(lowered.parameters), np.uint64)
    slots[0] = record.ctypes.data
    for number, parameter in enumerate(lowered.parameters, FIRST_SLOT):
        slots[number:number + 1].view(np.uint8)[:] = _slot(parameter, case, arrays)
    programs = int(np.prod(case.grid))
    status = run(slots.ctypes.data, 0, programs, *case.grid)
    assert status == 0, f"{lowered.failures[status - 1]} in program {record}"
    return {name: arrays[name] for name in case.expected}


def _slot(parameter, case: Case, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if parameter.kind == "pointer":
        value = np.array(arrays[parameter.argument].ctypes.data, np.uint64)
    else:
        value = np.array(case.arguments[parameter.argument])
    slot = np.zeros(SLOT_BYTES, np.uint8)
    slot[:value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
    return slot


def is_native(case: Case) -> bool:
    """Whether all ops of a case have native code."""
    return all(op.name in ELEMENTS or op.name in ROOTS for op in walk(case.function.body))
