"""Executes PTX in NumPy: tests without a GPU, races, bank conflicts.

Stages: lexer, parser (syntax, with names resolved), linking (each instruction becomes a step over
a cohort, by the tables in instructions/), module (launches), launch (resident blocks), scheduler.
docs/compiler/emulator.md follows a warp through them.

Modelled: warps at one program counter run as one NumPy batch, a cohort; divergent lanes reconverge
at the immediate post-dominator.  Asynchronous work happens at the worst moment: tensor copies at
once, wgmma not before its wait.  Vector clocks over shared memory find races, the async proxy
apart.  Of the driver's functions: vprintf and __assertfail.

Not modelled: time and caches; races over global memory; a lock that lanes of one warp take in turn;
reads of registers that were never written: they hold ones; the bits of a NaN, except where PTX
packs it into a word.

Instructions answer as an H100 does, special values too: its answers are recorded in the tests.
"""

from blocknumba.emulator.errors import (
    AccessError,
    DeadlockError,
    EmulatorError,
    KernelAssertionError,
    ProxyFenceError,
    PtxSyntaxError,
    RaceError,
    SynchronizationError,
    TrapError,
    UnknownInstructionError,
)
from blocknumba.emulator.counters import Count, Report
from blocknumba.emulator.launch import Options
from blocknumba.emulator.memory import GlobalMemory
from blocknumba.emulator.module import Module
from blocknumba.emulator.tensor_map import TensorMap

__all__ = [
    "AccessError", "Count", "DeadlockError", "EmulatorError", "GlobalMemory",
    "KernelAssertionError", "Module", "Options", "ProxyFenceError", "PtxSyntaxError", "RaceError",
    "Report", "SynchronizationError", "TensorMap", "TrapError", "UnknownInstructionError",
]
