"""Runs cases in the emulator as functions that a kernel calls, on generic addresses."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator import Module as Ptx
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.assumptions import GENERIC_POINTER, Version
from blocknumba.nvvm_lower.device_function import DeviceFunction, lower_device_function
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.llvm import GLOBAL, I8, MODULE_END, VOID, Body, Module, pointer
from blocknumba.nvvm_lower.services.address import GRID_AXES, special_register
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ptx
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, ScalarArgument
from blocknumba.tile_ir.ops.create import num_programs
from blocknumba.tile_ir.passes.lower_views import lower_views

from case import Case

TARGET = Target.parse("sm_90a")
NUM_WARPS = 2


def is_callable(case: Case) -> bool:
    """Whether a case is of pointers and numbers, and asks for no grid."""
    kinds = {parameter.kind for parameter in case.function.parameters}
    ops = {op.opdef for op in walk(case.function.body)}
    return kinds <= {"pointer", "value"} and num_programs not in ops


def called(case: Case) -> dict[str, np.ndarray]:
    """The arrays that a case writes."""
    fn = lay_out(lower_views(case.function), LayoutOptions(NUM_WARPS, features=frozenset(("mma",))))
    arguments = tuple((parameter.argument, _argument(value.type.dtype))
                      for parameter, value in zip(fn.parameters, fn.body.args))
    function = lower_device_function([Version(fn, arguments, "generic", 0)], TARGET,
                                     CodeOptions(NUM_WARPS))
    text = function.nvvm_ir + MODULE_END + _caller(function)
    arrays = case.copies()
    given = [arrays.get(name, case.arguments[name]) for name, _ in arguments]
    ptx = compile_to_ptx(text, TARGET, AssembleOptions(verify=True)).decode()
    Ptx.parse(ptx).launch("caller", case.grid, NUM_WARPS * TARGET.warp_size, given)
    return {name: arrays[name] for name in case.expected}


def _argument(dtype: object) -> Argument:
    """A pointer as an array of no axes."""
    if hasattr(dtype, "pointee"):
        return ArrayArgument(dtype.pointee, (), (), wide=True, alignment=dtype.pointee.bytes)
    return ScalarArgument(dtype)


def _caller(function: DeviceFunction) -> str:
    """The module of a kernel whose every block calls a function with the parameters it got."""
    module = Module()
    body = Body(module)
    given = [f"i32 {special_register(body, f'ctaid.{axis}')}" for axis in GRID_AXES]
    declared = []
    for number, type_ in enumerate(function.parameters[len(GRID_AXES):]):
        value, outer = f"%p{number}", type_
        if type_ == GENERIC_POINTER:
            outer = pointer(I8, GLOBAL)
            value = body.convert("addrspacecast", outer, value, type_)
        declared.append(outer)
        given.append(f"{type_} {value}")
    body.call(VOID, function.name, *given)
    body.do("ret void")
    body.define("caller", [f"{type_} %p{number}" for number, type_ in enumerate(declared)])
    module.annotate("caller", f"void ({', '.join(declared)})", {"kernel": 1})
    return module.text()
