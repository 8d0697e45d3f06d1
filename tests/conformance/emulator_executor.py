"""Runs cases in the emulator: the PTX that a GPU would be given."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator import Module
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ptx
from blocknumba.tile_ir.passes.lower_views import lower_views

from case import Case

TARGET = Target.parse("sm_90a")


def emulated(case: Case, target: Target = TARGET) -> dict[str, np.ndarray]:
    """The arrays that a case writes, by code for a target."""
    warps = case.num_warps
    function = lay_out(lower_views(case.function), LayoutOptions(warps))
    lowered = lower(function, target, CodeOptions(warps))
    arrays = case.copies()
    parameters = [arrays.get(parameter.argument, case.arguments[parameter.argument])
                  for parameter in lowered.parameters]
    ptx = compile_to_ptx(lowered.nvvm_ir, target, AssembleOptions(verify=True)).decode()
    Module.parse(ptx).launch(
        lowered.name, case.grid, warps * target.warp_size, parameters, lowered.shared_bytes)
    return {name: arrays[name] for name in case.expected}
