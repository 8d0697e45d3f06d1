"""The command prints counters beside the source."""

import argparse

import numpy as np
import pytest
from ptx import module

from blocknumba.emulator import EmulatorError
from blocknumba.emulator.command import Launchable, add_arguments, parse_parameter, run
from blocknumba.emulator.counters import class_of


def arguments(*given):
    """The parsed command line."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(given)


_COPY = """
.loc 1 2 1
mul.wide.u32 %rd8, %r1, 4; add.s64 %rd9, %rd1, %rd8; add.s64 %rd10, %rd2, %rd8;
.loc 1 3 1
ld.global.f32 %f1, [%rd9]; st.global.f32 [%rd10], %f1;
"""


def test_counters_stand_beside_the_source(tmp_path, capsys):
    source = tmp_path / "kernel.py"
    source.write_text("def copy(x, y):\n    at = index()\n    y[at] = x[at]\n")
    ptx = tmp_path / "kernel.ptx"
    ptx.write_text(module(_COPY, 2, f'.file 1 "{source}"\n'))
    status = run(arguments(f"{ptx}:k", "f32[128]", "f32[128]", "--grid", "1", "--block", "128"))
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if "y[at] = x[at]" in line)
    assert status == 0
    assert row.split("|")[0].split() == ["12", "8", "32", "32"]  # with ret
    assert any("def copy" in line and line.split("|")[0].strip() == "" for line in lines)
    assert lines[-1].endswith("8 global requests of 4.00 sectors, 0 bank conflicts")


def test_without_source_the_ptx_is_shown(tmp_path, capsys):
    ptx = tmp_path / "kernel.ptx"
    ptx.write_text(module("st.global.f32 [%rd1], %f1;"))
    run(arguments(f"{ptx}:k", "f32[1]", "--block", "1"))
    assert "| " in capsys.readouterr().out


def test_kernels_of_python_files_are_made_by_the_caller(capsys):
    def prepare(given, parameters):
        assert given.kernel == "kernel.py:k" and parameters[1] == 3
        return Launchable(module("nanosleep.u32 1;"), "k", given.grid, (128,),
                          parameters[:1])
    assert run(arguments("kernel.py:k", "f32[4]", "3"), prepare) == 0
    assert "instructions by class" in capsys.readouterr().out


def test_a_file_that_is_not_ptx_is_refused():
    with pytest.raises(EmulatorError, match="given 'kernel.py:k', accepted FILE.ptx:NAME"):
        run(arguments("kernel.py:k"))


def test_parameters_are_numbers_and_arrays():
    array = parse_parameter("i32[4,5]")
    assert parse_parameter("7") == 7 and parse_parameter("0.5") == 0.5
    assert array.shape == (4, 5) and array.dtype == np.int32


@pytest.mark.parametrize("text, message", [("x", "parameter 'x'"), ("q32[4]", "dtype q32")])
def test_other_parameters_are_refused(text, message):
    with pytest.raises(EmulatorError, match=message):
        parse_parameter(text)


@pytest.mark.parametrize("opcode, name", [
    ("ld.global.nc.v4.b32", "global memory"), ("st.shared::cta.b32", "shared memory"),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "tensor core"),
    ("bar.sync", "synchronization"), ("fma.rn.f32", "arithmetic"), ("bra", "control flow")])
def test_opcodes_have_classes(opcode, name):
    assert class_of(opcode) == name
