"""Statements of products of matrices: along a depth of any length, of products, of chosen rows."""

from __future__ import annotations

import memory_statements
from kernel_parts import Input, statement
from kernel_recipes import ANY, Facts, Made, Variable
from numpy_tiles import DTYPES, FLOATS, INTS, is_float

_SUMS = {"int8": "int32", "float64": "float64"}
_LAYOUTS = ("c", "f", "offset", "pitched", "readonly", "flipped")


def _matrix(m, dtype, shape: tuple[int, ...]) -> Input:
    return m.new_input(shape, dtype, 3, _LAYOUTS)


def _rows(dtype) -> list[int]:
    """Numbers of rows; a warp alone has an instruction for each of its products of wide floats."""
    return [16, 32, 64, 64, *[128] * (dtype.itemsize <= 2)]


def _kept(m, total: str, dtype: str, shape: tuple[int, ...]) -> list[str]:
    """Store a tile that is larger than others may be, and go on with a part of it."""
    whole = Variable(total, DTYPES[dtype], shape, ANY)
    m.scope.variables.append(whole)
    lines = memory_statements.store(m, whole, ["p"], [m.programs])
    lines += m.bound(Made(f"bn.extract({total}, (0, 0), (16, 16))"))
    m.scope.variables.remove(whole)
    return lines


@statement(1.5)
def sum_over_spans(m):
    """The sum of the tiles of a row of any length."""
    if m.scope.depth:
        return None
    size, columns = m.pick([16, 64, 256]), m.pick([0, m.random.randint(1, 600)])
    dtype = m.pick([*FLOATS[2:], *INTS])
    x = m.new_input((m.programs, columns), dtype, 3, _LAYOUTS)
    name, total = m.new_name("r"), m.new_name("v")
    over = m.pick([f"bn.spans({x.name}.shape[1], {size})",
                   f"bn.spans({x.name}.shape[1], {size}, step={size // 2})",
                   f"bn.spans({x.name}.shape[1], {size}, start=4)"])
    facts = ANY if not is_float(x.dtype) else Facts(-3 * 80, 3 * 80)
    lines = [f"{total} = bn.zeros(({size},), bn.{x.dtype.name})", f"for {name} in {over}:",
             f"    {total} = {total} + {x.name}[p, {name}]"]
    m.scope.variables.append(Variable(total, x.dtype, (size,), facts))
    return lines


@statement(2)
def product_over_spans(m):
    """The product of two matrices, along a depth of any length."""
    if m.scope.depth:
        return None
    dtype, length = m.pick([*FLOATS, DTYPES["float16"], DTYPES["int8"]]), m.random.randint(1, 150)
    rows, columns, depth = m.pick(_rows(dtype)), m.pick([16, 32, 64]), m.pick([16, 32, 64])
    a = _matrix(m, dtype, (rows - m.pick([0, 0, 3]), length))
    b_text, b_shape = "{b}[{k}, bn.span(0, {n})]", (length, columns - m.pick([0, 0, 5]))
    if m.chance(0.3):
        b_text, b_shape = "{b}[bn.span(0, {n}), {k}].T", b_shape[::-1]
    b = _matrix(m, dtype, b_shape)
    sums = _SUMS.get(dtype.name, "float32")
    k, total = m.new_name("r"), m.new_name("v")
    lines = [f"{total} = bn.zeros(({rows}, {columns}), bn.{sums})",
             f"for {k} in bn.spans({a.name}.shape[1], {depth}):",
             f"    {total} = bn.dot({a.name}[bn.span(0, {rows}), {k}], "
             f"{b_text.format(b=b.name, k=k, n=columns)}, {total})"]
    return [*lines, *_kept(m, total, sums, (rows, columns))]


@statement(1)
def product_of_a_product(m):
    """(a @ b) @ c, the inner one in the dtype of the operands again."""
    if m.scope.depth:
        return None
    dtype = m.pick([*FLOATS, DTYPES["float16"], DTYPES["int8"]])
    rows, inner, columns = m.pick([16, 32, 64]), m.pick([16, 32, 64]), m.pick([16, 32])
    depth = 16 if dtype.name == "bfloat16" else m.pick([16, 32, 64])  # whole numbers to 256 fit
    a, b, c = (_matrix(m, dtype, shape) for shape in (
        (rows, depth), (depth, inner), (inner, columns)))
    first, total = m.new_name("v"), m.new_name("v")

    def whole(x: Input) -> str:
        return f"{x.name}[bn.span(0, {x.shape[0]}), bn.span(0, {x.shape[1]})]"
    lines = [f"{first} = bn.dot({whole(a)}, {whole(b)}).to(bn.{dtype.name})",
             f"{total} = bn.dot({first}, {whole(c)})"]
    return [*lines, *_kept(m, total, _SUMS.get(dtype.name, "float32"), (rows, columns))]


@statement(1)
def chosen_rows(m):
    """A loop of two products, of which the second takes what is positive of the first."""
    if m.scope.depth:
        return None
    dtype = m.pick([*FLOATS[:3], DTYPES["float16"]])
    rows, size = m.pick(_rows(dtype)), m.pick([16, 32, 64])
    width = 16 if dtype.name == "bfloat16" else m.pick([16, 32, 64])
    length = m.random.randint(1, 150)
    q, x, y = (_matrix(m, dtype, (n, width)) for n in (rows, length, length))
    k, total, score = m.new_name("r"), m.new_name("v"), m.new_name("s")
    columns = f"bn.span(0, {width})"
    lines = [f"{total} = bn.zeros(({rows}, {width}), bn.float32)",
             f"for {k} in bn.spans({x.name}.shape[0], {size}):",
             f"    {score} = bn.dot({q.name}[bn.span(0, {rows}), {columns}], "
             f"{x.name}[{k}, {columns}].T)",
             f"    {score} = bn.where({score} > {m.pick([0, 1, 'n'])}, {score}, 0)"
             f".to(bn.{dtype.name})",
             f"    {total} = bn.dot({score}, {y.name}[{k}, {columns}], {total})"]
    return [*lines, *_kept(m, total, "float32", (rows, width))]
