"""Runs the tests in on_stub/ in a process whose CUDA driver is the stub."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def stub_folder(tmp_path_factory) -> Path:
    """A folder with the stub as libcuda.so.1."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    pytest.importorskip("cuda.bindings")
    folder = tmp_path_factory.mktemp("stub")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", folder / "libcuda.so.1",
                    HERE / "stub_driver.c", "-ldl"], check=True)
    return folder


@pytest.mark.parametrize("devices", [1, 2])
def test_launches_reach_the_driver_as_they_should(stub_folder, devices):
    paths = os.pathsep.join(filter(None, [str(stub_folder), os.environ.get("LD_LIBRARY_PATH")]))
    environment = os.environ | {"LD_LIBRARY_PATH": paths, "STUB_DEVICES": str(devices)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               str(HERE / "on_stub")]

    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          cwd=HERE.parents[1], check=False)

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
