"""Code of ops on memory: addresses, loads and stores."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.cpu_lower.elements import Lanes, memory_type
from blocknumba.cpu_lower.emitter import Access, Coordinates, Emitter, element, root
from blocknumba.cpu_lower.versions import ends_of_lanes, in_two_versions_of_box
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType, PointerType
from blocknumba.tile_ir.ops import memory


def _offset_operands(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    """The pointer, and the parts that its count is a sum of."""
    coordinates = access[1]
    parts, waiting = [], [op.count]
    while waiting:
        part = waiting.pop()
        if (part.type.shape and emitter.plan.is_count(part) and part.owner.name == "add"
                and part.type.dtype.is_signed and part not in emitter.known.buffers
                and not emitter.plan.is_shared(part)):
            waiting += reversed(part.owner.operands)
        else:
            parts.append(part)
    return [(value, coordinates if value.type.shape else ()) for value in (op.pointer, *parts)]


@element(memory.offset, operands=_offset_operands, moves=False)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    """Ramps stay ramps: indices of accesses are assumed not to overflow within a vector.

    Of a count that is a sum, what all lanes share comes first: no iteration of the innermost loop
    changes it.
    """
    pointer, *counts = operands
    if not op.pointer.type.shape and (near := _near(emitter, op.result)) is not None:
        return near
    for count in sorted(counts, key=lambda count: not count.is_uniform):
        pointer = _moved(emitter, op, pointer, count)
    return pointer


def _near(emitter: Emitter, pointer: Value) -> Lanes | None:
    """A scalar pointer by its constant distance from one that is known, if there is such.

    The processor adds the distance in an access: x[i - 1], x[i] and x[i + 1] share a register.
    """
    place = emitter.plan.affine[pointer]
    if not isinstance(place, AffineExpression):
        return None
    origin = place.origin, tuple(term for term in place.base.terms if term[0])
    other, emitter.nearby[origin] = emitter.nearby.get(origin), pointer
    if other not in emitter.known.scalars or other.type != pointer.type:
        return None
    distance = (place.base - emitter.plan.affine[other].base).number
    pointee = memory_type(pointer.type.dtype.pointee)
    return Lanes(emitter.writer.assign(f"getelementptr {pointee}, ptr {emitter.scalar(other)}, "
                                       f"i64 {distance}"), 0)


def _moved(emitter: Emitter, op: Op, pointer: Lanes, count: Lanes) -> Lanes:
    """A pointer moved by a part of its count."""
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
    group = emitter.plan.group_of(op)
    if op is not group[-1]:
        return
    values = [value for store in group for value in _store_operands(emitter, store)]
    masks = [store.mask for store in group if store.mask is not None]
    shape = op.pointer.type.shape
    turns = emitter.in_turn
    axis, lanes = (turns.axis, turns.lanes) if turns else emitter.lanes_of(values)

    def accesses(coordinates: Coordinates) -> list[Access]:
        return [(value, coordinates) for value in values]

    def body(coordinates: Coordinates) -> None:
        in_two_versions_of_box(emitter, values, masks, ends_of_lanes(emitter, coordinates, axis),
                               lambda: _store(emitter, group, coordinates))

    with emitter.filled_by(values, shape, axis):
        emitter.nest(shape, axis, lanes, body, accesses)


def _store(emitter: Emitter, group: Sequence[Op], coordinates: Coordinates) -> list[str]:
    """Store one element of each store in each lane."""
    found = {store: [emitter.at(value, coordinates) for value in _store_operands(emitter, store)]
             for store in group}
    left = dict(found)
    for run in emitter.plan.interleaved(group):
        if emitter.store_side_by_side(run[0].value.type.dtype, [found[store] for store in run]):
            left = {store: own for store, own in left.items() if store not in run}
    for store, (pointer, value, *mask) in left.items():
        emitter.store(store.value.type.dtype, pointer, value, *mask)
    return []


def _store_operands(emitter: Emitter, op: Op) -> list[Value]:
    """Pointer, value, and the mask where it counts."""
    is_masked = op.mask is not None and op.mask not in emitter.known.unmasked
    return [op.pointer, op.value, *[op.mask][:is_masked]]
