"""What an installation holds, needs and costs."""

import builtins
import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import blocknumba

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in",
           "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "blocknumba", "docs",
           "examples", "perf", "tests")
EXAMPLES = [path for pattern in ("*.py", "tutorial/*.py", "gallery/*.py")
            for path in (ROOT / "examples").glob(pattern)]
NOT_IN_THE_SDIST = {".ci/gpu", ".ci/more", ".ci/run", ".gitignore"}  # of the repository
BUILD = """
import sys
from setuptools import build_meta
print(build_meta.build_{what}(sys.argv[1]))
"""
# 0.3 s where NumPy takes 0.09 s, as on two idle cores; a ratio, since the tests keep them busy
LONGEST_IMPORT_IN_NUMPY_IMPORTS = 3.3
# What the base install does not bring: None in sys.modules makes their import fail.
SEPARATOR = "-" * 30
NO_CUDA_USES = """
import io, contextlib
import numpy as np
import blocknumba as bn
from blocknumba import demo
from blocknumba.__main__ import main
from blocknumba.errors import BlockError

def added():
    return demo.add[1](*np.ones((3, 8), np.float32), BLOCK=8)

def told(act):
    try:
        act()
    except BlockError as error:
        return str(error)

def printed(*arguments):
    with contextlib.redirect_stdout(out := io.StringIO()), contextlib.redirect_stderr(out):
        assert main(arguments) == 1
    return out.getvalue()

ONES = ["f32[8]"] * 3 + ["--constant", "BLOCK=8"]
print(*[
    told(lambda: added().asm["ptx"]), told(lambda: added().ptx),
    told(lambda: bn.compile(demo.add, "f32[:], f32[:], f32[:], 8", target="sm_90a")),
    printed("emulate", demo.__file__ + ":add", *ONES), printed("doctor")], sep="%s")
""" % SEPARATOR
WITHOUT_CUDA = "import sys; sys.modules.update({'numba.cuda': None, 'cuda': None, 'cupy': None})\n"


@pytest.fixture(scope="module")
def configuration():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


@pytest.fixture(scope="module")
def tracked():
    """The paths of all files of the repository."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no clone, or there is no git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The source distribution of this tree, unpacked."""
    pytest.importorskip("setuptools", minversion="70.1", reason="older ones cannot make wheels")
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    shutil.unpack_archive(build("sdist", source, target), target)
    (folder,) = (path for path in target.iterdir() if path.is_dir())
    return folder


@pytest.fixture(scope="module")
def site(unpacked, tmp_path_factory):
    """A folder in which the wheel of the source distribution is installed.

    It was built where an earlier build left a module that has been removed since.
    """
    left = unpacked / "build" / "lib" / "blocknumba"
    left.mkdir(parents=True)
    (left / "removed.py").write_text("")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(build("wheel", unpacked, site)) as wheel:
        wheel.extractall(site)
    return site


def build(what: str, source: Path, target: Path) -> Path:
    """The sdist or the wheel of a tree, made as pip makes it."""
    done = subprocess.run([sys.executable, "-c", BUILD.format(what=what), target], cwd=source,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


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


def test_source_distribution_holds_the_whole_repository(unpacked, tracked):
    found = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    assert tracked - NOT_IN_THE_SDIST <= found


def test_the_version_is_the_same_everywhere(site):
    (metadata,) = site.glob("*.dist-info")
    assert metadata.name == f"blocknumba-{blocknumba.__version__}.dist-info"


def test_links_of_the_readme_are_absolute_for_package_indices(site, configuration):
    (metadata,) = site.glob("*.dist-info/METADATA")
    text, readme = metadata.read_text(), (ROOT / "README.md").read_text()
    repository = configuration["metadata"]["url"]
    code = re.compile(r"^```.*?^```$|`[^`\n]*`(?!\])", re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)", code.sub("", text))

    assert code.findall(text)[:3] == code.findall(readme)[:3]
    assert len(targets) == len(re.findall(r"\]\(([^)#]+)", code.sub("", readme))) > 5
    assert all(target.startswith("https://") for target in targets)
    assert f"![Peers' times by ours: a dot for each kernel]({repository}/raw/HEAD/docs/" in text
    assert f"Project-URL: Issues, {repository}/issues\n" in text and "\nKeywords: " in text


def test_the_citation_is_of_this_version(configuration):
    lines = (ROOT / "CITATION.cff").read_text().splitlines()

    assert f"version: {blocknumba.__version__}" in lines
    assert f"license: {configuration['metadata']['license']}" in lines
    assert f"repository-code: {configuration['metadata']['url']}" in lines


def test_installed_package_has_the_examples_with_what_they_import(site, tmp_path):
    code = ("from blocknumba.__main__ import main\n"
            "main(['examples', 'gather_rows', '-o', {folder!r}])\n"
            "main(['examples', 'photograph', '-o', {folder!r}])\n")
    said = python(code.format(folder=str(tmp_path)), site)

    assert {path.name for path in tmp_path.iterdir()} == {
        "array_libraries.py", "gather_rows.py", "photograph.py"}
    assert "data is missing: take examples/data from the repository" in said
    assert "numpy" in python(
        f"import runpy; runpy.run_path({str(tmp_path / 'gather_rows.py')!r}, run_name='__main__')",
        site, PYTHONPATH=os.pathsep.join([str(site), str(tmp_path)])).lower()


def test_every_way_to_install_is_spelled_alike(configuration, commands):
    """From a clone by `.venv/bin/pip install`, in a page; what doctor names is for anywhere."""
    extras = "|".join(configuration["options.extras_require"])
    of_extras = rf'"\.\[(?:{extras})(?:,(?:{extras}))*\]"'
    alike = re.compile(rf"\.venv/bin/pip install (?:-e )?(?:\.|{of_extras})(?=$|[\s`])")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"),
             *(ROOT / "examples").rglob("*.md")]
    other = [(page.name, line) for page in pages for line in page.read_text().splitlines()
             if "pip install" in line and not alike.search(line)
             and not any(f".venv/bin/{command}" in line for command in commands)]

    assert not other


def test_wheel_holds_every_module_the_stubs_and_the_type_marker(site):
    expected, found = ({path.relative_to(root) for end in ("py", "pyi")
                        for path in (root / "blocknumba").rglob(f"*.{end}")}
                       for root in (ROOT, site))
    expected |= {Path("blocknumba") / path.relative_to(ROOT) for path in EXAMPLES}
    assert found == expected
    assert (site / "blocknumba" / "py.typed").exists()


def test_wheel_holds_nothing_but_the_package(site):
    folders = {path.name for path in site.iterdir() if path.is_dir()}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"blocknumba"}


def test_installed_package_runs_the_demo_without_cuda_packages(site):
    code = WITHOUT_CUDA + "from blocknumba.demo import main; main()"
    assert "the CPU" in python(code, site)


@pytest.fixture(scope="module")
def commands(site):
    """The commands that install packages, as the installed package names them."""
    return python("from blocknumba.installation import pip_install\n"
                  "print(pip_install('numba-cuda', 'cu12'), pip_install('numba-cuda', 'cu13'),"
                  "      pip_install('numba'), sep='\\n')", site).splitlines()


def test_doctor_and_every_way_to_machine_code_name_one_command_without_cuda_packages(site,
                                                                                     commands):
    command = commands[1]
    said = python(WITHOUT_CUDA + NO_CUDA_USES, site, BLOCKNUMBA_CACHE="0").split(SEPARATOR)
    assert len(said) == 5
    assert all(command in text for text in said), said
    assert not [text for text in said if "Traceback" in text or text.count("pip install") > 3]


def test_the_readme_names_the_same_command(commands):
    assert commands[1] in (ROOT / "README.md").read_text()


def test_commands_that_install_are_those_of_the_configuration(configuration, commands):
    extras = configuration["options.extras_require"]
    (numba,) = (line for line in configuration["options"]["install_requires"].split()
                if line.startswith("numba>"))
    assert commands == [f'pip install "{requirement.strip()}"'
                        for requirement in (extras["cu12"], extras["cu13"], numba)]


def test_what_is_public_is_listed():
    listed = dir(blocknumba)
    assert {"jit", "Kernel", "max", "float32", "autotune", "testing", "errors"} <= set(listed)
    assert not {"importlib", "builtins", "_LAZY", "_language"} & set(listed)
    assert all(hasattr(blocknumba, name) for name in listed)


def test_importing_everything_replaces_nothing_of_pythons():
    names = {}
    exec("from blocknumba import *", names)
    assert {"jit", "Config", "program_id", "float32"} <= set(names)
    assert not set(vars(builtins)) & (set(names) - {"__builtins__"})


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
