"""Cases are spread over ops, and drawn alike everywhere."""

from cases import DRAWN, SAMPLED, cases_of, spread
from expression_cases import PER_FUNCTION

MIN_CASES, MIN_OF_AN_OP = 16_000, 30


def test_there_are_enough_cases_of_each_op():
    counts = {name: sum(1 for _ in cases_of(name)) for name in SAMPLED}
    counts |= dict.fromkeys(DRAWN, PER_FUNCTION)  # made slowly; the next test counts one of them

    assert sum(counts.values()) >= MIN_CASES
    assert {name: count for name, count in counts.items() if count < MIN_OF_AN_OP} == {}


def test_a_function_has_as_many_cases_as_it_says():
    cases = list(cases_of("bn.popc"))

    assert len(cases) == len({str(case) for case in cases}) == PER_FUNCTION


def test_cases_are_spread_and_none_is_drawn_twice():
    counts = {"few": 3, "many": 1000, "one": 1, "more": 500}

    chosen = spread(counts, 104)

    assert {name: len(numbers) for name, numbers in chosen.items()} == {
        "few": 3, "many": 50, "one": 1, "more": 50}
    assert all(len(set(numbers)) == len(numbers) and max(numbers) < counts[name]
               for name, numbers in chosen.items())


def test_all_cases_are_drawn_where_there_are_no_more():
    assert spread({"a": 2, "b": 3}, 10) == {"a": [0, 1], "b": [0, 1, 2]}


def test_cases_of_an_op_differ_in_layout_and_warps():
    cases = list(cases_of("add"))

    assert {case.num_warps for case in cases} == {1, 2, 4, 8}
    assert len({str(case) for case in cases}) == len(cases)
