"""Launches on a GPU that is not there: our machine code's PTX, run by the emulator."""

from __future__ import annotations

from functools import cache
from unittest import mock

from blocknumba.dispatch.cli.emulate import parameter_values
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch import kernel as kernel_module
from blocknumba.dispatch.launch.call import Call, resolve_grid
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.emulator import Module, Options
from blocknumba.nvvm_lower.target import Target


def launch(kernel: Kernel, grid: object, arguments: tuple, keywords: dict[str, object],
           target: str = "sm_90a", seed: int | None = None, resident: int = 0) -> Compiled:
    """kernel[grid](*arguments, **keywords) on an emulated target; NumPy arrays only.

    seed: of a random order of warps.  resident: blocks that run at once, 0 for as many as suits.
    The result is the code that was run.
    """
    bound, changes = kernel.signature.bind(arguments, keywords)
    options = kernel.options.override(changes)
    extents = resolve_grid(grid, kernel.signature, bound, options)
    call = _prepare(kernel, bound, options, target)
    machine = call.compiled.machine
    if all(extents):
        blocks = (extents[0] * machine.cluster, *extents[1:])
        _module(call.compiled).launch(machine.symbol, blocks, machine.threads,
                                      parameter_values(machine, call.arguments.infos),
                                      machine.shared_bytes, resident_blocks=resident,
                                      options=Options(seed=seed))
    return call.compiled


def compiled(kernel: Kernel, arguments: tuple, keywords: dict[str, object],
             target: str = "sm_90a") -> Compiled:
    """The code of such a launch, which is not run."""
    bound, changes = kernel.signature.bind(arguments, keywords)
    return _prepare(kernel, bound, kernel.options.override(changes), target).compiled


def _prepare(kernel: Kernel, bound: dict, options: object, target: str) -> Call:
    """The call as it is prepared where there is a GPU of this kind."""
    with (mock.patch.object(kernel_module, "device_of", lambda *_: (object(), 0)),
          mock.patch.object(kernel_module, "target_of", lambda *_: Target.parse(target))):
        call = kernel.prepare(bound, options)
    call.require_writable()
    return call


@cache
def _module(compiled: Compiled) -> Module:
    return Module.parse(compiled.ptx)
