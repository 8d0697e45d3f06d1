"""The dots of a function, as far as the number of warps for them depends on them.

    for k in bn.spans(x.shape[1], BK):     dots      one of BM x BN sums
        sums += x[m, k] @ w[k, n]          computed  0: operands are loaded
    out[m, n] = sums                       chains    none    walks  no: stores after the loop

All extents may be arrays, of several candidates of tiles (`dispatch/tiles/scaling.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS, words
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.uses import is_computed_from, is_loop
from blocknumba.tile_ir.ops.dot import dot, is_ieee_float32
from blocknumba.tile_ir.ops.memory import load, store

Numbers = float | np.ndarray


@dataclass(frozen=True, slots=True)
class Product:
    """A dot.

    batches, rows, columns: extents of its sums.
    sum_words: of one sum; narrow ones take a word.
    is_ieee_float32: whether tensor cores would round its operands.
    """

    batches: Numbers
    rows: Numbers
    columns: Numbers
    sum_words: int
    is_ieee_float32: bool

    @property
    def words(self) -> Numbers:
        """Registers of its sums, all threads together."""
        return self.batches * self.rows * self.columns * self.sum_words


@dataclass(frozen=True, slots=True)
class Products:
    """The dots of a function.

    dots: all of them, in order.
    chains: indices of the first and the second dot of each loop, where every loop chains two, as in
        attention; else empty.
    computed: words of the largest operand that a program computes from several loaded tiles, such
        as weights of few bits with their scales; 0 if there is none.
    walks: whether a loop around a dot stores too: a program makes tile after tile.
    """

    dots: tuple[Product, ...]
    chains: tuple[tuple[int, int], ...]
    computed: Numbers
    walks: bool

    def rebuilt(self, function: Callable[[Numbers], Numbers]) -> Products:
        """With function(number) for every number that depends on extents."""
        return replace(self, computed=function(self.computed), dots=tuple(
            replace(one, batches=function(one.batches), rows=function(one.rows),
                    columns=function(one.columns)) for one in self.dots))


def products(fn: Function) -> Products:
    """The dots of a function."""
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    loops = [op for op in walk(fn.body) if is_loop(op)]
    # a loop around such a loop walks over tiles, and its program is often alone
    pairs = [pair for loop in loops if (pair := chained_dots(
        [op for op in loop.regions[0].ops if op.opdef is dot])) is not None]
    index = {op: number for number, op in enumerate(dots)}
    chains = tuple((index[first], index[second]) for first, second in pairs)
    return Products(
        tuple(map(_product, dots)), chains if len(pairs) == len(loops) else (),
        _computed_words(dots),
        any({dot, store} <= {op.opdef for op in walk(loop.regions[0])} for loop in loops))


def chained_dots(dots: Sequence[Op]) -> tuple[Op, Op] | None:
    """The two dots of a loop of which the second reads what is computed from the first's result.

    dots: those of the loop, or the instructions that they became.   None if they are no such two.
    """
    if len(dots) != 2 or not is_computed_from(dots[1].a, dots[0]):
        return None
    return dots[0], dots[1]


def _product(op: Op) -> Product:
    *batches, rows, columns = op.result.type.shape
    return Product(float(np.prod(batches)), float(rows), float(columns),
                   max(op.result.type.dtype.bits // WORD_BITS, 1), is_ieee_float32(op))


def _computed_words(dots: list[Op]) -> float:
    """Words of the largest operand that is computed from several loaded tiles."""
    loaded = {value: _loaded(value) for op in dots for value in (op.a, op.b)}
    return float(max((words(value.type) for value, loads in loaded.items() if len(loads) > 1),
                     default=0))


def _loaded(value: Value) -> set[Op]:
    """The loads of tiles that a value is computed from in its region; none if from a dot too."""
    waiting, seen = [value], set()
    while waiting:
        op = waiting.pop().owner
        if op is None or op in seen:
            continue
        if op.opdef is dot:
            return set()
        seen.add(op)
        waiting += () if op.opdef is load or op.regions else op.operands
    return {op for op in seen if op.opdef is load and op.result.type.shape}
