"""From a kernel and the types of a call to a device function.

Nothing is known of arrays when a `@cuda.jit` kernel is compiled but their types, so there are
versions of the code, and each call takes the first that fits:

    described  as global, of several axes, and no array that is written shares memory with another:
               TMA fetches, by tensor maps that the first warp makes (where there are products, on
               targets that can)
    global     all arrays in global memory, rows at multiples of 16 bytes: asynchronous copies
    aligned    in any memory, rows at multiples of 16 bytes: the same copies through registers
    any        as their elements are aligned: an access for each element

`arrays=` of the block function leaves out the last ones, whose registers the first would not need:
what does not fit then stops the kernel.  All do without what only a launch can give: clusters,
warps that fetch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from blocknumba.dispatch.block_functions.cached_text import Origin
from blocknumba.dispatch.compile.pipeline import compiling, layout_options, tile_function
from blocknumba.dispatch.compile.resources import (
    require_registers, require_room, require_shared_memory,
)
from blocknumba.dispatch.launch.specialize import ALIGNMENT, NARROW_OFFSETS, Specialization
from blocknumba.errors import ResourceError, UnsupportedError, require
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.assumptions import Arguments, Version
from blocknumba.nvvm_lower.device_function import DeviceFunction, lower_device_function
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import is_map
from blocknumba.nvvm_lower.target import Capability, Target
from blocknumba.tile_ir.analysis.provenance import stored
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.tensor_map import MAX_RANK
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, DType
from blocknumba.tile_ir.ops.create import num_programs, program_id
from blocknumba.tile_ir.ops.dot import dot

# What needs the launch: clusters are of the grid, registers of the whole block
_OF_LAUNCHES = frozenset((
    Capability.CLUSTER, Capability.MULTICAST, Capability.LAUNCH_DEPENDENTS,
    Capability.SET_MAX_REGISTERS))
_OF_MAPS = frozenset((Capability.TMA,))


@dataclass(frozen=True, eq=False, slots=True)
class BlockCode:
    """A block function for given types; compared by identity.

    origin: what it was made of.   function: the device function.
    program_ids: how many it takes.   stored: names of the arrays that it stores to.
    """

    origin: Origin
    function: DeviceFunction
    program_ids: int
    stored: frozenset[str]


def compile_block_function(origin: Origin) -> BlockCode:
    """Compile a kernel for the types of a call.

    Its arguments are as only their types are known; see any_array.
    Errors: those of the kernel for these types; UnsupportedError for num_programs; ResourceError
        for more shared memory than its callers grant, or the target has.
    """
    options, target = origin.options, origin.target
    with compiling(origin.kernel.python_function, target):
        compilation = _Compilation(origin)
        versions = tuple(compilation.versions(origin.arguments))
        code = CodeOptions(options.num_warps, options.fastmath, lineinfo=options.lineinfo,
                           debug=options.debug)
        function = lower_device_function(versions, target, code, arguments=origin.arguments,
                                         dynamic=origin.is_dynamic)
    tile = compilation.tile
    return BlockCode(origin, function, _axes(tile), stored(tile))


def any_array(dtype: DType, rank: int, unit_axis: int | None, wide: bool) -> ArrayArgument:
    """An array of which only the type is known.

    unit_axis: the one of stride 1, if any.   wide: it may have 2**31 elements and more.
    """
    strides = tuple(1 if axis == unit_axis else None for axis in range(rank))
    return ArrayArgument(dtype, strides, (None,) * rank, dtype.bytes, (1,) * rank, (1,) * rank,
                         wide)


def _aligned(argument: Argument) -> Argument:
    """An argument as the first versions need it."""
    if not isinstance(argument, ArrayArgument):
        return argument
    divisor, strides = max(1, ALIGNMENT // argument.dtype.bytes), argument.strides
    if strides and 1 not in strides:  # rows of views are contiguous as a rule
        strides = (*strides[:-1], 1)
    # rows of a matrix begin aligned, and asynchronous copies do not cut them; vectors of an array
    # of one axis may be cut
    cuts = argument.rank > 1
    return replace(argument, strides=strides, alignment=ALIGNMENT,
                   stride_divisibility=tuple(1 if stride == 1 else divisor for stride in strides),
                   extent_divisibility=tuple(divisor if stride == 1 and cuts else 1
                                             for stride in strides))


def _mappable(argument: Argument) -> Argument:
    """An argument that a tensor map can describe, if it is an array of several axes."""
    if isinstance(argument, ArrayArgument) and 2 <= argument.rank <= MAX_RANK:
        return replace(argument, mappable=True)
    return argument


def _without(target: Target, capabilities: frozenset[Capability], shared_bytes: int) -> Target:
    """The target as the passes of a device function see it."""
    return replace(target, capabilities=target.capabilities - capabilities,
                   shared_bytes_per_block=shared_bytes)


def _shared_bytes(origin: Origin) -> int:
    """Shared memory that a block function may have.

    What was granted; else, where launches give what it needs, all but what static arrays of the
    caller may take; else what is static.
    Errors: ResourceError for more than the target has.
    """
    granted, target = origin.promise.shared_bytes, origin.target
    if granted is None:
        return (target.shared_bytes_per_block - target.static_shared_bytes if origin.is_launched
                else target.static_shared_bytes)
    require(granted <= target.shared_bytes_per_block, "{}: shared_bytes: given {}, accepted {} on "
            "{}", origin.kernel.signature.kernel, granted, target.shared_bytes_per_block, target,
            error=ResourceError)
    return granted


class _Compilation:
    """One block function on its way to layouts.

    tile: its tile IR, of the version that was made last.
    """

    def __init__(self, origin: Origin):
        self._kernel, self._options = origin.kernel, origin.options
        self._constants = dict(origin.constants)
        shared_bytes = _shared_bytes(origin)
        self._by_threads = _without(origin.target, _OF_LAUNCHES | _OF_MAPS, shared_bytes)
        self._with_maps = self._by_threads
        if origin.target.has(Capability.TENSOR_MAP_REPLACE):
            self._with_maps = _without(origin.target, _OF_LAUNCHES, shared_bytes)
        self._arrays = origin.promise.arrays

    def versions(self, arguments: Arguments) -> Iterator[Version]:
        """The versions; one where there are no arrays, the last one for all that is promised."""
        aligned = tuple((name, _aligned(argument)) for name, argument in arguments)
        tile = self._tile(aligned)
        yield from self._described(tile, aligned)
        fn = self._laid_out(tile, aligned, self._by_threads)
        if aligned != arguments:
            yield Version(fn, aligned, "global", NARROW_OFFSETS)
            if self._arrays == "global":
                return
        yield Version(fn, aligned, "generic", NARROW_OFFSETS)
        if aligned == arguments or self._arrays == "aligned":
            return
        if not _multiplies(tile) or any(
                _strides(argument) != _strides(other)
                for (_, argument), (_, other) in zip(arguments, aligned)):
            fn = self._laid_out(self._tile(arguments), arguments, self._by_threads)
        yield Version(_unaligned(fn, arguments), arguments, "generic", NARROW_OFFSETS)

    def _described(self, tile: Function, aligned: Arguments) -> Iterator[Version]:
        """The version that TMA fetches for, if there are products and the target can.

        tile: without it.
        """
        if not self._with_maps.has(Capability.TMA) or not _multiplies(tile):
            return
        mappable = tuple((name, _mappable(argument)) for name, argument in aligned)
        fn = self._laid_out(self._tile(mappable, disjoint=True), mappable, self._with_maps,
                            disjoint=True)
        if not any(map(is_map, fn.parameters)):
            return
        arrays = [name for name, argument in aligned if isinstance(argument, ArrayArgument)]
        written = stored(tile)
        apart = tuple((one, other) for one, other in combinations(arrays, 2)
                      if not written.isdisjoint((one, other)))
        yield Version(fn, mappable, "global", NARROW_OFFSETS, apart)

    def _specialization(self, arguments: Arguments, target: Target,
                        disjoint: bool) -> Specialization:
        return self._kernel.specialize(arguments, self._constants, self._options, target,
                                       disjoint=disjoint)[0]

    def _tile(self, arguments: Arguments, disjoint: bool = False) -> Function:
        specialization = self._specialization(arguments, self._by_threads, disjoint)
        self.tile = tile_function(self._kernel.python_function, specialization, self._constants,
                                  {})
        _require_no_grid(self.tile)
        return self.tile

    def _laid_out(self, tile: Function, arguments: Arguments, target: Target,
                  disjoint: bool = False) -> Function:
        num_warps = self._options.num_warps
        require_room(tile, target, 1)
        options = layout_options(self._specialization(arguments, target, disjoint), num_warps)
        fn = lay_out(tile, replace(options, helpers=False, numbers_describe=False))
        require_shared_memory(fn, target, "a block function")
        require_registers(fn, num_warps)
        return fn


def _multiplies(tile: Function) -> bool:
    return any(op.opdef is dot for op in walk(tile.body))


def _strides(argument: Argument) -> tuple[int | None, ...]:
    """The strides of an array that are known."""
    return argument.strides if isinstance(argument, ArrayArgument) else ()


def _unaligned(fn: Function, arguments: Arguments) -> Function:
    """A function that was laid out for aligned arrays, for arguments that are not.

    Each thread holds the same elements, which need fewer registers for addresses than those that
    would be read best; accesses are as wide as the parameters say.
    """
    alignments = {name: argument.alignment for name, argument in arguments
                  if isinstance(argument, ArrayArgument)}
    parameters = tuple(
        replace(parameter, divisibility=alignments[parameter.argument]
                if parameter.kind == "pointer" else 1)
        if parameter.argument in alignments else parameter for parameter in fn.parameters)
    return fn.with_body(fn.body, parameters)


def _require_no_grid(tile: Function) -> None:
    for op in walk(tile.body):
        if op.opdef is num_programs:
            raise UnsupportedError(
                f"{tile.name}: num_programs in a block function, which has no grid", loc=op.loc,
                hint="pass the number of programs as an argument")


def _axes(tile: Function) -> int:
    """Number of program ids that a kernel reads: up to the last axis that it asks for."""
    axes = [op.attrs["axis"] for op in walk(tile.body) if op.opdef is program_id]
    return max(axes, default=-1) + 1
