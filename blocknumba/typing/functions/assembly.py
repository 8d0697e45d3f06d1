"""Inline PTX in a kernel."""

from __future__ import annotations

from functools import partial

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, PointerType, int64
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.memory import as_pointer
from blocknumba.typing.static_values import static, static_dtype, static_int
from blocknumba.typing.values import unwrapped


@function
def inline_asm_elementwise(context, asm, constraints, args, dtype, is_pure, pack):
    """The results of PTX for each element of args, on a GPU or in the emulator.

    asm: the text, $0, $1 ... being the results' registers and then the operands'.
    constraints: a letter for each, results first and with "=": "=r,r,f".  h, r and l are 16, 32
    and 64 bits, f and d float and double.  "~{memory}" at the end: memory, too.
    args: a tuple of tiles and scalars, broadcast together; pointers, and arrays, which are the
    pointers to their first elements, are their addresses, 64 bits.  Without any the result is a
    scalar, in each thread what the text gives there.
    dtype: of the result, or a tuple of them for several; of pointers the type that x.dtype of one
    is, and the text makes addresses.   is_pure: whether the text has no effect but its results;
    else it runs as often as it is written, in order.
    pack: elements of each operand that one run of the text takes; elements of less than 32 bits are
    packed into 32-bit registers.
    Errors: UnsupportedError on the CPU; constraints that do not fit the operands.
    Source: Triton's inline_asm_elementwise; PTX ISA.

    Example:
    >>> @bn.jit
    ... def reverse(x):
    ...     r = bn.span(0, 4)
    ...     x[r] = bn.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", (x[r],), bn.int32, True, 1)
    >>> compiled = bn.compile(reverse, ("i32[::1]",), target="sm_90a")
    >>> "brev.b32" in compiled.asm["ptx"]
    True
    """
    name = "inline_asm_elementwise"
    texts = {what: static(f"{name}: {what}", given)
             for what, given in (("asm", asm), ("constraints", constraints))}
    for what, given in texts.items():
        require(isinstance(given, str), "{}: {}: given {}, accepted a text", name, what,
                describe(given))
    operands = args if isinstance(args, tuple) else (args,)
    if not operands:  # one of which the text knows nothing lets there be a scalar
        operands, texts["constraints"] = (0,), _with_an_operand(texts["constraints"])
    values = [_operand(context, operand, name) for operand in operands]
    dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
    count = static_int(f"{name}: pack", pack)
    require(count > 0 and count & count - 1 == 0, "{}: pack: given {}, accepted a power of two",
            name, count, error=BlockTypeError)
    made = context.emit(
        "inline_asm", *context.broadcast_together(values, name), assembly=texts["asm"],
        constraints=texts["constraints"],
        dtypes=tuple(_register_dtype(name, each).name for each in dtypes), pack=count,
        pure=bool(static(f"{name}: is_pure", is_pure)))
    results = tuple(map(partial(_result, context), made if isinstance(made, tuple) else (made,),
                        dtypes))
    return results if isinstance(dtype, tuple) else results[0]


def _register_dtype(name: str, dtype: object) -> DType:
    """The dtype of what the text makes: int64 of a pointer."""
    return int64 if isinstance(dtype, PointerType) else static_dtype(name, dtype)


def _result(context: Context, made: Value, dtype: object) -> Value:
    """A result as the kernel asked for it."""
    if isinstance(dtype, PointerType):
        return context.emit("pointer_at", made, dtype=dtype.pointee.name)
    return made


def _with_an_operand(constraints: str) -> str:
    """Constraints of results alone, with an operand of 32 bits behind them."""
    letters = [letter.strip() for letter in constraints.split(",")]
    results = [letter for letter in letters if letter.startswith("=")]
    return ",".join([*results, "r", *letters[len(results):]])


def _operand(context: Context, given: object, name: str) -> Value:
    """An operand as a tile or a scalar; the address of a pointer."""
    pointer = as_pointer(context, given)
    if pointer is not None:
        return context.emit("address", pointer)
    require_numbers(name, given)
    return context.value(unwrapped(given), what=name)
