"""Code of ops on memory: addresses, loads and stores."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import Lanes, memory_type
from blocknumba.cpu_lower.emitter import Access, Coordinates, Emitter, element, root
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType, PointerType
from blocknumba.tile_ir.ops import memory


@element(memory.offset)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    """Ramps stay ramps: indices of accesses are assumed not to overflow within a vector."""
    pointer, count = operands
    dtype, writer = op.count.type.dtype, emitter.writer
    pointee = memory_type(op.pointer.type.dtype.pointee)
    scalar, extend = f"i{dtype.bits}", "sext" if dtype.is_signed else "zext"
    step = _step_sum(writer, pointer, count, scalar, extend)
    if step is not None:
        base = writer.convert(extend, scalar, count.name, "i64")
        if base == "0":
            return Lanes(pointer.name, step)
        return Lanes(writer.assign(f"getelementptr {pointee}, ptr {pointer.name}, i64 {base}"),
                     step)
    lanes = emitter.lanes
    index = writer.convert(extend, vector(scalar, lanes), emitter.dense(dtype, count),
                           vector("i64", lanes))
    base = (f"ptr {pointer.name}" if pointer.is_uniform
            else f"{vector('ptr', lanes)} {emitter.dense(op.pointer.type.dtype, pointer)}")
    return Lanes(writer.assign(f"getelementptr {pointee}, {base}, {vector('i64', lanes)} {index}"))


@element(memory.address)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return _converted(emitter, "ptrtoint", op.pointer.type.dtype, op.result.type.dtype, operands)


@element(memory.pointer_at)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return _converted(emitter, "inttoptr", op.address.type.dtype, op.result.type.dtype, operands)


def _converted(emitter: Emitter, opcode: str, source: DType | PointerType,
               to: DType | PointerType, operands: list[Lanes]) -> Lanes:
    (name,), lanes = emitter.names(source, operands)
    types = (emitter.type(dtype, lanes) for dtype in (source, to))
    given, made = types
    return Lanes(emitter.writer.convert(opcode, given, name, made), 0 if lanes == 1 else None)


def _step_sum(writer, pointer: Lanes, count: Lanes, scalar: str,
              extend: str) -> int | str | None:
    """The step of the sum of a pointer and a count; None where it is not the same everywhere."""
    if pointer.step is None or count.step is None:
        return None
    if isinstance(pointer.step, int) and isinstance(count.step, int):
        return pointer.step + count.step
    if count.step == 0:
        return pointer.step
    if pointer.step == 0:
        return writer.convert(extend, scalar, count.step, "i64")
    return None


def _load_operands(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    coordinates = access[1]
    if op.mask is None or op.mask in emitter.known.unmasked:
        return [(op.pointer, coordinates)]
    return [(value, coordinates) for value in op.operands]


@element(memory.load, operands=_load_operands, moves=False)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    flags = "volatile " if attribute(op, "volatile") else ""
    return emitter.load(op.result.type.dtype, *operands, flags=flags)


@root(memory.store)
def _(emitter: Emitter, op: Op) -> None:
    values = [op.pointer, op.value]
    if op.mask is not None and op.mask not in emitter.known.unmasked:
        values.append(op.mask)
    shape, dtype = op.pointer.type.shape, op.value.type.dtype
    axis, lanes = emitter.plan.lanes_of(values)

    def accesses(coordinates: Coordinates) -> list[Access]:
        return [(value, coordinates) for value in values]

    def body(coordinates: Coordinates) -> None:
        pointer, value, *mask = [emitter.at(*access) for access in accesses(coordinates)]
        emitter.store(dtype, pointer, value, *mask)

    with emitter.filled_by(values, shape, axis):
        emitter.nest(shape, axis, lanes, body, accesses)
