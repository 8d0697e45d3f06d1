"""Code of atomic ops: one element after the other."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.cpu_lower.elements import is_narrow, literal, memory_type, uniform
from blocknumba.cpu_lower.emitter import Coordinates, Emitter, root
from blocknumba.cpu_lower.ops.elementwise import combine
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops import memory

# LLVM's orders of acq_rel and its like; "gpu" and "sys" are one scope here
_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release",
           "acq_rel": "acq_rel"}
_FAILED = {"relaxed": "monotonic", "acquire": "acquire", "release": "monotonic",
           "acq_rel": "acquire"}
_FLOAT = {"add": "fadd", "max": "fmax", "min": "fmin", "exchange": "xchg"}
_SIGNED = {"add": "add", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor",
           "exchange": "xchg"}
_UNSIGNED = _SIGNED | {"max": "umax", "min": "umin"}


@root(memory.atomic_rmw)
def _(emitter: Emitter, op: Op) -> None:
    dtype = op.value.type.dtype
    order = _ORDERS[attribute(op, "semantics")]
    copy = emitter.copies.get(op)

    def add(pointer: str, value: str) -> str:
        copy.add(emitter.writer, emitter.scalar(copy.pointer), pointer, value)
        return literal(0, dtype)

    def update(pointer: str, value: str) -> str:
        if is_narrow(dtype):
            return _narrow_sum(emitter, dtype, pointer, value, order)
        table = _FLOAT if dtype.is_float else _SIGNED if dtype.is_signed else _UNSIGNED
        return emitter.writer.assign(
            f"atomicrmw {table[op.attrs['kind']]} ptr {pointer}, {memory_type(dtype)} {value} "
            f"{order}, align {dtype.bytes}")
    _each_element(emitter, op, (op.pointer, op.value), update if copy is None else add)


@root(memory.atomic_cas)
def _(emitter: Emitter, op: Op) -> None:
    dtype, semantics = op.value.type.dtype, attribute(op, "semantics")
    type_, bits = memory_type(dtype), f"i{dtype.bits}"
    orders = f"{_ORDERS[semantics]} {_FAILED[semantics]}"

    def update(pointer: str, compare: str, value: str) -> str:
        writer = emitter.writer
        wanted, new = (writer.convert("bitcast", type_, x, bits) for x in (compare, value))
        pair = writer.assign(f"cmpxchg ptr {pointer}, {bits} {wanted}, {bits} {new} {orders}, "
                             f"align {dtype.bytes}")
        old = writer.assign(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
        return writer.convert("bitcast", bits, old, type_)
    _each_element(emitter, op, (op.pointer, op.compare, op.value), update)


def _each_element(emitter: Emitter, op: Op, operands: tuple, update: Callable[..., str]) -> None:
    """Run update(*operands) on each element whose mask is true; its results are the op's."""
    dtype, shape = op.result.type.dtype, op.result.type.shape
    masks = [] if op.mask is None or op.mask in emitter.known.unmasked else [op.mask]
    is_kept = bool(shape) and emitter.plan.is_used(op.result)
    target = emitter.buffer(op.result.type) if is_kept else None
    found = ""

    def body(coordinates: Coordinates) -> None:
        nonlocal found
        names = [emitter.at(value, coordinates if value.type.shape else ()).name
                 for value in (*operands, *masks)]
        if masks:
            *names, mask = names
            found = emitter.writer.choose(mask, memory_type(dtype), lambda: update(*names),
                                          literal(0, dtype))
        else:
            found = update(*names)
        if target is not None:
            emitter.keep(op.result, coordinates, uniform(found), target)

    values = [*operands, *masks]
    with emitter.filled_by(values, shape, None):
        emitter.nest(shape, None, 1, body,
                     lambda coordinates: [(value, coordinates) for value in values])
    if not shape:
        emitter.known.scalars[op.result] = found
    elif is_kept:
        emitter.known.buffers[op.result] = target


def _narrow_sum(emitter: Emitter, dtype: DType, pointer: str, value: str, order: str) -> str:
    """Add to a 16-bit float: computed in float32, and exchanged if nobody came between."""
    writer = emitter.writer
    start = writer.assign(f"load atomic i16, ptr {pointer} monotonic, align 2")
    before, again, after = writer.block, writer.label("again"), writer.label("after")
    writer.branch(again)
    writer.begin(again)
    slot, old = writer.reserve(), writer.name()
    new = combine(emitter, "add", dtype, [old, value], 1)
    pair = writer.assign(f"cmpxchg ptr {pointer}, i16 {old}, i16 {new} {order} monotonic, align 2")
    seen = writer.assign(f"extractvalue {{ i16, i1 }} {pair}, 0")
    is_done = writer.assign(f"extractvalue {{ i16, i1 }} {pair}, 1")
    writer.insert(slot, [f"{old} = phi i16 [ {start}, %{before} ], [ {seen}, %{writer.block} ]"])
    writer.branch_if(is_done, after, again)
    writer.begin(after)
    return seen


