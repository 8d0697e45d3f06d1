"""Native loops over arrays that call one vector function."""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from blocknumba.cpu_lower.math import vector_function
from blocknumba.cpu_lower.math.registry import FUNCTIONS, SCALARS

_ENGINES = []  # the code lives as long as its engine


def loop_text(name: str, dtype: str, lanes: int) -> str:
    """A module with `void @loop(ptr result, ptr operand..., i64 groups of lanes)`."""
    made = vector_function(name, dtype, lanes)
    scalar = SCALARS[dtype]
    vector = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    size = np.dtype(dtype).itemsize
    places = range(FUNCTIONS[name].arity)
    loads = "".join(
        f"  %at{i} = getelementptr {vector}, ptr %p{i}, i64 %i\n"
        f"  %x{i} = load {vector}, ptr %at{i}, align {size}\n" for i in places)
    operands = ", ".join(f"{vector} %x{i}" for i in places)
    pointers = ", ".join(f"ptr %p{i}" for i in places)
    return f"""{made.definition}
define void @loop(ptr noalias %result, {pointers}, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
{loads}  %y = call {vector} @{made.symbol}({operands})
  %to = getelementptr {vector}, ptr %result, i64 %i
  store {vector} %y, ptr %to, align {size}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""


def target_machine(triple: str | None = None, cpu: str | None = None,
                   features: str | None = None) -> llvm.TargetMachine:
    """LLVM's code generator for this machine, or for a named one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    read = triple is not None
    if not read:
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten()
    # a named machine's code is read, not run: its calls have their symbols beside them
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, codemodel="small" if read else "jitdefault")


def optimised(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module after LLVM's passes of level 3."""
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


@cache
def native(name: str, dtype: str, lanes: int):
    """The loop as a function of addresses and a number of groups."""
    machine = target_machine()
    engine = llvm.create_mcjit_compiler(optimised(loop_text(name, dtype, lanes), machine), machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    types = [ctypes.c_void_p] * (1 + FUNCTIONS[name].arity) + [ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *types)(engine.get_function_address("loop"))


def compute(name: str, *operands: np.ndarray, lanes: int | None = None) -> np.ndarray:
    """The vector function of arrays of float32 or float64, by loops over whole groups."""
    dtype = operands[0].dtype
    lanes = lanes or 64 // dtype.itemsize
    size = operands[0].size
    padded = -(-size // lanes) * lanes
    wide = [np.concatenate([x.ravel(), np.ones(padded - size, dtype)]) for x in operands]
    result = np.full(padded, np.nan, dtype)
    native(name, dtype.name, lanes)(
        result.ctypes.data, *(x.ctypes.data for x in wide), padded // lanes)
    return result[:size].reshape(operands[0].shape)
