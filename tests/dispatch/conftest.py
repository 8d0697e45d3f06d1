"""The stub driver, for tests that start processes which use it."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
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
