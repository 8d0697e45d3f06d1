"""The adapter to libNVVM and nvJitLink: versions, errors, what the logs say."""

import pytest
from kernels import elementwise_kernel, lowered

from blocknumba.installation import pip_install
from blocknumba.nvvm_lower import toolchain
from blocknumba.nvvm_lower.llvm import Body, Module
from blocknumba.nvvm_lower.ptx.warp import set_registers
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.nvvm_lower.toolchain import (
    AssembleOptions,
    ToolchainError,
    assemble,
    cap_version,
    compile_to_ptx,
    disassemble,
    link,
)

TARGET = TARGETS["sm_90a"]
ADD = elementwise_kernel("%result = add %a, %b : tile<1024xfloat32>", "float32", "float32")


@pytest.mark.parametrize("given, newest, wanted", [
    (b"// x\n.version 9.5\n.target", (9, 0), b"// x\n.version 9.0\n.target"),
    (b".version 9.0\n", (9, 0), b".version 9.0\n"),
    (b".version 8.8\n", (9, 0), b".version 8.8\n")])
def test_a_ptx_version_is_lowered_and_never_raised(given, newest, wanted):
    assert cap_version(given, newest) == wanted


def test_ptx_of_an_older_version_still_links():
    ptx = compile_to_ptx(lowered(ADD).nvvm_ir, TARGET, AssembleOptions())

    found = link(cap_version(ptx, (9, 0)), TARGET, AssembleOptions())

    assert found.cubin.startswith(b"\x7fELF")


def test_a_refusal_of_libnvvm_is_one_line_with_the_log_attached():
    with pytest.raises(ToolchainError) as caught:
        assemble("define void @k() {\n  ret i32 0\n}\n", TARGET)

    error = caught.value
    assert error.tool == "libNVVM"
    assert "\n" not in error.message
    assert "bug of blocknumba" in str(error)
    assert error.log and error.source.startswith("define void @k()")


def test_a_refusal_of_the_linker_is_one_line_with_the_log_attached():
    with pytest.raises(ToolchainError) as caught:
        link(b".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() { nonsense; }\n", TARGET,
             AssembleOptions())

    error = caught.value
    assert error.tool == "nvJitLink"
    assert "\n" not in error.message
    assert "nonsense" in error.log
    assert ".entry k()" in error.source


def test_the_log_of_the_linker_becomes_numbers():
    log = """ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas         .     24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 42 registers, used 1 barriers, 128 bytes smem
ptxas warning : something is slow"""

    found = toolchain._assembled(b"", log)

    assert (found.registers, found.stack_bytes, found.spill_bytes) == (42, 24, 36)
    assert found.shared_bytes == 128
    assert found.warnings == ("ptxas warning : something is slow",)


def giving_registers_away():
    """A kernel that says only that its threads need fewer registers."""
    module = Module()
    body = Body(module)
    body.assembly(set_registers(24, gives=True))
    body.do("ret void")
    body.define("k", [])
    module.annotate("k", "void ()", {"kernel": 1, "maxntidx": 128, "minctasm": 1})
    module.keep("k", "void ()")
    return module.text()


def test_what_the_assembler_ignores_is_a_warning():
    found = assemble(giving_registers_away(), TARGET)

    (warning,) = found.warnings
    assert "C7504" in warning and "setmaxnreg" in warning


def test_a_whole_program_may_give_registers_away():
    found = assemble(giving_registers_away(), TARGET, AssembleOptions(whole_program=True))

    assert found.warnings == ()
    assert "USETMAXREG" in disassemble(found.cubin)


def test_spills_are_counted():
    body = "\n".join(f"%r{i} = exp %{'a' if i == 0 else f'r{i - 1}'} : tile<8192xfloat64>"
                     for i in range(2)) + "\n%result = add %r1, %a : tile<8192xfloat64>"
    text = elementwise_kernel(body, "float64", result="float64", size=8192)

    found = assemble(lowered(text, maxnreg=64).nvvm_ir, TARGET)

    assert found.spill_bytes > 0
    assert found.registers <= 64


def test_machine_code_can_be_read():
    assert "FADD" in disassemble(assemble(lowered(ADD).nvvm_ir, TARGET).cubin)


def test_without_a_disassembler_the_error_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(toolchain, "_find_binary", lambda name: None)

    with pytest.raises(ToolchainError) as caught:
        disassemble(b"")

    assert pip_install("nvidia-cuda-nvdisasm", "test") in str(caught.value)


@pytest.mark.parametrize("library", ["exp", "add"])
def test_libdevice_is_linked_only_where_it_is_called(library, monkeypatch):
    asked = []
    monkeypatch.setattr(toolchain, "_libdevice", lambda: asked.append(1) or LIBDEVICE)
    operands = "%a, %a" if library == "add" else "%a"
    text = elementwise_kernel(f"%result = {library} {operands} : tile<1024xfloat32>", "float32")

    assemble(lowered(text).nvvm_ir, TARGET)

    assert bool(asked) == (library == "exp")


LIBDEVICE = toolchain._libdevice()


def test_the_versions_of_the_tools_are_one_line():
    found = toolchain.versions()

    assert "nvvm" in found and "nvJitLink" in found
    assert "\n" not in found
