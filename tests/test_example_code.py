"""The machine code of the examples, made without a GPU: no spills, no warnings, wide accesses."""

import re

import attention
import digits
import gather_rows
import histogram
import layernorm
import matmul
import numpy as np
import photograph
import pytest
import softmax
import sums
import transpose
import vector_add

import blocknumba as bn

from blocknumba.dispatch.launch.device import Device
from blocknumba.nvvm_lower.target import Target

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
VECTOR, HALF_VECTOR = "f32[::1]:16", "f16[::1]:16"
MATRIX, HALF_MATRIX = "f32[:,::1]:16", "f16[:,::1]:16"
LAYERNORM = (HALF_MATRIX, HALF_VECTOR, HALF_VECTOR, HALF_MATRIX, VECTOR, VECTOR, "float")
LAYERNORM_POINTERS = ("*fp16:16",) * 4 + ("*fp32:16",) * 2 + ("int:16", "float")
STENCIL = {"WEIGHTS": photograph.BLUR, "ROWS": photograph.ROWS, "COLUMNS": photograph.COLUMNS}
SUMS = {"ROWS": sums.TILE[0], "COLUMNS": sums.TILE[1]}
GATHER = {"ROWS": gather_rows.ROWS, "COLUMNS": gather_rows.COLUMNS}

# Kernels that read contiguous, aligned rows: every load should be of 16 bytes.
STREAMING = {
    "add": (vector_add.add, (VECTOR,) * 3, {"BLOCK": 1024}),
    "add, pointers": (vector_add.add_pointers, ("*fp32:16",) * 3 + ("int:16",), {"BLOCK": 1024}),
    "softmax f32": (softmax.softmax, (MATRIX,) * 2, {"BLOCK": 1024}),
    "softmax f16": (softmax.softmax, (HALF_MATRIX,) * 2, {"BLOCK": 4096}),
    "softmax f32, long rows": (softmax.softmax, (MATRIX,) * 2, {"BLOCK": 16384}),
    "softmax, pointers": (softmax.softmax_pointers, ("*fp32:16",) * 2 + ("int:16",),
                          {"BLOCK": 1024}),
    "layernorm": (layernorm.layernorm, LAYERNORM, {"BLOCK": 8192}),
    "layernorm, long rows": (layernorm.layernorm_long_rows, LAYERNORM, {"BLOCK": 4096}),
    "layernorm, pointers": (layernorm.layernorm_pointers, LAYERNORM_POINTERS, {"BLOCK": 1024}),
    "row sums": (sums.row_sums, (MATRIX, VECTOR), {"BLOCK": sums.ROW_BLOCK}),
    "row sums, pointers": (sums.row_sums_pointers, ("*fp32:16",) * 2 + ("int:16",),
                           {"BLOCK": sums.ROW_BLOCK}),
    "column sums": (sums.column_sums, (MATRIX, VECTOR), SUMS),
    "column sums, pointers": (sums.column_sums_pointers, ("*fp32:16",) * 2 + ("int:16",) * 2,
                              SUMS),
}
OTHERS = {
    "transpose": (transpose.transpose, (MATRIX,) * 2, {"TILE": transpose.TILE}),
    "transpose, pointers": (transpose.transpose_pointers, ("*fp32:16",) * 2 + ("int:16",) * 2,
                            {"TILE": transpose.TILE}),
    "stencil": (photograph.stencil, ("u8[:,:,::1]",) * 2, STENCIL),
    "stencil, pointers": (photograph.stencil_pointers, ("*u8:16",) * 2 + ("int",) * 3, STENCIL),
    "gather": (gather_rows.gather_rows, (MATRIX, "i64[::1]", MATRIX), GATHER),
    "gather, pointers": (gather_rows.gather_rows_pointers,
                         ("*fp32:16", "*i64:16", "*fp32:16", "int:16", "int:16"), GATHER),
    "histogram": (histogram.histogram, ("u8[::1]:16", "i32[::1]"), {"BLOCK": histogram.BLOCK}),
    "histogram, tiles": (histogram.histogram_by_tiles, ("u8[::1]:16", "i32[::1]"),
                         {"BLOCK": histogram.BLOCK, "BINS": 256}),
    "histogram, pointers": (histogram.histogram_pointers, ("*u8:16", "*i32:16", "int:16"),
                            {"BLOCK": histogram.BLOCK}),
}
KERNELS = STREAMING | OTHERS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_example_compiles_without_spills_or_warnings(name, target):
    stats = bn.compile(*KERNELS[name], target=target).stats
    assert stats.spills == 0
    assert stats.stack_bytes == 0
    assert stats.warnings == ()


@pytest.mark.parametrize("name", STREAMING)
def test_streaming_example_loads_16_bytes_at_a_time(name):
    stats = bn.compile(*STREAMING[name], target="sm_90a").stats
    assert stats.loads
    assert set(stats.loads) == {16}


def test_softmax_reads_and_writes_each_element_once():
    compiled = bn.compile(*STREAMING["softmax f32"], target="sm_90a")
    threads = compiled.machine.threads
    assert sum(compiled.stats.loads) * threads == 1024 * 4
    assert compiled.asm["ptx"].count("st.global.v4.b32") * 16 * threads == 1024 * 4


def test_example_becomes_machine_instructions_of_16_bytes():
    sass = bn.compile(*STREAMING["add"], target="sm_90a").asm["sass"]
    assert "LDG.E.128" in sass
    assert "STG.E.128" in sass


def in_loops(ptx: str) -> list[str]:
    """The lines between a label and a jump back to it."""
    lines = ptx.splitlines()
    labels = {line.strip()[:-1]: number for number, line in enumerate(lines)
              if re.fullmatch(r"\s*\$\w+:\s*", line)}
    found: list[str] = []
    for number, line in enumerate(lines):
        jump = re.search(r"\bbra(?:\.uni)?\s+(\$\w+)", line)
        if jump and labels.get(jump[1], number) < number:
            found += lines[labels[jump[1]]:number]
    return found


@pytest.mark.parametrize("name", ["layernorm", "layernorm, long rows", "layernorm, pointers"])
def test_a_float_argument_is_converted_once_and_outside_of_loops(name):
    ptx = bn.compile(*KERNELS[name], target="sm_90a").asm["ptx"]
    doubles = [line.split()[0] for line in ptx.splitlines() if ".f64" in line]
    assert [word for word in doubles if word not in (".param", ".reg")] == [
        "ld.param.f64", "cvt.rn.f32.f64"]
    assert not [line for line in in_loops(ptx) if ".f64" in line]


# products -------------------------------------------------------------------------------------
COLUMNS, HALF_COLUMNS = "f32[::1,:]:16", "f16[::1,:]:16"
HEADS = "f16[:,:,:,::1]:16"
STRIDES = ("int:16", "int:1") * 3
HOPPER = "sm_90a"


def device_of(target: str) -> Device:
    return Device(target, Target.parse(target), 132)


def product_of(target, shape, dtype=np.float16, precision="ieee"):
    """Tiles for a product of a shape on a target, such as the compiler chooses."""
    if shape == SKINNY:
        return {"BM": 64, "BN": 128, "BK": 128}
    if shape == MEDIUM:
        return {"BM": 64, "BN": 128, "BK": 64}
    if precision == "tf32x3":
        return {"BM": 128, "BN": 64, "BK": 16}
    facts = Target.parse(target)
    is_wide = facts.has("wgmma") or not facts.has("tma")
    columns = 256 if is_wide and (dtype == np.float16 or precision == "tf32") else 128
    return {"BM": 128, "BN": columns, "BK": 128 // np.dtype(dtype).itemsize}


def attention_of(target, D, causal):
    """The constants and options of attention on a target."""
    return {**attention.blocks_for(D, np.dtype(np.float16), device_of(target), causal), "D": D,
            "CAUSAL": causal}


LARGE, MEDIUM, SKINNY = (4096,) * 3, (1024,) * 3, (16, 8192, 8192)
# name -> kernel, types, target -> constants and options
PRODUCTS = {
    "matmul": (matmul.matmul, (HALF_MATRIX,) * 3, lambda t: product_of(t, LARGE)),
    "matmul, columns": (matmul.matmul, (HALF_MATRIX, HALF_COLUMNS, HALF_MATRIX),
                        lambda t: product_of(t, LARGE)),
    "matmul, medium": (matmul.matmul, (HALF_MATRIX,) * 3, lambda t: product_of(t, MEDIUM)),
    "matmul, few rows": (matmul.matmul, (HALF_MATRIX, HALF_COLUMNS, HALF_MATRIX),
                         lambda t: product_of(t, SKINNY)),
    "matmul tf32": (matmul.matmul_float32, (MATRIX, COLUMNS, MATRIX),
                    lambda t: {**product_of(t, LARGE, np.float32, "tf32"), "PRECISION": "tf32"}),
    "attention, 64": (attention.attention, (HEADS,) * 4 + ("float",),
                      lambda t: attention_of(t, 64, True)),
    "attention, 128": (attention.attention, (HEADS,) * 4 + ("float",),
                       lambda t: attention_of(t, 128, False)),
}
OTHER_PRODUCTS = {
    "matmul, pointers": (matmul.matmul_pointers, ("*fp16:16",) * 3 + ("int:16",) * 3 + STRIDES,
                         lambda t: {**product_of(t, LARGE), "GROUP": matmul.GROUP}),
    "matmul f32": (matmul.matmul, (MATRIX,) * 3, lambda t: product_of(t, LARGE, np.float32)),
    "matmul tf32x3": (matmul.matmul_float32, (MATRIX,) * 3, lambda t: {
        **product_of(t, LARGE, np.float32, "tf32x3"), "PRECISION": "tf32x3"}),
    "digits, layer": (digits.matmul_bias, (MATRIX, MATRIX, VECTOR, MATRIX),
                      lambda t: {**digits.TILE, "ACTIVATION": digits.relu}),
    "digits, backward": (digits.backward, (MATRIX,) * 4, lambda t: digits.TILE),
    "digits, descend": (digits.descend, (MATRIX,) * 3 + (VECTOR, "float"), lambda t: digits.TILE),
}
ALL_PRODUCTS = PRODUCTS | OTHER_PRODUCTS
OPTIONS = ("num_warps", "num_stages")


def compile_product(name, target):
    kernel, types, choose = ALL_PRODUCTS[name]
    chosen = choose(target)
    options = {option: chosen[option] for option in OPTIONS if option in chosen}
    constants = {name: value for name, value in chosen.items() if name not in OPTIONS}
    return bn.compile(kernel, types, constants, target=target, **options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ALL_PRODUCTS)
def test_product_compiles_without_spills_or_warnings(name, target):
    stats = compile_product(name, target).stats

    assert stats.spills == 0
    assert stats.warnings == ()  # such as C7510: wgmma is serialised


@pytest.mark.parametrize("name", PRODUCTS)
def test_product_on_hopper_is_wgmma_of_what_the_copy_engine_moves(name):
    compiled = compile_product(name, HOPPER)

    sass = compiled.asm["sass"]
    for instruction in ("HGMMA", "UTMALDG", "UTMASTG"):
        assert instruction in sass
    assert not re.search(r"\b(LDG|STG)\b", sass)
    assert {access.way for access in compiled.stats.accesses} == {"TMA"}


@pytest.mark.parametrize("name", ["matmul", "matmul, pointers", "attention, 128"])
def test_product_on_ampere_is_mma_of_what_is_copied_asynchronously(name):
    sass = compile_product(name, "sm_80").asm["sass"]

    for instruction in ("HMMA.16816.F32", "LDGSTS.E.BYPASS", "LDSM.16.M88.4"):
        assert instruction in sass


@pytest.mark.parametrize("name", ["attention, 64", "attention, 128"])
def test_attention_computes_in_double_precision_only_its_scale(name):
    ptx = compile_product(name, HOPPER).asm["ptx"]
    doubles = {line.split()[0] for line in ptx.splitlines() if ".f64" in line}
    assert doubles - {".param", ".reg"} == {"ld.param.f64", "mul.rn.f64", "cvt.rn.f32.f64"}
    assert not [line for line in in_loops(ptx) if ".f64" in line]
    assert "ex2.approx" in "".join(in_loops(ptx))
