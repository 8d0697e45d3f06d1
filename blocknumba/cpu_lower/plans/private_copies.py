"""Private copies of arrays that a kernel only adds to: a range of programs adds its own sums once.

    out[index] += weight               locked, in every element's turn: 20 cycles

    copy = -0.0 of each element        before the first program of a range
    copy[index] += weight              3 cycles
    out[i] += copy[i], locked          after its last one, where the copy's element has changed

Sums of atomic additions have no stated order, and nothing in the kernel reads the array, so nobody
can tell.  The extents say how large a copy is; an element that lies elsewhere, as one of a view
with gaps may, is added to the array itself.  A copy is made where the range adds several times as
many elements as it has, and where it fits in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from blocknumba.cpu_lower.elements import is_narrow, literal, memory_type, size_bytes
from blocknumba.cpu_lower.writer import Module, Writer
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import READS, WRITES, attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.memory import atomic_rmw

MAX_BYTES = 1 << 18  # of a copy
ADDITIONS = 4  # of a range, for each element of a copy
ITERATIONS = 8  # that a loop is taken to have
LINE = 64  # bytes that are cleared at once


@dataclass(slots=True, eq=False)
class Copy:
    """The copy of one array, in all ranges.

    dtype: of the elements.  pointer: of the first one; extents: of the array.
    additions: elements that a program adds, about.  order: LLVM's, of the locked additions.
    address, bytes: names, of the copy and of its size, which is 0 where there is none.
    """

    dtype: DType
    pointer: Value
    extents: list[Value]
    additions: int
    order: str
    address: str = field(default="", init=False)
    bytes: str = field(default="", init=False)

    def begin(self, writer: Writer, scalar: Callable[[Value], str]) -> None:
        """Before the first program: decide, and clear the copy."""
        count = "1"
        for extent in self.extents:
            wide = writer.convert("sext", memory_type(extent.type.dtype), scalar(extent), "i64")
            count = writer.multiply(count, wide, "i64")
        programs = writer.assign("sub i64 %stop, %first")
        paid = writer.assign(f"mul i64 {programs}, {self.additions // ADDITIONS}")
        name = _defined(writer.module, self.dtype, self.order)
        self.address = writer.assign(f"call ptr @{name}.begin(i64 {count}, i64 {paid})")
        is_none = writer.assign(f"icmp eq ptr {self.address}, null")
        size = writer.multiply(count, str(size_bytes(self.dtype)), "i64")
        self.bytes = writer.assign(f"select i1 {is_none}, i64 0, i64 {size}")

    def add(self, writer: Writer, base: str, pointer: str, value: str) -> None:
        """Add one element.  base: the address of the array's first one."""
        type_ = memory_type(self.dtype)
        start, place = (writer.assign(f"ptrtoint ptr {x} to i64") for x in (base, pointer))
        offset = writer.assign(f"sub i64 {place}, {start}")
        is_inside = writer.assign(f"icmp ult i64 {offset}, {self.bytes}")
        own, other, after = (writer.label(hint) for hint in ("own", "shared", "added"))
        writer.branch_if(is_inside, own, other)
        writer.begin(own)
        to = writer.assign(f"getelementptr i8, ptr {self.address}, i64 {offset}")
        old = writer.assign(f"load {type_}, ptr {to}, align {size_bytes(self.dtype)}")
        new = writer.assign(f"{_addition(self.dtype)} {type_} {old}, {value}")
        writer.do(f"store {type_} {new}, ptr {to}, align {size_bytes(self.dtype)}")
        writer.branch(after)
        writer.begin(other)
        writer.assign(_locked(self.dtype, pointer, value, self.order))
        writer.branch(after)
        writer.begin(after)

    def end(self, writer: Writer, base: str) -> None:
        """After the last program: add the copy to the array."""
        name = _defined(writer.module, self.dtype, self.order)
        writer.do(f"call void @{name}.end(ptr {self.address}, ptr {base}, i64 {self.bytes})")


def private_copies(fn: Function, disjoint: bool) -> dict[Op, Copy]:
    """The atomic ops that may add to a copy, which those of one array share.

    disjoint: no array that is stored to shares memory with another.
    """
    if not disjoint:
        return {}
    found, used = origins(fn), {value for op in walk(fn.body) for value in op.operands}
    touching: dict[str, list[Op]] = {}
    for op in walk(fn.body):
        if op.opdef.has(READS | WRITES):
            for name in frozenset().union(*(found.get(value, ()) for value in op.operands)):
                touching.setdefault(name, []).append(op)
    loops = dict(_loops_around(fn.body, 0))
    copies: dict[Op, Copy] = {}
    for parameter, pointer in zip(fn.parameters, fn.body.args):
        ops = touching.get(parameter.argument, ())
        if parameter.kind != "pointer" or not ops or not all(
                _adds(op) and op.result not in used and len(found[op.pointer]) == 1
                for op in ops):
            continue
        extents = [value for other, value in zip(fn.parameters, fn.body.args)
                   if other.kind == "extent" and other.argument == parameter.argument]
        additions = sum(op.pointer.type.size * ITERATIONS**loops[op] for op in ops)
        if extents and additions >= ADDITIONS:
            relaxed = all(attribute(op, "semantics") == "relaxed" for op in ops)
            copy = Copy(pointer.type.dtype.pointee, pointer, extents, min(additions, 1 << 40),
                        "monotonic" if relaxed else "acq_rel")
            copies |= dict.fromkeys(ops, copy)
    return copies


def _adds(op: Op) -> bool:
    """Whether an op adds, and its sums are exact, or rounded in the dtype of the elements."""
    if op.opdef is not atomic_rmw or op.attrs["kind"] != "add":
        return False
    dtype = op.value.type.dtype
    return bool(op.pointer.type.shape) and not is_narrow(dtype)


def _loops_around(region: Region, depth: int) -> Iterator[tuple[Op, int]]:
    for op in region.ops:
        yield op, depth
        for inner in op.regions:
            yield from _loops_around(inner, depth + (op.name in ("for", "loop")))


def _addition(dtype: DType) -> str:
    return "fadd" if dtype.is_float else "add"


def _locked(dtype: DType, pointer: str, value: str, order: str) -> str:
    return (f"atomicrmw {_addition(dtype)} ptr {pointer}, {memory_type(dtype)} {value} {order}, "
            f"align {size_bytes(dtype)}")


def _defined(module: Module, dtype: DType, order: str) -> str:
    """Define the functions that make and add copies; the name with which both begin."""
    name = f"bn.copy.{dtype}.{order}"
    module.declare("ptr", "malloc", ["i64"])
    module.declare("void", "free", ["ptr"])
    module.add(f"{name}.begin", _begin(f"{name}.begin", dtype))
    module.add(f"{name}.end", _end(f"{name}.end", dtype, order))
    return name


def _begin(name: str, dtype: DType) -> str:
    """Makes a copy of a number of elements, if it is at most `paid`; else returns null."""
    type_, size = memory_type(dtype), size_bytes(dtype)
    nothing = literal(-0.0 if dtype.is_float else 0, dtype)  # -0.0 + x is x, of -0.0 too
    return f"""define internal ptr @{name}(i64 %count, i64 %paid) {{
entry:
  %less = sub i64 %count, 1
  %is.some = icmp ult i64 %less, {MAX_BYTES // size}
  %is.paid = icmp ule i64 %count, %paid
  %pays = and i1 %is.some, %is.paid
  br i1 %pays, label %make, label %none
make:
  %bytes = mul i64 %count, {size}
  %more = add i64 %bytes, {LINE - 1}
  %whole = and i64 %more, -{LINE}
  %copy = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %copy, null
  br i1 %failed, label %none, label %clear
clear:
  %at = phi i64 [ 0, %make ], [ %next, %clear ]
  %to = getelementptr i8, ptr %copy, i64 %at
  store <{LINE // size} x {type_}> splat ({type_} {nothing}), ptr %to, align {size}
  %next = add i64 %at, {LINE}
  %left = icmp ult i64 %next, %whole
  br i1 %left, label %clear, label %made
made:
  ret ptr %copy
none:
  ret ptr null
}}
"""


def _end(name: str, dtype: DType, order: str) -> str:
    """Adds a copy to the array; of bytes 0 there is none."""
    type_, size, bits = memory_type(dtype), size_bytes(dtype), f"i{dtype.bits}"
    nothing = -(1 << dtype.bits - 1) if dtype.is_float else 0
    return f"""define internal void @{name}(ptr %copy, ptr %to, i64 %bytes) {{
entry:
  %is.none = icmp eq i64 %bytes, 0
  br i1 %is.none, label %done, label %each
each:
  %at = phi i64 [ 0, %entry ], [ %next, %after ]
  %from = getelementptr i8, ptr %copy, i64 %at
  %sum = load {bits}, ptr %from, align {size}
  %same = icmp eq {bits} %sum, {nothing}
  br i1 %same, label %after, label %change
change:
  %value = bitcast {bits} %sum to {type_}
  %place = getelementptr i8, ptr %to, i64 %at
  %old = {_locked(dtype, "%place", "%value", order)}
  br label %after
after:
  %next = add i64 %at, {size}
  %left = icmp ult i64 %next, %bytes
  br i1 %left, label %each, label %done
done:
  call void @free(ptr %copy)
  ret void
}}
"""
