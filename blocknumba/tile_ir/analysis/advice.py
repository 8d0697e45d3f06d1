"""Advice on the way a kernel is written: what is slow, where, and what to write instead.

Told by `compiled.stats`; nothing is decided by it.  A rule looks at the optimised tile IR:

    y[i] = x[i] * 2, i an int      a program's largest tile has size 1: take larger ones ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from blocknumba.tile_ir.analysis.axis_info import axis_info
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, walk
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, float64
from blocknumba.tile_ir.ir.uses import is_computed_from, is_loop
from blocknumba.tile_ir.ops.create import program_id
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.elementwise import floordiv, mod
from blocknumba.tile_ir.ops.memory import load, store
from blocknumba.wording import file_name

Arguments = Mapping[str, Argument]  # of the kernel, by name
MIN_ELEMENTS = 64  # of a program's largest tile, on the GPU two for each lane
VECTOR_BYTES = 16  # CUDA Programming Guide, 'Device Memory Accesses': the widest access of a thread


@dataclass(frozen=True)
class Spelling:
    """Code to write in the language of a kernel.

    programs: for many of them.  loop, tile: over tiles, and of a size.  float32: instead of
    float64.  contiguous: outside of the kernel, of an array's name.
    """

    programs: str
    loop: str
    tile: str
    float32: str
    contiguous: str


NUMPY = Spelling(
    "bn.block(0, SIZE) or bn.grid_spans(n, SIZE)",
    "for r in bn.spans(n, 1024), and index with r", "bn.block(0, 1024)",
    "a number by np.float32(...), or x.astype(np.float32)", "np.ascontiguousarray({})")
TRITON = Spelling(
    "tl.program_id(0)", "for start in range(0, n, 1024), and add tl.arange(0, 1024)",
    "tl.arange(0, 1024)", "x.to(tl.float32)", "{}.contiguous()")


def advice(fn: Function, arguments: Arguments, spelling: Spelling = NUMPY) -> tuple[str, ...]:
    """A line for each habit that is found: its place, what is slow and what to write."""
    found = (*_sizes(fn, spelling), *_doubles(fn, spelling), *_strides(fn, arguments, spelling))
    return tuple(dict.fromkeys(f"{file_name(op.loc.file)}:{op.loc.line}  {what}"
                               for op, what in found))


def advice_on_alignment(fn: Function, arguments: Arguments) -> Iterator[str]:
    """A line for each array whose rows do not begin as a GPU's accesses want."""
    found, accessed = origins(fn), [op for op in _accesses(fn.body) if _size(op) >= MIN_ELEMENTS]
    for name in sorted(frozenset().union(*(found.get(op.pointer, ()) for op in accessed))):
        array = arguments.get(name)
        if not isinstance(array, ArrayArgument) or 1 not in array.strides:
            continue
        if array.alignment < VECTOR_BYTES or any(
                divisor * array.dtype.bytes % VECTOR_BYTES for divisor, stride
                in zip(array.stride_divisibility, array.strides) if stride != 1):
            yield (f"rows of {name} begin at no multiple of {VECTOR_BYTES} bytes, so that accesses "
                   f"are narrow: pad them to multiples of {VECTOR_BYTES // array.dtype.bytes} "
                   "elements, and copy an array that is a part of another")


def _sizes(fn: Function, spelling: Spelling) -> Iterator[tuple[Op, str]]:
    """Loops that one program does alone or element by element, and programs without loops."""
    ops = list(walk(fn.body))
    is_shared = any(op.opdef is program_id for op in ops)
    loops = [(op, inner) for op in filter(is_loop, ops)
             if (inner := [each for region in op.regions for each in _accesses(region)])]
    if loops and not is_shared:
        yield loops[0][0], ("one program does all of the loop: share it with more programs, by "
                            f"{spelling.programs}")
    for _, inner in loops:
        if all(_size(op) == 1 for op in inner):
            yield inner[0], ("the loop moves one element at a time: loop over tiles, "
                             f"{spelling.loop}")
            return
    largest = max(_accesses(fn.body), key=_size, default=None)
    if (is_shared and largest and _size(largest) < MIN_ELEMENTS
            and not any(op.opdef is dot or is_loop(op) for op in ops)):
        yield largest, (f"a program's largest tile has size {_size(largest)}: take larger ones, "
                        f"{spelling.tile}, or several rows at once, (16, 64)")


def _doubles(fn: Function, spelling: Spelling) -> Iterator[tuple[Op, str]]:
    """The first tile of float64, where no array has that."""
    if any(arg.type.dtype.pointee == float64 for arg in fn.body.args if arg.type.is_pointer):
        return
    yield from [(op, f"float64, which no array has: {spelling.float32}, keeps float32")
                for op in walk(fn.body)
                if any(x.type.dtype == float64 and x.type.size > 1 for x in op.results)][:1]


def _strides(fn: Function, arguments: Arguments,
             spelling: Spelling) -> Iterator[tuple[Op, str]]:
    """Tiles whose elements lie apart in memory, as strides and spans say alone."""
    infos, arrays = axis_info(fn), origins(fn)
    computed = [op for op in walk(fn.body) if op.opdef in (load, floordiv, mod)]
    for op in _accesses(fn.body):
        if (_size(op) < MIN_ELEMENTS or any(axis.contiguity > 1 or axis.constancy > 1
                                            for axis in infos[op.pointer].axes)
                or any(is_computed_from(op.pointer, source) for source in computed)):
            continue
        for name in sorted(arrays.get(op.pointer, ())):
            has_unit_stride = 1 in getattr(arguments.get(name), "strides", (1,))
            yield op, (f"elements of {name} are not side by side in the tile, so that each is an "
                       "access of its own: " + (
                           "let the tile extend along the axis where they are, such as (32, 32)"
                           if has_unit_stride else f"pass {spelling.contiguous.format(name)}"))


def _accesses(region: Region) -> list[Op]:
    return [op for op in walk(region) if op.opdef in (load, store)]


def _size(access: Op) -> int:
    return prod(access.pointer.type.shape)
