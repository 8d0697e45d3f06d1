"""Dots of the CPU device: machine code of this processor against products in higher precision."""

from __future__ import annotations

import ctypes
import itertools
import re
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
import pytest
from dot_oracle import KINDS, assert_close, error_bound, exact_dot, random_matrix

from blocknumba.cpu_lower.dot import SCRATCH_ALIGNMENT, DotFunction, Product, dot_function
from blocknumba.cpu_lower.micro_kernel import (
    AVX2, AVX512, NEON, SSE2, UNROLLED, VectorUnit, blocking,
)
from blocknumba.tile_ir.ir.types import DTYPES

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

HOST = llvm.get_process_triple()
# Vectors that are wider than the host's are legal IR, which LLVM splits.
UNITS = (AVX512, AVX2, NEON, SSE2)
POISON = 0xA5
# (M, K, N), or the number of batches before them
SHAPES = ((16, 16, 16), (1, 1, 1), (2, 4, 8), (1, 32, 16), (16, 64, 1), (64, 16, 8), (8, 2, 64),
          (32, 32, 32), (64, 32, 128), (32, 16, 256), (2, 16, 16, 16), (4, 1, 2, 2), (4, 8, 8, 8))
ORDERS = ("rows", "columns", "neither")


@dataclass(frozen=True)
class Machine:
    """Where code runs: triple, processor, features."""

    triple: str = HOST
    cpu: str = llvm.get_host_cpu_name()
    features: str = llvm.get_host_cpu_features().flatten()

    def compile(self, text: str) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
        """The optimised module of a text, and what writes its machine code."""
        machine = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=2)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = self.triple, str(machine.target_data)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
        builder.getModulePassManager().run(module, builder)
        return module, machine


ARM = Machine("aarch64-linux-gnu", "neoverse-n1", "")
HASWELL = Machine("x86_64-linux-gnu", "haswell", "")
SKYLAKE = Machine("x86_64-linux-gnu", "skylake-avx512", "")


def exported(function: DotFunction) -> str:
    """The function's text, with a symbol that others see."""
    return function.text.replace("define internal", "define", 1)


class Native:
    """A dot's function as a function of NumPy arrays."""

    def __init__(self, product: Product, unit: VectorUnit):
        self.function = dot_function("dot", product, unit)
        module, machine = Machine().compile(exported(self.function))
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        address, integer = ctypes.c_void_p, ctypes.c_int64
        operand = (address, integer, integer, integer)
        self._call = ctypes.CFUNCTYPE(None, *operand, *operand, address, address)(
            self._engine.get_function_address("dot"))

    def add(self, a: np.ndarray, b: np.ndarray, acc: np.ndarray) -> None:
        """acc += a @ b."""
        scratch, around = poisoned(self.function.scratch_bytes)
        a, b = (x if x.ndim == 3 else x[None] for x in (a, b))
        self._call(a.ctypes.data, *a.strides, b.ctypes.data, *b.strides, acc.ctypes.data,
                   scratch.ctypes.data)
        assert all((edge == POISON).all() for edge in around), "written beside the scratch memory"


def poisoned(size_bytes: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Aligned memory full of nonsense, and what stands before and behind it."""
    memory = np.full(size_bytes + 3 * SCRATCH_ALIGNMENT, POISON, np.uint8)
    start = SCRATCH_ALIGNMENT + -memory.ctypes.data % SCRATCH_ALIGNMENT
    stop = start + size_bytes
    return memory[start:stop], (memory[:start], memory[stop:])


def product_of(kind: tuple[str, ...], size: tuple[int, ...]) -> Product:
    """The product of a kind and a size, ([batches,] M, K, N)."""
    *batches, rows, depth, columns = size
    return Product(*(DTYPES[name] for name in kind[:3]), rows, depth, columns, *batches,
                   precision=kind[3])


def ordered(x: np.ndarray, order: str) -> np.ndarray:
    """The same matrix, contiguous along its rows, its columns, or neither."""
    if order == "rows":
        return x
    if order == "columns":
        return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    spread = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype)
    spread[..., ::3] = x
    return spread[..., ::3]


def operands(generator: np.random.Generator, size: tuple[int, ...],
             kind: tuple[str, ...]) -> list[np.ndarray]:
    """a, b and acc of a size."""
    *batches, rows, depth, columns = size
    shapes = (rows, depth), (depth, columns), (rows, columns)
    return [random_matrix(generator, (*batches, *shape), dtype)
            for shape, dtype in zip(shapes, kind)]


def check(native: Native, a: np.ndarray, b: np.ndarray, acc: np.ndarray, precision: str) -> None:
    """What the function adds is within the error that the op states, rounded to acc's dtype."""
    with np.errstate(invalid="ignore", over="ignore"):
        expected = exact_dot(a, b, acc, precision)
        bound = error_bound(a, b, acc, precision)
        if acc.dtype == np.float16:
            bound = bound + np.abs(expected) * 2.0**-11
    native.add(a, b, acc)
    assert_close(acc, expected, bound)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_every_kind_in_every_shape_is_near_the_exact_product(kind):
    generator = np.random.default_rng()
    for size, unit in zip(SHAPES, itertools.cycle(UNITS)):
        native = Native(product_of(kind, size), unit)
        a, b, acc = operands(generator, size, kind)

        check(native, a, b, acc, kind[3])


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8"])
@pytest.mark.parametrize("size", [(32, 16, 64), (2, 16, 32, 1), (8, 64, 32), (16, 16, 256)],
                         ids=str)
def test_operands_may_have_any_strides(name, size):
    (kind, *_) = (kind for kind in KINDS if kind[:2] == (name, name) and kind[2] != "float16")
    native = Native(product_of(kind, size), AVX512)
    for left, right in itertools.product(ORDERS, ORDERS):
        a, b, acc = operands(np.random.default_rng(), size, kind)

        check(native, ordered(a, left), ordered(b, right), acc, "ieee")


def test_strides_may_be_negative_or_zero():
    native = Native(product_of(("float32",) * 3 + ("ieee",), (16, 16, 32)), AVX512)
    a, b, acc = operands(np.random.default_rng(), (16, 16, 32), ("float32",) * 3)

    check(native, a[::-1], np.broadcast_to(b[3], b.shape), acc, "ieee")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[2] == "int32"], ids="-".join)
@pytest.mark.parametrize("name", ["min", "max"])
def test_integers_wrap(kind, name):
    a, b = (np.full((64, 64), getattr(np.iinfo(dtype), name), dtype) for dtype in kind[:2])
    acc = np.full((64, 64), np.iinfo(np.int32).max, np.int32)

    check(Native(product_of(kind, (64, 64, 64)), AVX2), a, b, acc, "ieee")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[2] != "int32"], ids="-".join)
def test_infinities_and_nan_stay_in_their_row(kind):
    a, b, acc = operands(np.random.default_rng(), (32, 16, 16), kind)
    infinity = np.inf if kind[0] != "float8_e4m3fn" else np.nan  # which has none
    a[1, 3], a[2, 5], a[4, 0], acc[7, 7] = infinity, np.nan, -infinity, np.inf
    b[0, 9] = 0
    with np.errstate(invalid="ignore"):
        expected = exact_dot(a, b, acc, kind[3])

    Native(product_of(kind, (32, 16, 16)), AVX512).add(a, b, acc)

    np.testing.assert_array_equal(np.isnan(acc.astype(float)), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(acc[infinite].astype(float), expected[infinite].astype(float))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"])
def test_every_number_of_a_narrow_float_is_multiplied_exactly(name):
    dtype = DTYPES[name]
    codes = np.arange(1 << dtype.bits, dtype=f"u{dtype.bytes}").view(dtype.numpy)
    native = Native(product_of((name, name, "float32", "ieee"), (256, 1, 1)), AVX512)
    one = np.ones((1, 1), dtype.numpy)
    for column in codes.reshape(-1, 256, 1):
        acc = np.zeros((256, 1), np.float32)
        native.add(column, one, acc)

        np.testing.assert_array_equal(acc, column.astype(np.float32))


def test_tf32_rounds_ties_away_from_zero_and_keeps_what_is_not_finite():
    a = np.array([1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12, np.inf], np.float32)
    acc = np.zeros((4, 1), np.float32)

    Native(product_of(("float32",) * 3 + ("tf32",), (4, 1, 1)), AVX512).add(
        a[:, None], np.ones((1, 1), np.float32), acc)

    np.testing.assert_array_equal(acc[:, 0], [1 + 2.0**-10, -1 - 2.0**-10, 1, np.inf])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_register_blocks_cover_the_product_and_fit_the_registers(unit):
    extents = [2**k for k in range(10)]
    for bits, rows, columns in itertools.product((32, 64), extents, extents):
        block = blocking(unit, bits, rows, columns)

        assert block.blocks * block.rows - block.short_blocks == rows
        assert 0 <= block.short_blocks < block.blocks
        assert columns % block.width == 0
        # one row reads each vector of b once, from memory
        read = block.vectors if block.rows > 1 else 1
        assert block.rows * block.vectors + read + 1 <= unit.registers
        assert block.lanes * bits <= unit.bits


# machine code ---------------------------------------------------------------------------------
def innermost_loops(assembly: str) -> list[str]:
    """The blocks that end by jumping to their own label."""
    blocks = re.split(r"^(\.L\w+):", assembly, flags=re.MULTILINE)
    loops = (re.match(rf"(.*?)^\s+(?:b\.?|j)\w+\s+{re.escape(label)}\b", code,
                      re.MULTILINE | re.DOTALL)
             for label, code in zip(blocks[1::2], blocks[2::2]))
    return [loop[1] for loop in loops if loop]


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("machine, unit, multiply_add", [
    (ARM, NEON, r"fmla\s+v\d+\.(4s|2d)"), (HASWELL, AVX2, r"vfmadd231p[sd]\s+.*%ymm"),
    (SKYLAKE, AVX512, r"vfmadd231p[sd]\s+.*%zmm")], ids=["neon", "avx2", "avx512"])
def test_the_register_block_is_multiply_adds_without_spills(machine, unit, multiply_add, name):
    product = product_of((name,) * 3 + ("ieee",), (64, 64, 64))
    module, writer = machine.compile(exported(dot_function("dot", product, unit)))

    assembly = writer.emit_assembly(module)
    loops = [loop for loop in innermost_loops(assembly) if re.search(multiply_add, loop)]

    block = blocking(unit, product.acc.bits, 64, 64)
    assert len(loops) == 1 + bool(block.short_blocks)
    assert len(re.findall(multiply_add, loops[0])) == UNROLLED * block.rows * block.vectors
    frame = r"\[sp|\(%rsp\)"  # without a frame pointer, rbp is like any other register
    if re.search(r"movq\s+%rsp, %rbp", assembly):
        frame += r"|\(%rbp\)"
    for loop in loops:
        assert not re.search(frame, loop), loop


def test_fetches_ahead_are_few_however_long_a_row_is():
    product = product_of(("float64",) * 3 + ("ieee",), (64, 1024, 16))
    assert (product.depth, product.columns) == (1024, 16)

    text = dot_function("dot", product, AVX512).text

    lines_of_sums = 8 * 2
    assert 0 < text.count("call void @llvm.prefetch") - lines_of_sums <= 8 * 4
