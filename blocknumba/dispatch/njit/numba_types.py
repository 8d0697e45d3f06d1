"""Numba's types of kernels, of device arrays and of constants.

A kernel has no value at run time: its type says which it is.
Numba asks a kernel for `_numba_type_` when it compiles a function that uses it, which imports this
package; nothing else does.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant, lower_getattr
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

from blocknumba.dispatch.compile.references import Named, found
from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.static_values import constexpr


class KernelType(types.Callable):
    """Type of one kernel, and of no other of its name."""

    def __init__(self, kernel: Named):
        self.kernel = kernel
        super().__init__(f"kernel {kernel.__module__}.{kernel.__qualname__}")

    @property
    def key(self) -> object:
        """Identity of the type."""
        return self.kernel

    def get_call_type(self, _context: object, _args: tuple, _kws: object) -> None:
        """Refuse a call without a grid, as the kernel does."""
        try:
            self.kernel()
        except BlockError as error:
            raise TypingError(str(error)) from None

    def get_call_signatures(self) -> tuple[list, bool]:
        """There are none."""
        return [], False

    def get_impl_key(self, _signature: object) -> object:
        """Nothing lowers a call."""
        return None

    def __reduce__(self) -> tuple:
        """Numba pickles the types of arguments as keys of its cache.

        By name, as pickling the kernel may pickle its code.
        """
        return _kernel_type_of_name, (self.kernel.__module__, self.kernel.__qualname__)


class ConstantType(types.Type):
    """A value that is known when Numba compiles, for a constexpr: a dtype, a bn.constexpr."""

    def __init__(self, value: object):
        self.value = value
        super().__init__(f"constant {value}")

    @property
    def key(self) -> object:
        """Identity of the type."""
        return type(self.value), self.value


class DeviceArrayType(types.Type):
    """An array in the memory of a GPU, as bn.device makes it.

    dtype: of its elements.  ndim: rank.  device: ordinal of the GPU.
    """

    def __init__(self, dtype: DType, ndim: int, device: int, readonly: bool):
        self.dtype, self.ndim, self.device, self.readonly = dtype, ndim, device, readonly
        super().__init__(f"bn.device array of {dtype}, rank {ndim}, on device {device}"
                         f"{', read-only' * readonly}")


def _kernel_type_of_name(module: str, name: str) -> types.Type:
    """Type of the kernel of this name; a type that is no kernel's if there is none."""
    kernel = found(module, name)
    return KernelType(kernel) if isinstance(kernel, Named) else types.Opaque("a lost kernel")


@typeof_impl.register(DType)
@typeof_impl.register(constexpr)
def _constant(value: DType | constexpr, _context: object) -> ConstantType:
    return ConstantType(value.value if isinstance(value, constexpr) else value)


register_model(KernelType)(models.OpaqueModel)
register_model(ConstantType)(models.OpaqueModel)


@lower_constant(KernelType)
@lower_constant(ConstantType)
def _no_value(context: object, _builder: ir.IRBuilder, _type: types.Type, _value: object):
    return context.get_dummy_value()


@unbox(KernelType)
def _unbox_kernel(_type: KernelType, _object: ir.Value, c: object) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


def sizes_type(array: DeviceArrayType) -> types.UniTuple:
    """Type of the extents of an array, and of its strides."""
    return types.UniTuple(types.intp, array.ndim)


def device_array_members(array: DeviceArrayType) -> list[tuple[str, types.Type]]:
    """Members of a device array in native code: those of a DeviceArray that native code reads."""
    sizes = sizes_type(array)
    return [("pointer", types.uint64), ("shape", sizes), ("strides", sizes),
            ("stream", types.uint64), ("mappable", types.uint64)]


@register_model(DeviceArrayType)
class _DeviceArrayModel(models.StructModel):
    """See device_array_members."""

    def __init__(self, manager: object, of: DeviceArrayType):
        super().__init__(manager, of, device_array_members(of))


@unbox(DeviceArrayType)
def _unbox_device_array(of: DeviceArrayType, array: ir.Value, c: object) -> NativeValue:
    made = cgutils.create_struct_proxy(of)(c.context, c.builder)
    for name, member in device_array_members(of):
        value = c.pyapi.object_getattr_string(array, name)
        setattr(made, name, c.unbox(member, value).value)
        c.pyapi.decref(value)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(made._getvalue(), is_error=failed)


@infer_getattr
class _DeviceArrayAttributes(AttributeTemplate):
    """Attributes of a device array in the functions."""

    key = DeviceArrayType

    def resolve_shape(self, array: DeviceArrayType) -> types.Type:
        return sizes_type(array)

    def resolve_ndim(self, _array: DeviceArrayType) -> types.Type:
        return types.intp

    def resolve_size(self, _array: DeviceArrayType) -> types.Type:
        return types.intp


@lower_getattr(DeviceArrayType, "shape")
def _shape(context: object, builder: ir.IRBuilder, of: DeviceArrayType, value: ir.Value,
           ) -> ir.Value:
    return cgutils.create_struct_proxy(of)(context, builder, value=value).shape


@lower_getattr(DeviceArrayType, "ndim")
def _ndim(context: object, _builder: ir.IRBuilder, of: DeviceArrayType, _value: ir.Value,
          ) -> ir.Value:
    return context.get_constant(types.intp, of.ndim)


@lower_getattr(DeviceArrayType, "size")
def _size(context: object, builder: ir.IRBuilder, of: DeviceArrayType, value: ir.Value,
          ) -> ir.Value:
    size = context.get_constant(types.intp, 1)
    for extent in cgutils.unpack_tuple(builder, _shape(context, builder, of, value), of.ndim):
        size = builder.mul(size, extent)
    return size
