"""Runs the tests in on_stub/ in a process whose CUDA driver is the stub."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("devices", [1, 2])
def test_launches_reach_the_driver_as_they_should(stub_folder, devices):
    paths = os.pathsep.join(filter(None, [str(stub_folder), os.environ.get("LD_LIBRARY_PATH")]))
    environment = os.environ | {"LD_LIBRARY_PATH": paths, "STUB_DEVICES": str(devices)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               str(HERE / "on_stub")]

    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          cwd=HERE.parents[1], check=False)

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
