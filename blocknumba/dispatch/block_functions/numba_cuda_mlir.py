"""Block functions in kernels of numba-cuda-mlir: its types, and MLIR; code is linked as LTO IR."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, func, memref
from numba_cuda_mlir._mlir.extras import types as mlir_types
from numba_cuda_mlir.cuda import LTOIR
from numba_cuda_mlir.extending import lower_builtin, refresh_registries
from numba_cuda_mlir.lowering_utilities import (
    convert, get_or_insert_function, memref_data_pointer,
)
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from blocknumba.dispatch.block_functions.call import Caller, CallableKernel, called_from
from blocknumba.errors import Loc, UnsupportedError, require
from blocknumba.nvvm_lower.device_function import DeviceFunction
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ltoir
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument


@functools.cache
def type_of(function: CallableKernel) -> types.Function:
    """The type of a block function, whose calls have code from now on."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Sequence, kws: Mapping) -> object:
            """Takes any arguments: the lowering, which knows the line, says what is wrong."""
            return signature(types.none, *map(types.unliteral, (*args, *dict(kws).values())))

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(lowering, target, args, keywords):
        caller = _caller(lowering.targetoptions, target.loc)
        with called_from(caller.loc):
            _lower(function, caller, lowering, args, dict(keywords))
        lowering.store_var(target, None)

    refresh_registries(typing=False)
    return types.Function(Template)


def _lower(function: CallableKernel, caller: Caller, lowering: object, args: Sequence,
           keywords: Mapping[str, object]) -> None:
    """Link the code of a call, and call it; arguments are variables of Numba's IR."""
    def type_of_variable(variable: object) -> types.Type:
        return types.unliteral(lowering.get_numba_type(variable.name))

    ids, given = function.bind(args, keywords)
    code = function.code(list(map(type_of_variable, ids)),
                         {name: type_of_variable(variable) for name, variable in given.items()},
                         caller)
    require(function.promise.shared_bytes is None, "{}: shared_bytes in a kernel of "
            "numba-cuda-mlir, accepted in those of numba-cuda", function.__name__,
            error=UnsupportedError)
    lowering.link_external_item(_ltoir(code.function, caller.target))
    i32 = mlir_types.i32()
    values = [convert(lowering.load_var(variable), i32) for variable in ids]
    values += [arith.constant(i32, 0) for _ in range(3 - len(values))]
    for variable, (_, argument) in zip(given.values(), code.origin.arguments, strict=True):
        values += _fields(argument, lowering.load_var(variable))
    type_ = ir.FunctionType.get(inputs=[value.type for value in values], results=[])
    callee = get_or_insert_function(code.function.name, type_, lowering.mlir_gpu_module)
    func.call(result=[], callee=callee.name.value, operands_=values)


def _fields(argument: Argument, value: ir.Value) -> list[ir.Value]:
    """An argument as nvvm_lower.device_function.signature says."""
    if not isinstance(argument, ArrayArgument):
        return [_number(value)]
    if not argument.rank:
        return [memref_data_pointer(value)]
    i64, rank = mlir_types.i64(), argument.rank
    parts = list(memref.extract_strided_metadata(value))[2:]
    extents = [convert(part, i64) for part in parts[:rank]]
    size = arith.constant(i64, argument.dtype.bytes)
    strides = [arith.muli(convert(part, i64), size) for part in parts[rank:]]
    return [memref_data_pointer(value), *extents, *strides]


def _number(value: ir.Value) -> ir.Value:
    if value.type == mlir_types.bool():
        return arith.extui(mlir_types.i8(), value)
    if value.type in (mlir_types.f16(), mlir_types.bf16()):
        return arith.bitcast(mlir_types.i16(), value)
    return value


def _caller(options: Mapping[str, object], loc: object) -> Caller:
    """The kernel by its options; by those of a launch it would serve launches of one grid only."""
    target = Target.parse(options["chip"])
    suffix = target.name[-1:] if target.name[-1:].isalpha() else ""
    return Caller((*target.compute_capability, suffix), bool(options.get("fastmath")), None,
                  False, Loc(loc.filename, loc.line))


@functools.cache
def _ltoir(function: DeviceFunction, target: Target) -> LTOIR:
    data = compile_to_ltoir(function.nvvm_ir, target, AssembleOptions())
    return LTOIR(data, name=f"{function.name}.ltoir")
