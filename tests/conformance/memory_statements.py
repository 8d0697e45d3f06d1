"""Statements that load, store and update memory, by spans, indices and pointers."""

from __future__ import annotations

import math
from dataclasses import replace

from kernel_parts import Input, Output, Parameter, statement
from kernel_recipes import ANY, Facts, Made, Variable, bn, places, with_zero
from numpy_tiles import BOOL, BYTE_FLOATS, FLOATS

MAX_AXES = 6  # of an array


@statement(9)
def load(m):
    """A tile of a new array, or of one that there is."""
    shape = m.pick([s for s in m.shapes if s or m.chance(0.3)] or m.shapes)
    known = [i for i in m.inputs
             if len(i.shape) == len(shape) + 1 and i.dtype not in BYTE_FLOATS]
    array = m.pick(known) if known and m.chance(0.3) else _around(m, shape)
    view, index = _place(m, array, shape)
    reference = f"{view}.at[{index}]"
    mask = m.any_of(lambda v: v.dtype == BOOL and v.shape == m.sample(f"{view}[{index}]").shape)
    other = m.pick([0, 1, 2])
    texts = [f"{view}[{index}]"]
    if array.dtype != BOOL:
        texts.append(f"bn.load({reference}, other={other})")
        if mask is not None:
            texts += [f"bn.load({reference}, mask={mask.name}, other={other})"] * 3
    elif mask is not None:
        texts.append(f"bn.load({reference}, mask={mask.name})")
    texts += _gathers(m, array, other)
    facts = array.facts
    if array.largest:
        facts = Facts(min(facts.low, 0), max(facts.high, other))
    return m.bound(Made(m.pick(texts), facts))


def _around(m, shape: tuple[int, ...], **options: object) -> Input:
    """A new array of about the extents of a tile, with an axis of programs."""
    extents = [max(n + m.pick([0, 0, 0, 3, -1, -n // 2]), m.pick([1, 1, 1, 0])) for n in shape]
    return m.new_input((m.pick([1, 3, 5]), *extents), **options)


@statement(2)
def load_of_bytes(m):
    """A tile of 8-bit floats, as wider ones."""
    shape = m.pick([s for s in m.shapes if s] or [(16,)])
    array = _around(m, shape, dtype=m.pick(BYTE_FLOATS), largest=m.pick([0, 3, 8]))
    view, index = _place(m, array, shape)
    return m.bound(Made(f"{view}[{index}].to({bn(m.pick(FLOATS))})", array.facts))


@statement(1)
def store_of_bytes(m):
    """A tile as 8-bit floats in an array of its own."""
    x = m.any_of(lambda v: v.shape and v.is_float)
    if x is None or m.scope.depth or m.scope.in_function:
        return None
    dtype = m.pick(BYTE_FLOATS)
    out = m.new_output(dtype, (m.programs, *x.shape))
    return [f"{out.name}[{', '.join(['p', *m.spans(x.shape)])}] = {x.name}.to({bn(dtype)})"]


def _place(m, array: Input | Output, shape: tuple[int, ...]) -> tuple[str, str]:
    """The texts of a view of an array, and of the index of a tile of it."""
    first = m.pick([*m.numbers, *m.numbers, "-1"])
    spans = m.spans(shape, ["0", "0", "0", *m.numbers, "1", "4"])
    kind = m.random.random()
    if kind < 0.1 and array.shape[0] and shape:
        return f"{array.name}[{m.pick(m.numbers)} % {array.shape[0]}]", ", ".join(spans)
    if kind < 0.2:
        return f"{array.name}.T", ", ".join([*spans[::-1], first])
    if kind < 0.35 and shape:
        cuts = [_slice(m) for _ in array.shape]
        return f"{array.name}[{', '.join(cuts)}]", ", ".join([first, *spans])
    return array.name, ", ".join([first, *spans])


def _slice(m) -> str:
    """The text of a slice, of a length that is known or not, and is not that of a tile."""
    number = m.pick(m.numbers)
    return m.pick([":", ":", "1:", ":-1", f"{number}:", "::-1", f":{m.pick(m.unknown_numbers)} + 9",
                   ":11", "1:13", f"{number}:{number} + 11"])


def _gathers(m, array: Input, other: int) -> list[str]:
    """Loads from an array by a tile of ints."""
    texts, size = [], math.prod(array.shape)
    index = m.any_of(lambda v: v.is_int and v.shape)
    if index is None:
        return []
    if len(array.shape) == 2:
        texts.append(f"{array.name}[{m.pick(m.numbers)}, {index.name}]")
    if len(array.shape) == 3:
        second = m.like(index, lambda v: v.is_int)
        texts.append(f"{array.name}[{m.pick(m.numbers)}, {index.name}, {second.name}]")
    if array.layout in ("c", "offset", "readonly") and size >= 256 and (
            index.dtype.name in ("int32", "int64")):
        texts += [f"bn.load({array.name} + {index.name} % {size})",
                  f"bn.load({array.name} + {index.name} % 256, mask={index.name} > 2, "
                  f"other={other})"]
    return texts


@statement(3)
def load_by_strides(m):
    """A tile of pointers into an array of any layout, with the mask of its bounds."""
    shape = m.pick([s for s in m.shapes if 0 < len(s) < 3] or [(16,), (8, 4)])
    array = _around(m, shape)
    pointers, mask = _pointers(m, array, "0", shape)
    if not array.shape[0]:
        return None
    other = m.pick([0, 1])
    facts = array.facts
    if array.largest:
        facts = Facts(min(facts.low, 0), max(facts.high, other))
    more = m.any_of(lambda v: v.dtype == BOOL and v.shape == shape)
    if more is not None and m.chance(0.3):
        mask = f"{mask} & {more.name}"
    fill = f", other={other}" if array.dtype != BOOL else ""
    return m.bound(Made(f"bn.load({pointers}, mask={mask}{fill})", facts))


def _pointers(m, array: Input | Output, first: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """The texts of pointers to a tile of a row of an array, and of the mask of its bounds."""
    offsets, inside = [f"{first} * {array.name}.strides[0]"], []
    for axis, extent in enumerate(shape):
        index = f"bn.arange(0, {extent})"
        if m.chance(0.3):
            index = f"({index} + {m.pick([0, 1, 4])})"
        wide = ".to(bn.int64)" if m.chance(0.2) else ""
        if len(shape) > 1:
            index += f"[{', '.join(':' if a == axis else 'None' for a in range(len(shape)))}]"
        offsets.append(f"{index}{wide} * {array.name}.strides[{axis + 1}]")
        bound = m.pick([array.shape[axis + 1], f"{array.name}.shape[{axis + 1}]"])
        inside.append(f"({index} < {bound})")
    return f"{array.name} + ({' + '.join(offsets)})", f"({' & '.join(inside)})"


def store(m, x: Variable, first: list[str], extents: list[int]) -> list[str]:
    """x goes to an array of its own, where one of so many axes may be."""
    if len(first) + len(x.shape) > MAX_AXES:
        return []
    cut = tuple(max(n - m.pick([0, 0, 0, 1]), 1) for n in x.shape)
    spans = [f"bn.span(0, {n})" for n in x.shape]
    kind = m.random.random()
    if kind < 0.1 and cut == x.shape and len(first) == 1 and len(x.shape) == 1:
        out = m.new_output(x.dtype, (*extents, *cut), x.facts, layouts=("c", "offset"))
        return [f"bn.store({out.name} + p * {x.size} + bn.arange(0, {x.size}), {x.name})"]
    out = m.new_output(x.dtype, (*extents, *cut), x.facts)
    if kind < 0.2 and len(first) == 1 and 0 < len(x.shape) < 3:
        pointers, mask = _pointers(m, out, "p", x.shape)
        return [f"bn.store({pointers}, {x.name}, mask={mask})"]
    index = ", ".join([*first, *spans])
    mask = m.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
    if mask is not None and m.chance(0.3):
        return [f"bn.store({out.name}.at[{index}], {x.name}, mask={mask.name})"]
    if kind < 0.3 and x.shape:
        return [f"{out.name}[{', '.join(first)}][{', '.join(spans)}] = {x.name}"]
    if kind < 0.4 and x.shape:
        backwards = ", ".join([*spans[::-1], *first[::-1]])
        return [f"{out.name}.T[{backwards}] = {x.name}.T"]
    return [f"{out.name}[{index}] = {x.name}"]


@statement(3)
def store_and_load(m):
    """What was stored is read again, elsewhere and under another name too."""
    x = m.any_of(lambda v: v.shape, near=True)
    if x is None or m.scope.in_function:
        return None
    facts = x.facts if not x.is_whole else with_zero(x.facts)
    out = m.new_output(x.dtype, (m.programs, *x.shape), facts)
    if x.is_whole:  # what is not written is a small number
        facts = Facts(min(facts.low, 0), max(facts.high, 9))
    name = out.name
    if m.chance(0.4):
        name = m.new_name("again")
        m.aliases[name] = Parameter(name, (out.name,), cut=_cut(m, x))
    spans = m.spans(x.shape)
    moved = m.spans(x.shape, ["0", "0", "1", *m.numbers])
    mask = m.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
    write = f"{out.name}[{', '.join(['p', *spans])}] = {x.name}"
    if mask is not None and m.chance(0.3):
        write = f"bn.store({out.name}.at[{', '.join(['p', *spans])}], {x.name}, mask={mask.name})"
    before = []
    if m.chance(0.4):
        before = m.bound(Made(f"{name}[{', '.join(['p', *spans])}]", replace(
            ANY, ulps=facts.ulps, absolute=facts.absolute)))
    return [*before, write, *m.bound(Made(f"{name}[{', '.join(['p', *moved])}]", facts))]


def _cut(m, x: Variable) -> tuple[slice, ...]:
    """The slices of an output of x that make another array of it; () for all of it."""
    every = slice(None)
    if m.chance(0.4):
        return ()
    cuts = [every, every, slice(None, None, -1), slice(1, None), slice(None, None, 2)]
    return (every, *(m.pick(cuts) for _ in x.shape))


@statement(2)
def moved_in_place(m):
    """An array's elements go to other places of it, one after the other or at once."""
    x = m.any_of(lambda v: v.shape and v.size <= 256)
    if x is None or m.scope.in_function:
        return None
    steps = m.random.randint(1, 3)
    out = m.new_output(x.dtype, (m.programs, x.shape[0] + steps, *x.shape[1:]))
    rest, i = m.spans(x.shape[1:]), m.new_name("i")

    def place(start: str) -> str:
        return f"{out.name}[{', '.join(['p', f'bn.span({start}, {x.shape[0]})', *rest])}]"
    old, new = m.shuffled([place(i), place(f"{i} + 1")])
    symbol = "^" if x.dtype == BOOL else "+"
    before = [f"{place('0')} = {x.name}"] if m.chance(0.5) else []
    return [*before, f"for {i} in range({steps}):", f"    {new} = {old} {symbol} {x.name}"]


# atomics --------------------------------------------------------------------------------------

@statement(2)
def atomic(m):
    """An update of an array by all programs, whose order does not count."""
    x = m.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4 and v.shape)
    if x is None:
        return None
    name = m.pick(["add", "max", "min", "and", "or", "xor"])
    mask = m.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
    masked = f", mask={mask.name}" if mask is not None and m.chance(0.4) else ""
    index = m.like(x, lambda v: v.is_int and v.shape == x.shape)
    bins = m.pick([1, 8, 100])
    out = m.new_output(x.dtype, (bins,), zeros=True)
    return [f"bn.atomic_{name}({out.name}.at[{places(index, bins)}], {x.name}{masked})"]


@statement(2)
def read_atomic(m):
    """An update of elements that no other program has, and what they were before."""
    x = m.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4 and v.shape)
    if x is None:
        return None
    out = m.new_output(x.dtype, (m.programs, *x.shape))
    at = ", ".join(["p", *m.spans(x.shape)])
    name = m.pick(["add", "max", "min", "and", "or", "xor", "xchg", "cas"])
    value = x.name if name != "cas" else f"3, {x.name}"
    mask = m.any_of(lambda v: v.dtype == BOOL and v.shape == x.shape)
    masked = f", mask={mask.name}" if mask is not None and name != "cas" and m.chance(0.3) else ""
    return m.bound(Made(f"bn.atomic_{name}({out.name}.at[{at}], {value}{masked})"))


@statement(1)
def ticket(m):
    """One element that a program updates again and again, and what it was."""
    x = m.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4 and not v.shape)
    if x is None:
        return None
    out = m.new_output(x.dtype, (m.programs,))
    name = m.pick(["add", "max", "xor", "xchg"])
    return [f"bn.atomic_{name}({out.name}.at[p], {x.name})",
            *m.bound(Made(f"bn.atomic_{name}({out.name}.at[p], {x.name})"))]
