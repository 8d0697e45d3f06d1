"""The machine code of a kernel, with its text at the levels above it and the remarks on it.

A module of its own: what is compiled and what is told of it (stats) both hold it.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.toolchain import Assembled
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.remarks import Remark


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The lower half of a compilation, for one target.

    gpu: GPU-layout IR as text.  nvvm: NVVM IR.  assembled: PTX, cubin, the assembler's report.
    symbol: the kernel's name in the cubin.
    parameters: of the kernel in the cubin, in order.
    threads: per block.  shared_bytes: dynamic shared memory per block.
    cluster: blocks per program.
    remarks: what passes and the lowering did, and why nothing better.
    """

    gpu: str
    nvvm: str
    assembled: Assembled
    symbol: str
    parameters: tuple[Parameter, ...]
    threads: int
    shared_bytes: int
    cluster: int = 1
    remarks: tuple[Remark, ...] = ()
