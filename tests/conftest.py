"""What all tests share: the devices that kernels run on, and tests that are .tile files."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tile_files import pytest_addoption, pytest_collect_file  # noqa: F401  hooks

from blocknumba.dispatch.driver import find_driver


@dataclass(frozen=True)
class Device:
    """Where a kernel runs.

    interpret: on the CPU, even where there is a GPU.
    num_warps: of one program on a GPU.
    """

    interpret: bool
    num_warps: int = 4

    def run(self, kernel, grid, *arguments, **named) -> None:
        """kernel[grid](*arguments, **named), here."""
        named = {"num_warps": self.num_warps, **named}
        kernel[grid](*arguments, interpret=self.interpret, **named)


DEVICES = (pytest.param(Device(interpret=True), id="cpu"),
           *(pytest.param(Device(interpret=False, num_warps=warps), id=f"gpu-{warps}-warps",
                          marks=pytest.mark.gpu) for warps in (1, 2, 4, 8)))


@pytest.fixture(params=DEVICES)
def device(request) -> Device:
    """The CPU, and the GPU with several numbers of warps where there is one."""
    return request.param


def pytest_collection_modifyitems(items) -> None:
    """Skip tests that are marked gpu where there is none."""
    if find_driver() is not None:
        return
    skip = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
