"""The machine code of the examples, made without a GPU: no spills, no warnings, wide accesses."""

import gather_rows
import histogram
import layernorm
import photograph
import pytest
import softmax
import sums
import transpose
import vector_add

import blocknumba as bn

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
VECTOR, HALF_VECTOR = "f32[::1]:16", "f16[::1]:16"
MATRIX, HALF_MATRIX = "f32[:,::1]:16", "f16[:,::1]:16"
LAYERNORM = (HALF_MATRIX, HALF_VECTOR, HALF_VECTOR, HALF_MATRIX, VECTOR, VECTOR, "f32")
LAYERNORM_POINTERS = ("*fp16:16",) * 4 + ("*fp32:16",) * 2 + ("i32:16", "f32")
STENCIL = {"WEIGHTS": photograph.BLUR, "ROWS": photograph.ROWS, "COLUMNS": photograph.COLUMNS}
SUMS = {"ROWS": sums.TILE[0], "COLUMNS": sums.TILE[1]}
GATHER = {"ROWS": gather_rows.ROWS, "COLUMNS": gather_rows.COLUMNS}

# Kernels that read contiguous, aligned rows: every load should be of 16 bytes.
STREAMING = {
    "add": (vector_add.add, (VECTOR,) * 3, {"BLOCK": 1024}),
    "add, pointers": (vector_add.add_pointers, ("*fp32:16",) * 3 + ("i32:16",), {"BLOCK": 1024}),
    "softmax f32": (softmax.softmax, (MATRIX,) * 2, {"BLOCK": 1024}),
    "softmax f16": (softmax.softmax, (HALF_MATRIX,) * 2, {"BLOCK": 4096}),
    "softmax f32, long rows": (softmax.softmax, (MATRIX,) * 2, {"BLOCK": 16384}),
    "softmax, pointers": (softmax.softmax_pointers, ("*fp32:16",) * 2 + ("i32:16",),
                          {"BLOCK": 1024}),
    "layernorm": (layernorm.layernorm, LAYERNORM, {"BLOCK": 8192}),
    "layernorm, long rows": (layernorm.layernorm_long_rows, LAYERNORM, {"BLOCK": 4096}),
    "layernorm, pointers": (layernorm.layernorm_pointers, LAYERNORM_POINTERS, {"BLOCK": 1024}),
    "row sums": (sums.row_sums, (MATRIX, VECTOR), {"BLOCK": sums.ROW_BLOCK}),
    "row sums, pointers": (sums.row_sums_pointers, ("*fp32:16",) * 2 + ("i32:16",),
                           {"BLOCK": sums.ROW_BLOCK}),
    "column sums": (sums.column_sums, (MATRIX, VECTOR), SUMS),
    "column sums, pointers": (sums.column_sums_pointers, ("*fp32:16",) * 2 + ("i32:16",) * 2,
                              SUMS),
}
OTHERS = {
    "transpose": (transpose.transpose, (MATRIX,) * 2, {"TILE": transpose.TILE}),
    "transpose, pointers": (transpose.transpose_pointers, ("*fp32:16",) * 2 + ("i32:16",) * 2,
                            {"TILE": transpose.TILE}),
    "stencil": (photograph.stencil, ("u8[:,:,::1]",) * 2, STENCIL),
    "stencil, pointers": (photograph.stencil_pointers, ("*u8:16",) * 2 + ("i32",) * 3, STENCIL),
    "gather": (gather_rows.gather_rows, (MATRIX, "i64[::1]", MATRIX), GATHER),
    "gather, pointers": (gather_rows.gather_rows_pointers,
                         ("*fp32:16", "*i64:16", "*fp32:16", "i32:16", "i32:16"), GATHER),
    "histogram": (histogram.histogram, ("u8[::1]:16", "i32[::1]"), {"BLOCK": histogram.BLOCK}),
    "histogram, pointers": (histogram.histogram_pointers, ("*u8:16", "*i32:16", "i32:16"),
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
