"""Grids that are functions: `kernel[lambda meta: (bn.cdiv(meta["n"], meta["BLOCK"]),)](...)`.

Numba compiles the function for one argument of a type of its own, which has the arguments of the
launch as items: constants as values that the type knows, the others as they are at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer, signature
from numba.extending import models, register_model

from blocknumba.wording import did_you_mean

_KNOWN = (int, float, bool, str)  # of constants, those that a grid may be computed with


class MetaType(types.Type):
    """The arguments of a launch.  constants: (name, value); arguments: (name, type)."""

    def __init__(self, kernel: str, constants: tuple[tuple[str, object], ...],
                 arguments: tuple[tuple[str, types.Type], ...]):
        self.kernel, self.constants, self.arguments = kernel, constants, arguments
        super().__init__(f"arguments of {kernel}{constants}{arguments}")

    @staticmethod
    def of(kernel: str, given: Mapping[str, object]) -> MetaType:
        """The type for arguments.

        given: by name; a type of Numba's for one that has a value at run time, else the value.
        """
        constants = tuple((name, value) for name, value in given.items()
                          if type(value) in _KNOWN)
        arguments = tuple((name, types.unliteral(of)) for name, of in given.items()
                          if isinstance(of, types.Type))
        return MetaType(kernel, constants, arguments)

    def item(self, name: str) -> types.Type:
        """The type of an item.  Errors: TypingError when there is none."""
        known = dict(self.constants)
        if name in known:
            return types.unliteral(types.literal(known[name])) if type(
                known[name]) is not float else types.float64
        found = dict(self.arguments).get(name)
        if found is None:
            names = [*known, *dict(self.arguments)]
            hint = did_you_mean(name, names)
            raise TypingError(f"{self.kernel}: the grid reads {name!r}, accepted "
                              f"{', '.join(names)}" + (f"\n  hint: {hint}" if hint else ""))
        return found


@register_model(MetaType)
class _MetaModel(models.StructModel):
    """The items that have a value at run time."""

    def __init__(self, manager: object, of: MetaType):
        super().__init__(manager, of, [(f"item_{name}", type_) for name, type_ in of.arguments])


@infer
class _Item(AbstractTemplate):
    """`meta["name"]`."""

    key = "static_getitem"

    def generic(self, args: tuple, kws: dict) -> Signature | None:
        meta, name = args
        if not isinstance(meta, MetaType) or not isinstance(name, str):
            return None
        return signature(meta.item(name), *args)


@lower_builtin("static_getitem", MetaType, types.Any)
def _item(context: object, builder: ir.IRBuilder, sig: Signature,
          args: Sequence[object]) -> ir.Value:
    meta, name = sig.args[0], args[1]
    known = dict(meta.constants)
    if name in known:
        return context.get_constant_generic(builder, sig.return_type, known[name])
    held = cgutils.create_struct_proxy(meta)(context, builder, value=args[0])
    return impl_ret_borrowed(context, builder, sig.return_type, getattr(held, f"item_{name}"))


def grid_signature(context: object, grid: types.Type, meta: MetaType) -> Signature:
    """The signature of a call of a grid.  context: Numba's typing context."""
    return grid.get_call_type(context, (meta,), {})


def call_grid(context: object, builder: ir.IRBuilder, grid: types.Type, meta: MetaType,
              values: Mapping[str, ir.Value]) -> ir.Value:
    """The extents.  values: of the arguments that have one at run time."""
    held = cgutils.create_struct_proxy(meta)(context, builder)
    for name, _ in meta.arguments:
        setattr(held, f"item_{name}", values[name])
    found = grid_signature(context.typing_context, grid, meta)
    function = context.get_function(grid, found)
    context.add_linking_libs(getattr(function, "libs", ()))
    return function(builder, (held._getvalue(),))
