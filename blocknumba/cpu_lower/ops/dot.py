"""Code of products of tiles: a function adds the product to sums in memory.

An operand is read where it stands: in its buffer, or in an array if it is a load without a mask
whose addresses rise by one step along each axis.  Other operands are computed into a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.cpu_lower.dot import Product, dot_function
from blocknumba.cpu_lower.elements import size_bytes, uniform
from blocknumba.cpu_lower.emitter import Buffer, Emitter, root
from blocknumba.tile_ir.analysis.affine import AffineExpression
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import TileType, uint8
from blocknumba.tile_ir.ops import dot


@root(dot.dot)
def _(emitter: Emitter, op: Op) -> None:
    product = _product(op)
    symbol = "bn.dot." + ".".join(map(str, (
        product.a, product.b, product.acc, product.batches, product.rows, product.depth,
        product.columns, product.precision)))
    function = dot_function(symbol, product, emitter.target.vector_unit)
    emitter.module.add(symbol, function.text)
    arguments = []
    for operand in (op.a, op.b):
        found = _standing(emitter, operand)
        strides = ["0"] * (3 - len(found.strides)) + list(found.strides)
        arguments += [f"ptr {found.address}", *(f"i64 {n}" for n in strides)]
    sums = _sums(emitter, op)
    scratch = emitter.buffer(TileType(uint8, (max(1, function.scratch_bytes),)))
    arguments += [f"ptr {sums.address}", f"ptr {scratch.address}"]
    emitter.writer.do(f"call void @{symbol}({', '.join(arguments)})")
    emitter.known.buffers[op.result] = sums


def _product(op: Op) -> Product:
    *batches, rows, depth = op.a.type.shape
    return Product(op.a.type.dtype, op.b.type.dtype, op.acc.type.dtype, rows, depth,
                   op.b.type.shape[-1], *batches, precision=attribute(op, "precision"))


@dataclass(frozen=True)
class Standing:
    """A tile in memory.

    address: of its first element.  strides: bytes from one to the next, an i64 for each axis.
    """

    address: str
    strides: tuple[str, ...]


def _standing(emitter: Emitter, value: Value) -> Standing:
    """A tile in memory, computed into a buffer if it is nowhere yet."""
    if value not in emitter.known.buffers and value.owner is not None:
        find = _FOUND_BY_OP.get(value.owner.name)
        found = None if find is None else find(emitter, value.owner)
        if found is not None:
            return found
    buffer, size = emitter.materialise(value), size_bytes(value.type.dtype)
    return Standing(buffer.address, tuple(str(stride * size) for stride in buffer.strides))


def _transposed(emitter: Emitter, op: Op) -> Standing:
    x = _standing(emitter, op.x)
    return Standing(x.address, tuple(x.strides[axis] for axis in attribute(op, "axes")))


def _broadcast(emitter: Emitter, op: Op) -> Standing:
    x = _standing(emitter, op.x)
    return Standing(x.address, tuple(
        "0" if extent == 1 else stride for extent, stride in zip(op.x.type.shape, x.strides)))


def _reshaped(emitter: Emitter, op: Op) -> Standing | None:
    """A reshape that adds or drops axes of one element."""
    before, after = op.x.type.shape, op.result.type.shape
    if [n for n in before if n > 1] != [n for n in after if n > 1]:
        return None
    x = _standing(emitter, op.x)
    strides = iter([stride for extent, stride in zip(before, x.strides) if extent > 1])
    return Standing(x.address, tuple("0" if n == 1 else next(strides) for n in after))


def _loaded(emitter: Emitter, op: Op) -> Standing | None:
    """A load of a part of an array, of any strides."""
    is_masked = op.mask is not None and op.mask not in emitter.known.unmasked
    if (is_masked or attribute(op, "volatile")
            or not isinstance(emitter.plan.affine[op.pointer], AffineExpression)):
        return None
    shape = op.result.type.shape
    with emitter.inside(1):
        first = _address(emitter, op.pointer, [0] * len(shape))
        seconds = [_address(emitter, op.pointer, [int(a == axis) for a in range(len(shape))])
                   if extent > 1 else first for axis, extent in enumerate(shape)]
        return Standing(first, tuple(_distance(emitter, first, x) for x in seconds))


def _address(emitter: Emitter, pointer: Value, element: list[int]) -> str:
    return emitter.at(pointer, tuple(map(uniform, element))).name


def _distance(emitter: Emitter, start: str, end: str) -> str:
    """Bytes from one address to another."""
    first, last = (emitter.writer.convert("ptrtoint", "ptr", x, "i64") for x in (start, end))
    return "0" if start == end else emitter.writer.assign(f"sub i64 {last}, {first}")


_FOUND_BY_OP = {"transpose": _transposed, "broadcast": _broadcast, "reshape": _reshaped,
                "load": _loaded}


def _sums(emitter: Emitter, op: Op) -> Buffer:
    """The accumulator: in place where nothing else reads it, else a copy."""
    if emitter.plan.is_last_use(op.acc, op):
        found = emitter.known.buffers.get(op.acc)
        if found is not None and found.is_row_major(op.acc.type.shape):
            return found
    sums = emitter.buffer(op.acc.type)
    emitter.write(op.acc, sums)
    return sums
