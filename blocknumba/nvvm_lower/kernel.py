"""A kernel: its signature, its attributes, its body, and what a launch must know of it."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.passes.allocate_shared import shared_bytes
from blocknumba.nvvm_lower import ops
from blocknumba.nvvm_lower.debug_info import DebugInfo
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import CodeOptions, Emitter
from blocknumba.nvvm_lower.llvm import I1, I8, Body, Module
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, Assembled, assemble
from blocknumba.tile_ir.ir import Function, Parameter, Value

assert ops.CODE, "the code faces are registered by importing them"


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """One kernel as NVVM IR.

    nvvm_ir: the module.  name: the kernel's symbol in it.
    num_warps: a program is that many warps.  shared_bytes: dynamic shared memory per program.
    parameters: what to pass, in order, each in its natural size: pointers in 8 bytes, bools in 1.
    """

    nvvm_ir: str
    name: str
    num_warps: int
    shared_bytes: int
    parameters: tuple[Parameter, ...]


def lower(fn: Function, target: Target, options: CodeOptions = CodeOptions()) -> LoweredKernel:
    """A function whose tiles all have layouts as the program of one thread."""
    module = Module()
    body = Body(module)
    name = symbol(fn.name)
    debug_info = DebugInfo(module, name, fn.loc) if options.lineinfo else None
    emitter = Emitter(body, target, options, fn, debug_info)
    parameters = [_parameter(emitter, i, value) for i, value in enumerate(fn.body.args)]
    emitter.run(fn.body)
    body.do("ret void")
    suffix = f"!dbg {debug_info.subprogram} " if debug_info else ""
    body.define(name, parameters, suffix=suffix)
    types = ", ".join(parameter.rsplit(" ", 1)[0] for parameter in parameters)
    threads = options.num_warps * target.warp_size
    properties = {"kernel": 1, "maxntidx": threads}
    if options.maxnreg is not None:
        properties["maxnreg"] = options.maxnreg
    elif options.min_blocks > 1:
        properties["minctasm"] = options.min_blocks
    module.annotate(name, f"void ({types})", properties)
    return LoweredKernel(module.text(), name, options.num_warps, shared_bytes(fn),
                         fn.parameters)


def assemble_kernel(kernel: LoweredKernel, target: Target,
                    options: CodeOptions = CodeOptions()) -> Assembled:
    """Machine code of a kernel.

    Errors: ToolchainError when a tool is missing or refuses; its log is attached.
    """
    return assemble(kernel.nvvm_ir, target, AssembleOptions(
        fastmath=options.fastmath, lineinfo=options.lineinfo))


def symbol(name: str) -> str:
    """name as a symbol of PTX: letters, digits and underscores."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def _parameter(emitter: Emitter, place: int, value: Value) -> str:
    """Declare a kernel parameter and make it the value; a bool is passed as a byte."""
    dtype, name = value.type.dtype, f"%p{place}"
    type_ = register_type(dtype)
    if type_ == I1:
        emitter.values[value] = [emitter.body.compare("icmp ne", I8, name, "0")]
        return f"{memory_type(dtype)} {name}"
    emitter.values[value] = [name]
    return f"{type_} {name}"
