"""Code of scalar functions: calls of Numba's code in this process, one for each element."""

from __future__ import annotations

from llvmlite import binding

from blocknumba.cpu_lower.elements import Lanes, memory_type
from blocknumba.cpu_lower.emitter import Coordinates, Emitter, root
from blocknumba.cpu_lower.lane_writer import Buffer
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType, TileType, bool_, int64
from blocknumba.tile_ir.ops.map import ScalarFunction, map_


@root(map_)
def _(emitter: Emitter, op: Op) -> None:
    function, shape = op.attrs["function"], op.mask.type.shape
    values = [op.mask, *op.tiles]
    # the results, then what Numba tells of an exception
    storage = emitter.buffer(TileType(int64, (len(function.results) + 1,)))
    if not shape:
        operands = [emitter.scalar(value) for value in values]
        emitter.known.scalars.update(zip(op.results, _call(emitter, function, operands, storage)))
        return
    buffers = [emitter.buffer(value.type) for value in op.results]

    def body(coordinates: Coordinates) -> None:
        operands = [emitter.at(value, coordinates).name for value in values]
        found = _call(emitter, function, operands, storage)
        for value, buffer, name in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, Lanes(name, 0), buffer)
    with emitter.filled_by(values, shape, None):
        emitter.nest(shape, None, 1, body)
    emitter.known.buffers.update(zip(op.results, buffers))


def _call(emitter: Emitter, function: ScalarFunction, operands: list[str],
          storage: Buffer) -> list[str]:
    """The results for one element; zeros where the mask, the first operand, is false.

    Source: Numba's calling convention, `i32 f(results*, exception*, parameters...)`.
    """
    writer, (mask, *values) = emitter.writer, operands
    type_ = _storage_type(function.results)
    exception = writer.assign("getelementptr inbounds i64, ptr "
                              f"{storage.address}, i64 {len(function.results)}")
    arguments = [(memory_type(dtype), _as_byte(emitter, dtype, value))
                 for dtype, value in zip(function.parameters, values, strict=True)]
    writer.do(f"store {type_} zeroinitializer, ptr {storage.address}, align 8")
    with writer.only_if(mask):
        writer.call("i32", _symbol(function), ("ptr", storage.address), ("ptr", exception),
                    *arguments)
    made = writer.assign(f"load {type_}, ptr {storage.address}, align 8")
    parts = [made] if len(function.results) == 1 else [
        writer.assign(f"extractvalue {type_} {made}, {index}")
        for index in range(len(function.results))]
    return [writer.assign(f"icmp ne i8 {part}, 0") if dtype == bool_ else part
            for dtype, part in zip(function.results, parts, strict=True)]


def _symbol(function: ScalarFunction) -> str:
    """The name by which native code of this process finds the function."""
    address = function.require_body().native_address()
    symbol = f"scalar_{function.name}_{address:x}"
    binding.add_symbol(symbol, address)
    return symbol


def _storage_type(results: tuple[DType, ...]) -> str:
    """The type that Numba returns: the only result, an array of one type, or a structure."""
    types = [memory_type(dtype) for dtype in results]
    if len(types) == 1:
        return types[0]
    return f"[{len(types)} x {types[0]}]" if len(set(types)) == 1 else f"{{ {', '.join(types)} }}"


def _as_byte(emitter: Emitter, dtype: DType, value: str) -> str:
    return emitter.writer.convert("zext", "i1", value, "i8") if dtype == bool_ else value
