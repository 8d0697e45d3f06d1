"""Code of products of tiles: their operands lie in buffers, and a function adds the product."""

from __future__ import annotations

from blocknumba.cpu_lower.dot import Product, dot_function
from blocknumba.cpu_lower.elements import size_bytes
from blocknumba.cpu_lower.emitter import Buffer, Emitter, root
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
        buffer = emitter.materialise(operand)
        arguments += [f"ptr {buffer.address}", *(f"i64 {n}" for n in _strides(operand, buffer))]
    sums = _sums(emitter, op)
    scratch = emitter.buffer(TileType(uint8, (max(1, function.scratch_bytes),)))
    arguments += [f"ptr {sums.address}", f"ptr {scratch.address}"]
    emitter.writer.do(f"call void @{symbol}({', '.join(arguments)})")
    emitter.known.buffers[op.result] = sums


def _product(op: Op) -> Product:
    *batches, rows, depth = op.a.type.shape
    return Product(op.a.type.dtype, op.b.type.dtype, op.acc.type.dtype, rows, depth,
                   op.b.type.shape[-1], *batches, precision=attribute(op, "precision"))


def _strides(value: Value, buffer: Buffer) -> list[int]:
    """Bytes from one batch, row and column to the next."""
    size = size_bytes(value.type.dtype)
    strides = [stride * size for stride in buffer.strides]
    return [0] * (3 - len(strides)) + strides


def _sums(emitter: Emitter, op: Op) -> Buffer:
    """The accumulator: in place where nothing else reads it, else a copy."""
    if emitter.plan.is_last_use(op.acc, op):
        found = emitter.known.buffers.get(op.acc)
        if found is not None and found.is_row_major(op.acc.type.shape):
            return found
    sums = emitter.buffer(op.acc.type)
    emitter.write(op.acc, sums)
    return sums
