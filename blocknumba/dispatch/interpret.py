"""Running a kernel on the CPU, in place on host arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blocknumba.dispatch.arrays import LEGACY_STREAM, ArrayFacts, host_view
from blocknumba.dispatch.compiled import Compiled
from blocknumba.dispatch.driver import require_driver
from blocknumba.dispatch.grid import Grid
from blocknumba.dispatch.plan import Facts
from blocknumba.dispatch.staging import HostCopies
from blocknumba.tile_ir import interpreter


def interpret(compiled: Compiled, grid: Grid, facts: Mapping[str, Facts],
              stream: int | None) -> None:
    """Run all programs of a grid.

    Device arrays are copied to the host, and back when the kernel stores to them.
    stream: the one that device arrays' pending work is on.
    """
    host = {name: host_view(fact) if isinstance(fact, ArrayFacts) else fact.value
            for name, fact in facts.items()
            if not isinstance(fact, ArrayFacts) or fact.device is None}
    devices = {name: fact for name, fact in facts.items() if name not in host}
    if not devices:
        _run(compiled, grid, host)
        return
    driver = require_driver(compiled.name)
    device = next(iter(devices.values())).device
    stream = LEGACY_STREAM if stream is None else stream
    with (driver.on_device(device),
          HostCopies(driver, devices, compiled.effects.stored, stream) as copies):
        _run(compiled, grid, host | copies)


def _run(compiled: Compiled, grid: Grid, arguments: Mapping[str, np.ndarray | np.generic]) -> None:
    interpreter.run(compiled.tile, grid, arguments, debug=compiled.specialization.options.debug)
