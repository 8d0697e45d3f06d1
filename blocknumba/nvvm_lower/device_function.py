"""Lowering of a kernel to a device function, which all threads of a block of another kernel call.

    define void @softmax_1f3a(i32 %i0, i32 %i1, i32 %i2,       program ids
                              i8* %x, i64 %x_extent0, ...) {   arguments: see signature
      the number of threads is checked
      barrier             what the caller wrote is there
      the first version whose assumptions the arguments meet
      barrier             what was written is there for the caller
    }

Everything is inlined into the caller.  Shared memory is static, one array for all versions, or
the dynamic one of the launch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import mbarrier_allocate
from blocknumba.nvvm_lower.assumptions import (
    GENERIC_POINTER, Arguments, Assumptions, Version, field_name,
)
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import (
    SHARED_ALIGNMENT, SHARED_START, Callee, CodeOptions, DebugInfo, Emitter,
)
from blocknumba.nvvm_lower.kernel import bind_parameter, is_map, symbol
from blocknumba.nvvm_lower.llvm import GLOBAL, I1, I32, I64, I8, VOID, Body, Module, pointer
from blocknumba.nvvm_lower.ops.debug import fail_unless
from blocknumba.nvvm_lower.ptx.mbarrier import invalidate
from blocknumba.nvvm_lower.ptx.tensor_map import FENCE_ALL
from blocknumba.nvvm_lower.ptx.warp import BARRIER, DYNAMIC_SHARED_BYTES, TRAP
from blocknumba.nvvm_lower.services.address import GRID_AXES, special_register
from blocknumba.nvvm_lower.services.device_maps import DeviceMaps, maps_bytes
from blocknumba.nvvm_lower.services.shared_memory import address_of
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir.function import Function, Parameter, walk
from blocknumba.tile_ir.ir.tensor_map import Number
from blocknumba.tile_ir.ir.types import ArrayArgument

_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A device function as NVVM IR, external linkage.

    nvvm_ir: the module.  name: its symbol, a digest of the module in it.
    parameters: LLVM types, in order, program ids first; it returns nothing.
    shared_bytes: static shared memory.  dynamic_bytes: that the launch has to give it.
    """

    nvvm_ir: str
    name: str
    parameters: tuple[str, ...]
    shared_bytes: int
    dynamic_bytes: int = 0


def signature(arguments: Arguments) -> tuple[tuple[str, str], ...]:
    """(name, LLVM type) of the parameters after the program ids.

    An array is a generic pointer to its first element, its extents, and its strides in bytes;
    a number is itself, a bool a byte, a float of 16 bits their integer.
    """
    parameters: list[tuple[str, str]] = []
    for name, argument in arguments:
        if not isinstance(argument, ArrayArgument):
            type_ = register_type(argument.dtype)
            parameters.append((name, memory_type(argument.dtype) if type_ == I1 else type_))
            continue
        parameters.append((name, GENERIC_POINTER))
        parameters += [(field_name(name, kind, axis), I64)
                       for kind in ("extent", "stride") for axis in range(argument.rank)]
    return tuple(parameters)


def lower_device_function(versions: Sequence[Version], target: Target, options: CodeOptions, *,
                          arguments: Arguments | None = None,
                          dynamic: bool = False) -> DeviceFunction:
    """Lower the versions of one kernel.

    arguments: as the types of a call say; those of the last version where it is for all of them.
    dynamic: its shared memory is the launch's.
    """
    module, fn, arguments = Module(), versions[0].fn, arguments or versions[-1].arguments
    shared_bytes = max(max(version.fn.attrs.get("shared_bytes", 0), maps_bytes(version.fn))
                       for version in versions)
    placeholder = symbol(f"{fn.name}_by_block")
    callees = [_Callee(module, f"{placeholder}_{number}", version, target, options,
                       f"{placeholder}_shared", None if dynamic else shared_bytes)
               for number, version in enumerate(versions)]
    for callee in callees:
        callee.lower()
    _Outer(module, fn, arguments, options).define(placeholder, callees, target,
                                                  shared_bytes if dynamic else 0)
    text = module.text()
    digest = hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    name = f"{placeholder}_{digest}"
    types = (I32,) * len(GRID_AXES) + tuple(type_ for _, type_ in signature(arguments))
    return DeviceFunction(text.replace(f"@{placeholder}", f"@{name}"), name, types,
                          *((0, shared_bytes) if dynamic else (shared_bytes, 0)))


def _forget_mbarriers(emitter: Emitter, fn: Function) -> None:
    """Let the memory of mbarriers be used for something else: another call, the caller."""
    rings = [op for op in walk(fn.body) if op.opdef is mbarrier_allocate]
    if rings:
        emitter.barrier()  # all warps have waited
    for ring in rings:
        emitter.assembly(invalidate(ring.attrs["copies"]), address_of(
            emitter, str(ring.attrs["offset"])), emitter.flag(emitter.threads.is_first))


class _Callee:
    """A version as a function of the module, and the code that calls it."""

    def __init__(self, module: Module, name: str, version: Version, target: Target,
                 options: CodeOptions, shared_memory: str, shared_bytes: int | None):
        self._module, self._name, self._version = module, name, version
        self._target, self._options = target, options
        self._ids = tuple(f"%i{axis}" for axis in range(len(GRID_AXES)))
        self._callee = Callee(self._ids, version.space, shared_memory,
                              None if shared_bytes is None else max(shared_bytes, 1))
        self._types: list[str] = []
        self._inputs: dict[Number, str] = {}

    def lower(self) -> None:
        """Define the function: program ids, then the parameters of the kernel."""
        fn, body = self._version.fn, Body(self._module)
        debug_info = (DebugInfo(self._module, self._name, fn.loc) if self._options.lineinfo
                      else None)
        emitter = Emitter(body, self._target, self._options, fn, debug_info, self._callee)
        given = [value for value, parameter in emitter.parameters.items() if not is_map(parameter)]
        self._types = [bind_parameter(emitter, number, value) for number, value in enumerate(given)]
        maps = DeviceMaps(emitter, self._name)
        maps.make()
        emitter.run(fn.body)
        maps.give_back()
        _forget_mbarriers(emitter, fn)
        body.do("ret void")
        self._inputs = maps.inputs
        declared = [*(f"{I32} {id_}" for id_ in self._ids), f"{I32} {SHARED_START}",
                    *(f"{type_} %p{number}" for number, type_ in enumerate(self._types)),
                    *(f"{I64} {register}" for register in maps.inputs.values())]
        attributes = "alwaysinline "
        attributes += f"!dbg {debug_info.subprogram} " if debug_info else ""
        body.define(self._name, declared, linkage="internal", suffix=attributes)

    def call(self, body: Body, registers: dict[str, str], shared_start: str) -> None:
        """Call the function.

        registers: of the outer function, by the names of signature.
        shared_start: the first byte of dynamic shared memory that it has.
        """
        given = [*(f"{I32} {id_}" for id_ in self._ids), f"{I32} {shared_start}"]
        passed = (each for each in self._version.fn.parameters if not is_map(each))
        for parameter, type_ in zip(passed, self._types, strict=True):
            outer = registers[field_name(parameter.argument, parameter.kind, parameter.axis)]
            given.append(f"{type_} {self._converted(body, parameter, type_, outer)}")
        for number in self._inputs:
            outer = registers[field_name(number.argument, number.kind, number.axis)]
            type_ = GENERIC_POINTER if number.kind == "pointer" else I64
            given.append(f"{I64} {body.convert('ptrtoint', type_, outer, I64)}")
        body.do(f"call {VOID} @{self._name}({', '.join(given)})")

    def _converted(self, body: Body, parameter: Parameter, type_: str, outer: str) -> str:
        if parameter.kind == "pointer":
            if self._version.space == "global":
                in_bytes = pointer(I8, GLOBAL)
                cast = body.convert("addrspacecast", GENERIC_POINTER, outer, in_bytes)
                return body.convert("bitcast", in_bytes, cast, type_)
            number = body.convert("ptrtoint", GENERIC_POINTER, outer, I64)
            return body.convert("inttoptr", I64, number, type_)
        if parameter.kind in ("extent", "stride"):
            return body.convert("trunc", I64, outer, type_)
        return outer

    def is_general(self, given: Arguments) -> bool:
        """Whether it assumes nothing of arguments but what their types say."""
        return self._version.arguments == given and self._version.space == "generic"

    def fits(self, body: Body, registers: dict[str, str], given: Arguments) -> str:
        """Whether the arguments are as the version needs them, an i1.

        given: as their types say.
        """
        holds = "true"
        arrays = {}
        for (name, needed), (_, known) in zip(self._version.arguments, given, strict=True):
            if isinstance(needed, ArrayArgument):
                arrays[name] = Assumptions(body, self._version, name, needed, known, registers)
        found = [each for array in arrays.values() for each in array.all()]
        found += [arrays[one].is_apart_from(arrays[other]) for one, other in self._version.apart]
        for each in found:
            holds = each if holds == "true" else body.binary("and", I1, holds, each)
        return holds

    @property
    def needs_maps(self) -> bool:
        """Whether it makes tensor maps."""
        return any(map(is_map, self._version.fn.parameters))


class _Outer:
    """The function that is called: checks, barriers, and the choice of a version.

    registers: its parameters by the names of signature; strides in elements.
    """

    def __init__(self, module: Module, fn: Function, arguments: Arguments, options: CodeOptions):
        self._body, self._fn, self._arguments, self._options = Body(module), fn, arguments, options
        parameters = signature(arguments)
        self._registers = {field: f"%a{number}" for number, (field, _) in enumerate(parameters)}
        self._declared = [f"{I32} %i{axis}" for axis in range(len(GRID_AXES))]
        self._declared += [f"{type_} {self._registers[field]}" for field, type_ in parameters]
        self._shared_start = "0"

    def define(self, name: str, versions: Sequence[_Callee], target: Target,
               dynamic_bytes: int) -> None:
        """Write the function.  dynamic_bytes: shared memory that the launch has to give."""
        body = self._body
        self._check_threads(self._options.num_warps * target.warp_size)
        self._find_shared_memory(dynamic_bytes)
        for argument, attributes in self._arguments:
            if isinstance(attributes, ArrayArgument):
                self._count_strides_in_elements(argument, attributes)
        if any(version.needs_maps for version in versions):
            body.assembly(FENCE_ALL)
        body.assembly(BARRIER)
        done = body.new_label("done")
        for version in versions[:-1]:
            self._try(version, done)
        self._require(self._fit(versions[-1]), self._refusal(versions[-1]))
        versions[-1].call(body, self._registers, self._shared_start)
        body.branch(done)
        body.begin_block(done)
        body.assembly(BARRIER)
        body.do("ret void")
        body.define(name, self._declared, suffix="alwaysinline ")

    def _fit(self, version: _Callee) -> str:
        return version.fits(self._body, self._registers, self._arguments)

    def _try(self, version: _Callee, done: str) -> None:
        """Call a version and go to done, if the arguments are as it needs them."""
        body = self._body
        fits, otherwise = body.new_label("fits"), body.new_label("otherwise")
        body.branch_if(self._fit(version), fits, otherwise)
        body.begin_block(fits)
        with body.scope():
            version.call(body, self._registers, self._shared_start)
            body.branch(done)
        body.begin_block(otherwise)

    def _refusal(self, version: _Callee) -> str:
        """Message on arguments that no version fits."""
        if version.is_general(self._arguments):
            return "given an array of 2**31 elements or more, which needs wide=True"
        return "given an array that arrays= leaves out, or one of 2**31 elements or more"

    def _find_shared_memory(self, needed: int) -> None:
        """Take the end of the launch's dynamic shared memory: before it are arrays of the caller.

        Stop where the launch gives less.
        """
        if not needed:
            return
        body = self._body
        (given,) = body.assembly(DYNAMIC_SHARED_BYTES)
        self._require(body.compare("icmp uge", I32, given, str(needed)),
                      f"given less than {needed} bytes of dynamic shared memory")
        before = body.binary("sub", I32, given, str(needed))
        self._shared_start = body.binary("and", I32, before, str(-SHARED_ALIGNMENT))

    def _check_threads(self, threads: int) -> None:
        """Stop unless the block has so many threads, all along x."""
        body = self._body
        sizes = [special_register(body, f"ntid.{axis}") for axis in GRID_AXES]
        holds = body.compare("icmp eq", I32, sizes[0], str(threads))
        for size in sizes[1:]:
            holds = body.binary("and", I1, holds, body.compare("icmp eq", I32, size, "1"))
        self._require(holds, f"called in a block whose threads are not ({threads}, 1, 1), as "
                             f"num_warps={self._options.num_warps} needs")

    def _count_strides_in_elements(self, name: str, argument: ArrayArgument) -> None:
        """Fields of records may have strides that are no multiples of their size."""
        body, size = self._body, argument.dtype.bytes
        for axis in range(argument.rank):
            field = field_name(name, "stride", axis)
            stride = self._registers[field]
            if 1 not in argument.strides and size > 1:
                rest = body.binary("and", I64, stride, str(size - 1))
                self._require(body.compare("icmp eq", I64, rest, "0"),
                              f"the strides of {name} are no multiples of its element size")
            self._registers[field] = body.binary("ashr", I64, stride, str(size.bit_length() - 1))

    def _require(self, holds: str, message: str) -> None:
        """Stop the kernel unless an i1 holds; with debug by a message.

        The message is printed by a function of the driver, and a call anywhere in a kernel makes
        ptxas wait for each wgmma (its message C7509).
        """
        body = self._body
        if self._options.debug:
            fail_unless(body, holds, f"{self._fn.name}: {message}", self._fn.loc)
            return
        wrong, right = body.new_label("wrong"), body.new_label("right")
        body.branch_if(holds, right, wrong)
        body.begin_block(wrong)
        body.assembly(TRAP)
        body.branch(right)
        body.begin_block(right)
