"""Lowering of a kernel: its signature, attributes and body, and the data that a launch needs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import warp_roles, wgmma
from blocknumba.nvvm_lower import ops
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import CodeOptions, DebugInfo, Emitter
from blocknumba.nvvm_lower.llvm import I1, I64, I8, Body, Module
from blocknumba.nvvm_lower.ptx.tma import PREFETCH
from blocknumba.nvvm_lower.ptx.warp import WAIT_FOR_KERNEL_BEFORE
from blocknumba.nvvm_lower.target import Capability, Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, Assembled, assemble
from blocknumba.tile_ir.ir.function import Function, Parameter, Value, walk
from blocknumba.tile_ir.ir.remarks import Remark
from blocknumba.tile_ir.ir.tensor_map import ALIGNMENT, SIZE_BYTES

assert ops.CODE, "the code faces are registered by importing them"

# names that are no identifiers of PTX; then those that a module declares besides its kernel
_TAKEN = re.compile(r"_|WARP_SZ|vprintf|__assertfail|__nv(vm)?_\w+|shared_memory|text\d+")


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """One kernel as NVVM IR.

    nvvm_ir: the module, and those of scalar functions (see llvm.MODULE_END).
    name: the kernel's symbol in it.
    num_warps: of a block: those of its program, and those that fetch for it.
    shared_bytes: dynamic shared memory per block.
    parameters: to pass, in order, each in its natural size: pointers in 8 bytes, bools in 1,
        tensor maps in 128.
    whole_program: it must be linked as such (see AssembleOptions).
    cluster: blocks of a program, along the first axis of the grid.
    remarks: of the passes, and of the lowering of accesses and dots.
    """

    nvvm_ir: str
    name: str
    num_warps: int
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    whole_program: bool = False
    cluster: int = 1
    remarks: tuple[Remark, ...] = ()


def lower(fn: Function, target: Target, options: CodeOptions = CodeOptions()) -> LoweredKernel:
    """Lower a function, whose tiles all have layouts, to the program of one thread."""
    module = Module()
    body = Body(module)
    name = symbol(fn.name)
    debug_info = DebugInfo(module, name, fn.loc) if options.lineinfo else None
    emitter = Emitter(body, target, options, fn, debug_info)
    types = [bind_parameter(emitter, i, value) for i, value in enumerate(fn.body.args)]
    if options.dependent and target.has(Capability.LAUNCH_DEPENDENTS):
        emitter.assembly(WAIT_FOR_KERNEL_BEFORE)
    _prefetch_maps(emitter)
    emitter.run(fn.body)
    body.do("ret void")
    suffix = f"!dbg {debug_info.subprogram} " if debug_info else ""
    declared = [f"{type_}{_by_value(type_, target) * is_map(parameter)} %p{i}"
                for i, (type_, parameter) in enumerate(zip(types, fn.parameters))]
    body.define(name, declared, suffix=suffix)
    num_warps = options.num_warps + producers(fn)
    properties = _properties(emitter, num_warps * target.warp_size, trades_registers(fn))
    signature = f"void ({', '.join(types)})"
    module.annotate(name, signature, properties)
    whole_program = any(op.opdef is wgmma for op in walk(fn.body))
    if whole_program:
        module.keep(name, signature)
    return LoweredKernel(module.text(), name, num_warps, fn.attrs.get("shared_bytes", 0),
                         fn.parameters, whole_program, emitter.blocks,
                         (*fn.remarks, *emitter.remarks))


def assemble_kernel(kernel: LoweredKernel, target: Target,
                    options: CodeOptions = CodeOptions()) -> Assembled:
    """Machine code of a kernel.

    Errors: ToolchainError when a tool is missing or refuses; its log is attached.
    """
    return assemble(kernel.nvvm_ir, target, AssembleOptions(
        fastmath=options.fastmath, lineinfo=options.lineinfo, whole_program=kernel.whole_program))


def symbol(name: str) -> str:
    """name as a symbol of PTX and of C: ASCII letters, digits and underscores.

    Names with other letters, and those that PTX or the module itself needs, end in a digest, so
    that different names stay different.   Source: PTX ISA, "Identifiers".
    """
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    if not name.isascii() or _TAKEN.fullmatch(name):
        plain += "_" + hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def is_map(parameter: Parameter) -> bool:
    """Whether a parameter is a tensor map."""
    return parameter.kind == "tensor_map"


def producers(fn: Function) -> int:
    """Number of warps of a block besides those of its program."""
    return sum(op.attrs["producers"] for op in fn.body.ops if op.opdef is warp_roles)


def trades_registers(fn: Function) -> bool:
    """Whether some warps of a block give up registers for others."""
    return any(op.opdef is warp_roles and op.attrs.get("registers") for op in fn.body.ops)


def _properties(emitter: Emitter, threads: int, trades: bool) -> dict[str, int | str]:
    """NVVM annotations of the kernel; trades: whether warps give up registers for others."""
    options, module = emitter.options, emitter.body.module
    properties: dict[str, int | str] = {"kernel": 1, "maxntidx": threads}
    if options.maxnreg is not None:
        properties["maxnreg"] = options.maxnreg
    elif options.min_blocks > 1 or trades:  # which takes a number of registers to begin with
        properties["minctasm"] = options.min_blocks
    if emitter.blocks > 1:
        extents = emitter.blocks, 1, 1
        properties |= {f"cluster_dim_{axis}": extent for axis, extent in zip("xyz", extents)}
    maps = [index for index, parameter in enumerate(emitter.parameters.values(), 1)
            if is_map(parameter)]
    if maps:
        properties["grid_constant"] = module.node(
            f"!{{{', '.join(f'i32 {index}' for index in maps)}}}")
    return properties


def _prefetch_maps(emitter: Emitter) -> None:
    """The first thread prefetches the tensor maps."""
    for value, parameter in emitter.parameters.items():
        if is_map(parameter):
            emitter.assembly(PREFETCH, emitter.values[value][0],
                             emitter.flag(emitter.threads.is_first))


def _by_value(type_: str, target: Target) -> str:
    """The attributes of a tensor map parameter, a pointer to a struct passed by value."""
    pointee = f"({type_.removesuffix('*')})" if target.names_what_is_by_value else ""
    return f" byval{pointee} align {ALIGNMENT}"


def bind_parameter(emitter: Emitter, index: int, value: Value) -> str:
    """Make a parameter, %p0 and so on, the registers of a value; returns its LLVM type.

    A bool is passed as a byte; a tensor map lies among the parameters, its value is its address.
    """
    dtype, name = value.type.dtype, f"%p{index}"
    if is_map(emitter.parameters[value]):
        type_ = f"{emitter.body.module.named_type('tensor_map', f'{{ [{SIZE_BYTES} x i8] }}')}*"
        emitter.values[value] = [emitter.body.convert("ptrtoint", type_, name, I64)]
        return type_
    type_ = register_type(dtype)
    if type_ == I1:
        emitter.values[value] = [emitter.body.compare("icmp ne", I8, name, "0")]
        return memory_type(dtype)
    emitter.values[value] = [name]
    return type_
