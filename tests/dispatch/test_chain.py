"""The order in which launchers are tried."""

import pytest

from blocknumba.dispatch.launch.chain import FIRST_PATIENCE, MOST_PATIENCE, Chain


class Calls:
    """A kernel whose launchers are named by their forms, and its calls.

    tried: launchers that the last call went through; "any" for the look-up.
    """

    def __init__(self, forms: str, length: int = 4):
        self.tried, self._launchers = [], {}
        self._chain = Chain(self._any_form, length)
        self._begin = self._any_form
        for form in forms:
            self(form)

    def __call__(self, form: str) -> list:
        self.tried = []
        self._begin(form)
        return self.tried

    def _any_form(self, form: str) -> None:
        self.tried.append("any")
        if form in self._launchers:
            self._begin = self._chain.met(self._launchers[form])
            self._launchers[form](form)
            return
        link = self._chain.link()

        def launcher(given: str) -> None:
            self.tried.append(form)
            if given != form:
                link.following()(given)

        self._launchers[form] = launcher
        self._chain.add(launcher, link)
        self._begin = launcher


def test_the_newest_is_tried_first_and_then_the_others():
    calls = Calls("abc")

    assert [calls("c"), calls("b"), calls("a")] == [["c"], ["c", "b"], ["c", "b", "a"]]


def test_no_more_are_tried_than_the_chain_is_long():
    calls = Calls("abcd", length=2)

    assert calls("b") == ["d", "c", "any", "b"]


def test_a_chain_of_one_looks_up_every_other_form():
    calls = Calls("ab", length=1)

    assert calls("a") == ["b", "any", "a"]


@pytest.mark.parametrize("form", ["a", "b"])
def test_a_form_that_comes_again_and_again_is_tried_first(form):
    calls = Calls("abc")

    for _ in range(FIRST_PATIENCE + 1):
        calls(form)

    assert calls(form) == [form]
    assert calls("c") == [form, "c"]


def test_forms_that_take_turns_are_looked_up_more_and_more_seldom():
    calls = Calls("ab")

    looked_up = ["any" in calls("ab"[number % 2]) for number in range(40 * FIRST_PATIENCE)]

    early, late = looked_up[:20 * FIRST_PATIENCE], looked_up[20 * FIRST_PATIENCE:]
    assert 0 < sum(late) < sum(early) < 10
    assert calls("b") == ["b"]


def test_patience_has_an_end_and_one_success_ends_it():
    calls = Calls("ab")
    for number in range(4 * MOST_PATIENCE):
        calls("ab"[number % 2])

    for _ in range(MOST_PATIENCE + 1):
        calls("a")
    assert calls("a") == ["a"]

    for _ in range(FIRST_PATIENCE + 1):
        calls("b")
    assert calls("b") == ["b"]


def test_a_form_that_was_left_out_comes_back_when_it_comes_twice():
    calls = Calls("abc", length=2)

    assert calls("a") == ["c", "b", "any", "a"]
    assert calls("a") == ["any", "a"]
    assert [calls("a"), calls("c"), calls("b")] == [["a"], ["a", "c"], ["a", "c", "any", "b"]]
