"""Spans of arrays, and the loops that run over ranges, spans and tiles."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, int32, int64, uint64
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import function
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.functions.shape import as_scalar
from blocknumba.typing.static_values import static, static_int, static_shape
from blocknumba.typing.values import Iteration, LoopHints, Number, Span, unwrapped

MAX_STAGES = 16  # as of the option num_stages
MAX_SIZE = 1 << 30  # of a span: its indices are int32


@function
def span(context, start, size):
    """size elements of an axis from start on.

    start: int, at run time; size: a power of two, at compile time.

    Example:
    >>> @bn.jit
    ... def middle(x, out):
    ...     out[bn.span(0, 4)] = x[bn.span(3, 4)]
    >>> out = np.zeros(4, int)
    >>> _ = middle[1](np.arange(10), out)
    >>> out
    array([3, 4, 5, 6])
    """
    return make_span(context, start, size)


@function
def block(context, axis, size):
    """The size elements of an axis that are this program's: span(program_id(axis) * size, size).

    Example:
    >>> @bn.jit
    ... def double(x, BLOCK: bn.constexpr):
    ...     r = bn.block(0, BLOCK)
    ...     x[r] = x[r] * 2
    >>> x = np.arange(6)
    >>> _ = double[2](x, BLOCK=4)
    >>> x
    array([ 0,  2,  4,  6,  8, 10])
    """
    return make_span(context, _program_start(context, axis, size), size)


@function
def range_(context, start, stop=None, step=1, num_stages=None, loop_unroll_factor=None,
           flatten=False, warp_specialize=None, disallow_acc_multi_buffer=False,
           disable_licm=False, unroll=None):
    """Python's range, of ints known at run time.

    Its variable is a Python int, kept in int32, or in int64 where a bound needs it.
    num_stages: tiles in flight when the loop is pipelined, 1 to 16; unroll, or loop_unroll_factor:
    iterations per jump, 1 for a loop as it is written; warp_specialize: whether warps of their own
    fetch the tiles.  These and the other keywords, which are Triton's and ignored, are hints: they
    change no result.  Loops that are left by break or return take none.

    Example:
    >>> @bn.jit
    ... def powers(out, n):
    ...     for i in bn.range(n, unroll=1):
    ...         out[i] = i * i
    >>> out = np.zeros(5, int)
    >>> _ = powers[1](out, 5)
    >>> out
    array([ 0,  1,  4,  9, 16])
    """
    require(unroll is None or loop_unroll_factor is None,
            "range: given unroll and loop_unroll_factor, accepted one of them: they are the same")
    hints = _hints("range", num_stages, loop_unroll_factor if unroll is None else unroll,
                   warp_specialize)
    if stop is None:
        start, stop = 0, start
    start, stop, step = (as_scalar(context, bound) for bound in (start, stop, step))
    for bound in (start, stop, step):
        _require_int(bound)
    return _counted(context, _same, (), hints, (start, stop, step))


@function
def spans(context, stop, size, start=0, step=None, num_stages=None, warp_specialize=None,
          unroll=None):
    """A loop over the spans of size elements from start to stop, step (size) apart.

    The last one may reach beyond stop.  num_stages, warp_specialize, unroll: hints, as of range.

    Example:
    >>> @bn.jit
    ... def total(x, out):
    ...     sums = bn.zeros((4,), x.dtype)
    ...     for r in bn.spans(x.size, 4):
    ...         sums += x[r]
    ...     out[0] = bn.sum(sums)
    >>> out = np.zeros(1, int)
    >>> _ = total[1](np.arange(10), out)
    >>> out
    array([45])
    """
    length = _span_size("spans", size)
    hints = _hints("spans", num_stages, unroll, warp_specialize)
    return _counted(context, _span_at, (length,), hints,
                    (start, stop, length if step is None else step))


@function
def grid_spans(context, stop, size, axis=0, num_stages=None, warp_specialize=None, unroll=None):
    """A loop over the spans of size elements up to stop that are this program's.

    Program i of n takes the spans i, i + n, i + 2n ...
    num_stages, warp_specialize, unroll: hints, as of range.

    Example:
    >>> @bn.jit
    ... def owners(out):
    ...     for r in bn.grid_spans(out.size, 2):
    ...         out[r] = bn.program_id(0)
    >>> out = np.zeros(10, int)
    >>> _ = owners[3](out)
    >>> out
    array([0, 0, 1, 1, 2, 2, 0, 0, 1, 1])
    """
    length = _span_size("grid_spans", size)
    hints = _hints("grid_spans", num_stages, unroll, warp_specialize)
    start = _program_start(context, axis, size)
    programs = context.emit("num_programs", axis=static_int("grid_spans: axis", axis))
    step = _scaled(context, programs, length)
    return _counted(context, _span_at, (length,), hints, (start, stop, step))


@function
def persistent(context, shape, tile, group=8, num_stages=None, warp_specialize=None, unroll=None):
    """A loop over the (row span, column span) tiles of shape that are this program's.

    Tiles are taken in groups of `group` rows, so that programs that run together share operands.
    Program i of n takes the tiles i, i + n, i + 2n ...
    num_stages, warp_specialize, unroll: hints, as of range.

    Example:
    >>> @bn.jit
    ... def owners(out):
    ...     for rows, columns in bn.persistent(out.shape, (2, 2)):
    ...         out[rows, columns] = bn.program_id(0)
    >>> out = np.zeros((4, 4), int)
    >>> _ = owners[3](out)
    >>> out
    array([[0, 0, 2, 2],
           [0, 0, 2, 2],
           [1, 1, 0, 0],
           [1, 1, 0, 0]])
    """
    hints = _hints("persistent", num_stages, unroll, warp_specialize)
    require(isinstance(shape, tuple) and len(shape) == 2,
            "persistent: shape must be two ints, got {}", describe(shape))
    sizes = static_shape("persistent", tile)
    require(len(sizes) == 2, "persistent: tile must be two ints, got {}", sizes)
    rows, columns = (_tile_count(context, n, size) for n, size in zip(shape, sizes))
    count = context.emit("mul", rows, columns)
    start = context.emit("program_id", axis=0)
    step = context.emit("num_programs", axis=0)
    static = (*sizes, static_int("persistent: group", group))
    return _counted(context, _tile_at, static, hints, (start, count, step), (rows, columns))


def make_span(context: Context, start: object, size: object) -> Span:
    """A span, checked."""
    return Span(position(context, start), _span_size("span", size))


def _span_size(name: str, size: object) -> int:
    length = static_int(f"{name}: size", size)
    require(length <= MAX_SIZE, "{}: given a size of {}, accepted at most {}", name, length,
            MAX_SIZE, error=BlockValueError)
    require(length > 0 and length & length - 1 == 0, "{}: size must be a power of two, got {}",
            name, length, hint=f"the next valid size is {1 << max(length - 1, 0).bit_length()}; "
                               "what lies outside of the array reads as 0 and is not written")
    return length


def shift_span(context: Context, moved: Span, distance: object, backwards: bool = False) -> Span:
    """A span whose start is moved by distance."""
    start = binary(context, "sub" if backwards else "add", moved.start, position(context, distance))
    return Span(start, moved.size)


def span_index(context: Context, whole: Span) -> Value:
    """The indices in a span, as a tile."""
    offsets = context.emit("arange", start=0, size=whole.size)
    return context.emit("add", context.broadcast_to(whole.start, (whole.size,)),
                        context.cast(offsets, whole.start.type.dtype))


def span_stop(context: Context, whole: Span) -> Value:
    """The index after the last one in a span."""
    return binary(context, "add", whole.start, whole.size)


def _program_start(context: Context, axis: object, size: object) -> Value:
    program = context.emit("program_id", axis=static_int("block: axis", axis))
    return _scaled(context, program, _span_size("block", size))


def _hints(name: str, num_stages: object, unroll: object, warp_specialize: object) -> LoopHints:
    """The hints of a loop, checked."""
    if num_stages is not None:
        num_stages = static_int(f"{name}: num_stages", num_stages)
        require(1 <= num_stages <= MAX_STAGES, "{}: num_stages: given {}, accepted 1 to {}", name,
                num_stages, MAX_STAGES, error=BlockValueError)
    if unroll is not None:
        unroll = static_int(f"{name}: unroll", unroll)
        require(unroll > 0, "{}: unroll: given {}, accepted 1, which keeps the loop as it is "
                "written, or more", name, unroll, error=BlockValueError)
    if warp_specialize is not None:
        warp_specialize = bool(static(f"{name}: warp_specialize", warp_specialize))
    return LoopHints(num_stages, unroll, warp_specialize)


def _counted(context: Context, item, static: tuple, hints: LoopHints, bounds: tuple,
             extra: tuple = ()) -> Iteration:
    """A loop whose bounds have one dtype: int32, or int64 when one of them needs it."""
    name, step = "range" if item is _same else "spans", unwrapped(bounds[-1])
    require(not (isinstance(step, int) and step == 0), f"{name}: step must not be 0",
            error=BlockValueError)
    dtype, bounds = _bounds_dtype(bounds), map(unwrapped, bounds)
    if item is not _same:
        dtype = promotion.promote(dtype, context.index_dtype)
    values = (context.value(limited(context, bound), dtype, "range") for bound in bounds)
    return Iteration(item, static, hints, *values, extra)


def _bounds_dtype(bounds: tuple) -> DType:
    dtype = int32
    for bound in bounds:
        _require_int(bound)
        own = promotion.result_dtype((bound,))
        if own.bits == 64 or own.kind == "uint" and own.bits == 32:
            dtype = int64
    return dtype


def _require_int(bound: object) -> None:
    require(_is_int(bound), "range: given {}, accepted ints", describe(bound),
            hint="use int(...)" if promotion.is_number(bound) else loading_hint(bound))


def _is_int(bound: object) -> bool:
    bound = unwrapped(bound)
    if isinstance(bound, Value):
        return not bound.type.is_pointer and bound.type.is_scalar and bound.type.dtype.is_integer
    return isinstance(bound, int)


def position(context: Context, number: object) -> Value:
    """A position in an array, as a scalar of at least the width that the arrays need."""
    number = as_scalar(context, number)
    if not _is_int(number):
        raise BlockTypeError(f"span: given {describe(number)}, accepted an int")
    dtype = promotion.promote(context.index_dtype, _bounds_dtype((number,)))
    return context.value(limited(context, unwrapped(number)), dtype)


def limited(context: Context, number: object) -> object:
    """An int that is no greater than an int64 can be: unsigned ones do not become negative."""
    if isinstance(number, int) or number.type.dtype != uint64:
        return number
    return binary(context, "minimum", number, int64.maximum)


def _tile_count(context: Context, extent: object, size: int) -> Value:
    rounded = binary(context, "add", extent, size - 1)
    return context.value(binary(context, "floordiv", rounded, size), int32)


def _same(context: Context, iteration: Iteration, counter: Value) -> Number:
    return Number(counter)


def _span_at(context: Context, iteration: Iteration, counter: Value) -> Span:
    return Span(position(context, counter), *iteration.static_extra)


def _tile_at(context: Context, iteration: Iteration, counter: Value) -> tuple[Span, Span]:
    """The tile with number counter when tiles are taken in groups of rows."""
    height, width, group = iteration.static_extra
    rows, columns = iteration.extra
    index = context.cast(counter, int32)
    in_group = binary(context, "mul", columns, group)
    first = binary(context, "mul", binary(context, "floordiv", index, in_group), group)
    tall = binary(context, "minimum", binary(context, "sub", rows, first), group)
    rest = binary(context, "mod", index, in_group)
    row = binary(context, "add", first, binary(context, "mod", rest, tall))
    column = binary(context, "floordiv", rest, tall)
    starts = _scaled(context, row, height), _scaled(context, column, width)
    # counter is below rows * columns, so first is below rows
    context.nonnegative.update(starts)
    return Span(starts[0], height), Span(starts[1], width)


def _scaled(context: Context, number: Value, size: int) -> Value:
    """number * size as a position, so that it cannot overflow."""
    return binary(context, "mul", position(context, number), size)
