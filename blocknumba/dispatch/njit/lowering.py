"""Lowering of launches in functions that Numba compiles: `kernel[grid]`, and its call."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Mapping, Sequence

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.ir import Loc
from numba.core.registry import cpu_target
from numba.core.typing.templates import Signature
from numba.extending import overload

from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.njit.cached_sites import Reference, environment, link
from blocknumba.dispatch.njit.calls import (
    STREAM, LaunchType, argument_names, describe, grid_and_stream, grid_and_stream_types, grid_type,
    launch_signature, meta_type,
)
from blocknumba.dispatch.njit.grids import call_grid
from blocknumba.dispatch.njit.launch_table import LAUNCH, SEVERAL_STREAMS, launch_code
from blocknumba.dispatch.njit.numba_types import KernelType
from blocknumba.dispatch.njit.parts import parts_in_code
from blocknumba.dispatch.njit.record_code import I32, I64, key_words, pack
from blocknumba.dispatch.njit.site import Failure, checked
from blocknumba.errors import BlockError, require
from blocknumba.library import cdiv

_POINTER = ir.IntType(8).as_pointer()


def kernel_type(kernel: Named) -> KernelType:
    """Type of a kernel, or of a decorator's, in a function that Numba compiles.

    Errors: BlockTypeError in a kernel of numba-cuda, which launches nothing.
    """
    name = kernel.signature.kernel
    # who asks for the kernel's attribute: each package has a copy of the code that does
    asking = sys._getframe(2).f_globals["__name__"]
    require(not asking.startswith(("numba.cuda", "numba_cuda")),
            "{}: a block kernel in a @cuda.jit kernel, accepted launches from Python and @njit",
            name, hint=f"a block calls bn.block_function({name}, constants, num_warps)")
    _tell_numba()
    return KernelType(kernel)


@functools.cache
def _tell_numba() -> None:
    """Let Numba see this package's rules in the compilation that is under way."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


@overload(cdiv)
def _cdiv(x, y):
    """bn.cdiv of ints, for grids.  x, y: types, without annotations, as Numba wants them."""
    both = isinstance(x, types.Integer) and isinstance(y, types.Integer)
    return (lambda x, y: (x + y - 1) // y) if both else None


@lower_builtin(operator.getitem, KernelType, types.Any)
def _grid(context: object, builder: ir.IRBuilder, sig: Signature,
          args: Sequence[ir.Value]) -> ir.Value:
    launch = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    launch.grid = args[1]
    return launch._getvalue()


@lower_builtin(launch_signature, types.VarArg(types.Any))
def _launch_or_refuse(context: object, builder: ir.IRBuilder, sig: Signature,
                      args: Sequence[ir.Value], loc: Loc) -> ir.Value:
    """Errors: TypingError with the message of the BlockError that a launch from Python raises."""
    try:
        return _launch(context, builder, sig, args, loc)
    except BlockError as error:
        raise TypingError(str(error)) from None


def _launch(context: object, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value],
            loc: Loc) -> ir.Value:
    launch: LaunchType = sig.args[0]
    kernel = launch.kernel
    names = argument_names(kernel)
    of, values = dict(zip(names, sig.args[1:])), dict(zip(names, args[1:]))
    flat, types_of_parts, parts = parts_in_code(kernel, of, values, builder)
    options = {option: of[option] for option in names if option in OPTION_NAMES}
    description = checked(flat, describe(flat, options | types_of_parts, parts))
    given = [_run_time_value(context, builder, types_of_parts[entry.name], parts[entry.name])
             for entry in description.layout.entries]
    packed = pack(context, builder, description.layout, [t for t, _ in given],
                  [value for _, value in given])
    axes, in_brackets = _grid_and_stream(context, builder, launch, args[0], of, values)
    chosen = in_brackets
    if not isinstance(of[STREAM], types.Omitted):
        chosen = context.cast(builder, values[STREAM], of[STREAM], types.int64)
    stream = chosen if chosen is not None else _own_stream(builder, packed.streams)
    reference = link(flat, description, key_words(description.layout), loc.filename)
    failed = builder.call(_launch_function(context, builder), [
        _table(context, builder, reference), packed.record, packed.key, *axes, stream,
        I64(int(not _is_in_parallel_loop(context)))])
    with builder.if_then(cgutils.is_not_null(builder, failed), likely=False):
        context.call_conv.return_user_exc(builder, Failure, ())
    return context.get_dummy_value()


def _run_time_value(context: object, builder: ir.IRBuilder, of: types.Type,
                    value: ir.Value) -> tuple[types.Type, ir.Value]:
    """Type and value of an argument; of the default where it was left out."""
    if not isinstance(of, types.Omitted):
        return of, value
    default = context.typing_context.resolve_value_type(of.value)
    return default, context.get_constant_generic(builder, default, of.value)


def _grid_and_stream(context: object, builder: ir.IRBuilder, launch: LaunchType,
                     value: ir.Value, given: Mapping[str, types.Type],
                     values: Mapping[str, ir.Value]) -> tuple[list[ir.Value], ir.Value | None]:
    """The three extents of a grid, and the stream that is in the brackets, if any.

    given, values: types and values of the kernel's arguments.
    """
    grid = cgutils.create_struct_proxy(launch)(context, builder, value=value).grid
    of, stream_type = grid_and_stream_types(grid_type(context.typing_context, launch, given))
    stream = None
    if stream_type is not None:
        stream = context.cast(builder, builder.extract_value(grid, 1), stream_type, types.int64)
        grid = builder.extract_value(grid, 0)
    function = grid_and_stream(launch.grid)[0]
    if isinstance(function, types.Dispatcher):
        grid = call_grid(context, builder, function, meta_type(launch.kernel, given), values)
    is_tuple = isinstance(grid.type, (ir.ArrayType, ir.LiteralStructType))
    items = cgutils.unpack_tuple(builder, grid) if is_tuple else [grid]
    axes = [context.cast(builder, item, axis, types.int64) for item, axis in zip(items, of)]
    return [*axes, *[I64(1)] * (3 - len(axes))], stream


def _own_stream(builder: ir.IRBuilder, streams: Sequence[ir.Value]) -> ir.Value:
    """The stream of the arrays; SEVERAL_STREAMS where they differ."""
    if not streams:
        return I64(0)
    first = streams[0]
    chosen = first
    for other in streams[1:]:
        same = builder.icmp_unsigned("==", first, other)
        chosen = builder.select(same, chosen, I64(SEVERAL_STREAMS))
    return chosen


def _is_in_parallel_loop(context: object) -> bool:
    """Whether the function that is lowered is the body of a prange loop, which Numba names so."""
    return "__numba_parfor" in context.fndesc.qualname


def _launch_function(context: object, builder: ir.IRBuilder) -> ir.Function:
    """The function LAUNCH, linked into the caller's library."""
    name = f"{LAUNCH} of blocknumba"
    library = context.active_code_library
    code = context.codegen().create_library(name)
    code.add_llvm_module(launch_code())
    code.finalize()
    library.add_linking_library(code)
    of = ir.FunctionType(I32, [_POINTER] * 3 + [I64] * 5)
    return cgutils.get_or_insert_function(builder.module, of, LAUNCH)


def _table(context: object, builder: ir.IRBuilder, reference: Reference) -> ir.Value:
    """The address of a launch table: by its symbol, or as a number where nothing may be cached."""
    if not reference.is_cacheable:
        return context.add_dynamic_addr(builder, reference.site.address, "a launch table")
    context.declare_env_global(builder.module, environment(reference))
    name = reference.symbol
    known = builder.module.globals.get(name)
    table = known or ir.GlobalVariable(builder.module, ir.IntType(8), name)
    table.linkage = "external"
    return builder.bitcast(table, _POINTER)
