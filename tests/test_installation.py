"""What an installation holds, needs and costs."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "blocknumba")
# 0.3 s where NumPy takes 0.09 s, as on two idle cores; a ratio, since the tests keep them busy
LONGEST_IMPORT_IN_NUMPY_IMPORTS = 3.3
# What the base install does not bring: None in sys.modules makes their import fail.
WITHOUT_CUDA = "import sys; sys.modules.update({'numba.cuda': None, 'cuda': None, 'cupy': None})\n"


@pytest.fixture(scope="module")
def configuration():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder in which the wheel of this tree is installed."""
    pytest.importorskip("setuptools", minversion="70.1", reason="older ones cannot make wheels")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                    "--no-build-isolation", "--wheel-dir", site, source], check=True)
    (wheel,) = site.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    return site


def python(code: str, folder: Path = ROOT, **more: str) -> str:
    """What a new process prints that imports blocknumba from a folder.

    more: environment variables.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder), **more}
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_base_install_needs_no_cuda_package(configuration):
    needed = re.findall(r"^\w[\w-]*", configuration["options"]["install_requires"], re.MULTILINE)
    assert sorted(needed) == ["ml_dtypes", "numba", "numpy"]


def test_every_dependency_is_bounded(configuration):
    bounded = re.compile(r"^[\w-]+(\[\w+\])?>=[\d.]+,<[\d.]+$")
    for line in configuration["options"]["install_requires"].split():
        assert bounded.match(line)


def test_pyproject_holds_only_the_build_system():
    sections = re.findall(r"^\[(.+)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert sections == ["build-system"]


def test_wheel_holds_every_module_and_the_type_marker(site):
    expected = {path.relative_to(ROOT) for path in (ROOT / "blocknumba").rglob("*.py")}
    found = {path.relative_to(site) for path in (site / "blocknumba").rglob("*.py")}
    assert found == expected
    assert (site / "blocknumba" / "py.typed").exists()


def test_wheel_holds_nothing_but_the_package(site):
    folders = {path.name for path in site.iterdir() if path.is_dir()}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"blocknumba"}


def test_installed_package_runs_the_demo_without_cuda_packages(site):
    code = WITHOUT_CUDA + "from blocknumba.demo import main; main()"
    assert "the CPU" in python(code, site)


def test_demo_checks_three_kernels():
    output = python("import runpy, sys; sys.argv = ['blocknumba', 'demo']\n"
                    "runpy.run_module('blocknumba', run_name='__main__')")
    for kernel in ("add", "softmax", "blur"):
        assert re.search(rf"^  {kernel} .*NumPy", output, re.MULTILINE)


def test_import_brings_neither_numba_nor_a_gpu_library():
    code = ("import sys, blocknumba\n"
            "print({'numba', 'cupy', 'torch', 'cuda', 'llvmlite'} & set(sys.modules))")
    assert python(code).strip() == "set()"


def import_seconds(module: str, bytecode: Path) -> float:
    """Seconds of processor time that a new process takes to import a module.

    bytecode: a folder that keeps it, as installed packages have it.
    """
    return float(python(f"import time; start = time.process_time(); import {module}\n"
                        "print(time.process_time() - start)", PYTHONDONTWRITEBYTECODE="",
                        PYTHONPYCACHEPREFIX=str(bytecode)))


def test_import_is_fast(tmp_path):
    import_seconds("blocknumba", tmp_path)  # makes the bytecode, of NumPy too

    times = [(import_seconds("blocknumba", tmp_path), import_seconds("numpy", tmp_path))
             for _ in range(5)]
    ours, numpys = map(min, zip(*times))
    assert ours <= LONGEST_IMPORT_IN_NUMPY_IMPORTS * numpys
