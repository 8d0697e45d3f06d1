"""Code of prints, assertions and assumptions."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import memory_type
from blocknumba.cpu_lower.emitter import Coordinates, Emitter, Failure, root
from blocknumba.cpu_lower.printing import PRINT
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ops import debug


@root(debug.print_)
def _(emitter: Emitter, op: Op) -> None:
    if op not in emitter.prints:  # a region may be written twice
        emitter.prints.append(op)
    number = emitter.prints.index(op)
    if not op.operands:
        _print(emitter, number, 0, "0", "0")
    for operand, value in enumerate(op.operands):
        _print_tile(emitter, number, operand, value)


def _print_tile(emitter: Emitter, number: int, operand: int, value: Value) -> None:
    writer, dtype, shape = emitter.writer, value.type.dtype, value.type.shape
    type_ = memory_type(dtype)

    def body(coordinates: Coordinates) -> None:
        x = emitter.at(value, coordinates).name
        if type_ in ("float", "double"):
            x = writer.assign(f"bitcast {type_} {x} to i{dtype.bits}")
        source = "i1" if dtype.name == "bool" else f"i{dtype.bits}"
        bits = writer.convert("zext", source, x, "i64")
        _print(emitter, number, operand, _flat(emitter, shape, coordinates), bits)
    with emitter.filled_by([value], shape, None):
        emitter.nest(shape, None, 1, body)


def _print(emitter: Emitter, number: int, operand: int, index: str, bits: str) -> None:
    emitter.writer.call("void", PRINT, ("ptr", "%printer"), ("i64", "%program"),
                        ("i32", str(number)), ("i32", str(operand)), ("i32", index),
                        ("i64", bits))


def _flat(emitter: Emitter, shape: tuple[int, ...], coordinates: Coordinates) -> str:
    """The index of an element in C order, an i32."""
    total = "0"
    for extent, coordinate in zip(shape, coordinates):
        total = emitter.writer.add(emitter.writer.multiply(total, str(extent)), coordinate.name)
    return total


@root(debug.assert_)
def _(emitter: Emitter, op: Op) -> None:
    value = op.condition
    shape, failure = value.type.shape, Failure("assert", op)

    def body(coordinates: Coordinates) -> None:
        x = emitter.at(value, coordinates).name
        is_false = emitter.writer.assign(f"xor i1 {x}, true")
        index = emitter.writer.convert("zext", "i32", _flat(emitter, shape, coordinates), "i64")
        emitter.fail_if(is_false, failure, index)
    with emitter.filled_by([value], shape, None):
        emitter.nest(shape, None, 1, body)


@root(debug.assume, debug.check_index)
def _(emitter: Emitter, op: Op) -> None:
    """Checked with debug=True, which the interpreter runs."""
