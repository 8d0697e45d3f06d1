"""Random accesses: whatever is taken for a box touches the elements that it should."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from random_accesses import Access, AxisAccess, Start
from tensor_copies import accesses, with_copies

from blocknumba.errors import BlockIndexError
from blocknumba.tile_ir.analysis.boxes import Boxes
from blocknumba.tile_ir.passes.pipeline import optimise
from blocknumba.tile_ir.passes.raise_pointers import raise_pointers

CHECKS = st.sampled_from(("", "right", "right", "right", "wrong"))
BOUNDS = st.sampled_from(("", "parameter", "parameter", "constant"))
SLACKS = st.sampled_from((0, 0, 0, 0, 0, -1, 1, 8))


def axes(extents: tuple[int, ...], unit: int) -> st.SearchStrategy[AxisAccess]:
    """Axes of tiles that start at multiples of a unit, before, in and behind the array."""
    starts = st.builds(Start, st.sampled_from((0, 1, 2)).map(lambda n: n * unit),
                       st.sampled_from((-1, 0, 0, 1)).map(lambda n: n * unit),
                       st.sampled_from((-1, 0, 0, 1, 2, 3)).map(lambda n: n * unit))
    return st.builds(AxisAccess, st.sampled_from(extents), starts, BOUNDS, SLACKS, CHECKS,
                     st.booleans())


ACCESSES = st.builds(Access, axes((2, 4, 8), 4), axes((8, 16), 8), st.booleans(), st.booleans(),
                     st.booleans(), st.none() | CHECKS)


@given(ACCESSES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_raised_view_and_a_tensor_copy_of_it_read_what_the_load_does(access):
    fn = optimise(access.function())
    raised = raise_pointers(fn)
    load = accesses(raised)[0]
    assume(load.name == "load")  # the mask may be never true
    found = Boxes(raised).box_of(load)
    event(next((r.reason for r in raised.remarks if r.details["kind"] == "load"), "a box"))
    assume(not isinstance(found, str))

    try:
        expected = access.run(fn)
    except BlockIndexError:
        assume(False)  # what is outside of memory has no value
    of_view, copied = access.run(raised), access.run(with_copies(raised))

    assert (of_view == expected).all()
    assert (copied == expected).all()
