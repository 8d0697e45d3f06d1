"""Arrays in launch plans: the limits of addresses that share memory."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.plan import KeyPlans
from blocknumba.dispatch.launch.specialize import are_disjoint
from blocknumba.tile_ir.ir.types import DTYPES

ADDRESSES = st.integers(250, 270).map(lambda words: 4 * words)


@st.composite
def arrays(draw) -> ArrayInfo:
    """Small arrays that are close to each other, with gaps, backwards and empty ones too."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    strides = tuple(draw(st.integers(-3, 3)) for _ in shape)
    dtype = DTYPES[draw(st.sampled_from(["int8", "float32", "float64"]))]
    return ArrayInfo(dtype, shape, strides, draw(ADDRESSES), 0, False, None)


@given(arrays(), arrays(), ADDRESSES, ADDRESSES)
def test_the_limits_of_a_pair_tell_at_any_pointers_whether_it_shares_memory(one, other, at, to):
    low, high = KeyPlans({"x": one, "y": other}, {"x"}, {}).limits

    is_shared = low < to - at < high

    assert is_shared != are_disjoint([replace(one, pointer=at), replace(other, pointer=to)])


def test_there_are_limits_for_every_pair():
    array = ArrayInfo(DTYPES["int8"], (5,), (1,), 0, 0, False, None)

    named = [dict.fromkeys("xyz"[:count], array) for count in range(4)]
    assert [KeyPlans(arrays, "xyz", {}).limits for arrays in named] == [
        (), (), (-5, 5), (-5, 5) * 3]


def test_arrays_that_are_only_read_may_share_memory():
    array = ArrayInfo(DTYPES["int8"], (5,), (1,), 0, 0, False, None)

    key_plans = KeyPlans(dict.fromkeys("xyz", array), {"z"}, {})

    assert key_plans.limits == (0, 0, -5, 5, -5, 5)
    assert key_plans.pairs() == [(0, 2, -5, 5), (1, 2, -5, 5)]
