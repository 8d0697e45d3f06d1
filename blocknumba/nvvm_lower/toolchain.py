"""The adapter to NVIDIA's compilers: NVVM IR to PTX (libNVVM), PTX to machine code (nvJitLink)."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from blocknumba.errors import BlockError
from blocknumba.nvvm_lower.llvm import MODULE_END
from blocknumba.nvvm_lower.ptx.corrections import corrected
from blocknumba.nvvm_lower.target import Target

# The newest PTX that CUDA 12.m reads; CUDA 13.m reads 9.m.  Source: PTX ISA, "Release Notes"
_PTX_OF_CUDA_12 = {3: (8, 3), 4: (8, 4), 5: (8, 5), 6: (8, 5), 7: (8, 6), 8: (8, 7), 9: (8, 8)}
_VERSION = re.compile(rb"^\.version (\d+)\.(\d+)", re.MULTILINE)
_REGISTERS = re.compile(r"Used (\d+) registers")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_WARNING = re.compile(r"^.*(?:warning|advisory|\(C7\d\d\d\)).*$", re.IGNORECASE | re.MULTILINE)


class ToolchainError(BlockError, RuntimeError):
    """A tool of NVIDIA is missing, or refused generated code.

    tool: its name; log: its output; source: its input.
    """

    def __init__(self, message: str, *, tool: str, log: str = "", source: str = "", hint: str = ""):
        super().__init__(message, hint=hint)
        self.tool, self.log, self.source = tool, log, source


@dataclass(frozen=True, slots=True)
class AssembleOptions:
    """Options of the way from NVVM IR to machine code.

    optimization: 0 to 3, of both tools.
    fastmath: flush denormals, approximate division and square root, contract.
    maxnreg: maximum of registers per thread; None leaves it to the assembler.
    lineinfo: keep source lines.
    verify: check the NVVM IR first; costs 1 ms and finds mistakes of ours.
    whole_program: link from LTO IR, so that the assembler knows that nothing else is linked: calls
        that it cannot see would serialise wgmma, and setmaxnreg would be ignored.
    """

    optimization: int = 3
    fastmath: bool = False
    maxnreg: int | None = None
    lineinfo: bool = False
    verify: bool = False
    whole_program: bool = False


@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code for one target, and the assembler's report.

    ptx: empty when the kernel was linked from LTO IR; compile_to_ptx returns it.
    registers: per thread.  spill_bytes, stack_bytes: of local memory, per thread.
    shared_bytes: static shared memory per block.
    warnings: of the assembler, one line each.
    """

    ptx: str
    cubin: bytes
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    warnings: tuple[str, ...] = ()


def assemble(nvvm_ir: str, target: Target,
             options: AssembleOptions = AssembleOptions()) -> Assembled:
    """Compile one kernel, and the modules that its text may have besides its own.

    Errors: ToolchainError when a tool is missing or refuses; its log is attached.
    """
    if options.whole_program:
        return _link(compile_to_ltoir(nvvm_ir, target, options), target, options)
    return link(compile_to_ptx(nvvm_ir, target, options), target, options)


def compile_to_ptx(nvvm_ir: str, target: Target, options: AssembleOptions) -> bytes:
    """NVVM IR to PTX that the linker accepts and gets right."""
    return cap_version(corrected(_compile(nvvm_ir, target, options)), linker_ptx_version())


def compile_to_ltoir(nvvm_ir: str, target: Target, options: AssembleOptions) -> bytes:
    """NVVM IR to LTO IR, which nvJitLink compiles together with what it is linked with."""
    return _compile(nvvm_ir, target, options, ("-gen-lto",))


def _compile(nvvm_ir: str, target: Target, options: AssembleOptions,
             more: tuple[str, ...] = ()) -> bytes:
    """NVVM IR to PTX, or to LTO IR if more flags ask for it.

    libdevice, half a megabyte, is linked only into modules that declare one of its functions.
    """
    nvvm = _tool("nvvm")
    flags = [f"-arch={target.compute}", f"-opt={options.optimization}", *_arithmetic(options),
             *more]
    flags += ["-generate-line-info"] * options.lineinfo
    program = nvvm.create_program()
    try:
        for name, text in zip(_module_names(), nvvm_ir.split(MODULE_END)):
            source = text.encode()
            nvvm.add_module_to_program(program, source, len(source), name)
        if "__nv_" in nvvm_ir:
            library = _libdevice()
            nvvm.lazy_add_module_to_program(program, library, len(library), "libdevice")
        if options.verify:
            nvvm.verify_program(program, len(flags), flags)
        nvvm.compile_program(program, len(flags), flags)
        result = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, result)
    except nvvm.nvvmError as error:
        log = bytearray(nvvm.get_program_log_size(program))
        nvvm.get_program_log(program, log)
        raise _refusal("libNVVM", str(error), log, nvvm_ir) from None
    finally:
        nvvm.destroy_program(program)
    return bytes(result) if more else bytes(result).rstrip(b"\0")


def _module_names() -> Iterator[str]:
    """Names of the modules of a program: the kernel's, and those of functions that it calls."""
    yield "kernel"
    yield from (f"function{number}" for number in itertools.count())


def link(ptx: bytes, target: Target, options: AssembleOptions) -> Assembled:
    """PTX to machine code."""
    return replace(_link(ptx, target, options), ptx=ptx.decode())


def _link(code: bytes, target: Target, options: AssembleOptions) -> Assembled:
    """PTX, or LTO IR if the options say whole_program, to machine code.

    -no-cache: of code that nvJitLink has kept from another call it reports no spills.
    """
    linker = _tool("nvjitlink")
    kind = linker.InputType.LTOIR if options.whole_program else linker.InputType.PTX
    flags = [f"-arch={target.name}", "-verbose", "-no-cache", f"-O{options.optimization}"]
    flags += ["-lto", *_arithmetic(options)] if options.whole_program else []
    flags += ["-lineinfo"] * options.lineinfo
    flags += [f"-maxrregcount={options.maxnreg}"] if options.maxnreg else []
    handle = linker.create(len(flags), flags)
    try:
        linker.add_data(handle, kind, code, len(code), "kernel")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
        log = bytearray(linker.get_info_log_size(handle))
        linker.get_info_log(handle, log)
    except linker.nvJitLinkError as error:
        log = bytearray(linker.get_error_log_size(handle))
        linker.get_error_log(handle, log)
        source = "" if options.whole_program else code.decode()
        raise _refusal("nvJitLink", str(error), log, source) from None
    finally:
        linker.destroy(handle)
    return _assembled(bytes(cubin), _text(log))


def cap_version(ptx: bytes, newest: tuple[int, int]) -> bytes:
    """PTX with its .version lowered to newest where it is higher.

    libNVVM stamps its own version even on text that any older assembler takes.
    """
    found = _VERSION.search(ptx)
    assert found, "libNVVM wrote PTX without a version"
    if (int(found[1]), int(found[2])) <= newest:
        return ptx
    return ptx[:found.start()] + b".version %d.%d" % newest + ptx[found.end():]


@cache
def linker_version() -> tuple[int, int]:
    """The version of the CUDA release that nvJitLink is of."""
    major, minor = _tool("nvjitlink").version()
    return major, minor


@cache
def linker_ptx_version() -> tuple[int, int]:
    """The newest PTX version that the installed nvJitLink reads."""
    major, minor = linker_version()
    newest = (9, minor) if major == 13 else _PTX_OF_CUDA_12.get(minor) if major == 12 else None
    if newest is None:
        raise ToolchainError(f"nvjitlink: given version {major}.{minor}, accepted 12.3 to 13.x",
                             tool="nvjitlink", hint=_pip_install())
    return newest


@cache
def libraries() -> tuple[Path, ...]:
    """Files of the compilers: libNVVM, nvJitLink, and libdevice where it is installed."""
    tools = _library("nvvm"), _library("nvJitLink")
    mathematics = _libdevice_file()
    return tools if mathematics is None else (*tools, mathematics)


@cache
def versions() -> str:
    """The builds of the tools in use, for cache keys and bug reports."""
    return " ".join(_build(name) for name in ("nvvm", "nvJitLink"))


def disassemble(cubin: bytes) -> str:
    """The machine code as text (SASS).

    Errors: ToolchainError when neither nvdisasm nor cuobjdump is installed.
    """
    # here and not above: both are slow to import, and few look at machine code
    import subprocess
    import tempfile  # likewise

    program, flags = disassembler()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = subprocess.run([program, *flags, file], capture_output=True, text=True,
                              check=False)
    if done.returncode:
        raise ToolchainError(f"sass: {program} refused the cubin", tool=program, log=done.stderr)
    return done.stdout


def disassembler() -> tuple[str, tuple[str, ...]]:
    """The program that shows machine code, and its flags.

    Errors: ToolchainError when neither nvdisasm nor cuobjdump is installed.
    """
    for name, flags in (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",))):
        program = _find_binary(name)
        if program is not None:
            return program, flags
    raise ToolchainError("sass: neither nvdisasm nor cuobjdump was found", tool="nvdisasm",
                         hint=f"{_pip_install('nvidia-cuda-nvdisasm', 'test')}, or add CUDA's bin "
                              "to PATH")


def what_is_missing() -> str:
    """The command that installs what compiles for GPUs; empty when it is there."""
    try:
        libraries()
    except ToolchainError as error:
        return error.hint
    return ""


def _arithmetic(options: AssembleOptions) -> list[str]:
    """libNVVM's flags: NumPy's arithmetic unless fastmath.

    -fma=0: a multiplication and an addition are rounded twice; libNVVM contracts them by default.
    """
    if options.fastmath:
        return ["-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1"]
    return ["-ftz=0", "-prec-div=1", "-prec-sqrt=1", "-fma=0"]


def _assembled(cubin: bytes, log: str) -> Assembled:
    """The kernel with the numbers of the linker's log; those that it does not mention are 0."""
    registers, shared = _REGISTERS.search(log), _SHARED.search(log)
    frames = [tuple(map(int, found)) for found in _STACK.findall(log)]
    return Assembled(
        "", cubin, int(registers[1]) if registers else 0,
        max((stores + loads for _, stores, loads in frames), default=0),
        max((stack for stack, _, _ in frames), default=0),
        int(shared[1]) if shared else 0,
        tuple(line.strip() for line in _WARNING.findall(log)))


def _refusal(tool: str, error: str, log: bytes, source: str) -> ToolchainError:
    text = _text(log)
    first = next((line for line in text.splitlines() if "rror" in line), error).strip()
    return ToolchainError(f"{tool} refused the code that blocknumba generated: {first}", tool=tool,
                          log=text, source=source,
                          hint="this is a bug of blocknumba; the log and the code are attached to "
                               "this exception as .log and .source")


def _text(log: bytes) -> str:
    return bytes(log).decode(errors="replace").strip("\0 \n")


def _pip_install(package: str = "numba-cuda", extra: str = "cu13") -> str:
    # here and not above: metadata takes long to import, and only mistakes need it
    from blocknumba.installation import pip_install

    return pip_install(package, extra)


@cache
def _tool(name: str):
    """cuda.bindings.nvvm or cuda.bindings.nvjitlink, with its library loaded."""
    try:
        # here and not above: blocknumba works without CUDA, on the CPU
        from cuda.bindings import nvjitlink, nvvm

        module = {"nvvm": nvvm, "nvjitlink": nvjitlink}[name]
        module.version()
    except (ImportError, RuntimeError) as error:
        raise ToolchainError(f"compiling for a GPU needs {name}: {error}", tool=name,
                             hint=_pip_install()) from None
    return module


def _library(name: str) -> Path:
    """The file of a library of NVIDIA's, which is loaded."""
    try:
        # here and not above: blocknumba works without CUDA, on the CPU
        from cuda import pathfinder

        return Path(pathfinder.load_nvidia_dynamic_lib(name).abs_path).resolve()
    except (ImportError, RuntimeError, OSError) as error:
        raise ToolchainError(f"compiling for a GPU needs {name}: {error}", tool=name,
                             hint=_pip_install()) from None


def _build(name: str) -> str:
    """One build of a library, told from others by its file; no library gives its exact version."""
    file = _library(name)
    status = file.stat()
    return f"{file.name}:{status.st_size}:{status.st_mtime_ns}"


@cache
def _libdevice() -> bytes:
    """The bitcode of NVIDIA's mathematics library."""
    file = _libdevice_file()
    if file is None:
        raise ToolchainError("mathematics: libdevice.10.bc was not found next to libNVVM, "
                             f"{_library('nvvm')}", tool="libdevice", hint=_pip_install())
    return file.read_bytes()


def _libdevice_file() -> Path | None:
    """NVIDIA's mathematics library, the one that belongs to libNVVM."""
    root = _library("nvvm").parents[1]
    for folder in (root / "libdevice", root / "nvvm" / "libdevice"):  # the toolkit, the wheel
        file = folder / "libdevice.10.bc"
        if file.exists():
            return file
    return None


@cache
def _find_binary(name: str) -> str | None:
    """The path of a program of the CUDA toolkit: on PATH, in a wheel, or in CUDA_HOME."""
    found = shutil.which(name)
    if found is None:
        with contextlib.suppress(ImportError):
            # here and not above: blocknumba works without CUDA, on the CPU
            from cuda import pathfinder

            found = pathfinder.find_nvidia_binary_utility(name)
    return found
