"""Comparison of functions of the tile IR."""

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.text.printer import attribute_text


def equal(a: Function, b: Function) -> bool:
    """Same name, parameters, attributes and ops, whatever the values' names and locations are.

    Floats are compared as their text is: -0.0 and 0.0 differ, nan equals nan.
    """
    return (a.name == b.name and a.parameters == b.parameters and a.attrs == b.attrs
            and _equal_regions(a.body, b.body, {}))


def _equal_regions(a: Region, b: Region, same: dict[Value, Value]) -> bool:
    """same: maps each value of a to its counterpart in b, and is extended by what a defines."""
    if len(a.ops) != len(b.ops) or not _paired(a.args, b.args, same):
        return False
    return all(_equal_ops(one, other, same) for one, other in zip(a.ops, b.ops, strict=True))


def _equal_ops(a: Op, b: Op, same: dict[Value, Value]) -> bool:
    return (a.opdef is b.opdef
            and len(a.operands) == len(b.operands) and len(a.regions) == len(b.regions)
            and all(same.get(x) is y for x, y in zip(a.operands, b.operands, strict=True))
            and all(attribute_text(attribute(a, name)) == attribute_text(attribute(b, name))
                    for name in a.opdef.attributes)
            and all(_equal_regions(x, y, same) for x, y in zip(a.regions, b.regions, strict=True))
            and _paired(a.results, b.results, same))


def _paired(a: tuple[Value, ...], b: tuple[Value, ...], same: dict[Value, Value]) -> bool:
    if [value.type for value in a] != [value.type for value in b]:
        return False
    same.update(zip(a, b, strict=True))
    return True
