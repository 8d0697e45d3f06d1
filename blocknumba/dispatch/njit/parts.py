"""Arguments of launches that are made of several: tuples and named tuples of Numba's.

As at a launch from Python, the kernel of the parts is launched with the parts
(launch/structured.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir
from numba.core import types

from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.structured import Part, is_structured, structured


def parts_of_types(kernel: Named, bound: Mapping[str, object],
                   ) -> tuple[Named, dict[str, object]]:
    """The kernel that is launched, and the types of its arguments; the kernel itself if none is
    made of several.

    bound: Numba's types of the kernel's arguments, and defaults of others.
    """
    opened = {formal.name: bound[formal.name] if formal.is_constant
              else _opened_type(bound[formal.name]) for formal in kernel.signature.formals}
    return kernel.nested.taken_apart(opened, are_types=True)


def parts_in_code(kernel: Named, of: Mapping[str, types.Type], values: Mapping[str, ir.Value],
                  builder: ir.IRBuilder) -> tuple[Named, dict[str, types.Type],
                                                  dict[str, ir.Value]]:
    """The kernel that is launched, and types and values of its arguments.

    of, values: of the kernel's arguments.
    """
    opened = {}
    for formal in kernel.signature.formals:
        name = formal.name
        part = Part(of[name], values[name])
        opened[name] = part if formal.is_constant else _opened(builder, part)
    flat, parts = kernel.nested.taken_apart(opened, are_types=True)
    return (flat, {name: part.type for name, part in parts.items()},
            {name: part.value for name, part in parts.items()})


def _opened_type(of: object) -> object:
    """A type; of a tuple the tuple of its items' types, of the class that its values have."""
    if isinstance(of, types.Omitted) and is_structured(of.value):
        return structured(type(of.value), [_opened_type(types.Omitted(item)) for item in of.value])
    if isinstance(of, types.BaseTuple):
        return structured(_class(of), [_opened_type(item) for item in of])
    return of


def _opened(builder: ir.IRBuilder, part: Part) -> object:
    of = part.type
    if isinstance(of, types.Omitted) and is_structured(of.value):
        return structured(type(of.value), [_opened(builder, Part(types.Omitted(item), part.value))
                                           for item in of.value])
    if isinstance(of, types.BaseTuple):
        items = [Part(item, builder.extract_value(part.value, index))
                 for index, item in enumerate(of)]
        return structured(_class(of), [_opened(builder, item) for item in items])
    return part


def _class(of: types.BaseTuple) -> type:
    return of.instance_class if isinstance(of, types.BaseNamedTuple) else tuple
