"""The lowering of a whole kernel to LLVM IR for the CPU.

    i32 @add(ptr arguments, i64 first_program, i64 stop_program, i32 grid0, i32 grid1, i32 grid2)

runs the programs of a range, in the order of plans/program_order.py, on the calling thread.  It
returns 0, or the number of the failure that stopped it. `arguments` points to 8-byte slots:

    slot 0   the address of two i64 that a failure writes: its program, numbered with the first
             axis of the grid running fastest, and the element's index in C order
    slot 1   a pointer that prints pass on
    slot 2+  a parameter each, in its natural size: pointers, extents, strides, numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.cpu_lower import ops
from blocknumba.cpu_lower.elements import memory_type, uniform
from blocknumba.cpu_lower.emitter import MAX_STACK_BYTES, Emitter, Failure
from blocknumba.cpu_lower.printing import FIRST_SLOT
from blocknumba.cpu_lower.plans.program_order import AXES, program_order
from blocknumba.cpu_lower.plans.rows_in_turn import RowsInTurn, rows_in_turn
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.cpu_lower.toolchain import linked, symbol
from blocknumba.cpu_lower.versions import in_two_versions
from blocknumba.cpu_lower.writer import Module
from blocknumba.tile_ir.ir.function import Function, Op, Parameter, walk
from blocknumba.tile_ir.ir.opdef import may_wait
from blocknumba.tile_ir.ir.types import bool_

assert ops.ELEMENTS, "the code of ops is registered by importing it"

SLOT_BYTES = 8


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """One kernel as LLVM IR.

    llvm_ir: the module, with the scalar functions that it calls.  name: of its function.
    parameters: in the order of their slots.
    failures: failures[n - 1] is what a result of n means.  prints: the ops that print, by number.
    versions: regions that were written with and without masks.
    """

    llvm_ir: str
    name: str
    parameters: tuple[Parameter, ...]
    failures: tuple[Failure, ...]
    prints: tuple[Op, ...]
    versions: int


def lower(fn: Function, target: CpuTarget, *, disjoint: bool = False,
          fastmath: bool = False) -> LoweredKernel:
    """Lower a tile IR function.

    disjoint: no array that it stores to shares memory with another.
    fastmath: sums of products may be rounded once, quotients be products with a reciprocal.
    """
    module = Module()
    emitter = Emitter(fn, target, module, disjoint=disjoint, fastmath=fastmath)
    entry = _parameters(emitter)
    name = symbol("bn_", fn.name)
    _programs(emitter)
    text = emitter.writer.define(
        f"define i32 @{name}(ptr %arguments, i64 %first, i64 %stop, i32 %grid0, i32 %grid1, "
        f"i32 %grid2) {target.attributes}", [*_scratch(emitter), *entry])
    module.add(name, text)
    return LoweredKernel(linked(module.text(target.triple), emitter.linked, target),
                         name, fn.parameters,
                         tuple(emitter.failures), tuple(emitter.prints), emitter.versions)


def unsupported(fn: Function) -> str:
    """The reason why a function has no native code; empty if it has."""
    for op in walk(fn.body):
        if op.name not in ops.ELEMENTS and op.name not in ops.ROOTS:
            return f"{op.name} is interpreted"
        if op.name == "loop" and any(map(may_wait, walk(op.regions[0]))):
            return "a loop that may wait for other programs is interpreted, in their order"
    return ""


def _parameters(emitter: Emitter) -> list[str]:
    """Make the slots the scalars of the parameters; the lines that read them."""
    lines = []
    for index, value in enumerate(emitter.function.body.args):
        type_, slot = memory_type(value.type.dtype), (FIRST_SLOT + index) * SLOT_BYTES
        lines += [f"%slot{index} = getelementptr inbounds i8, ptr %arguments, i64 {slot}",
                  f"%given{index} = load {type_}, ptr %slot{index}, align 8"]
        name = f"%given{index}"
        if value.type.dtype == bool_:
            lines.append(f"%flag{index} = icmp ne i8 %given{index}, 0")
            name = f"%flag{index}"
        emitter.known.scalars[value] = name
    return lines


def _scratch(emitter: Emitter) -> list[str]:
    """The memory of buffers, and of what a failure tells: lines at the function's start."""
    size = max(64, emitter.most_buffer_bytes)
    lines = ["%status = alloca i32, align 4", "store i32 0, ptr %status",
             "%record = load ptr, ptr %arguments, align 8",
             "%printer_slot = getelementptr inbounds i8, ptr %arguments, i64 8",
             "%printer = load ptr, ptr %printer_slot, align 8"]
    if size <= MAX_STACK_BYTES:
        return [*lines, f"%scratch = alloca [{size} x i8], align 64"]
    emitter.module.declare("ptr", "malloc", ["i64"])
    emitter.module.declare("void", "free", ["ptr"])
    return [*lines, f"%memory = call noalias ptr @malloc(i64 {size + 64})",
            "%address = ptrtoint ptr %memory to i64", "%past = add i64 %address, 63",
            "%aligned = and i64 %past, -64", "%distance = sub i64 %aligned, %address",
            "%scratch = getelementptr i8, ptr %memory, i64 %distance"]


def _programs(emitter: Emitter) -> None:
    """The loop over programs, and what follows it."""
    writer, copies = emitter.writer, list(dict.fromkeys(emitter.copies.values()))
    order = program_order(emitter.function, emitter.plan.affine)
    emitter.in_turn = rows_in_turn(emitter.plan, order[0])
    for copy in copies:
        copy.begin(writer, emitter.scalar)
    is_some = writer.assign("icmp slt i64 %first, %stop")
    writer.branch_if(is_some, "begin", "exit")
    writer.begin("begin")
    is_flat = writer.assign("icmp eq i32 %grid1, 1")
    is_line = writer.assign("icmp eq i32 %grid2, 1")
    writer.do(f"%is_line = and i1 {is_flat}, {is_line}")
    for axis in range(AXES):
        writer.do(f"%wide{axis} = zext i32 %grid{axis} to i64")
    writer.branch("each")
    writer.begin("each")
    slot = writer.reserve()
    if emitter.in_turn is None:
        _program_ids(emitter, order)
        _program(emitter)
        writer.do("%next = add nuw nsw i64 %program, 1")
    else:
        _programs_in_turn(emitter, order, emitter.in_turn)
    writer.insert(slot, [f"%program = phi i64 [ %first, %begin ], [ %next, %{writer.block} ]"])
    more = writer.assign("icmp slt i64 %next, %stop")
    writer.branch_if(more, "each", "exit")
    writer.begin("exit")
    for copy in copies:
        copy.end(writer, emitter.scalar(copy.pointer))
    result = writer.assign("load i32, ptr %status")
    if emitter.most_buffer_bytes > MAX_STACK_BYTES:
        writer.do("call void @free(ptr %memory)")
    writer.do(f"ret i32 {result}")


def _program_ids(emitter: Emitter, order: Sequence[int], name: str = "%program") -> None:
    """Program ids from the number of a program; in a grid of one axis without a division.

    order: of the axes, the one that runs fastest first.  name: of the ids, before their axes.
    """
    writer = emitter.writer
    before, general, after = writer.block, writer.label("divide"), writer.label("ids")
    fastest, middle, slowest = order
    low = writer.assign("trunc i64 %program to i32")
    writer.branch_if("%is_line", after, general)
    writer.begin(general)
    rest = writer.assign(f"udiv i64 %program, %wide{fastest}")
    ids = {fastest: writer.assign(f"urem i64 %program, %wide{fastest}"),
           middle: writer.assign(f"urem i64 {rest}, %wide{middle}"),
           slowest: writer.assign(f"udiv i64 {rest}, %wide{middle}")}
    ids = {axis: writer.assign(f"trunc i64 {x} to i32") for axis, x in ids.items()}
    writer.branch(after)
    writer.begin(after)
    for axis, flat in enumerate((low, "0", "0")):
        writer.do(f"{name}{axis} = phi i32 [ {flat}, %{before} ], "
                  f"[ {ids[axis]}, %{general} ]")


def _programs_in_turn(emitter: Emitter, order: Sequence[int], turns: RowsInTurn) -> None:
    """Neighbours along the fastest axis, from %program on: of each row of a tile, all of them.

    %next: the first program that is no neighbour, or is one too many.
    """
    writer, fastest = emitter.writer, order[0]
    _program_ids(emitter, order, "%begun")
    count = str(turns.programs)
    for more in (f"sub i64 %wide{fastest}, {writer.assign(f'zext i32 %begun{fastest} to i64')}",
                 "sub i64 %stop, %program"):
        left = writer.assign(more)
        count = writer.call("i64", "llvm.umin.i64", ("i64", count), ("i64", left))
    writer.do(f"%next = add nuw nsw i64 %program, {count}")
    count = writer.assign(f"trunc i64 {count} to i32")

    def row(axes: Sequence[int]) -> None:
        if axes:
            index = writer.name()
            emitter.row[axes[0]] = uniform(index)
            writer.loop(turns.shape[axes[0]], 1, lambda _: row(axes[1:]), index=index)
            return
        before, head, after = writer.block, writer.label("turn"), writer.label("after")
        writer.branch(head)
        writer.begin(head)
        slot = writer.reserve()
        for axis in range(AXES):
            writer.do(f"%program{axis} = add nuw nsw i32 %begun{axis}, "
                      + ("%turn" if axis == fastest else "0"))
        _program(emitter)
        writer.do("%turn_next = add nuw nsw i32 %turn, 1")
        writer.insert(slot, [f"%turn = phi i32 [ 0, %{before} ], [ %turn_next, %{writer.block} ]"])
        writer.branch_if(writer.assign(f"icmp ult i32 %turn_next, {count}"), head, after)
        writer.begin(after)

    row([axis for axis in range(len(turns.shape)) if axis != turns.axis])


def _program(emitter: Emitter) -> None:
    """One program, or one row of it."""
    in_two_versions(emitter, emitter.function.body, lambda: _body(emitter), [])


def _body(emitter: Emitter) -> list[str]:
    emitter.run(emitter.function.body)
    return []
