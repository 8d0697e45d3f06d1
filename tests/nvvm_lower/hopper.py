"""Functions of the GPU-layout IR written by hand, and their runs on an emulated Hopper."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from own_maps import own_map

from blocknumba.emulator import Module, Options, TensorMap as EmulatedMap
from blocknumba.gpu_layout.layouts.registers import blocked, collapse, reshape, shape_of
from blocknumba.gpu_layout.layouts.shared import swizzled
from blocknumba.gpu_layout.memory.allocate_shared import allocate_shared
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.spec import READY
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import LoweredKernel, assemble_kernel, lower
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.nvvm_lower.toolchain import AssembleOptions, Assembled, compile_to_ptx, disassemble
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import PointerType, TileType, dtype_of, int32
from blocknumba.tile_ir.ir.verifier import verify

TARGET = TARGETS["sm_90a"]


class Writer:
    """Writes the ops of one function; every op is a method of its name.

    num_warps: of the program.
    """

    def __init__(self, num_warps: int):
        self.num_warps = num_warps
        self.builder = Builder(folding=False)

    def __getattr__(self, name: str):
        return lambda *operands, **attrs: self.builder.emit(OPS[name], *operands, **attrs)

    def number(self, value: int) -> Value:
        """An int32."""
        return self.builder.constant(value, int32)

    def buffer(self, dtype: object, shape: tuple[int, ...], layout: object,
               copies: int = 1) -> Value:
        """A buffer, or a ring of them."""
        return self.shared_allocate(dtype=str(dtype_of(dtype)), shape=shape, layout=layout,
                                    copies=copies)

    def zeros(self, dtype: object, layout: object) -> Value:
        """A tile of zeros in a register layout."""
        dtype = dtype_of(dtype)
        return self.splat_in(layout, self.builder.constant(0.0 if dtype.is_float else 0, dtype))

    def rows(self, shape: tuple[int, ...], vector: int = 1) -> object:
        """A register layout, in C order."""
        return blocked(shape, tuple(reversed(range(len(shape)))), vector, self.num_warps)

    def splat_in(self, layout: object, value: Value) -> Value:
        """A tile of one value in a register layout."""
        shape = shape_of(layout)
        return self.builder.emit(OPS["splat"], value, shape=shape,
                                 types=(TileType(value.type.dtype, shape, layout),))

    def indices(self, layout: object, axis: int) -> Value:
        """A 2-D tile of the indices along one of its axes, in a register layout."""
        shape, emit = shape_of(layout), self.builder.emit
        single = tuple(extent if i == axis else 1 for i, extent in enumerate(shape))
        along = collapse(layout, (1 - axis,))
        line = emit(OPS["arange"], start=0, size=shape[axis], types=(
            TileType(int32, shape[axis:axis + 1], reshape(along, shape[axis:axis + 1])),))
        line = emit(OPS["reshape"], line, shape=single, types=(TileType(int32, single, along),))
        return emit(OPS["broadcast"], line, shape=shape, types=(TileType(int32, shape, layout),))

    def addresses(self, pointer: Value, layout: object, row_elements: int) -> Value:
        """Pointers to a 2-D tile that begins at pointer, in a layout."""
        scale = self.splat_in(layout, self.number(row_elements))
        rows = self.mul(self.indices(layout, 0), scale)
        index = self.add(rows, self.indices(layout, 1))
        return self.offset(self.splat_in(layout, pointer), index)

    def rows_below(self, limit: Value, layout: object) -> Value:
        """Which elements of a 2-D tile are in rows below a limit."""
        return self.lt(self.indices(layout, 0), self.splat_in(layout, limit))

    def columns(self, shape: tuple[int, int]) -> object:
        """A register layout, the first axis fastest."""
        return blocked(shape, (0, 1), 1, self.num_warps)

    def ring_position(self, index: Value, copies: int) -> tuple[Value, Value, Value]:
        """Of the tile of a number: its slot, the phase that fills it, and the one before."""
        count, two = self.number(copies), self.number(2)
        turn = self.floordiv(index, count)
        before = self.mod(self.add(turn, self.number(1)), two)
        return self.mod(index, count), self.mod(turn, two), before

    def fetch(self, map_: Value, buffer: Value, barrier: Value, *starts: Value) -> None:
        """Begin to copy a box whose bytes the phase of a barrier ends with."""
        tile = buffer.type
        self.mbarrier_expect(barrier, size_bytes=size_bytes(tile.shape, tile.dtype))
        self.tma_load(map_, buffer, barrier, *starts)

    def loop_over(self, count: Value, body, *carried: Value):
        """body(index, *carried) for index = 0 .. count - 1; what is carried at the end."""
        bounds = self.number(0), count, self.number(1)
        types = tuple(value.type for value in carried)
        region = self.region(body, TileType(int32), *types)
        return self.builder.emit(OPS["for"], *bounds, *carried, regions=(region,), types=types)

    def roles(self, program, producer, **attrs) -> None:
        """The roles of the program's warps and of a producer."""
        regions = [self.region(lambda role=role: [role()] and None) for role in (program, producer)]
        self.builder.emit(OPS["warp_roles"], regions=regions, **{"producers": 1, **attrs})

    def staged(self, pointer: Value, shape: tuple[int, int], dtype: object,
               layout: object) -> Value:
        """A buffer with a tile of an array in C order, brought by the program's threads."""
        vector = min(shape[1], 16 // dtype_of(dtype).bytes)
        tile = self.load(self.addresses(pointer, self.rows(shape, vector), shape[1]))
        buffer = self.buffer(dtype, shape, layout)
        self.shared_write(buffer, tile)
        return buffer

    def region(self, body, *args: TileType):
        """A region of what body writes; what it returns is yielded."""
        with self.builder.region(*args) as (region, values):
            made = body(*values)
            self.builder.emit(OPS["yield"], *(made or ()))
        return region


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function and its way to a launch.

    num_warps: of the program.
    """

    fn: Function
    num_warps: int

    @cached_property
    def allocated(self) -> Function:
        """The function with offsets in shared memory, verified."""
        fn = allocate_shared(self.fn, LayoutOptions(num_warps=self.num_warps))
        verify(fn, READY)
        return fn

    @cached_property
    def lowered(self) -> LoweredKernel:
        return lower(self.allocated, TARGET, CodeOptions(num_warps=self.num_warps))

    @cached_property
    def ptx(self) -> str:
        options = AssembleOptions(verify=True)
        return compile_to_ptx(self.lowered.nvvm_ir, TARGET, options).decode()

    @cached_property
    def assembled(self) -> Assembled:
        return assemble_kernel(self.lowered, TARGET, CodeOptions(num_warps=self.num_warps))

    @cached_property
    def sass(self) -> str:
        return disassemble(self.assembled.cubin)

    def loop_with(self, instruction: str) -> str:
        """The machine code of the innermost loop that has an instruction."""
        lines, labels, loops = self.sass.splitlines(), {}, []
        for number, line in enumerate(lines):
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                labels[label[1]] = number
            target = re.search(r"\bBRA(?:\.\w+)* .*`\((\.L_x_\d+)\)", line)
            if target and target[1] in labels:
                loops.append((labels[target[1]], number + 1))
        found = ["\n".join(lines[slice(*loop)]) for loop in loops]
        return min((text for text in found if instruction in text), key=len)

    def launch(self, *arguments: object, grid: tuple[int, ...] = (1,),
               seed: int | None = None) -> None:
        """Run it; arrays are written in place, and an array of a map's argument is mapped.

        grid: programs.  seed: of a random order of warps.
        """
        given = [self._value(*pair) for pair in zip(self.fn.parameters, arguments, strict=True)]
        kernel = self.lowered
        blocks = (grid[0] * kernel.cluster, *grid[1:])
        Module.parse(self.ptx).launch(kernel.name, blocks, 32 * kernel.num_warps, given,
                                      kernel.shared_bytes, options=Options(seed=seed))

    def _value(self, parameter: Parameter, argument: object) -> object:
        description = parameter.tensor_map
        if description is None:
            return argument
        # an emulated map has the axes of its array, innermost last
        axes = [extent.numbers[0].axis for extent in description.extents]
        array = argument.transpose(axes[::-1])
        return EmulatedMap(array, description.box[::-1], description.swizzle_bytes)


def kernel(num_warps: int, parameters: list[tuple[str, Parameter]], body) -> Kernel:
    """A kernel of parameters, each a dtype (a pointee for pointers and maps) and its origin.

    body: writes the ops, given a Writer and the parameters' values.
    """
    writer = Writer(num_warps)
    types = [TileType(PointerType(dtype_of(dtype)) if parameter.is_pointer else dtype_of(dtype))
             for dtype, parameter in parameters]
    with writer.builder.region(*types) as (region, args):
        body(writer, *args)
        writer.builder.emit(OPS["return"])
    origins = tuple(parameter for _, parameter in parameters)
    blocks = max((op.attrs.get("blocks", 1) for op in walk(region)), default=1)
    attrs = {"cluster": blocks} if blocks > 1 else {}
    return Kernel(Function("k", origins, region, attrs=attrs), num_warps)


def pointer(name: str) -> Parameter:
    """An array's first element."""
    return Parameter("pointer", name, divisibility=16)


def mapped(name: str, box: tuple[int, ...], swizzle: int, axes: tuple[int, ...] | None = None
           ) -> Parameter:
    """A tensor map of an array in C order, or with its axes, the contiguous one first.

    box: in the order of axes.
    """
    axes = axes or tuple(reversed(range(len(box))))
    return own_map(name, axes, box, swizzle)


def numbers(shape: tuple[int, ...], dtype: object, seed: int = 0) -> np.ndarray:
    """Random numbers that sums of products of are exact: small integers, or quarters of them."""
    drawn = np.random.default_rng(seed).integers(-4, 5, shape)
    if np.dtype(dtype).kind == "u":
        drawn = abs(drawn)
    return drawn.astype(dtype_of(dtype).numpy)


def size_bytes(shape: tuple[int, ...], dtype: object) -> int:
    return math.prod(shape) * dtype_of(dtype).bytes


def copied_by_the_engine(dtype: str, tile: tuple[int, ...], box: tuple[int, ...], swizzle: int,
                         minor_axis: int, axes: tuple[int, ...]) -> Kernel:
    """A kernel that copies a tile of x to the start of out, both mapped with these axes.

    Its further parameters: the indices in x where the tile starts, in the order of axes.
    """
    layout = swizzled(tile, minor_axis, dtype_of(dtype).bits, swizzle)

    def body(w, x, out, *starts):
        buffer = w.buffer(dtype, tile, layout)
        full = w.mbarrier_allocate(copies=1, arrivals=1)

        def program():
            w.mbarrier_wait(full, w.number(0))
            w.tma_store(out, buffer, *[w.number(0) for _ in axes])
            w.tma_store_wait(reads=False)

        w.roles(program, lambda: w.fetch(x, buffer, full, *starts))

    maps = [(dtype, mapped(name, box, swizzle, axes)) for name in ("x", "out")]
    starts = [("int32", Parameter("value", f"start{axis}")) for axis in axes]
    return kernel(4, maps + starts, body)
