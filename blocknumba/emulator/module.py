"""A PTX module that can be launched on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from blocknumba.emulator.cohort import LANES
from blocknumba.emulator.counters import Counters, Report
from blocknumba.emulator.errors import EmulatorError
from blocknumba.emulator.launch import Launch, Options, Shape
from blocknumba.emulator.layout import Layout, lay_out
from blocknumba.emulator.linking import Code, link
from blocknumba.emulator.memory import Bytes, GlobalMemory
from blocknumba.emulator.parser import parse
from blocknumba.emulator.syntax import Function, Program, Variable
from blocknumba.emulator.tensor_map import TensorMap
from blocknumba.errors import require

MAXIMUM_THREADS = 1024  # of a block; CUDA Programming Guide, "Compute Capabilities"
# Enough lanes for NumPy to be quick, few enough for a batch to stay in the cache.
_LANES_OF_A_BATCH = 8192
_FLOAT_BYTES = (2, 4, 8)
_SHARED_BYTES_OF_A_BATCH = 1 << 21

Parameter = bytes | np.ndarray | np.generic | TensorMap | int | float


class Module:
    """The kernels of one PTX text.

    Global variables keep their contents from one launch to the next, as on a device.
    """

    def __init__(self, program: Program):
        self.program = program
        self.globals: dict[Variable, np.ndarray] = {}
        for variable in program.variables.values():
            if variable.space in ("global", "const"):
                contents = np.zeros(max(variable.size, 1), np.uint8)
                if variable.initial is not None:
                    contents[:] = np.frombuffer(variable.initial, np.uint8)
                self.globals[variable] = contents

    @classmethod
    def parse(cls, text: str) -> Module:
        """The module of a PTX text.

        Errors: PtxSyntaxError.
        """
        return cls(parse(text))

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return [name for name, function in self.program.functions.items() if function.is_kernel]

    @cached_property
    def code(self) -> Code:
        """The decoded instructions."""
        return link(self.program)

    def unknown_instructions(self) -> list[str]:
        """Reasons why the emulator cannot run this module, one sentence for each instruction."""
        return sorted({error.message for error in self.code.unknown.values()})

    def launch(self, kernel: str, grid: int | Sequence[int], block: int | Sequence[int],
               parameters: Sequence[Parameter], shared_bytes: int = 0, *,
               cluster: int | Sequence[int] | None = None, memory: GlobalMemory | None = None,
               resident_blocks: int = 0, options: Options = Options()) -> Report:
        """Run a kernel to its end, and count what it does.

        grid, block, cluster: extents in x, y and z; missing ones are 1.
        parameters: an array is the address of its first element, and is written in place; bytes
            are a value as it is; numbers take the size of the parameter.
        shared_bytes: dynamic shared memory.
        memory: where arrays have been mapped that the parameters hold addresses of.
        resident_blocks: how many blocks run at once, 0 for as many as suits.
        Errors: EmulatorError for what the kernel does wrong; BlockError for a bad launch.
        """
        function = self._kernel(kernel)
        shape = self._shape(function, grid, block, cluster)
        memory = memory or GlobalMemory()
        layout = lay_out(self.program, function, shared_bytes, self.globals, memory)
        packed = _pack(function, layout, parameters, memory)
        counters = Counters(len(self.code.steps))
        per_batch = resident_blocks or _blocks_of_a_batch(shape, layout)
        for first in range(0, shape.blocks, per_batch):
            numbers = np.arange(first, min(first + per_batch, shape.blocks))
            run = Launch(self.program, self.code.steps, self.code.instructions, layout, shape,
                         numbers, memory, packed, counters, options)
            run.run(self.code.entries[kernel])
        return counters.report(self.code.instructions)

    def _kernel(self, name: str) -> Function:
        function = self.program.functions.get(name)
        require(function is not None and function.is_kernel,
                "launch: given the kernel {!r}, accepted {}", name,
                ", ".join(self.kernels) or "a module with kernels", error=EmulatorError)
        return function

    def _shape(self, function: Function, grid: int | Sequence[int], block: int | Sequence[int],
               cluster: int | Sequence[int] | None) -> Shape:
        stated = function.limits.get("reqnctapercluster")
        shape = Shape(_extents(grid), _extents(block), _extents(cluster or stated or 1))
        require(0 < shape.threads <= MAXIMUM_THREADS,
                "launch: given a block of {} threads, accepted 1 to {}", shape.threads,
                MAXIMUM_THREADS, error=EmulatorError)
        limit = function.limits.get("maxntid")
        require(limit is None or shape.threads <= np.prod(limit),
                "launch: given a block of {} threads, accepted {} (.maxntid)", shape.threads,
                limit and int(np.prod(limit)), error=EmulatorError)
        exact = function.limits.get("reqntid")
        require(exact is None or shape.block == _extents(exact),
                "launch: given a block of {}, accepted {} (.reqntid)", shape.block, exact,
                error=EmulatorError)
        require(all(g % c == 0 for g, c in zip(shape.grid, shape.cluster)),
                "launch: given a grid of {} with clusters of {}, accepted multiples", shape.grid,
                shape.cluster, error=EmulatorError)
        return shape


def _extents(given: int | Sequence[int]) -> tuple[int, int, int]:
    """Three extents, of which the missing ones are 1."""
    numbers = (given,) if isinstance(given, int | np.integer) else tuple(given)
    require(1 <= len(numbers) <= 3 and all(number > 0 for number in numbers),
            "launch: given the extents {}, accepted 1 to 3 positive ints", numbers,
            error=EmulatorError)
    return tuple([int(number) for number in (*numbers, 1, 1, 1)[:3]])


def _blocks_of_a_batch(shape: Shape, layout: Layout) -> int:
    threads = -(-shape.threads // LANES) * LANES
    blocks = min(_LANES_OF_A_BATCH // threads, _SHARED_BYTES_OF_A_BATCH // layout.shared_end)
    return max(blocks // shape.cluster_blocks, 1) * shape.cluster_blocks


def _pack(function: Function, layout: Layout, parameters: Sequence[Parameter],
          memory: GlobalMemory) -> Bytes:
    """The parameters as the kernel reads them."""
    require(len(parameters) == len(function.parameters),
            "launch: {} given {} parameters, accepted {}", function.name, len(parameters),
            len(function.parameters), error=EmulatorError)
    packed = Bytes.zeros(layout.parameter_offsets[-1])
    for variable, offset, value in zip(function.parameters, layout.parameter_offsets, parameters):
        octets = _octets(variable, value, memory)
        require(len(octets) == variable.size, "launch: {} given {} bytes for {}, accepted {}",
                function.name, len(octets), variable.name, variable.size, error=EmulatorError)
        packed.data[offset:offset + variable.size] = np.frombuffer(octets, np.uint8)
    return packed


def _octets(variable: Variable, value: Parameter, memory: GlobalMemory) -> bytes:
    if isinstance(value, TensorMap):
        return memory.place(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, np.ndarray):
        value = memory.map(value, f"array {variable.name}")
    if isinstance(value, float):
        require(variable.size in _FLOAT_BYTES, "launch: given {} for {}, accepted {} bytes", value,
                variable.name, variable.size, error=EmulatorError)
        return np.array(value, f"f{variable.size}").tobytes()
    if isinstance(value, np.generic):
        return value.tobytes().ljust(variable.size, b"\0")
    bits = 8 * variable.size
    require(-1 << bits - 1 <= value < 1 << bits, "launch: given {} for {}, accepted {} bits", value,
            variable.name, bits, error=EmulatorError)
    return (int(value) & ((1 << 8 * variable.size) - 1)).to_bytes(variable.size, "little")
