"""Executes PTX in NumPy: tests without a GPU, races, bank conflicts."""

from blocknumba.emulator.errors import (
    AccessError,
    DeadlockError,
    EmulatorError,
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
    "AccessError", "Count", "DeadlockError", "EmulatorError", "GlobalMemory", "Module", "Options",
    "ProxyFenceError", "PtxSyntaxError", "RaceError", "Report", "SynchronizationError",
    "TensorMap", "TrapError", "UnknownInstructionError",
]
