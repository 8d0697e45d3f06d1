"""Dots of pipelined loops whose operands are read a k slice ahead: the same bits, and no waits."""

import re

import emulated_gpu
import ml_dtypes
import numpy as np
import pytest
from tensor_core_kernels import tile_of

import blocknumba as bn

from blocknumba.emulator.errors import RaceError
from blocknumba.emulator.module import Module
from blocknumba.gpu_layout.async_copies import pipelining
from blocknumba.gpu_layout.async_copies.pipelining import pipelining_of
from blocknumba.gpu_layout.dots.map_dots import map_dots
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.passes.pipeline import lower_accesses

OPTIONS = LayoutOptions(arrays_are_disjoint=True)
BFLOAT16, FLOAT8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
PAD = 32  # rows and columns of arrays beyond what is multiplied: keeps strides aligned


@bn.jit
def product(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr, SUM: bn.constexpr,
            PRECISION: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), SUM)
    for k in bn.spans(a.shape[1], BK):
        acc = bn.dot(a[m, k], b[k, n], acc, precision=PRECISION)
    out[m, n] = acc


def numbers(shape, dtype, seed):
    """Numbers whose sums of mmas round, except of integers."""
    chosen = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return chosen.integers(-128, 128, shape).astype(dtype)
    return chosen.standard_normal(shape).astype(dtype)


def operands(dtype, step_of, by_columns, depth):
    """a, b and how they lie: the last iteration is masked, arrays are slices of others."""
    step = -(-max(depth, 1) // step_of) * step_of + PAD
    a = numbers((32, step), dtype, 1)[:, :depth]
    stored = numbers((32, step) if by_columns else (step, 32), dtype, 2)
    return a, stored[:, :depth].T if by_columns else stored[:depth]


def run(a, b, sums, monkeypatch, ahead=True, kernel=product, target="sm_80", **keywords):
    """The output of the kernel, and what was compiled; ahead: whether operands are read ahead."""
    with monkeypatch.context() as patched:
        if not ahead:
            patched.setattr(pipelining, "prefetch_of", lambda *_: None)
        out = np.full((a.shape[0], b.shape[1]), 77, sums)
        own = bn.jit(kernel.python_function)
        compiled = emulated_gpu.launch(own, (1, 1), (a, b, out), keywords, target)
    return out, compiled


KINDS = {
    "float16": (np.float16, np.float32, bn.float32, "ieee", 32),
    "float16 sums": (np.float16, np.float16, bn.float16, "ieee", 32),
    "bfloat16": (BFLOAT16, np.float32, bn.float32, "ieee", 64),
    "tf32": (np.float32, np.float32, bn.float32, "tf32", 16),
    "int8": (np.int8, np.int32, bn.int32, "ieee", 64),
    "float64": (np.float64, np.float64, bn.float64, "ieee", 16),
}


@pytest.mark.parametrize("stages, by_columns", [(2, True), (3, False), (4, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_operands_read_ahead_give_the_same_bits(kind, stages, by_columns, monkeypatch):
    dtype, out_dtype, sums, precision, step = KINDS[kind]
    # a mask along the depth that cuts words apart is not for asynchronous copies
    tail = 16 if np.dtype(dtype).itemsize < 4 else 3
    for depth in (tail, step + tail, 3 * step, 6 * step - tail):
        a, b = operands(dtype, step, by_columns, depth)
        keywords = {"BM": 32, "BN": 32, "BK": step, "SUM": sums, "PRECISION": precision,
                    "num_stages": stages}

        out, compiled = run(a, b, out_dtype, monkeypatch, **keywords)
        expected, plain = run(a, b, out_dtype, monkeypatch, ahead=False, **keywords)

        assert " shared_slice " in compiled.asm["gpu"]
        assert " shared_slice " not in plain.asm["gpu"]
        assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("barrier", range(1, 3), ids=["before the loop", "of an iteration"])
def test_without_one_of_the_barriers_there_is_a_race(barrier, monkeypatch):
    a, b = operands(np.float16, 32, False, 160)
    keywords = {"BM": 32, "BN": 32, "BK": 32, "SUM": bn.float32, "PRECISION": "ieee"}

    def without_barrier(compiled):
        parts = compiled.asm["ptx"].split("bar.sync 0;")
        joined = "bar.sync 0;".join(parts[:barrier + 1])
        return Module.parse(joined + "bar.sync 0;".join(parts[barrier + 1:]))

    monkeypatch.setattr(emulated_gpu, "_module", without_barrier)

    with pytest.raises(RaceError):
        run(a, b, np.float32, monkeypatch, **keywords)


def test_eight_bit_floats_are_read_ahead_where_tensor_cores_take_them(monkeypatch):
    a, b = operands(FLOAT8, 64, True, 176)
    keywords = {"BM": 32, "BN": 32, "BK": 64, "SUM": bn.float32, "PRECISION": "ieee",
                "target": "sm_89"}

    out, compiled = run(a, b, np.float32, monkeypatch, **keywords)
    expected, _ = run(a, b, np.float32, monkeypatch, ahead=False, **keywords)

    assert " shared_slice " in compiled.asm["gpu"]
    assert out.tobytes() == expected.tobytes()


# which dots --------------------------------------------------------------------------------------
F16 = ("f16[:,::1]:16", "f16[:,::1]:16", "f32[:,::1]:16")
CONSTANTS = {"BM": 128, "BN": 128, "BK": 32, "SUM": bn.float32, "PRECISION": "ieee"}


def k_slices(types=F16, **constants):
    """The number of k slices of a kernel's dot; 0 if its operands are not read ahead."""
    fn = map_dots(tile_of(product, types, {**CONSTANTS, **constants}), OPTIONS)
    fn = lower_accesses(fn)
    (pipeline,) = pipelining_of(fn, OPTIONS).pipelines
    return pipeline.prefetch.k_slices if pipeline.prefetch is not None else 0


@pytest.mark.parametrize("depth, expected", [(16, 0), (32, 2), (64, 4)])
def test_k_slices_are_as_deep_as_an_instruction(depth, expected):
    assert k_slices(BK=depth) == expected


def test_there_must_be_registers_for_two_k_slices():
    assert k_slices(BM=256) == 0


@pytest.mark.parametrize("precision, expected", [("tf32", 4), ("tf32x3", 0), ("ieee", 0)])
def test_float32_is_read_ahead_where_a_step_is_one_instruction(precision, expected):
    types = ("f32[:,::1]:16",) * 3

    assert k_slices(types, BM=64, BN=64, PRECISION=precision) == expected


# what becomes of it ------------------------------------------------------------------------------
def registers_of(fragment, words):
    """The registers that begin with the one that an instruction names."""
    first = int(re.match(r"R(\d+)", fragment)[1])
    return set(range(first, first + words))


BY_ROWS_AND_COLUMNS = pytest.mark.parametrize(
    "b", ["f16[:,::1]:16", "f16[::1,:]:16"], ids=["rows", "columns"])


def machine_code(b):
    """The instructions of a dot whose second operand is of type b."""
    types = ("f16[:,::1]:16", b, "f32[:,::1]:16")
    compiled = bn.compile(product, types, CONSTANTS, target="sm_80", num_warps=4)
    lines = re.findall(r"^\s+/\*\w+\*/\s+(.*?) ;|^(\.L\w+):", compiled.asm["sass"], re.M)
    return [line or label for line, label in lines]


@BY_ROWS_AND_COLUMNS
def test_an_iteration_has_few_instructions_beside_what_it_is_for(b):
    lines = machine_code(b)
    labels = {line: index for index, line in enumerate(lines) if line.startswith(".L")}
    mmas = {index for index, line in enumerate(lines) if line.startswith("HMMA")}
    backwards = [(labels[label], index) for index, line in enumerate(lines)
                 for label in re.findall(r"BRA `\((\.L\w+)\)", line) if labels[label] < index]

    start, end = min((loop for loop in backwards if mmas & set(range(*loop))),
                     key=lambda loop: loop[1] - loop[0])

    names = re.findall(r"HMMA|LDSM|LDGSTS", "\n".join(lines[start:end]))
    assert {name: names.count(name) for name in names} == {"HMMA": 64, "LDSM": 16, "LDGSTS": 8}
    assert end - start - len(names) < 65


@BY_ROWS_AND_COLUMNS
def test_what_is_multiplied_behind_a_barrier_was_read_before_it(b):
    lines = machine_code(b)
    mmas = [i for i, line in enumerate(lines) if line.startswith("HMMA")]
    (barrier,) = [i for i, line in enumerate(lines)
                  if "BAR.SYNC" in line and mmas[0] < i < mmas[-1]]

    following = next(i for i in mmas if i > barrier)
    a, b = re.match(r"HMMA\S+ R\d+, (R\d+)\S*, (R\d+)", lines[following]).groups()
    read = {register for line in lines[barrier:following] if line.startswith("LDSM")
            for register in registers_of(line.split()[1], 4)}

    assert len(mmas) == 64
    assert not read & (registers_of(a, 4) | registers_of(b, 2))
    assert not any(line.startswith(("STL", "LDL")) for line in lines)
