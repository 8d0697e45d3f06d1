"""Code of assertions and prints: calls into the driver from a kernel.

Source: CUDA C++ Programming Guide, "Assertion" and "Formatted Output"; PTX Writer's Guide to
Interoperability, "System Calls".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from blocknumba.errors import Loc
from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import DOUBLE, I1, I32, I64, I8, Body
from blocknumba.nvvm_lower.ops.memory import does_work
from blocknumba.nvvm_lower.services import casts
from blocknumba.nvvm_lower.services.address import GRID_AXES, coordinates
from blocknumba.nvvm_lower.services.words import Dtype
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, PointerType, bool_, float64, int32, int64, uint32, uint64,
)
from blocknumba.tile_ir.ops.debug import assert_, assume, check_index, hint, index_widths, print_

SLOT_BYTES = 8  # of an argument of vprintf, which finds each at its natural alignment
_GENERIC = f"{I8}*"


def fail_unless(body: Body, condition: str, message: str, loc: Loc) -> None:
    """Stop the kernel with a message to the host if condition, an i1, does not hold."""
    wrong, right = body.new_label("wrong"), body.new_label("right")
    body.branch_if(condition, right, wrong)
    body.begin_block(wrong)
    with body.scope():
        body.call("void", "__assertfail", f"{_GENERIC} {_text(body, message)}",
                  f"{_GENERIC} {_text(body, loc.file or 'unknown')}", f"{I32} {loc.line}",
                  f"{_GENERIC} {_text(body, loc.function or 'kernel')}", f"{I64} 1")
        body.branch(right)
    body.begin_block(right)


def print_line(emitter: Emitter, format_: str, arguments: list[str]) -> None:
    """printf; arguments are typed, each an i32, i64 or double."""
    body = emitter.body
    storage = f"[{max(1, len(arguments))} x i64]"
    buffer = body.stack_variable(storage, SLOT_BYTES)
    offset = 0
    for argument in arguments:
        type_ = argument.split(" ", 1)[0]
        size = 4 if type_ == I32 else SLOT_BYTES
        offset = -(-offset // size) * size
        address = body.pure(f"bitcast {storage}* {buffer} to {_GENERIC}")
        address = body.pure(f"getelementptr {I8}, {_GENERIC} {address}, {I32} {offset}")
        address = body.pure(f"bitcast {_GENERIC} {address} to {type_}*")
        body.do(f"store {argument}, {type_}* {address}, align {size}")
        offset += size
    address = body.pure(f"bitcast {storage}* {buffer} to {_GENERIC}")
    body.call(I32, "vprintf", f"{_GENERIC} {_text(body, format_)}", f"{_GENERIC} {address}")


def printable(emitter: Emitter, dtype: Dtype, value: str, hexadecimal: bool) -> tuple[str, str]:
    """The printf conversion of an element, and the typed argument for it."""
    if isinstance(dtype, PointerType):
        return "%p", f"{I64} {emitter.body.convert('ptrtoint', register_type(dtype), value, I64)}"
    if hexadecimal:
        digits = 2 * dtype.bytes
        bits = DTYPES[f"uint{8 * dtype.bytes}"]
        return _integer(emitter, bits, casts.bitcast(emitter, value, dtype, bits), "x", digits)
    if dtype.is_float:
        return "%f", f"{DOUBLE} {casts.cast(emitter, value, dtype, float64)}"
    return _integer(emitter, dtype, value, "d" if dtype.is_signed or dtype == bool_ else "u")


def _integer(emitter: Emitter, dtype: DType, value: str, letter: str,
             digits: int = 0) -> tuple[str, str]:
    wide = dtype.bits == 64
    to = {True: int64, False: int32} if letter == "d" else {True: uint64, False: uint32}
    argument = f"{register_type(to[wide])} {casts.cast(emitter, value, dtype, to[wide])}"
    format_ = f"{'ll' if wide else ''}{letter}"
    return f"0x%0{digits}{format_}" if digits else f"%{format_}", argument


def _text(body: Body, text: str) -> str:
    """The generic address of a constant C string."""
    data = text.encode() + b"\0"
    name = body.module.constant_bytes(data)
    array = f"[{len(data)} x {I8}]"
    generic = body.pure(f"addrspacecast {array} addrspace(1)* {name} to {array}*")
    return body.pure(f"bitcast {array}* {generic} to {_GENERIC}")


@code(hint)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    return x


@code(assume)
def _(emitter: Emitter, op: Op, condition: Registers) -> None:
    emitter.body.call("void", "llvm.assume", f"{I1} {condition[0]}")


@code(assert_)
def _(emitter: Emitter, op: Op, condition: Registers) -> None:
    fail_unless(emitter.body, _all(emitter, condition), op.attrs["message"] or "assertion failed",
                op.loc)


@code(check_index)
def _(emitter: Emitter, op: Op, indices: Registers, extents: Registers,
      masks: Registers | None = None) -> None:
    """Taken as unsigned, a negative index is greater than every extent."""
    body, dtype = emitter.body, op.index.type.dtype
    holds = [body.compare("icmp ult", f"i{dtype.bits}", index, extent)
             for index, extent in zip(indices, extents, strict=True)]
    if masks is not None:
        holds = [body.binary("or", I1, inside, body.binary("xor", I1, mask, "true"))
                 for inside, mask in zip(holds, masks, strict=True)]
    message = f"index out of range of axis {op.attrs['axis']} of {op.attrs['array']}"
    fail_unless(emitter.body, _all(emitter, holds), message, op.loc)


@code(print_)
def _(emitter: Emitter, op: Op, *values: Registers) -> None:
    """One line per element in the format of print_line, by the one thread that acts for it."""
    prefix = str(op.attrs["prefix"]).replace("%", "%%")
    prefix = f" {prefix}" if prefix else ""
    if not values:
        _print_by(emitter, emitter.threads.is_first, partial(_print_row, emitter, prefix, [], []))
    for position, (value, registers) in enumerate(zip(op.operands, values, strict=True)):
        number = f"(operand {position}) " if len(values) > 1 else ""
        _print_by(emitter, does_work(emitter, value),
                  partial(_print_tile, emitter, op, value, registers, f"{prefix}: {number}"))


def _print_by(emitter: Emitter, predicate: str, print_: Callable[[], None]) -> None:
    """Print in the threads for which an i1 holds; "" stands for all."""
    body = emitter.body
    then, done = body.new_label("print"), body.new_label("printed")
    body.branch_if(predicate or "true", then, done)
    body.begin_block(then)
    with body.scope():
        print_()
        body.branch(done)
    body.begin_block(done)


def _print_tile(emitter: Emitter, op: Op, value: Value, registers: Registers,
                prefix: str) -> None:
    type_ = value.type
    axes = [coordinates(emitter.body, emitter.threads, type_.layout, axis)
            for axis in range(len(type_.shape))]
    where = ", ".join(f"%{width}d" for width in index_widths(type_.shape))
    for register, element in enumerate(registers):
        conversion, argument = printable(emitter, type_.dtype, element,
                                         attribute(op, "hexadecimal"))
        _print_row(emitter, f" idx ({where}){prefix}{conversion}",
                   [axis[register] for axis in axes], [argument])


def _print_row(emitter: Emitter, format_: str, index: list[str], arguments: list[str]) -> None:
    """Print one line.

    format_: what follows the program; index: of the element, i32; arguments: typed.
    """
    program = [emitter.block_id(axis) for axis, _ in enumerate(GRID_AXES)]
    print_line(emitter, f"pid (%d, %d, %d){format_}\n",
               [*(f"i32 {number}" for number in program + index), *arguments])


def _all(emitter: Emitter, conditions: Registers) -> str:
    result = conditions[0]
    for condition in conditions[1:]:
        result = emitter.body.binary("and", I1, result, condition)
    return result
