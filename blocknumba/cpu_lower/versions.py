"""Two versions of a region: one without masks, for programs whose accesses are all inside.

    if mask[last]: the region without the mask            (bounds.py says which elements to ask)
    else:          the region with it

A clamp of indices that changes none of them is left out in the same way: then neighbours stay
neighbours, and an access of them is one of whole vectors.

In the version with masks, each vector of an innermost loop has two versions again, by its first and
last lane: of a row of 1000 elements in a tile of 1024, all vectors but the last one are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from blocknumba.cpu_lower.bounds import Corner, clamped, corners
from blocknumba.cpu_lower.elements import register_type, uniform
from blocknumba.cpu_lower.emitter import Coordinates, Emitter
from blocknumba.cpu_lower.plans.planning import is_root
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, READS, REARRANGES
from blocknumba.tile_ir.ir.types import bool_

MASKED = ("load", "store", "atomic_rmw", "atomic_cas", "histogram")
MAX_OPS = 4000  # of a region that is written twice


def in_two_versions(emitter: Emitter, region: Region, body: Callable[[], list[str]],
                    types: Sequence[str]) -> list[str]:
    """Write the body of a region, with and without masks; the scalars that it returns.

    types: their LLVM types.
    """
    masks = _bounds(emitter, region)
    if not masks:
        return body()
    everywhere = _all_true(emitter, [end for ends in masks.values() for end in ends])
    emitter.versions += 1
    return _two_versions(emitter, everywhere, _conjuncts(masks, throughout=True), body, types)


def in_two_versions_of_box(emitter: Emitter, values: Sequence[Value], masks: Sequence[Value],
                           ends: tuple[Coordinates, Coordinates], body: Callable[[], list[str]],
                           types: Sequence[str] = ()) -> list[str]:
    """Write the code of elements from one to another, with and without masks; its scalars.

    values: what is computed there.  masks: of stores.  ends: the first element and the last one.
    types: of the scalars.
    """
    low, high = ends
    if low == high:
        return body()
    needed, elsewhere = _masks_of(emitter, values)
    at_ends: dict[Value, list[Coordinates]] = {}
    for mask in dict.fromkeys([*masks, *needed]):
        if (mask not in emitter.known.unmasked and mask.type.shape
                and _conjuncts([mask]).isdisjoint(elsewhere)
                and (found := corners(emitter.plan.infos, mask)) is not None):
            at_ends[mask] = [ends[is_last] for is_last in sorted({last for _, last in found})]
    at_ends |= _clamps_of(emitter, values, ends)
    if not at_ends:
        return body()
    with emitter.inside(1):
        inside = _and(emitter, [_holds(emitter, bound, place)
                                for bound, places in at_ends.items() for place in places])
    return _two_versions(emitter, inside, _conjuncts(at_ends), body, types)


def _and(emitter: Emitter, conditions: Sequence[str]) -> str:
    """An i1: whether all of them hold."""
    found, *rest = dict.fromkeys(conditions)
    for one in rest:
        found = emitter.writer.assign(f"and i1 {found}, {one}")
    return found


def _clamps_of(emitter: Emitter, values: Sequence[Value],
               ends: tuple[Coordinates, Coordinates]) -> dict[Value, list[Coordinates]]:
    """Clamps of indices that values need at one place each: their elements at both ends."""
    places_of: dict[Value, set[tuple[Coordinates, Coordinates] | None]] = {}
    waiting: list[tuple[Value, tuple[Coordinates, Coordinates] | None]] = [
        (value, ends) for value in values]
    seen = set()
    while waiting:
        access = value, places = waiting.pop()
        if (access in seen or not value.type.shape or value not in emitter.plan.made_of_clamps
                or value in emitter.known.buffers and value not in emitter.filling):
            continue
        seen.add(access)
        if value in emitter.plan.clamps and value not in emitter.known.unmasked:
            places_of.setdefault(value, set()).add(places)
        owner = value.owner
        stays = owner.name == "load" or owner.opdef.has(ELEMENTWISE | REARRANGES)
        if places is None or not stays:
            waiting += [(operand, None) for operand in owner.operands]
            continue
        both = [emitter.operands_at(value, place) for place in places]
        waiting += [(operand, (low, high)) for (operand, low), (_, high) in zip(*both)]
    return {clamp: list(*places) for clamp, places in places_of.items()
            if len(places) == 1 and None not in places}


def _masks_of(emitter: Emitter, values: Sequence[Value]) -> tuple[list[Value], set[Value]]:
    """The masks of loads at the places of values, and all that is needed at other places."""
    found: list[Value] = []
    waiting, seen = [(value, True) for value in values], set()
    while waiting:
        access = value, aligned = waiting.pop()
        owner = value.owner
        if (access in seen or not value.type.shape or owner is None or is_root(owner)
                or value in emitter.known.buffers and value not in emitter.filling):
            continue
        seen.add(access)
        if owner.name == "load" and aligned and owner.mask is not None:
            found.append(owner.mask)
        stays = owner.name == "load" or owner.opdef.has(ELEMENTWISE)
        waiting += [(operand, aligned and stays) for operand in owner.operands]
    return found, {value for value, aligned in seen if not aligned}


def _conjuncts(masks: Iterable[Value], throughout: bool = False) -> frozenset[Value]:
    """Masks, and the tiles that are true where they are: of which they are made by `and`.

    throughout: they are true at all of their elements, and so is what they are rearranged from.
    """
    found: set[Value] = set()
    waiting = list(masks)
    while waiting:
        mask = waiting.pop()
        found.add(mask)
        op = mask.owner
        if op is not None and (op.name == "and" or throughout and op.opdef.has(REARRANGES)):
            waiting += [operand for operand in op.operands if operand.type.shape]
    return frozenset(found)


def ends_of_lanes(emitter: Emitter, coordinates: Coordinates, axis: int | None,
                  vectors: int = 1) -> tuple[Coordinates, Coordinates]:
    """Coordinates of the first and of the last lane of vectors along an axis."""
    if axis is None:
        return coordinates, coordinates
    first = coordinates[axis].name
    last = emitter.writer.add(first, str(vectors * emitter.lanes - 1))
    return tuple(coordinates[:axis] + (uniform(end),) + coordinates[axis + 1:]
                 for end in (first, last))


def _two_versions(emitter: Emitter, condition: str, masks: frozenset[Value],
                  body: Callable[[], list[str]], types: Sequence[str]) -> list[str]:
    """The body where a condition holds, which makes masks true, and the body elsewhere."""
    writer, outer = emitter.writer, emitter.known
    labels = [writer.label(hint) for hint in ("unmasked", "masked", "join")]
    writer.branch_if(condition, *labels[:2])
    start, results, ends = emitter.buffer_bytes, [], []
    for label, unmasked in zip(labels, (masks, frozenset())):
        writer.begin(label)
        emitter.known = outer.copy()
        emitter.known.unmasked = outer.unmasked | unmasked
        emitter.buffer_bytes = start
        results.append(body())
        ends.append(writer.block)
        writer.branch(labels[2])
    writer.begin(labels[2])
    emitter.known, emitter.buffer_bytes = outer, emitter.most_buffer_bytes
    return [writer.assign(f"phi {type_} " + ", ".join(
        f"[ {value}, %{end} ]" for value, end in zip(values, ends)))
        for type_, *values in zip(types, *results)]


def _all_true(emitter: Emitter, ends: Sequence[Corner]) -> str:
    """An i1: whether each bound holds at its element."""
    with emitter.inside(1):
        return _and(emitter, [_holds(emitter, bound, tuple(
            uniform(n - 1 if is_last else 0) for n in bound.type.shape))
            for bound, is_last in dict.fromkeys(ends)])


def _bounds(emitter: Emitter, region: Region) -> dict[Value, list[Corner]]:
    """Masks of accesses in a region that are bounds of scalars that are known before it."""
    ops = list(walk(region))
    if len(ops) > MAX_OPS:
        return {}
    found: dict[Value, list[Corner]] = {}
    for op in ops:
        value, ends = _bound(emitter, op)
        if (value is not None and value.type.shape and value not in found
                and value not in emitter.known.unmasked
                and all(_is_known(emitter, part, region) for part, _ in ends)):
            found[value] = ends
    return found


def _bound(emitter: Emitter, op: Op) -> tuple[Value | None, Sequence[Corner]]:
    """The mask of an access, or a clamp of indices, and the corners that tell of it."""
    if op.name in MASKED and op.mask is not None:
        ends = corners(emitter.plan.infos, op.mask)
        return (None, ()) if ends is None else (op.mask, ends)
    if op.results and op.results[0] in emitter.plan.clamps:
        return op.result, [(op.result, False), (op.result, True)]
    return None, ()


def _holds(emitter: Emitter, bound: Value, place: Coordinates) -> str:
    """An i1: whether a mask is true at an element, or a clamp changes nothing there."""
    found = emitter.at(bound, place)
    if bound.type.dtype == bool_:
        return found.name
    own = emitter.at(clamped(bound.owner), place)
    return emitter.writer.assign(
        f"icmp eq {register_type(bound.type.dtype)} {found.name}, {own.name}")


def _is_known(emitter: Emitter, mask: Value, region: Region) -> bool:
    """Whether an element can be computed from what is known before a region; makes scalars known.

    Scalars that ops of the region compute from known ones are computed now, without effects.
    """
    order: list[Value] = []
    waiting, seen = [mask], set()
    while waiting:
        value = waiting.pop()
        if value in seen or value in emitter.known.scalars or value in emitter.known.buffers:
            continue
        seen.add(value)
        owner = value.owner
        if owner is None or is_root(owner) or owner.opdef.has(READS):
            return False
        order.append(value)
        waiting += owner.operands
    for value in _by_dependence(order):
        if not value.type.shape and value not in emitter.known.scalars:
            emitter.known.scalars[value] = emitter.compute_scalar(value)
    return True


def _by_dependence(values: Sequence[Value]) -> list[Value]:
    """Values, each after those that it is made from."""
    wanted, found = set(values), {}
    waiting = list(values)
    while waiting:
        value = waiting[-1]
        missing = [v for v in value.owner.operands if v in wanted and v not in found]
        if missing:
            waiting += missing
        else:
            found[value] = None
            waiting.pop()
    return list(found)


