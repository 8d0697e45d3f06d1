"""Code of scalar functions: calls of Numba's code, which is linked, one for each element."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import Lanes, memory_type
from blocknumba.cpu_lower.emitter import Coordinates, Emitter, root
from blocknumba.cpu_lower.toolchain import SCALAR, symbol
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType, bool_
from blocknumba.tile_ir.ops.map import ScalarFunction, map_


@root(map_)
def _(emitter: Emitter, op: Op) -> None:
    function, shape = op.attrs["function"], op.mask.type.shape
    values = [op.mask, *op.tiles]
    if not shape:
        operands = [emitter.scalar(value) for value in values]
        emitter.known.scalars.update(zip(op.results, _call(emitter, function, operands)))
        return
    buffers = [emitter.buffer(value.type) for value in op.results]

    def body(coordinates: Coordinates) -> None:
        operands = [emitter.at(value, coordinates).name for value in values]
        found = _call(emitter, function, operands)
        for value, buffer, name in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, Lanes(name, 0), buffer)
    with emitter.filled_by(values, shape, None):
        emitter.nest(shape, None, 1, body)
    emitter.known.buffers.update(zip(op.results, buffers))


def _call(emitter: Emitter, function: ScalarFunction, operands: list[str]) -> list[str]:
    """The results for one element; zeros where the mask, the first operand, is false."""
    writer, (mask, *values) = emitter.writer, operands
    type_ = _storage_type(function.results)
    arguments = [(memory_type(dtype), _as_byte(emitter, dtype, value))
                 for dtype, value in zip(function.parameters, values, strict=True)]
    made = writer.call(type_, _masked(emitter, function), ("i1", mask), *arguments)
    parts = [made] if len(function.results) == 1 else [
        writer.assign(f"extractvalue {type_} {made}, {index}")
        for index in range(len(function.results))]
    return [writer.assign(f"icmp ne i8 {part}, 0") if dtype == bool_ else part
            for dtype, part in zip(function.results, parts, strict=True)]


def _masked(emitter: Emitter, function: ScalarFunction) -> str:
    """The symbol of a function from a mask and operands to results, which is inlined.

    Its memory is its own, so that LLVM keeps the results in registers.
    Source: Numba's calling convention, `i32 f(results*, exception*, parameters...)`.
    """
    called, caller = symbol(SCALAR, function.name), symbol("masked_", function.name)
    emitter.linked[called] = function.require_body().host_code()
    types = [memory_type(dtype) for dtype in function.parameters]
    emitter.module.declare("i32", called, ["ptr", "ptr", *types])
    result = _storage_type(function.results)
    given = "".join(f", {type_} %x{index}" for index, type_ in enumerate(types))
    emitter.module.add(caller, f"""\
define internal {result} @{caller}(i1 %mask{given}) alwaysinline {{
  %results = alloca {result}, align 8
  %exception = alloca ptr, align 8
  store {result} zeroinitializer, ptr %results, align 8
  br i1 %mask, label %run, label %done
run:
  call i32 @{called}(ptr %results, ptr %exception{given})
  br label %done
done:
  %made = load {result}, ptr %results, align 8
  ret {result} %made
}}
""")
    return caller


def _storage_type(results: tuple[DType, ...]) -> str:
    """The type that Numba returns: the only result, an array of one type, or a structure."""
    types = [memory_type(dtype) for dtype in results]
    if len(types) == 1:
        return types[0]
    return f"[{len(types)} x {types[0]}]" if len(set(types)) == 1 else f"{{ {', '.join(types)} }}"


def _as_byte(emitter: Emitter, dtype: DType, value: str) -> str:
    return emitter.writer.convert("zext", "i1", value, "i8") if dtype == bool_ else value
