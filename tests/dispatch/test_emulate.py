"""`python -m blocknumba emulate` runs kernels of Python files, and counts what they do."""

from pathlib import Path

import pytest

from blocknumba.__main__ import main

pytest.importorskip("cuda.bindings.nvvm")

EXAMPLES = Path(__file__).parents[2] / "examples"
ADD = [f"{EXAMPLES}/vector_add.py:add", "f32[4096]", "f32[4096]", "f32[4096]"]


def counters(text, source):
    """executed, requests, sectors, ... of the line of a listing with some source text."""
    line = next(line for line in text.splitlines() if source in line)
    return [int(cell) for cell in line.split("|")[0].split()]


def test_each_line_of_source_has_its_counters(capsys):
    status = main(["emulate", *ADD, "--constant", "BLOCK=1024", "--grid", "4"])

    printed = capsys.readouterr().out
    executed, requests, sectors, ideal = counters(printed, "out[r] = x[r] + y[r]")
    assert status == 0
    assert executed > 0
    assert requests == 3 * 4096 // (32 * 4)  # two loads and a store; a lane moves 4 elements
    assert sectors == ideal == 3 * 4096 * 4 // 32


def test_sizes_options_and_targets_are_what_is_asked_for(capsys):
    main(["emulate", f"{EXAMPLES}/transpose.py:transpose_pointers", "f32[128,256]", "f32[256,128]",
          "128", "256", "--constant", "TILE=64", "--grid", "2,4", "--target", "sm_80",
          "--option", "num_warps=8"])

    printed = capsys.readouterr().out
    assert counters(printed, "i = tl.program_id(0)")[0] % (8 * 8) == 0  # blocks and warps
    assert "0 bank conflicts" in printed


def test_ptx_is_run_as_it_is(tmp_path, capsys):
    main(["compile", ADD[0], "--signature", "f32[::1]:16, f32[::1]:16, f32[::1]:16, 1024",
          "--target", "sm_90a", "-o", str(tmp_path), "--option", "num_warps=4"])
    parameters = [text for size in ("f32[1024]",) * 3 for text in (size, "1024")]

    status = main(["emulate", f"{tmp_path}/add.ptx:add", *parameters, "--block", "128"])

    assert status == 0
    assert "24 global requests of 16.00 sectors" in capsys.readouterr().out


WRONG = """
import blocknumba as bn

@bn.jit
def beyond(out, BLOCK: bn.constexpr):
    bn.store(out + bn.arange(0, BLOCK), 1.0)
"""


def test_what_a_kernel_does_wrong_is_an_error_with_its_line(tmp_path, capsys):
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)

    status = main(["emulate", f"{file}:beyond", "f32[64]", "--constant", "BLOCK=1024"])

    printed = capsys.readouterr().err
    assert status == 1
    assert printed.startswith("AccessError: ")
    assert "wrong.py, line 6" in printed


@pytest.mark.parametrize("arguments, message", [
    ([*ADD, "--grid", "4"], "add: missing BLOCK"),
    ([*ADD[:2], "--constant", "BLOCK=64"], "add: missing y, out"),
    ([*ADD, "--constant", "BLOCK=64", "--block", "64"],
     "emulate: given --block for a kernel of Python, accepted for PTX"),
    ([*ADD, "--constant", "BLOCK=64", "--option", "warps=2"], "warps"),
    ([*ADD, "--constant", "BLOCK=64", "--target", "h100"], "h100"),
    (["add"], "emulate: given 'add', accepted FILE.py:KERNEL"),
    ([*ADD[:3], "f9[64]"], "emulate: given the dtype f9"),
])
def test_mistakes_are_one_message(arguments, message, capsys):
    status = main(["emulate", *arguments])

    assert status == 1
    assert message in capsys.readouterr().err
