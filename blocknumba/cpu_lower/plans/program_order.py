"""The order in which programs run one after the other: neighbours in memory are neighbours in time.

    x[program_id(0) * 16 + i, program_id(1) * 256 + j]     along axis 0 a program moves by 16
                                                           rows, along axis 1 by 256 elements:
                                                           axis 1 runs fastest

What one program leaves in a cache, a page that it has touched and a stream that the processor
prefetches serve the next one.
"""

from __future__ import annotations

from blocknumba.cpu_lower.elements import size_bytes
from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.ir.function import Function, Value, walk
from blocknumba.tile_ir.ir.opdef import READS, WRITES

AXES = 3
Distance = tuple[int, int]  # factors that are not known, bytes besides


def program_order(fn: Function, affine: AffineExpressions) -> tuple[int, ...]:
    """The axes of the grid, the one that runs fastest first.

    An axis comes before another if its programs are closer in memory: the sum of its distances
    over all accesses is less, those with extents or strides as factors first.  Of axes that are
    as close, and in functions that print, the first one runs faster.  Axes that programs do not
    ask for come last.
    """
    if any(op.name == "print" for op in walk(fn.body)):
        return tuple(range(AXES))
    totals = [(0, 0)] * AXES
    for op in walk(fn.body):
        if not op.opdef.has(READS | WRITES):
            continue
        for pointer in (value for value in op.operands if value.type.is_pointer):
            found = affine[pointer]
            if isinstance(found, AffineExpression):
                totals = [(a + c, b + d) for (a, b), (c, d) in zip(
                    totals, (_distance(found, axis, pointer) for axis in range(AXES)))]
    used = {op.attrs["axis"] for op in walk(fn.body) if op.name == "program_id"}
    return tuple(sorted(range(AXES), key=lambda axis: (axis not in used, totals[axis])))


def _distance(address: AffineExpression, axis: int, pointer: Value) -> Distance:
    """The distance of an access in one program from that in the next one along an axis."""
    unknown = known = 0
    for monomial, coefficient in address.base.terms:
        dependent = [atom.value for atom in monomial if axis in _axes(atom.value)]
        # a quotient or a remainder of a program id moves by what is not known
        factors = len(monomial) - sum(value.owner.name == "program_id" for value in dependent)
        if dependent and factors:
            unknown += factors
        elif dependent:
            known += abs(coefficient) * size_bytes(pointer.type.dtype.pointee)
    return unknown, known


def _axes(value: Value) -> set[int]:
    """The axes of the grid whose program ids a scalar is made from."""
    found: set[int] = set()
    waiting, seen = [value], set()
    while waiting:
        owner = waiting.pop().owner
        if owner is None or owner in seen:
            continue
        seen.add(owner)
        if owner.name == "program_id":
            found.add(owner.attrs["axis"])
        waiting += owner.operands
    return found
