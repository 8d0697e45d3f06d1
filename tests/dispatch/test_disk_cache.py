"""Kernels that come from the disk: when they do, and that they are what was put there."""

import os
import subprocess
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.dispatch.compile import kernel_code
from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.compile.compiled import StoredFunction
from blocknumba.dispatch.compile.entry import decode, encode
from blocknumba.errors import BlockIndexError
from blocknumba.tile_ir.text.printer import text

SCALE = """
import blocknumba as bn

FACTOR = 3

def offset(value):
    return value + 1

@bn.jit
def scale(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = offset(x[r]) * FACTOR
"""
AHEAD = ("f32[::1]:16", "f32[::1]:16")
CACHED = ["cache"]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Cache:
    """A folder that this test alone uses."""
    made = Cache(tmp_path / "cache", 1 << 20)
    monkeypatch.setattr(kernel_code, "user_cache", lambda: made)
    return made


def kernel(source: str = SCALE):
    """The kernel of a program that has just started."""
    module = types.ModuleType("user_program")
    exec(compile(source, "user_program.py", "exec"), module.__dict__)
    return module.scale


def launch(scale) -> tuple[list[str], np.ndarray]:
    """The stages that compiled a kernel for the CPU, and what it made of [0, 1, 2, 3]."""
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    compiled = scale[1](x, out, B=4, device="cpu")
    return list(compiled.times_ms), out


def test_the_second_program_finds_what_the_first_compiled(cache):
    first, expected = launch(kernel())

    second, out = launch(kernel())

    assert first == ["typing", "tile", "llvm", "native"]
    assert second == CACHED
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("old, new, expected", [
    ("FACTOR = 3", "FACTOR = 4", [4, 8, 12, 16]),
    ("value + 1", "value + 2", [6, 9, 12, 15]),
    ("* FACTOR", "- FACTOR", [-2, -1, 0, 1])], ids=["global", "callee", "kernel"])
def test_a_program_that_changed_compiles_again(cache, old, new, expected):
    launch(kernel())

    stages, out = launch(kernel(SCALE.replace(old, new)))

    assert stages != CACHED
    assert out.tolist() == expected


def test_a_changed_option_compiles_again(cache):
    pytest.importorskip("cuda.bindings.nvvm")
    stages = [list(bn.compile(kernel(), AHEAD, {"B": 64}, target="sm_90a", num_warps=warps).times_ms)
              for warps in (1, 2, 1, 2)]

    assert [found == CACHED for found in stages] == [False, False, True, True]


@pytest.mark.parametrize("damage", [
    lambda whole: b"", lambda whole: whole[:-1], lambda whole: b"another program's file",
    lambda whole: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
    lambda whole: whole.replace(b"format 1", b"format 0")],
    ids=["empty", "truncated", "foreign", "bit", "version"])
def test_a_damaged_file_is_compiled_again_and_replaced(cache, damage):
    launch(kernel())
    (file,) = cache.files()
    file.path.write_bytes(damage(file.path.read_bytes()))

    again, out = launch(kernel())

    assert again != CACHED
    assert out.tolist() == [3, 6, 9, 12]
    assert launch(kernel())[0] == CACHED


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "cache").write_bytes(b"a file where the folder should be")
    monkeypatch.setattr(kernel_code, "user_cache", lambda: Cache(tmp_path / "cache", 1 << 20))

    for _ in range(2):
        stages, out = launch(kernel())
        assert stages != CACHED
        assert out.tolist() == [3, 6, 9, 12]


def test_without_a_home_there_is_no_cache_and_no_error(monkeypatch):
    monkeypatch.setattr(kernel_code, "user_cache", lambda: None)

    assert launch(kernel())[1].tolist() == [3, 6, 9, 12]


def test_arrays_of_another_alignment_get_other_code(cache):
    pytest.importorskip("cuda.bindings.nvvm")
    for _ in range(2):
        loads = [set(bn.compile(kernel(), (spelling,) * 2, {"B": 256}, target="sm_90a").stats.loads)
                 for spelling in ("*fp32:16", "*fp32")]
        assert loads == [{16}, {4}]
    x = np.arange(64, dtype=np.float32)
    for view in (x[:32], x[1:33], x[::-2]):
        out = np.zeros(32, np.float32)
        kernel()[1](view, out, B=32, interpret=True)
        np.testing.assert_array_equal(out, (view + 1) * 3)


def test_machine_code_from_the_disk_is_the_same_in_every_respect(cache):
    pytest.importorskip("cuda.bindings.nvvm")
    first = bn.compile(kernel(), AHEAD, {"B": 256}, target="sm_90a")

    second = bn.compile(kernel(), AHEAD, {"B": 256}, target="sm_90a")

    assert list(second.times_ms) == CACHED
    assert second.machine == first.machine
    assert second.effects == first.effects
    assert second.stats == first.stats
    assert dict(second.asm) == dict(first.asm)
    assert text(second.tile) == first.asm["tile"]


def test_code_of_a_toolchain_that_was_replaced_is_not_used(tmp_path):
    library = tmp_path / "libnvvm.so"
    library.write_bytes(b"version 1")
    compiled = bn.compile(kernel(), AHEAD, {"B": 4})
    content = encode(compiled, [library])
    assert decode(content, compiled.specialization) is not None

    library.write_bytes(b"version 2.0")
    replaced = decode(content, compiled.specialization)
    library.unlink()
    removed = decode(content, compiled.specialization)

    assert replaced is removed is None


def test_a_function_read_back_is_the_same_with_the_same_lines():
    tile = bn.compile(kernel(), AHEAD, {"B": 4}).tile
    stored = StoredFunction.of(tile)

    again = StoredFunction.of(stored.read())

    assert again == stored
    assert len({location[1] for location in stored.locations}) > 1


@bn.jit
def past_the_end(x, out, B: bn.constexpr):
    i = bn.arange(0, B)
    bn.store(out + i, bn.load(x + i + 1))


def test_an_error_of_a_kernel_from_the_disk_shows_the_line(cache):
    messages = []
    for _ in range(2):
        fresh = bn.jit(past_the_end.python_function)
        with pytest.raises(BlockIndexError) as error:
            fresh[1](np.zeros(8), np.zeros(8), B=8, interpret=True, debug=True)
        messages.append(str(error.value))

    assert len(cache.files()) == 1
    assert messages[0] == messages[1]
    assert "bn.store(out + i, bn.load(x + i + 1))" in messages[1]


PROGRAM = SCALE + """
import sys
import numpy as np

x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
compiled = scale[1](x, out, B=4, device="cpu")
assert out.tolist() == [3, 6, 9, 12]
if {ahead}:
    ahead = bn.compile(scale, ("f32[::1]:16",) * 2, {{"B": 256}}, target="sm_90a")
    assert ahead.asm["cubin"].startswith(b"\\x7fELF")
loaded = [name for name in sys.modules if name in ("numba", "llvmlite", "cuda.bindings.nvvm",
                                                   "cuda.bindings.nvjitlink")]
print(",".join(loaded))
"""


def test_a_second_process_loads_neither_numba_nor_libnvvm(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(ahead=find_spec("cuda") is not None))
    environment = os.environ | {"BLOCKNUMBA_CACHE": "1",
                                "BLOCKNUMBA_CACHE_DIR": str(tmp_path / "cache"),
                                "PYTHONPATH": str(Path(bn.__file__).parents[1])}

    loaded = [subprocess.run([sys.executable, program], env=environment, check=True,
                             capture_output=True, text=True).stdout.strip() for _ in range(2)]

    assert "numba" in loaded[0]
    assert loaded[1] == "llvmlite"  # native code is loaded with it


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_sixteen_processes_race_on_an_empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_code, "user_cache", lambda: Cache(tmp_path / "cache", 1 << 20))
    launch(kernel(SCALE.replace("FACTOR = 3", "FACTOR = 5")))  # numba is loaded before the fork
    start = time.time() + 0.2

    children = [_child(start) for _ in range(16)]
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert statuses == [0] * 16
    assert launch(kernel())[0] == CACHED
    assert sorted(os.path.splitext(name)[1] for name in os.listdir(tmp_path / "cache")) == [
        ".kernel", ".kernel"]


def _child(start: float) -> int:
    """A process that launches the kernel at a time; it ends with 0 when all was well."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        time.sleep(max(0.0, start - time.time()))
        status = int(launch(kernel())[1].tolist() != [3, 6, 9, 12])
    finally:
        os._exit(status)
