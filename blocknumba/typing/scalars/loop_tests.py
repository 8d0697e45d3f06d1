"""Tests of `while` loops, which Python's bytecode has twice: before the loop, and at its end.

    while x*x + y*y <= 4:        test, body, test, body, test, ...
        x, y = x*x - y*y, 2*x*y

With one test, which the entry and the end of the body both jump to, what it computes (x*x, y*y) is
known in the body; LLVM shares nothing between the end of one iteration and the next one.

From Python 3.12 on the end of a loop branches to a block that jumps to the header.

The blocks are those of Numba IR before it is in SSA form.  Both of Numba's compilers have classes
for it, with the same names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

Blocks = dict[int, object]
_COMPARED_BY_IDENTITY = frozenset(("Global", "FreeVar"))


def merge_loop_tests(blocks: Blocks) -> bool:
    """Merge the tests of loops, in place.  Returns whether anything was changed."""
    merged = _pass_over_jumps(blocks)
    while (found := next(_repeated_tests(blocks), None)) is not None:
        _merge(blocks, *found)
        merged = True
    return merged


def _pass_over_jumps(blocks: Blocks) -> bool:
    """Let branches to blocks that do nothing but jump back to a header go to the header."""
    before = len(blocks)
    for label in sorted({to for block in blocks.values() for to in _targets(block)}):
        first = blocks[label].body[0]
        if type(first).__name__ == "Jump" and first.target < label:
            _redirect(blocks, label, first.target)
            del blocks[label]
    return len(blocks) < before


def _repeated_tests(blocks: Blocks) -> Iterator[tuple[int, int, int]]:
    """Labels of a block before a loop and of one at its end, and the length of their common end.

    The end is one branch to a header of the loop between them, and all that decides it.
    """
    for last in sorted(blocks):
        headers = [label for label in _targets(blocks[last]) if label <= last]
        for header in headers:
            for first in sorted(blocks):
                if first < header and _targets(blocks[first]) == _targets(blocks[last]):
                    length = _common_end(blocks, first, last)
                    if length > 1:
                        yield first, last, length


def _targets(block: object) -> tuple[int, ...]:
    """The blocks that a branch goes to; none of another terminator."""
    end = block.body[-1]
    return (end.truebr, end.falsebr) if type(end).__name__ == "Branch" else ()


def _common_end(blocks: Blocks, first: int, last: int) -> int:
    """The number of statements at the end of both blocks that do the same, and are no one else's.

    Temporaries have a name in each of them; what another block reads stays where it is.
    """
    one, other = blocks[first].body, blocks[last].body
    count, same = 0, {}
    for x, y in zip(reversed(one), reversed(other)):
        if not _equal(x, y, same):
            break
        count += 1
    while count and (_is_open(blocks, first, count) or _is_open(blocks, last, count)):
        count -= 1
    return count


def _is_open(blocks: Blocks, label: int, count: int) -> bool:
    """Whether the last statements of a block share a temporary with others."""
    body = blocks[label].body
    within = {name for one in body[-count:] for name in _names(one)}
    others = (*body[:-count], *(one for at, block in blocks.items() if at != label
                                for one in block.body))
    outside = {name for one in others for name in _names(one)}
    return any(name.startswith("$") for name in within & outside)


def _names(statement: object) -> Iterator[str]:
    return (variable.name for variable in statement.list_vars())


def _equal(x: object, y: object, same: dict[str, str]) -> bool:
    """Whether two parts of statements do the same.

    same: name in the first -> name in the second, of those that have been met; names are added.
    """
    kind = type(x).__name__
    if kind != type(y).__name__:
        return False
    if kind == "Var":
        if x.name.startswith("$") and y.name.startswith("$"):
            return same.setdefault(x.name, y.name) == y.name
        return x.name == y.name
    if kind == "Assign":
        return _equal(x.target, y.target, same) and _equal(x.value, y.value, same)
    if kind == "Branch":
        return (x.truebr, x.falsebr) == (y.truebr, y.falsebr) and _equal(x.cond, y.cond, same)
    if kind == "Expr":
        return x.op == y.op and _equal(x._kws, y._kws, same)
    if kind == "Const":
        return type(x.value) is type(y.value) and repr(x.value) == repr(y.value)
    if kind in _COMPARED_BY_IDENTITY:
        return x.name == y.name and x.value is y.value
    if isinstance(x, Mapping):
        return x.keys() == y.keys() and all(_equal(x[key], y[key], same) for key in x)
    if isinstance(x, list | tuple):
        return len(x) == len(y) and all(_equal(a, b, same) for a, b in zip(x, y))
    return not hasattr(x, "list_vars") and x == y


def _merge(blocks: Blocks, first: int, last: int, length: int) -> None:
    """Let two blocks have one end: that of the first, if it is nothing else, or a new block."""
    one, other = blocks[first], blocks[last]
    if length == len(one.body) == len(other.body):
        del blocks[last]
        _redirect(blocks, last, first)
        return
    label, end = max(blocks) + 1, one.body[-length:]
    blocks[label] = type(one)(one.scope, end[0].loc)
    blocks[label].body = end
    jump = sys.modules[type(one).__module__].Jump
    for block in (one, other):
        block.body[-length:] = [jump(label, block.body[-length].loc)]


def _redirect(blocks: Blocks, old: int, new: int) -> None:
    """Let all that goes to one block go to another."""
    for block in blocks.values():
        end = block.body[-1]
        for field in ("truebr", "falsebr", "target"):
            if getattr(end, field, None) == old:
                setattr(end, field, new)
