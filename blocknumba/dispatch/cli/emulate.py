"""`python -m blocknumba emulate`: a kernel of a Python file as the emulator takes it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from blocknumba.dispatch.cli.command_line import kernel_of, values_by_name
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.arrays import ArrayInfo, host_view
from blocknumba.dispatch.launch.call import read_arguments
from blocknumba.dispatch.launch.specialize import are_disjoint, arguments_of
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo, sizes_in
from blocknumba.emulator import command
from blocknumba.emulator.module import Parameter as Value
from blocknumba.emulator.tensor_map import TensorMap as EmulatedMap
from blocknumba.errors import BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir.function import Parameter

_EPILOG = """\
example:
  python -m blocknumba emulate vector_add.py:add "f32[4096]" "f32[4096]" "f32[4096]" \\
      --constant BLOCK=1024 --grid 4

prints for each line of source how often warps executed it, and its memory accesses
"""
_OF_PTX = ("block", "cluster", "shared")  # arguments whose values a compiled kernel brings along


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    command.add_arguments(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    python = parser.add_argument_group("kernels of Python files")
    python.add_argument("--target", default="sm_90a", help="sm_90a, which is the default, "
                        "and the like")
    python.add_argument("--constant", action="append", default=[], metavar="NAME=VALUE",
                        help="an argument by name")
    python.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help=f"a compile option: {', '.join(sorted(Options().named()))}")


def run(arguments: argparse.Namespace) -> int:
    """Run the kernel and print what it did; the exit status.

    Errors: BlockError for a kernel that is not there, does not compile, or does what the PTX ISA
        does not allow.
    """
    return command.run(arguments, _prepare)


def _prepare(arguments: argparse.Namespace, values: list[Value]) -> command.Launchable:
    """The kernel, compiled for these values where it is Python."""
    if arguments.kernel.rpartition(":")[0].endswith(".ptx"):
        return command.from_ptx(arguments, values)
    given = [f"--{name}" for name in _OF_PTX if getattr(arguments, name) is not None]
    require(not given, "emulate: given {} for a kernel of Python, accepted for PTX",
            ", ".join(given), error=BlockValueError, hint="--option num_warps=8 and the like")
    kernel = kernel_of(arguments.kernel, "emulate")
    # lines, unless an option says no: the counters stand beside them
    keywords = {"lineinfo": True} | values_by_name(arguments.option + arguments.constant, "emulate")
    bound, changes = kernel.signature.bind(values, keywords)
    options = kernel.options.override(changes)
    read = read_arguments(kernel.signature, bound)
    specialization, _ = kernel.specialize(arguments_of(kernel.signature, read.infos),
                                          read.constants, options,
                                          Target.parse(arguments.target),
                                          are_disjoint(read.arrays.values()))
    compiled = kernel.compile(specialization, read.constants)
    machine, (x_programs, *others) = compiled.machine, arguments.grid
    return command.Launchable(compiled.ptx, machine.symbol, (x_programs * machine.cluster, *others),
                              (machine.threads,), parameter_values(machine, read.infos),
                              machine.shared_bytes)


def parameter_values(machine: MachineCode, arguments: Mapping[str, ArgumentInfo]) -> list[Value]:
    """Values of a compiled kernel's parameters for the emulator; NumPy arrays only."""
    return [_value(parameter, arguments) for parameter in machine.parameters]


def _value(parameter: Parameter, arguments: Mapping[str, ArgumentInfo]) -> Value:
    info = arguments[parameter.argument]
    if parameter.kind == "tensor_map":
        return _tensor_map(parameter, arguments)
    if not isinstance(info, ArrayInfo):
        return info.value
    if parameter.kind == "extent":
        return info.shape[parameter.axis]
    if parameter.kind == "stride":
        return info.strides[parameter.axis]
    return info.owner if info.size else 0


def _tensor_map(parameter: Parameter, arguments: Mapping[str, ArgumentInfo]) -> EmulatedMap:
    """A tensor map of an array for the emulator, which has the innermost axis last.

    Of an axis that is longer than the memory of the argument no more is there than fits.
    """
    array, box = host_view(arguments[parameter.argument]), parameter.tensor_map
    sizes = sizes_in(arguments, parameter)
    _, end = np.lib.array_utils.byte_bounds(array)
    held = end - array.ctypes.data
    strides_bytes = (array.itemsize, *sizes.strides_bytes)
    extents = [min(extent, -(-held // stride))
               for extent, stride in zip(sizes.extents, strides_bytes, strict=True)]
    integers = array.view(f"u{array.itemsize}")  # as_strided does not know the dtypes of ml_dtypes
    described = np.lib.stride_tricks.as_strided(integers, extents[::-1], strides_bytes[::-1])
    return EmulatedMap(described.view(array.dtype), box.box[::-1], box.swizzle_bytes,
                       as_tf32=box.as_tf32, held_bytes=held)
