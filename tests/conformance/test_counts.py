"""Cases are spread over ops, and drawn alike everywhere."""

from case import CASES
from cases import cases_of, spread

MIN_CASES, MIN_OF_AN_OP = 12_000, 30
# ops with fewer: whoever adds cases of one takes it from here
FEW = {"select", "offset", "address", "pointer_at", "atomic_cas", "program_id", "num_programs",
       "print", "assert", "assume", "check_index", "splat", "flip", "view", "view_select",
       "view_slice", "view_pointer", "view_reverse", "view_permute", "raised_elements"}


def test_there_are_enough_cases_of_each_op():
    counts = {name: sum(1 for _ in cases_of(name)) for name in CASES}

    assert sum(counts.values()) >= MIN_CASES
    assert {name for name, count in counts.items() if count < MIN_OF_AN_OP} <= FEW


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
