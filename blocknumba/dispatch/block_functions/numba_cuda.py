"""Block functions in kernels of numba-cuda: its types, and LLVM IR by llvmlite."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Sequence

from llvmlite import ir
from numba.cuda import cgutils, launchconfig, types
from numba.cuda.codegen import ExternalCodeLibrary
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import _Kernel
from numba.cuda.typing.templates import AbstractTemplate, signature

from blocknumba.dispatch.block_functions.cached_text import CachedText
from blocknumba.dispatch.block_functions.call import Caller, CallableKernel, called_from
from blocknumba.dispatch.block_functions.compilation import BlockCode
from blocknumba.dispatch.block_functions.launched_memory import LinkedCode, give_at_launches
from blocknumba.dispatch.launch.structured import Part, structured
from blocknumba.errors import BlockValueError, Loc, ResourceError, require
from blocknumba.nvvm_lower.llvm import MODULE_END, SHARED
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ltoir

_I8, _I16, _I32 = (ir.IntType(bits) for bits in (8, 16, 32))
_BYTES = _I8.as_pointer()


@functools.cache
def type_of(function: CallableKernel) -> types.Function:
    """The type of a block function, whose calls have code from now on."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Sequence, kws: dict) -> object:
            """Takes any arguments: the lowering, which knows the line, says what is wrong."""
            return signature(types.none, *map(types.unliteral, (*args, *kws.values()))).replace(
                pysig=_python_signature(len(args), kws))

    def lower(context, builder, sig, args, loc):
        caller = _caller(context, loc)
        with called_from(caller.loc):
            return _Call(function, context, builder, caller).lower(sig, args)

    cuda_target.target_context.insert_func_defn([(lower, function, (types.VarArg(types.Any),))])
    return types.Function(Template)


def _python_signature(count: int, keywords: Sequence[str]) -> inspect.Signature:
    """Positional parameters, which have numbers for names, and keywords in their order."""
    positional = [inspect.Parameter(f"_{number}", inspect.Parameter.POSITIONAL_ONLY)
                  for number in range(count)]
    return inspect.Signature([*positional, *(
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in keywords)])


class _Call:
    """One call of a block function, to be lowered."""

    def __init__(self, function: CallableKernel, context: object, builder: ir.IRBuilder,
                 caller: Caller):
        self._function, self._context, self._builder = function, context, builder
        self._caller = caller

    def lower(self, sig: object, args: Sequence[ir.Value]) -> ir.Value:
        """Link the code, and call it."""
        ids, bound = self._function.bind(*_split(sig, list(map(Part, sig.args, args))))
        self._function, given = self._function.taken_apart(
            {name: self._opened(part) for name, part in bound.items()})
        code = self._function.code([part.type for part in ids],
                                   {name: part.type for name, part in given.items()}, self._caller)
        self._link(code)
        values = [self._as_i32(part.value) for part in ids]
        values += [ir.Constant(_I32, 0)] * (3 - len(values))
        for part in given.values():
            values += self._fields(part.type, part.value)
        function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        callee = cgutils.get_or_insert_function(self._builder.module, function_type,
                                                code.function.name)
        self._builder.call(callee, values)
        return self._context.get_dummy_value()

    # code -----------------------------------------------------------------------------------------
    def _link(self, code: BlockCode) -> None:
        """Add the code to the library that is being made."""
        library = self._context.active_code_library
        if self._caller.is_launched and code.function.dynamic_bytes:
            give_at_launches()
        if self._function.link == "ltoir":
            require(_is_linked_by_lto(), "{}: linked as LTO IR into a kernel without lto=True",
                    self._function.__name__, error=BlockValueError,
                    hint='compile the kernel with lto=True, or make it with link="ir"')
            library.add_linking_file(_ltoir(code, self._caller.target))
            return
        added = _library(self._context.codegen(), code)
        if added not in library.linking_libraries:
            self._check_shared_memory(code, library)
            library.add_linking_library(added)

    def _check_shared_memory(self, code: BlockCode, library: object) -> None:
        """Errors: ResourceError if it does not fit beside what the caller has until this call."""
        own = sum(self._context.get_abi_sizeof(variable.value_type)
                  for variable in self._builder.module.global_values
                  if isinstance(variable, ir.GlobalVariable) and variable.addrspace == SHARED)
        others = sum(linked.shared_bytes for linked in library.linking_libraries
                     if isinstance(linked, _TextLibrary))
        needed, present = own + others + code.function.shared_bytes, Target.static_shared_bytes
        require(needed <= present,
                "{}: needs {} bytes of shared memory, beside {} of arrays and {} of other block "
                "functions in the same kernel, accepted {} together", self._function.__name__,
                code.function.shared_bytes, own, others, present, error=ResourceError,
                hint="use smaller tiles or fewer num_stages")

    # values ---------------------------------------------------------------------------------------
    def _opened(self, part: Part) -> object:
        """An argument; of a tuple the tuple of its items, of the class that its values have."""
        of = part.type
        if not isinstance(of, types.BaseTuple):
            return part
        cls = of.instance_class if isinstance(of, types.BaseNamedTuple) else tuple
        return structured(cls, [
            self._opened(Part(item, self._builder.extract_value(part.value, index)))
            for index, item in enumerate(of)])

    def _fields(self, type_: types.Type, value: ir.Value) -> list[ir.Value]:
        """An argument as nvvm_lower.device_function.signature says."""
        builder = self._builder
        if not isinstance(type_, types.Array):
            return [self._number(value)]
        array = self._context.make_array(type_)(self._context, builder, value)
        sizes = [*cgutils.unpack_tuple(builder, array.shape),
                 *cgutils.unpack_tuple(builder, array.strides)]
        return [builder.bitcast(array.data, _BYTES), *sizes]

    def _number(self, value: ir.Value) -> ir.Value:
        if value.type == ir.IntType(1):
            return self._builder.zext(value, _I8)
        if value.type == ir.HalfType():
            return self._builder.bitcast(value, _I16)
        return value

    def _as_i32(self, value: ir.Value) -> ir.Value:
        """A program id: those of a grid fit in 32 bits."""
        bits = value.type.width
        if bits == _I32.width:
            return value
        return (self._builder.trunc if bits > _I32.width else self._builder.zext)(value, _I32)


def _split(sig: object, values: list) -> tuple[list, dict]:
    """Values by position, and those by name."""
    parameters = list(sig.pysig.parameters.values())
    count = sum(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters)
    return values[:count], {parameter.name: value for parameter, value
                            in zip(parameters[count:], values[count:])}


def _flags() -> object:
    """The options of the kernel that is being compiled."""
    return ConfigStack().top()


def _is_linked_by_lto() -> bool:
    flags = _flags()
    return flags.lto or "gen-lto" in (flags.nvvm_options or {})


def _compiles_for_the_device() -> bool:
    """Whether what Numba compiles is a kernel of this process's device, and no text for a target.

    Both ask for a compute capability without a suffix, and a kernel gets the code of the suffix "a"
    where there is one.
    """
    makes_kernels = inspect.unwrap(_Kernel.__init__).__code__
    return any(frame.f_code is makes_kernels for frame, _ in traceback.walk_stack(None))


def _caller(context: object, loc: object) -> Caller:
    flags, launch = _flags(), launchconfig.current_launch_config()
    capability, is_launched = flags.compute_capability, _compiles_for_the_device()
    if is_launched:
        capability = context.active_code_library._ensure_cc(None)
    return Caller(capability, bool(flags.fastmath),
                  None if launch is None else tuple(launch.blockdim), is_launched,
                  Loc(loc.filename, loc.line))


class _Text:
    """NVVM IR where numba-cuda expects an llvmlite module with functions."""

    functions = ()

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text


class _BlockFunctionText(_Text):
    """The module of a block function, which is the one function of it that others see."""

    is_declaration = False

    def __init__(self, text: str, code: BlockCode):
        super().__init__(text)
        self._name, self._code = code.function.name, code
        self.functions = (self,)
        self.linkage = "linkonce_odr"  # numba-cuda sets that of each function

    def __str__(self) -> str:
        name = f"void @{self._name}("
        text = self._text.replace(f"define {name}", f"define {self.linkage} {name}")
        return CachedText(text, self._code.origin, self._code.function.dynamic_bytes)


class _TextLibrary(ExternalCodeLibrary):
    """A library whose IR libNVVM compiles together with the caller's."""

    def __init__(self, codegen: object, code: BlockCode):
        function = code.function
        super().__init__(codegen, function.name)
        own, *scalar_functions = function.nvvm_ir.split(MODULE_END)
        self._texts = {_BlockFunctionText(own, code),
                       *map(_scalar_function, scalar_functions)}
        self.shared_bytes = function.shared_bytes
        self.finalize()

    @property
    def modules(self) -> set:
        return self._texts

    linking_libraries = ()


@functools.cache
def _scalar_function(text: str) -> _Text:
    return _Text(text)


@functools.cache
def _library(codegen: object, code: BlockCode) -> _TextLibrary:
    return _TextLibrary(codegen, code)


@functools.cache
def _ltoir(code: BlockCode, target: Target) -> LinkedCode:
    function = code.function
    data = compile_to_ltoir(function.nvvm_ir, target, AssembleOptions())
    linked = LinkedCode(data, name=f"{function.name}.ltoir")
    linked.dynamic_bytes = function.dynamic_bytes
    linked.is_granted = code.origin.promise.shared_bytes is not None
    return linked
