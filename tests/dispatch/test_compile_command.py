"""`python -m blocknumba compile`, and a C program with what it writes."""

import json
import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from own_maps import own_map

import blocknumba as bn

from blocknumba.__main__ import main
from blocknumba.dispatch.compile.entry import decode, encode
from blocknumba.dispatch.compile.export import export

pytest.importorskip("cuda.bindings.nvvm")

ROOT = Path(__file__).parents[2]
ADD = f"{ROOT}/examples/vector_add.py:add"
SIGNATURE = "f32[::1]:16, f32[::1]:16, f32[::1]:16, 1024"
TRITON_SIGNATURE = "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024"


@pytest.fixture
def output(tmp_path, capsys) -> Path:
    """The folder of the compiled vector add."""
    status = main(["compile", ADD, "--signature", SIGNATURE, "--target", "sm_90a",
                   "-o", str(tmp_path / "out")])
    assert status == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "out" / f"add.{ending}") for ending in ("cubin", "ptx", "json", "h")]
    return tmp_path / "out"


def test_the_files_are_what_their_names_say(output):
    assert (output / "add.cubin").read_bytes().startswith(b"\x7fELF")
    assert ".visible .entry add(" in (output / "add.ptx").read_text()
    assert "static inline CUresult add_launch(" in (output / "add.h").read_text()


def test_the_description_says_what_a_launcher_needs(output):
    said = json.loads((output / "add.json").read_text())

    assert (said["symbol"], said["target"], said["constants"]) == ("add", "sm_90a",
                                                                  {"BLOCK": "1024"})
    assert [(p["kind"], p["argument"]) for p in said["parameters"]] == [
        (kind, name) for name in ("x", "y", "out") for kind in ("pointer", "extent")]
    assert said["arguments"]["x"]["dtype"] == "float32"
    assert said["stores"] == ["out"]
    assert said["threads"] % 32 == 0


def test_tritons_signatures_are_accepted(tmp_path):
    status = main(["compile", f"{ADD}_pointers", "--signature", TRITON_SIGNATURE, "--target",
                   "sm_80", "-o", str(tmp_path), "--name", "pointers", "--option", "num_warps=8"])

    said = json.loads((tmp_path / "pointers.json").read_text())
    assert status == 0
    assert (said["target"], said["threads"]) == ("sm_80", 256)
    assert [p["argument"] for p in said["parameters"]] == ["x", "y", "out", "size"]


@pytest.mark.parametrize("arguments, message", [
    ([ADD], "add: missing the constant BLOCK"),
    ([f"{ROOT}/examples/vector_add.py:sub"], "has no kernel 'sub', accepted add, add_pointers"),
    ([f"{ROOT}/examples/missing.py:add"], "there is no file"),
    (["add"], "accepted FILE.py:KERNEL"),
    ([ADD, "--constant", "BLOCK"], "given 'BLOCK', accepted NAME=VALUE"),
    ([ADD, "--constant", "BLOCK=many"], "accepted a literal of Python"),
    ([ADD, "--constant", "BLOCK=64", "--option", "warps=1"], "given the options warps"),
])
def test_mistakes_are_one_message(arguments, message, tmp_path, capsys):
    status = main(["compile", *arguments, "--signature", "f32[:], f32[:], f32[:]", "--target",
                   "sm_90a", "-o", str(tmp_path)])

    assert status == 1
    assert message in capsys.readouterr().err


def test_a_c_program_launches_what_was_compiled(output, tmp_path):
    program = _built(ROOT / "examples" / "aot" / "vector_add.c", output, tmp_path)

    done = subprocess.run([program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "0 of 1048576 elements are wrong\n"), done.stderr


def test_the_launcher_refuses_what_the_code_does_not_take(output, tmp_path):
    source = (ROOT / "examples" / "aot" / "vector_add.c").read_text()
    changed = tmp_path / "changed.c"
    changed.write_text(source.replace("device_x, SIZE, device_y", "device_x + 4, SIZE, device_y"))

    done = subprocess.run([_built(changed, output, tmp_path)], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (2, b"add_launch: error\n")


@bn.jit
def copy(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r, 0]


MAPS = r"""
#include <stdio.h>
#include "copy.h"

CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType element, cuuint32_t rank, void *array,
    const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    map->opaque[0] = 7;
    printf("%d %u %p %lu %lu %lu %u %u %u %u %d %d %d %d\n", element, rank, array, extents[0],
           extents[1], strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle,
           promotion, fill);
    return 0;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *code) { return 0; }
CUresult CUDAAPI cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) { return 0; }
CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads,
                                unsigned b, unsigned c, unsigned shared, CUstream stream,
                                void **parameters, void **extra)
{
    printf("%lu %u %u\n", ((CUtensorMap *)parameters[PLACE])->opaque[0], x, y);
    return 0;
}

int main(void)
{
    CUtensorMap map;
    copy_encode_x_map_64x128_128(&map, 0x1000, 256, 320, 640);
    return copy_launch(0, 0, 3, 2, 1, GIVEN, &map);
}
"""


@pytest.mark.parametrize("cluster", [1, 2])
def test_a_c_program_encodes_the_tensor_maps_of_what_was_compiled(tmp_path, cluster):
    compiled = bn.compile(copy, "f16[:,::1]:16, f16[::1]:16", {"B": 64}, target="sm_90a")
    box = own_map("x", (1, 0), (64, 128), 128)
    given = compiled.machine.parameters
    machine = replace(compiled.machine, parameters=(*given, box), cluster=cluster)
    export(replace(compiled, machine=machine), tmp_path)
    program = tmp_path / "maps.c"
    program.write_text(MAPS.replace("PLACE", str(len(given)))
                       .replace("GIVEN", ", ".join("0" for _ in given)))

    done = subprocess.run([_built(program, tmp_path, tmp_path, driver=False)], text=True,
                          capture_output=True, check=True)

    # programs of several blocks lie along x
    assert done.stdout == f"6 2 0x1000 320 256 1280 64 128 1 1 0 3 3 0\n7 {3 * cluster} 2\n"
    said = json.loads((tmp_path / "copy.json").read_text())
    assert said["cluster"] == cluster
    assert said["parameters"][-1]["tensor_map"] == {
        "extents": ["x.extent1", "x.extent0"], "strides": ["x.stride0"], "box": [64, 128],
        "swizzle_bytes": 128, "as_tf32": False}


def test_tensor_maps_come_back_from_the_disk():
    compiled = bn.compile(copy, "f16[:,::1]:16, f16[::1]:16", {"B": 64}, target="sm_90a")
    box = own_map("x", (1, 0), (64, 128), 128)
    compiled.machine = replace(compiled.machine, parameters=(box,))

    found = decode(encode(compiled, []), compiled.specialization)

    assert found.machine.parameters == (box,)


def _built(source: Path, headers: Path, folder: Path, driver: bool = True) -> Path:
    """A program whose driver is aot_driver.c, or that has the functions of a driver itself."""
    compiler, cuda = shutil.which("gcc") or shutil.which("cc"), _cuda_headers()
    if compiler is None or cuda is None:
        pytest.skip("no C compiler or no cuda.h")
    program = folder / "program"
    drivers = [Path(__file__).with_name("aot_driver.c")] if driver else []
    subprocess.run([compiler, "-std=c2x", "-O1", "-Wall", "-Werror", "-Wno-unused-parameter", "-I",
                    headers, "-isystem", cuda, source, "-o", program, *drivers], check=True)
    return program


def _cuda_headers() -> Path | None:
    """The folder of cuda.h: in a wheel, or of the toolkit."""
    wheels = find_spec("nvidia")
    folders = [Path(place, "cu13", "include") for place in wheels.submodule_search_locations
               ] if wheels else []
    return next((folder for folder in (*folders, Path("/usr/local/cuda/include"))
                 if (folder / "cuda.h").exists()), None)
