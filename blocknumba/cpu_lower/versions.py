"""Two versions of a region: one without masks, for programs whose accesses are all inside.

    mask = index < n              true for all elements if it is true for the last one
    mask = index >= n             true for all elements if it is true for the first one

    if mask[last]: the region without the mask
    else:          the region with it

In the version with masks, each vector of an innermost loop has two versions again, by its first and
last lane: of a row of 1000 elements in a tile of 1024, all vectors but the last one are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from blocknumba.cpu_lower.elements import uniform
from blocknumba.cpu_lower.emitter import Coordinates, Emitter
from blocknumba.cpu_lower.plans.planning import is_root
from blocknumba.tile_ir.ir.function import Region, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, READS

Corner = tuple[Value, bool]  # the last element of a mask, or its first one

MASKED = ("load", "store", "atomic_rmw", "atomic_cas", "histogram")
SAME_ELEMENTS = ("broadcast", "reshape", "transpose")  # ops whose result has all of the operand's
MAX_OPS = 4000  # of a region that is written twice


def in_two_versions(emitter: Emitter, region: Region, body: Callable[[], list[str]],
                    types: Sequence[str]) -> list[str]:
    """Write the body of a region, with and without masks; the scalars that it returns.

    types: their LLVM types.
    """
    masks = _bounds(emitter, region)
    if not masks:
        return body()
    everywhere = _all_true(emitter, [corner for corners in masks.values() for corner in corners])
    emitter.versions += 1
    return _two_versions(emitter, everywhere, _conjuncts(masks, SAME_ELEMENTS), body, types)


def in_two_versions_of_box(emitter: Emitter, values: Sequence[Value], masks: Sequence[Value],
                           ends: tuple[Coordinates, Coordinates], body: Callable[[], list[str]],
                           types: Sequence[str] = ()) -> list[str]:
    """Write the code of elements from one to another, with and without masks; its scalars.

    values: what is computed there.  masks: of stores.  ends: the first element and the last one.
    types: of the scalars.
    """
    needed, elsewhere = _masks_of(emitter, values)
    bounds = {mask: corners for mask in dict.fromkeys([*masks, *needed])
              if mask not in emitter.known.unmasked and mask.type.shape
              and _conjuncts([mask], ()).isdisjoint(elsewhere)
              and (corners := _corners(emitter, mask)) is not None}
    low, high = ends
    if not bounds or low == high:
        return body()
    holds = []
    with emitter.inside(1):
        for mask, corners in bounds.items():
            holds += [emitter.at(mask, high if is_last else low).name
                      for is_last in sorted({is_last for _, is_last in corners})]
        inside = holds[0]
        for one in holds[1:]:
            inside = emitter.writer.assign(f"and i1 {inside}, {one}")
    return _two_versions(emitter, inside, _conjuncts(bounds, ()), body, types)


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


def _conjuncts(masks: Iterable[Value], through: Collection[str]) -> frozenset[Value]:
    """Masks, and what is true where they are: of which they are made by `and`.

    through: names of other ops, whose operand is true where their result is.
    """
    found: set[Value] = set()
    waiting = list(masks)
    while waiting:
        mask = waiting.pop()
        found.add(mask)
        if mask.owner is not None and mask.owner.name in ("and", *through):
            waiting += mask.owner.operands
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


def _all_true(emitter: Emitter, corners: Sequence[Corner]) -> str:
    """An i1: whether each mask is true at its element."""
    writer, found = emitter.writer, ""
    with emitter.inside(1):
        for mask, is_last in dict.fromkeys(corners):
            place = tuple(uniform(n - 1 if is_last else 0) for n in mask.type.shape)
            one = emitter.at(mask, place).name
            found = one if not found else writer.assign(f"and i1 {found}, {one}")
    return found


def _bounds(emitter: Emitter, region: Region) -> dict[Value, list[Corner]]:
    """Masks of accesses in a region that are bounds of scalars that are known before it."""
    ops = list(walk(region))
    if len(ops) > MAX_OPS:
        return {}
    found: dict[Value, list[Corner]] = {}
    for op in ops:
        mask = op.mask if op.name in MASKED else None
        if mask is None or not mask.type.shape or mask in found or mask in emitter.known.unmasked:
            continue
        corners = _corners(emitter, mask)
        if corners is not None and all(_is_known(emitter, part, region) for part, _ in corners):
            found[mask] = corners
    return found


def _corners(emitter: Emitter, mask: Value) -> list[Corner] | None:
    """Elements of masks that, if all are true, make a mask true throughout; None if there are none.
    """
    axes, owner = emitter.plan.infos[mask].axes, mask.owner
    if all(axis.bounded >= n for axis, n in zip(axes, mask.type.shape)):
        return [(mask, True)]
    if owner is None:
        return None
    if owner.name in SAME_ELEMENTS:
        return _corners(emitter, owner.x)
    if owner.name == "and":
        both = [_corners(emitter, part) for part in (owner.x, owner.y)]
        return None if None in both else both[0] + both[1]
    if owner.name in ("ge", "gt", "le", "lt"):
        is_greater = owner.name in ("ge", "gt")
        greater, less = (owner.x, owner.y) if is_greater else (owner.y, owner.x)
        if _counts_up(greater) and _is_one_number(less):
            return [(mask, False)]
    return None


def _counts_up(value: Value) -> bool:
    """Whether no element is less than the first one: arange, however it is repeated."""
    while value.owner is not None and value.owner.name in ("broadcast", "reshape"):
        value = value.owner.x
    return value.owner is not None and value.owner.name == "arange"


def _is_one_number(value: Value) -> bool:
    while value.owner is not None and value.owner.name in ("broadcast", "reshape"):
        value = value.owner.x
    return not value.type.shape or value.owner is not None and value.owner.name == "splat"


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


