"""Code of reductions within each warp: in registers, then by shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.ops import finish_arg_reduce, partial_arg_reduce, partial_reduce
from blocknumba.gpu_layout.placement.reductions import (
    ReductionPlan, reduction_plan, registers_rise,
)
from blocknumba.nvvm_lower.elements import is_narrow, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1, I32
from blocknumba.nvvm_lower.ops.elementwise import element_code
from blocknumba.nvvm_lower.services.address import coordinates
from blocknumba.nvvm_lower.services.narrow_floats import narrow, widen
from blocknumba.nvvm_lower.services.shared_memory import from_lane_xor
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType, float32, int32
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce

T = TypeVar("T")
Indexed = tuple[str, str]  # a value, and its index

COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "fmax": "fmax",
           "fmin": "fmin", "and": "and", "or": "or", "xor": "xor"}


def reduced(emitter: Emitter, dtype: DType, x: Registers, layout: LinearLayout, axis: int,
            kind: str) -> Registers:
    """The combination of the registers and lanes of each group of the plan."""
    wide = float32 if is_narrow(dtype) else dtype
    if wide != dtype:
        x = [widen(emitter, dtype, value) for value in x]
    function = element_code(COMBINE[kind], wide)

    def combine(a: str, b: str) -> str:
        return function(emitter, wide, a, b)

    plan = reduction_plan(layout, axis)
    result = []
    for group in plan.groups:
        value = in_tree([x[register] for register in group], combine)
        for mask in plan.lane_masks:
            value = combine(value, from_lane_xor(emitter, wide, value, mask))
        result.append(value if wide == dtype else narrow(emitter, dtype, value))
    return result


def arg_reduced(emitter: Emitter, dtype: DType, x: Registers, indices: Registers,
                layout: LinearLayout, axis: int, kind: str,
                is_sorted: bool = False) -> tuple[Registers, Registers]:
    """Per group of the plan the best value and its index, an int32.

    is_sorted: the indices of each group's registers rise, as the plan lists them.
    """
    best = _Best(emitter, dtype, kind)
    plan: ReductionPlan = reduction_plan(layout, axis)
    values, found = [], []
    for group in plan.groups:
        pairs = [(x[register], indices[register]) for register in group]
        pair = in_tree(pairs, best.of_neighbours) if is_sorted else best.of_any(pairs)
        value, index = best.of_lanes(*pair, plan.lane_masks)
        values.append(value)
        found.append(index)
    return values, found


def in_tree(values: list[T], combine: Callable[[T, T], T]) -> T:
    """Combine neighbours, then pairs: short chains of dependence, small rounding errors.

    One half before the other, so that few results wait for others in registers.
    """
    if len(values) == 1:
        return values[0]
    half = 1 << (len(values) - 1).bit_length() - 1
    return combine(in_tree(values[:half], combine), in_tree(values[half:], combine))


class _Best:
    """The best of (value, index) pairs: a NaN beats a number, a lower index an equal.

    Either the best value is found first, and then the lowest index of those that are equal to it;
    or, if indices rise, one pair is compared with the next.
    """

    def __init__(self, emitter: Emitter, dtype: DType, kind: str):
        self._emitter, self._dtype = emitter, dtype
        self._compared = float32 if is_narrow(dtype) else dtype
        self._greater = "gt" if kind == "max" else "lt"
        self._better = element_code(COMBINE[kind], self._compared)

    def of_neighbours(self, first: Indexed, second: Indexed) -> Indexed:
        """The better of two, where the index of the second is the higher one."""
        body, dtype = self._emitter.body, self._compared
        a, b = self._wide(first[0]), self._wide(second[0])
        if dtype.is_float:
            type_ = register_type(dtype)
            not_less = body.compare(f"fcmp u{self._greater}", type_, b, a)  # true of a NaN
            wins = body.binary("and", I1, not_less, body.compare("fcmp ord", type_, a, a))
        else:
            wins = element_code(self._greater, dtype)(self._emitter, dtype, b, a)
        return (body.select(wins, register_type(self._dtype), second[0], first[0]),
                body.select(wins, I32, second[1], first[1]))

    def of_any(self, pairs: list[Indexed]) -> Indexed:
        """The best of registers in any order."""
        if len(pairs) == 1:
            return pairs[0]
        values = [self._wide(value) for value, _ in pairs]
        best = in_tree(values, self._of_values)
        indices = [self._if_best(value, best, index)
                   for value, (_, index) in zip(values, pairs, strict=True)]
        return self._narrow(best), in_tree(indices, self._lower)

    def of_lanes(self, value: str, index: str, masks: tuple[int, ...]) -> Indexed:
        """The best of the lanes that masks connect, in all of them."""
        if not masks:
            return value, index
        own = best = self._wide(value)
        for mask in masks:
            best = self._of_values(best, from_lane_xor(self._emitter, self._compared, best, mask))
        index = self._if_best(own, best, index)
        for mask in masks:
            index = self._lower(index, from_lane_xor(self._emitter, int32, index, mask))
        return self._narrow(best), index

    def _of_values(self, a: str, b: str) -> str:
        return self._better(self._emitter, self._compared, a, b)

    def _lower(self, a: str, b: str) -> str:
        return element_code("minimum", int32)(self._emitter, int32, a, b)

    def _if_best(self, value: str, best: str, index: str) -> str:
        """The index if the value is as good as the best, which is NaN if any value is."""
        body, dtype, type_ = self._emitter.body, self._compared, register_type(self._compared)
        is_best = element_code("eq", dtype)(self._emitter, dtype, value, best)
        if dtype.is_float:
            is_nan = body.compare("fcmp uno", type_, value, value)
            is_best = body.binary("or", I1, is_best, is_nan)
        return body.select(is_best, I32, index, str(int32.maximum))

    def _wide(self, value: str) -> str:
        return value if self._compared == self._dtype else widen(self._emitter, self._dtype, value)

    def _narrow(self, value: str) -> str:
        return value if self._compared == self._dtype else narrow(self._emitter, self._dtype, value)


@code(reduce, partial_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_ = op.x.type
    return reduced(emitter, type_.dtype, x, type_.layout, op.attrs["axis"], op.attrs["kind"])


@code(partial_arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> tuple[Registers, Registers]:
    type_, axis = op.x.type, op.attrs["axis"]
    indices = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, indices, type_.layout, axis, op.attrs["kind"],
                       registers_rise(type_.layout, axis))


@code(arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_, axis = op.x.type, op.attrs["axis"]
    indices = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, indices, type_.layout, axis, op.attrs["kind"],
                       registers_rise(type_.layout, axis))[1]


@code(finish_arg_reduce)
def _(emitter: Emitter, op: Op, values: Registers, indices: Registers) -> Registers:
    type_ = op.values.type
    return arg_reduced(emitter, type_.dtype, values, indices, type_.layout, op.attrs["axis"],
                       op.attrs["kind"])[1]
