"""Recipes of expressions that move elements, or make them."""

from __future__ import annotations

import math

from kernel_recipes import (
    ANY, MAX_RANK, Facts, Made, bn, places, recipe, with_zero,
)
from numpy_tiles import BOOL, FLOATS, INTS


@recipe(4)
def reshaped(m):
    x = m.any_of(lambda v: v.shape, near=True)
    if x is None:
        return None
    shape = m.factors(x.size)
    text = m.pick([f"bn.reshape({x.name}, {shape})", f"bn.ravel({x.name})",
                   f"{x.name}[None]" if len(x.shape) < MAX_RANK else f"bn.view({x.name}, {shape})"])
    return Made(text, x.facts)


@recipe(4)
def permuted(m):
    x = m.any_of(lambda v: len(v.shape) > 1, near=True)
    if x is None:
        return None
    order = m.shuffled(range(len(x.shape)))
    first, second = m.axis(x), m.axis(x)
    return Made(m.pick([f"bn.permute({x.name}, {order})", f"bn.trans({x.name})",
                        f"bn.swapaxes({x.name}, {first}, {second})", f"{x.name}.T"]), x.facts)


@recipe(4)
def moved(m):
    x = m.any_of(lambda v: v.shape, near=True)
    if x is None:
        return None
    axis = m.axis(x)
    shift = m.pick([m.random.randint(-3, 3), *m.numbers])
    return Made(m.pick([f"bn.flip({x.name}, {axis})", f"bn.roll({x.name}, {shift}, {axis})",
                        f"bn.roll({x.name}, {shift})"]), x.facts)


@recipe(2)
def more_axes(m):
    x = m.any_of(lambda v: len(v.shape) < MAX_RANK, near=True)
    if x is None:
        return None
    axis = m.random.randint(0, len(x.shape))
    wide = (m.pick([2, 4]), *x.shape)
    choices = [f"bn.broadcast_to({x.name}, {wide})"] if x.size * 4 <= m.max_size else []
    if x.shape:
        choices.append(f"bn.expand_dims({x.name}, {axis})")
    if 1 in x.shape and x.size > 1:
        choices += [f"bn.squeeze({x.name})"] * 2
    return Made(m.pick(choices), x.facts) if choices else None


@recipe(3)
def sliced(m):
    x = m.any_of(lambda v: any(n > 1 for n in v.shape), near=True)
    if x is None:
        return None
    axis = m.pick([i for i, n in enumerate(x.shape) if n > 1])
    extent = x.shape[axis]
    own = m.pick(["::2", "1::2", "::-1", f":{extent // 2}", f"{extent // 2}:",
                  str(m.random.randint(0, extent - 1)), f"{extent // 4}:{extent // 4 * 3}"])
    if own.count(":") == 1 and extent < 4 and own[0] != ":" and own[-1] != ":":
        return None
    facts = x.facts
    if m.chance(0.1):
        own = f"bn.span({m.pick(m.numbers)}, {m.pick([extent, extent // 2])})"
        facts = with_zero(facts)
    return Made(f"{x.name}[{', '.join([':'] * axis + [own])}]", facts)


@recipe(3)
def part(m):
    x = m.any_of(lambda v: v.shape, near=True)
    if x is None:
        return None
    shape = tuple(max(n >> m.random.randint(0, 2), 1) for n in x.shape)
    starts = tuple(m.pick([m.random.randint(0, n - own), *m.unknown_numbers])
                   for n, own in zip(x.shape, shape))
    text = ", ".join(map(str, starts)) + ","
    facts = with_zero(x.facts)
    if m.chance(0.5) or not x.is_exact:
        return Made(f"bn.extract({x.name}, ({text}), {shape})", facts)
    piece = m.any_of(lambda v: v.is_exact and v.dtype == x.dtype and v.size <= x.size
                     and len(v.shape) == len(x.shape)
                     and all(a <= b for a, b in zip(v.shape, x.shape)))
    starts = tuple(m.pick([m.random.randint(0, n - own), *m.unknown_numbers])
                   for n, own in zip(x.shape, piece.shape))
    text = ", ".join(map(str, starts)) + ","
    return Made(f"bn.insert({x.name}, {piece.name}, ({text}))")


@recipe(4)
def joined(m):
    x = m.any_of(lambda v: v.shape and 2 * v.size <= m.max_size and v.is_exact
                 and len(v.shape) < MAX_RANK)
    if x is None:
        return None
    y, axis = m.like(x, lambda v: v.is_exact and v.shape == x.shape), m.axis(x)
    facts = ANY
    if x.dtype == y.dtype and x.is_whole and y.is_whole:
        facts = Facts(min(x.facts.low, y.facts.low), max(x.facts.high, y.facts.high))
    elif x.dtype != y.dtype and not (x.is_float and y.is_float):
        y = x
    both = f"{x.name}, {y.name}"
    return Made(m.pick([f"bn.join({both})", f"bn.interleave({both})",
                        f"bn.concatenate(({both}), {axis})", f"bn.stack(({both}), {axis})",
                        f"bn.cat({both}, dim={axis})", f"bn.repeat({x.name}, 2, {axis})"]), facts)


@recipe(2)
def halves(m):
    x = m.any_of(lambda v: v.size > 1 and v.shape, near=True)
    if x is None:
        return None
    text = x.name
    if x.shape[-1] != 2:
        lead = x.size // 2
        text = f"bn.reshape({x.name}, {(lead, 2)})"
    return Made(f"bn.split({text})", (x.facts, x.facts))


@recipe(4)
def gathered(m):
    x = m.any_of(lambda v: v.shape, near=True)
    if x is None:
        return None
    axis = m.axis(x)
    index = m.like(x, lambda v: v.is_int and v.shape == x.shape)
    facts = with_zero(x.facts)
    if index is None:
        return None
    at = m.pick([places(index, x.shape[axis]), index.name])
    return Made(f"bn.gather({x.name}, {at}, {axis})", facts)


@recipe(1)
def scattered(m):
    x = m.any_of(lambda v: v.shape and v.is_exact and v.size <= 256)
    index = m.like(x, lambda v: v.is_int and v.shape == x.shape) if x else None
    if index is None:
        return None
    values = m.like(x, lambda v: v.dtype == x.dtype and v.shape == x.shape and v.is_exact)
    axis = m.axis(x)
    at = places(index, x.shape[axis])
    return Made(f"bn.scatter({x.name}, {at}, {values.name}, {axis})")


@recipe(2)
def constants(m):
    shape, dtype = m.pick(m.shapes), m.pick([*INTS, *FLOATS])
    number = m.random.randint(0, 5)
    x = m.any_of(lambda v: v.is_exact and v.dtype != BOOL)
    choices = [Made(f"bn.full({shape}, {number}, {bn(dtype)})", Facts(number, number)),
               Made(f"bn.zeros({shape}, {bn(dtype)})", Facts(0, 0)),
               Made(f"bn.ones({shape}, {bn(dtype)})", Facts(1, 1)),
               Made(f"(bn.arange(0, {math.prod(shape)}))", Facts(0, math.prod(shape) - 1))]
    if x is not None:
        choices += [Made(f"bn.zeros_like({x.name})", Facts(0, 0)),
                    Made(f"bn.ones_like({x.name})", Facts(1, 1)),
                    Made(f"bn.item(bn.extract({x.name}, {(0,) * len(x.shape)}, "
                         f"{(1,) * len(x.shape)}))" if x.shape else x.name, x.facts),
                    Made(f"bn.full_like({x.name}, {number})", Facts(number, number))]
    return m.pick(choices)
