"""Code of ops for the programmer: printing, assertions, hints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1
from blocknumba.nvvm_lower.ops.memory import does_work
from blocknumba.nvvm_lower.services.address import coordinates, special_register
from blocknumba.nvvm_lower.services.system_calls import fail_unless, print_line, printable
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.debug import assert_, assume, check_index, hint, print_

_GRID_AXES = "xyz"


@code(hint)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    return x


@code(assume)
def _(emitter: Emitter, op: Op, condition: Registers) -> None:
    emitter.body.call("void", "llvm.assume", f"{I1} {condition[0]}")


@code(assert_)
def _(emitter: Emitter, op: Op, condition: Registers) -> None:
    fail_unless(emitter, _all(emitter, condition), op.attrs["message"] or "assertion failed",
                op.loc)


@code(check_index)
def _(emitter: Emitter, op: Op, indices: Registers, extents: Registers,
      masks: Registers | None = None) -> None:
    """Taken as unsigned, a negative index is greater than every extent."""
    body, dtype = emitter.body, op.operands[0].type.dtype
    holds = [body.compare("icmp ult", f"i{dtype.bits}", index, extent)
             for index, extent in zip(indices, extents, strict=True)]
    if masks is not None:
        holds = [body.binary("or", I1, inside, body.binary("xor", I1, mask, "true"))
                 for inside, mask in zip(holds, masks, strict=True)]
    message = f"index out of range of axis {op.attrs['axis']} of {op.attrs['array']}"
    fail_unless(emitter, _all(emitter, holds), message, op.loc)


@code(print_)
def _(emitter: Emitter, op: Op, *values: Registers) -> None:
    """A line per element, by the one thread that acts for it, as print_line has it."""
    prefix = str(op.attrs["prefix"]).replace("%", "%%")
    if not values:
        _print_by(emitter, emitter.threads.is_first, partial(_print_row, emitter, [], prefix, []))
    for place, (value, registers) in enumerate(zip(op.operands, values, strict=True)):
        number = f"(operand {place}) " if len(values) > 1 else ""
        _print_by(emitter, does_work(emitter, value),
                  partial(_print_tile, emitter, op, value, registers, f"{prefix}: {number}"))


def _print_by(emitter: Emitter, predicate: str, print_: Callable[[], None]) -> None:
    """Print in the threads for which an i1 holds; "" stands for all."""
    body = emitter.body
    then, done = body.new_label("print"), body.new_label("printed")
    body.branch_if(predicate or "true", then, done)
    body.place(then)
    with body.scope():
        print_()
        body.branch(done)
    body.place(done)


def _print_tile(emitter: Emitter, op: Op, value: Value, registers: Registers,
                prefix: str) -> None:
    type_ = value.type
    axes = [coordinates(emitter.body, emitter.threads, type_.layout, axis)
            for axis in range(len(type_.shape))]
    for register, element in enumerate(registers):
        conversion, argument = printable(emitter, type_.dtype, element,
                                         attribute(op, "hexadecimal"))
        _print_row(emitter, [axis[register] for axis in axes], prefix + conversion, [argument])


def _print_row(emitter: Emitter, index: list[str], form: str, arguments: list[str]) -> None:
    """One line.  index: of the element; form: what follows, with the typed arguments it shows."""
    program = [special_register(emitter.body, f"ctaid.{axis}") for axis in _GRID_AXES]
    where = ", ".join(["%d"] * len(index))
    print_line(emitter, f"pid (%d, %d, %d) idx ({where}) {form}\n",
               [*(f"i32 {number}" for number in program + index), *arguments])


def _all(emitter: Emitter, conditions: Registers) -> str:
    result = conditions[0]
    for condition in conditions[1:]:
        result = emitter.body.binary("and", I1, result, condition)
    return result
