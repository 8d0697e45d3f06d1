"""What all tests share: the devices that kernels run on, and tests that are .tile files."""

from __future__ import annotations

import os
from dataclasses import dataclass

os.environ["BLOCKNUMBA_CACHE"] = "0"  # before blocknumba is imported: tests see what they compile

import emulated_gpu  # noqa: E402
import pytest  # noqa: E402
from tile_files import pytest_addoption, pytest_collect_file  # noqa: E402, F401  hooks

from blocknumba.dispatch.launch.driver import find_driver  # noqa: E402  # noqa: E402


CPU, GPU, EMULATOR = "cpu", "gpu", "emulator"


@dataclass(frozen=True)
class Device:
    """Where a kernel runs.

    kind: CPU; GPU; or EMULATOR, which runs the machine code for a GPU that need not be there.
    num_warps: of one program on a GPU.   target: of the emulated machine code.
    """

    kind: str
    num_warps: int = 4
    target: str = "sm_90a"

    @property
    def runs(self) -> int:
        """How often a test should run a kernel that must do the same every time."""
        return 200 if self.kind == GPU else 3

    def run(self, kernel, grid, *arguments, **named) -> None:
        """kernel[grid](*arguments, **named), here."""
        named = {"num_warps": self.num_warps, **named}
        if self.kind == EMULATOR:
            emulated_gpu.launch(kernel, grid, arguments, named, self.target)
        else:
            kernel[grid](*arguments, interpret=self.kind == CPU, **named)


DEVICES = (pytest.param(Device(CPU), id="cpu"),
           *(pytest.param(Device(EMULATOR, num_warps=warps), id=f"emulator-{warps}-warps")
             for warps in (1, 4)),
           *(pytest.param(Device(GPU, num_warps=warps), id=f"gpu-{warps}-warps",
                          marks=pytest.mark.gpu(emulated="device")) for warps in (1, 2, 4, 8)))


@pytest.fixture(params=DEVICES)
def device(request) -> Device:
    """The CPU, an emulated GPU, and the GPU with several numbers of warps where there is one."""
    return request.param


def pytest_collection_modifyitems(items) -> None:
    """Skip tests that are marked gpu where there is none."""
    if find_driver() is not None:
        return
    skip = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what tests measured, for people."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(value)
