"""Runs of a kernel on the CPU, natively or in the interpreter, in place on host arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.arrays import ArrayInfo, array_info, host_view
from blocknumba.dispatch.launch.driver import require_driver
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.native import launcher_of
from blocknumba.dispatch.launch.staging import HostCopies
from blocknumba.dispatch.launch.streams import StreamOrder
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo


def interpret(compiled: Compiled, grid: Grid, infos: Mapping[str, ArgumentInfo],
              stream: int | None) -> None:
    """Run all programs of a grid.

    Device arrays, and arrays whose elements are not aligned, are copied, and back when the kernel
    stores to them.
    stream: the one that the user asked for, on which the copies are made.
    """
    host = {name: host_view(info) if isinstance(info, ArrayInfo) else info.value
            for name, info in infos.items()
            if not isinstance(info, ArrayInfo) or info.device is None and info.is_aligned}
    if len(host) == len(infos):
        _run(compiled, grid, host, infos)
        return
    crooked = {name: info for name, info in infos.items()
               if name not in host and info.device is None}
    if crooked:
        with HostCopies(None, crooked, compiled.effects.stored, None) as copies:
            copied = {name: array_info(array, name) for name, array in copies.items()}
            interpret(compiled, grid, {**infos, **copied}, stream)
        return
    devices = {name: info for name, info in infos.items() if name not in host}
    driver = require_driver(compiled.name)
    device = next(iter(devices.values())).device
    with (driver.on_device(device),
          StreamOrder(driver, devices.values(), device, stream) as handle,
          HostCopies(driver, devices, compiled.effects.stored, handle) as copies):
        copied = {name: array_info(array, name) for name, array in copies.items()}
        _run(compiled, grid, host | copies, {**infos, **copied})


def _run(compiled: Compiled, grid: Grid, arguments: Mapping[str, np.ndarray | np.generic],
         infos: Mapping[str, ArgumentInfo]) -> None:
    if compiled.native is not None:
        launcher_of(compiled).run(grid, infos)
        return
    if compiled.interpreter is None:
        # here and not above: native code does without
        from blocknumba.tile_ir.interpreter import Interpreter
        compiled.interpreter = Interpreter(compiled.tile)
    compiled.interpreter.run(grid, arguments, debug=compiled.specialization.options.debug)
