"""Ops that depend on the program or report to the programmer: ids, prints, assertions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blocknumba.errors import (
    BlockAssertionError, BlockError, BlockIndexError, Loc, UnsupportedError,
)
from blocknumba.tile_ir.interpreter.affine import Affine, Shadowed, Tile, constant, dense
from blocknumba.tile_ir.interpreter.machine import Machine
from blocknumba.tile_ir.interpreter.memory import OWNER_SHIFT, owners
from blocknumba.tile_ir.interpreter.shadows import MISSING
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ops import create, debug, map as scalar, memory


@create.program_id.interpreted
def _(machine: Machine, op: Op) -> Affine:
    return machine.program_ids(op.attrs["axis"])


@create.num_programs.interpreted
def _(machine: Machine, op: Op) -> Affine | None:
    return constant(machine.launch.grid[op.attrs["axis"]], np.dtype(np.int32))


@create.undefined.interpreted
def _(machine: Machine, op: Op) -> Tile:
    zeros = create.undefined.evaluate(**op.attrs)
    if not machine.launch.debug:
        return zeros
    return Shadowed(np.full(zeros.shape, MISSING, np.uint8), zeros, op)


@debug.print_.interpreted
def _(machine: Machine, op: Op, *values: Tile) -> None:
    arrays = [dense(value) for value in values]
    prefix, hexadecimal = op.attrs["prefix"], attribute(op, "hexadecimal")
    for position in range(len(machine)):
        for line in _printed(machine.program(position), prefix, hexadecimal,
                             [array[position if len(array) > 1 else 0] for array in arrays]):
            print(line, file=machine.launch.output)


def _printed(program: tuple[int, int, int], prefix: str, hexadecimal: bool,
             tiles: list[np.ndarray]) -> Iterator[str]:
    """The lines that one program prints."""
    if not tiles:
        yield debug.print_line(program, prefix)
    for number, tile in enumerate(tiles):
        operand = number if len(tiles) > 1 else None
        for index in np.ndindex(tile.shape):
            yield debug.print_line(program, prefix, index, tile.shape, tile[index], operand,
                                   hexadecimal)


@scalar.map_.interpreted
def _(machine: Machine, op: Op, mask: Tile, *tiles: Tile) -> tuple[np.ndarray, ...]:
    function = op.attrs["function"]
    mask, *operands = np.broadcast_arrays(*map(dense, (mask, *tiles)))
    if machine.launch.debug:
        _require_no_exception(machine, op, mask, operands)
    return scalar.mapped(function, mask, operands)


def _require_no_exception(machine: Machine, op: Op, mask: np.ndarray,
                          operands: list[np.ndarray]) -> None:
    """Errors: BlockError where a scalar function raises for an element."""
    function = op.attrs["function"]
    chosen = [operand[mask] for operand in operands]
    found = function.require_body().first_raised(chosen, int(mask.sum()))
    if found is None:
        return
    index, raised = found
    program, *element = map(int, np.argwhere(mask)[index])
    where = f", element {tuple(element)}" if element else ""
    raise BlockError(
        f"map: {function.name} raises {raised.message} in program {machine.program(program)}"
        f"{where}", loc=Loc(raised.file, raised.line, function=raised.function, caller=op.loc),
        hint="mask= leaves out elements for which it is not to be called")


@debug.assert_.interpreted
def _(machine: Machine, op: Op, condition: Tile) -> None:
    failed = ~dense(condition)
    if failed.any():
        position = tuple(map(int, np.argwhere(failed)[0]))
        element = f", element {position[1:]}" if len(position) > 1 else ""
        raise BlockAssertionError(
            f"{op.attrs['message'] or 'assert'}: false in program {machine.program(position[0])}"
            f"{element}")


@debug.assume.interpreted
def _(machine: Machine, op: Op, condition: Tile) -> None:
    if machine.launch.debug and not condition.all():
        position = int(condition.argmin())
        raise BlockAssertionError(f"assume: false in program {machine.program(position)}")


@memory.address.interpreted
def _(machine: Machine, op: Op, pointer: Tile) -> np.ndarray:
    """The address in bytes: the interpreter's own count elements."""
    given = dense(pointer)
    base = owners(given) << OWNER_SHIFT
    return base + (given - base) * op.pointer.type.dtype.pointee.bytes


@memory.pointer_at.interpreted
def _(machine: Machine, op: Op, address: Tile) -> np.ndarray:
    """The pointer to an element of an argument; of no array where it is none of their addresses.

    Errors: UnsupportedError for an address in an array of another dtype.
    """
    given = dense(address).astype(np.int64)
    of, dtype = owners(given), op.result.type.dtype.pointee
    base = of << OWNER_SHIFT
    for memory_ in machine.launch.memories:
        is_own = of == memory_.number
        if is_own.any() and memory_.elements.dtype != dtype.numpy:
            raise UnsupportedError(
                f"a pointer to {dtype}: given one to elements of {memory_.name}, which are "
                f"{memory_.elements.dtype}: not supported in the interpreter",
                hint="run it natively: without debug=True and BLOCKNUMBA_INTERPRET")
    return base + (given - base) // dtype.bytes


@debug.check_index.interpreted
def _(machine: Machine, op: Op, index: Tile, extent: Tile, mask: Tile | None = None) -> None:
    if not machine.launch.debug:
        return
    index, extent = np.broadcast_arrays(dense(index), dense(extent))
    wrong = (index < 0) | (index >= extent)
    if mask is not None:
        index, wrong = np.broadcast_arrays(index, wrong & dense(mask))
    if not wrong.any():
        return
    position = tuple(map(int, np.argwhere(wrong)[0]))
    shapes = {m.name: f" of shape {m.array.shape}" for m in machine.launch.memories}
    name, axis = op.attrs["array"], op.attrs["axis"]
    raise BlockIndexError(
        f"{name}: index {index[position]} is outside axis {axis}{shapes.get(name, '')}, "
        f"in program {machine.program(position[0])}, element {position[1:]} of the tile")
