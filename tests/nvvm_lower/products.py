"""Kernels of one program that multiply matrices, and the way from there to machine code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from blocknumba.emulator import Module, Report
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import LoweredKernel, assemble_kernel, lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, Assembled, compile_to_ptx, disassemble
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DTYPES, PointerType, TileType

ASYNCHRONOUS = {"wgmma", "tma", "cp_async"}  # what other tests are about


@dataclass(frozen=True)
class DotKernel:
    """acc + the sum over iterations of a @ b.

    shape: (M, N) or (batches, M, N); depth: K, of one iteration.
    dtypes: of a, b and acc.   turned: which of a and b are stored transposed.
    """

    shape: tuple[int, ...]
    depth: int
    dtypes: tuple[str, str, str] = ("float16", "float16", "float32")
    precision: str = "ieee"
    turned: tuple[bool, bool] = (False, False)
    iterations: int = 1

    @property
    def operand_shapes(self) -> list[tuple[int, ...]]:
        """Of a and b, as they are multiplied."""
        *batch, rows, columns = self.shape
        return [(*batch, rows, self.depth), (*batch, self.depth, columns)]

    @property
    def stored_shapes(self) -> list[tuple[int, ...]]:
        """Of a and b, as they are in memory."""
        return [(*shape[:-2], shape[-1], shape[-2]) if turned else shape
                for shape, turned in zip(self.operand_shapes, self.turned)]

    def function(self) -> Function:
        """The kernel."""
        builder = Builder(folding=False)
        a, b, acc = (DTYPES[name] for name in self.dtypes)
        pointers = [TileType(PointerType(dtype)) for dtype in (a, b, acc, acc)]
        with builder.region(*pointers) as (body, arguments):
            start = builder.emit(OPS["load"], addresses(builder, arguments[2], self.shape))
            total = self._total(builder, arguments, start)
            builder.emit(OPS["store"], addresses(builder, arguments[3], self.shape), total)
            builder.emit(OPS["return"])
        names = ("a", "b", "acc", "out")
        return Function("product", tuple(Parameter("pointer", name, divisibility=16)
                                         for name in names), body)

    def _total(self, builder: Builder, arguments: tuple[Value, ...], start: Value) -> Value:
        """What is stored: one dot, or a loop of them."""
        if self.iterations == 1:
            return self._dot(builder, arguments, start)
        index = TileType(DTYPES["int32"])
        bounds = [builder.constant(i, DTYPES["int32"]) for i in (0, self.iterations, 1)]
        with builder.region(index, start.type) as (body, (number, acc)):
            moved = []
            for pointer, shape in zip(arguments, self.stored_shapes):
                size = builder.constant(int(np.prod(shape)), DTYPES["int32"])
                distance = builder.emit(OPS["mul"], number, size)
                moved.append(builder.emit(OPS["offset"], pointer, distance))
            builder.emit(OPS["yield"], self._dot(builder, moved, acc))
        return builder.emit(OPS["for"], *bounds, start, regions=(body,), types=(start.type,))

    def _dot(self, builder: Builder, pointers: list[Value], acc: Value) -> Value:
        tiles = []
        for pointer, shape, turned in zip(pointers, self.stored_shapes, self.turned):
            tile = builder.emit(OPS["load"], addresses(builder, pointer, shape))
            axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
            tiles.append(builder.emit(OPS["transpose"], tile, axes=axes) if turned else tile)
        return builder.emit(OPS["dot"], *tiles, acc, precision=self.precision)

    def operands(self, seed: int = 0) -> list[np.ndarray]:
        """a, b (one for each iteration) and acc: integers of any value, or floats around 1."""
        generator = np.random.default_rng(seed)
        shapes = [(self.iterations, *shape) for shape in self.operand_shapes] + [self.shape]
        return [_random(generator, shape, name) for shape, name in zip(shapes, self.dtypes)]

    def stored(self, operands: list[np.ndarray]) -> list[np.ndarray]:
        """Operands as the kernel takes them."""
        *factors, acc = operands
        return [np.ascontiguousarray(x.swapaxes(-1, -2) if turned else x)
                for x, turned in zip(factors, self.turned)] + [acc]


def addresses(builder: Builder, pointer: Value, shape: tuple[int, ...]) -> Value:
    """Pointers to the elements of a tile that is stored in C order."""
    index = None
    for axis, extent in enumerate(shape):
        along = builder.emit(OPS["arange"], start=0, size=extent)
        alone = tuple(extent if i == axis else 1 for i in range(len(shape)))
        along = builder.emit(OPS["reshape"], along, shape=alone)
        step = builder.constant(int(np.prod(shape[axis + 1:], dtype=int)), DTYPES["int32"])
        scaled = builder.emit(OPS["mul"], along, builder.emit(OPS["splat"], step, shape=alone))
        whole = builder.emit(OPS["broadcast"], scaled, shape=shape)
        index = whole if index is None else builder.emit(OPS["add"], index, whole)
    return builder.emit(OPS["offset"], builder.emit(OPS["splat"], pointer, shape=shape), index)


def _random(generator: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    dtype = DTYPES[name]
    if dtype.is_integer:
        low, high = max(dtype.minimum, -1000), min(dtype.maximum, 1000)
        return generator.integers(low, high, shape, dtype.numpy, endpoint=True)
    return generator.standard_normal(shape).astype(dtype.numpy)


@dataclass(frozen=True)
class Built:
    """A kernel for a target, without the asynchronous engines."""

    case: DotKernel
    target: Target
    num_warps: int
    min_blocks: int = 1

    @cached_property
    def gpu(self) -> Function:
        """The GPU-layout IR."""
        features = frozenset(map(str, self.target.capabilities)) - ASYNCHRONOUS
        return lay_out(self.case.function(), LayoutOptions(
            self.num_warps, features=features, arrays_are_disjoint=True,
            shared_bytes=self.target.shared_bytes_per_block), verify=True)

    @cached_property
    def lowered(self) -> LoweredKernel:
        options = CodeOptions(self.num_warps, min_blocks=self.min_blocks)
        return lower(self.gpu, self.target, options)

    @cached_property
    def assembled(self) -> Assembled:
        return assemble_kernel(self.lowered, self.target, CodeOptions(self.num_warps))

    @cached_property
    def sass(self) -> str:
        return disassemble(self.assembled.cubin)

    def run(self, operands: list[np.ndarray]) -> tuple[np.ndarray, Report]:
        """The result of the emulated machine code on operands, and the report."""
        out = np.zeros_like(operands[2])
        ptx = compile_to_ptx(self.lowered.nvvm_ir, self.target, AssembleOptions()).decode()
        report = Module.parse(ptx).launch(
            self.lowered.name, 1, self.num_warps * 32, [*self.case.stored(operands), out],
            self.lowered.shared_bytes)
        return out, report


@cache
def built(case: DotKernel, target: str = "sm_80", num_warps: int = 4, **options: int) -> Built:
    """A kernel for a target."""
    return Built(case, Target.parse(target), num_warps, **options)
