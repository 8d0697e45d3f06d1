"""`python -m blocknumba doctor`: what is installed, what will not work, and the fix."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import blocknumba
from blocknumba.dispatch.cli.cache_command import cache_info
from blocknumba.dispatch.compile.cache import Cache, distrust, remedy
from blocknumba.dispatch.launch.driver import Driver, find_driver
from blocknumba.errors import BlockError
from blocknumba.installation import CUDA_EXTRAS, pip_install
from blocknumba.nvvm_lower import toolchain
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS, Settings, as_set

_NEEDED = ("numba", "numpy", "ml_dtypes")
_FOR_GPUS = ("numba-cuda", "cuda-bindings")
_LIBRARIES = ("cupy", "torch")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    what: its name.  said: what was found.
    lost: what does not work because of it; empty when all is well.  fix: what to do.
    """

    what: str
    said: str
    lost: str = ""
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An option for those who report a bug."""
    parser.add_argument("--report", action="store_true",
                        help="in Markdown, with the settings, to paste into a report of a bug")


def run(arguments: argparse.Namespace) -> int:
    """Print what is found; 1 when something does not work that should, else 0."""
    findings = list(examine(SETTINGS))
    if arguments.report:
        sys.stdout.write(report(findings, as_set()))
        return 0
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        sys.stdout.write(f"{finding.what:{width}}  {finding.said}\n")
    lost = [finding for finding in findings if finding.lost]
    for finding in lost:
        sys.stdout.write(f"\n{finding.lost}\n  because: {finding.what}: {finding.said}\n"
                         f"  fix: {finding.fix}\n")
    if not lost:
        sys.stdout.write("\nEverything works.\n")
    return 1 if lost else 0


def report(findings: Iterable[Finding], variables: Mapping[str, str]) -> str:
    """A table of Markdown with what was found, and environment variables.

    The user's home folder is written as ~, so that nobody's name is told.
    """
    rows = [(finding.what, finding.said + (f" ({finding.lost})" if finding.lost else ""))
            for finding in findings]
    rows += variables.items()
    table = "".join(f"| {what} | {_one_cell(said)} |\n" for what, said in rows)
    return f"| `python -m blocknumba doctor --report` | |\n|---|---|\n{table}"


def _one_cell(text: str) -> str:
    home = str(Path.home())
    private = text.replace(home, "~") if len(home) > 1 else text
    return " ".join(private.split()).replace("|", "\\|")


def examine(settings: Settings) -> Iterator[Finding]:
    """Everything that a kernel depends on."""
    yield Finding("python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("system", platform.platform())
    yield Finding("blocknumba", f"{blocknumba.__version__}, {Path(blocknumba.__file__).parent}")
    for name in _NEEDED:
        yield _package(name, "Nothing works.", pip_install(name))
    for name in _FOR_GPUS:
        yield _package(name, "Kernels run on the CPU only.",
                       pip_install("numba-cuda", "cu13"))
    yield from _compilers()
    yield from _gpus(find_driver())
    for name in _LIBRARIES:
        found = find_spec(name) is not None
        yield Finding(name, "installed" if found else "not installed (optional)")
    yield from _cache(settings)
    if settings.interpret:
        yield Finding("BLOCKNUMBA_INTERPRET", "1", "Kernels run on the CPU only.",
                      "unset BLOCKNUMBA_INTERPRET")


def version(package: str) -> str:
    """The version of an installed package; empty when it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _package(name: str, lost: str, fix: str) -> Finding:
    found = version(name)
    return Finding(name, found) if found else Finding(name, "not installed", lost, fix)


def _compilers() -> Iterator[Finding]:
    def listed() -> str:
        return ", ".join(map(str, toolchain.libraries()))

    yield _tried("libraries", listed, "Kernels cannot be compiled for a GPU.")
    yield _tried("PTX", lambda: "up to version {}.{}".format(*toolchain.linker_ptx_version()),
                 "Kernels cannot be compiled for a GPU.")
    yield _tried("disassembler", lambda: toolchain.disassembler()[0],
                 'compiled.asm["sass"] is missing.')


def _tried(what: str, look: Callable[[], str], lost: str) -> Finding:
    try:
        return Finding(what, look())
    except BlockError as error:
        return Finding(what, error.message, lost, error.hint)


def _gpus(driver: Driver | None) -> Iterator[Finding]:
    if driver is None:
        yield Finding("GPU", "none, or no driver: kernels run on the CPU")
        return
    for device in range(driver.device_count):
        yield _tried(f"GPU {device}", partial(_gpu, driver, device),
                     f"Kernels cannot run on GPU {device}.")
    yield driver_finding(driver.cuda_version())


def _gpu(driver: Driver, device: int) -> str:
    capability = driver.capability(device)
    target = Target.of_capability(capability)
    return "{}, compute capability {}.{}, gets code for {}".format(
        driver.device_name(device), *capability, target)


def driver_finding(driver: tuple[int, int]) -> Finding:
    """Machine code runs on drivers of the compiler's major version and later."""
    said = "CUDA {}.{}".format(*driver)
    try:
        compiler = toolchain.linker_version()
    except BlockError:
        return Finding("driver", said)  # what is missing is said elsewhere
    if driver[0] >= compiler[0]:
        return Finding("driver", said)
    fixes = ["update the driver", pip_install("numba-cuda", f"cu{driver[0]}")]
    return Finding("driver", "{}, older than the compiler's CUDA {}.{}".format(said, *compiler),
                   "Kernels cannot be loaded.",
                   ", or ".join(fixes if f"cu{driver[0]}" in CUDA_EXTRAS else fixes[:1]))


def _cache(settings: Settings) -> Iterator[Finding]:
    if not settings.cache:
        yield Finding("cache", "off: BLOCKNUMBA_CACHE=0")
        return
    if settings.cache_folder is None:
        yield Finding("cache", "no home directory", "Every process compiles every kernel.",
                      "set BLOCKNUMBA_CACHE_DIR to a folder that can be written")
        return
    cache = Cache(settings.cache_folder, settings.cache_bytes)
    said = ", ".join(" ".join(line.split()) for line in cache_info(cache, True).splitlines())
    if distrust(cache.folder):
        yield Finding("cache", said, "Every process compiles every kernel.", remedy(cache.folder))
        return
    if cache.save("doctor", b""):
        cache.remove("doctor")
        yield Finding("cache", said)
        return
    yield Finding("cache", f"{said}: cannot be written", "Every process compiles every kernel.",
                  "set BLOCKNUMBA_CACHE_DIR to a folder that can be written")
