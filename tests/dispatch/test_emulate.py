"""`python -m blocknumba emulate` runs kernels of Python files, and counts what they do."""

import re
from pathlib import Path

import numpy as np
import pytest
from own_maps import own_map

from blocknumba.__main__ import main
from blocknumba.dispatch.cli.emulate import parameter_values
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.launch.arrays import array_info
from blocknumba.emulator import Module
from blocknumba.nvvm_lower.toolchain import Assembled

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


def test_a_grid_is_of_programs_which_may_be_several_blocks(capsys):
    status = main(["emulate", f"{EXAMPLES}/matmul.py:matmul", "f16[128,64]", "f16[64,64]",
                   "f16[128,64]", "--constant", "BM=128", "--constant", "BN=64", "--constant",
                   "BK=64", "--grid", "1", "--option", "num_ctas=2", "--option", "num_warps=4"])

    assert status == 0  # clusters of 2 take no grid of one block
    executed = re.search(r"(\d+) +\S+ % +tensor core", capsys.readouterr().out)
    assert int(executed[1]) % (2 * 4) == 0  # the warps of both blocks


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


COPIES_A_BOX = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 buffer[];
.visible .entry copy(.param .align 64 .b8 source[128], .param .align 64 .b8 target[128])
{
    .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<2>;
    .shared .align 8 .b64 arrived;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    mov.u32 %r1, arrived;
    mov.u32 %r2, buffer;
    mov.b64 %d0, source; cvta.param.u64 %d0, %d0;
    mov.b64 %d1, target; cvta.param.u64 %d1, %d1;
    @%p0 bra DONE;
    mbarrier.init.shared.b64 [%r1], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1024;
    cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r2], [%d0, {32, 8, 1}], [%r1];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;
    @!%p1 bra WAIT;
    cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%d1, {0, 0, 0}], [%r2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
    ret;
}
"""


def test_tensor_maps_are_given_with_the_axes_of_the_array():
    numbers = np.arange(16 * 3 * 64, dtype=np.float32).reshape(16, 3, 64)
    source = numbers.transpose(0, 2, 1)  # its strides are 192, 1, 64
    target = np.zeros((2, 8, 16), np.float32)
    parameters = (
        own_map("source", (1, 0, 2), (16, 8, 2), 64),
        own_map("target", (2, 1, 0), (16, 8, 2), 64))
    machine = MachineCode("", "", Assembled(COPIES_A_BOX, b"", 0, 0, 0, 0), "copy", parameters,
                          32, 1024)
    infos = {"source": array_info(source, ""), "target": array_info(target, "")}

    values = parameter_values(machine, infos)
    Module.parse(COPIES_A_BOX).launch("copy", 1, 32, values, 1024)

    assert (target == source[8:16, 32:48, 1:3].transpose(2, 0, 1)).all()
