"""Accesses with a small constant stride: whole vectors of memory, and shuffles.

    4 lanes, stride 3     memory   a..b..c..d
                          loads    a..b               the last one ends at d
                                       ..c.
                                         .c..d        lanes   a b c d

A load touches no byte before its first element or after its last one.  A store writes the elements
of the lanes and leaves what is between them, which may belong to other threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.cpu_lower.writer import Writer, suffix, vector

MAX_STRIDE = 16  # up to here no slower than a gather, of whatever dtype


def is_small(step: int | str | None) -> bool:
    """Whether a step is a constant that these accesses are for: 2 to MAX_STRIDE, or negative."""
    return isinstance(step, int) and step not in (0, 1) and abs(step) <= MAX_STRIDE


def cost(step: int, lanes: int) -> int:
    """Loads and shuffles of one vector of lanes."""
    return 2 * min(abs(step), lanes) - (step > 0)


def load(writer: Writer, scalar: str, size: int, lanes: int, address: str, step: int) -> str:
    """The elements at address, address + step, ...; size: bytes of one."""
    if step < 0:
        last = _moved(writer, scalar, address, (lanes - 1) * step)
        upward = load(writer, scalar, size, lanes, last, -step)
        return shuffled(writer, scalar, lanes, upward, upward, range(lanes)[::-1])
    type_, span = vector(scalar, lanes), (lanes - 1) * step + 1
    starts = [min(number * lanes, span - lanes) for number in range(step)]
    # the vector that holds each lane's element, and its place there
    places = [(number, lane * step - starts[number]) for lane in range(lanes)
              for number in [min(lane * step // lanes, step - 1)]]
    found = ""
    for number in sorted({number for number, _ in places}):
        own = writer.assign(f"load {type_}, ptr "
                            f"{_moved(writer, scalar, address, starts[number])}, align {size}")
        order = [lanes + place if of == number else lane if found and of < number else None
                 for lane, (of, place) in enumerate(places)]
        found = shuffled(writer, scalar, lanes, found or "poison", own, order)
    return found


def store(writer: Writer, scalar: str, size: int, lanes: int, address: str, step: int,
          x: str) -> None:
    """Store the lanes to address, address + step, ...; size: bytes of an element."""
    if step < 0:
        last = _moved(writer, scalar, address, (lanes - 1) * step)
        store(writer, scalar, size, lanes, last, -step,
              shuffled(writer, scalar, lanes, x, x, range(lanes)[::-1]))
        return
    type_ = vector(scalar, lanes)
    if step == 1:
        writer.do(f"store {type_} {x}, ptr {address}, align {size}")
        return
    for start in range(0, lanes * step, lanes):
        here = range(start, start + lanes)
        order = [place // step if place % step == 0 else None for place in here]
        if all(lane is None for lane in order):
            continue
        mask = ", ".join(f"i1 {str(lane is not None).lower()}" for lane in order)
        writer.call("void", f"llvm.masked.store.{suffix(scalar, lanes)}.p0",
                    (type_, shuffled(writer, scalar, lanes, x, x, order)),
                    ("ptr", f"align {size} {_moved(writer, scalar, address, start)}"),
                    (vector("i1", lanes), f"<{mask}>"))


def store_all(writer: Writer, scalar: str, size: int, lanes: int, address: str,
              values: Sequence[str]) -> None:
    """Store lane 0 of all values side by side at address, then lane 1 of all, and so on."""
    type_, count = vector(scalar, lanes), len(values)
    for start in range(0, lanes * count, lanes):
        places = [divmod(place, count) for place in range(start, start + lanes)]
        found = ""
        for number, x in enumerate(values):
            order = [lanes + lane if of == number else place if found and of < number else None
                     for place, (lane, of) in enumerate(places)]
            found = shuffled(writer, scalar, lanes, found or "poison", x, order)
        writer.do(f"store {type_} {found}, ptr {_moved(writer, scalar, address, start)}, "
                  f"align {size}")


def _moved(writer: Writer, scalar: str, address: str, elements: int) -> str:
    if not elements:
        return address
    return writer.assign(f"getelementptr {scalar}, ptr {address}, i64 {elements}")


def shuffled(writer: Writer, scalar: str, lanes: int, x: str, y: str,
              order: Sequence[int | None]) -> str:
    """Lanes of two vectors; None: any."""
    type_ = vector(scalar, lanes)
    indices = ", ".join("i32 poison" if lane is None else f"i32 {lane}" for lane in order)
    return writer.assign(f"shufflevector {type_} {x}, {type_} {y}, <{lanes} x i32> <{indices}>")
