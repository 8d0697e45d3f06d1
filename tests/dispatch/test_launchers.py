"""The order in which launchers are tried."""

import pytest

from blocknumba.dispatch.launch.launchers import FIRST_PATIENCE, MAX_PATIENCE, Chain


class Calls:
    """A kernel whose launchers are named by their call signatures, and its calls.

    tried: launchers that the last call went through; "any" for the look-up.
    """

    def __init__(self, signatures: str, length: int = 4):
        self.tried, self._launchers = [], {}
        self._chain = Chain(self._any_call, length)
        self._begin = self._any_call
        for signature in signatures:
            self(signature)

    def __call__(self, signature: str) -> list:
        self.tried = []
        self._begin(signature)
        return self.tried

    def _any_call(self, signature: str) -> None:
        self.tried.append("any")
        if signature in self._launchers:
            self._begin = self._chain.met(self._launchers[signature])
            self._launchers[signature](signature)
            return
        link = self._chain.link()

        def launcher(given: str) -> None:
            self.tried.append(signature)
            if given != signature:
                link.following()(given)

        self._launchers[signature] = launcher
        self._chain.add(launcher, link)
        self._begin = launcher


def test_the_newest_is_tried_first_and_then_the_others():
    calls = Calls("abc")

    assert [calls("c"), calls("b"), calls("a")] == [["c"], ["c", "b"], ["c", "b", "a"]]


def test_no_more_are_tried_than_the_chain_is_long():
    calls = Calls("abcd", length=2)

    assert calls("b") == ["d", "c", "any", "b"]


def test_a_chain_of_one_looks_up_every_other_signature():
    calls = Calls("ab", length=1)

    assert calls("a") == ["b", "any", "a"]


@pytest.mark.parametrize("signature", ["a", "b"])
def test_a_signature_that_comes_again_and_again_is_tried_first(signature):
    calls = Calls("abc")

    for _ in range(FIRST_PATIENCE + 1):
        calls(signature)

    assert calls(signature) == [signature]
    assert calls("c") == [signature, "c"]


def test_signatures_that_alternate_are_looked_up_more_and_more_seldom():
    calls = Calls("ab")

    looked_up = ["any" in calls("ab"[number % 2]) for number in range(40 * FIRST_PATIENCE)]

    early, late = looked_up[:20 * FIRST_PATIENCE], looked_up[20 * FIRST_PATIENCE:]
    assert 0 < sum(late) < sum(early) < 10
    assert calls("b") == ["b"]


def test_patience_has_an_end_and_one_success_ends_it():
    calls = Calls("ab")
    for number in range(4 * MAX_PATIENCE):
        calls("ab"[number % 2])

    for _ in range(MAX_PATIENCE + 1):
        calls("a")
    assert calls("a") == ["a"]

    for _ in range(FIRST_PATIENCE + 1):
        calls("b")
    assert calls("b") == ["b"]


def test_a_signature_that_was_left_out_comes_back_when_it_comes_twice():
    calls = Calls("abc", length=2)

    assert calls("a") == ["c", "b", "any", "a"]
    assert calls("a") == ["any", "a"]
    assert [calls("a"), calls("c"), calls("b")] == [["a"], ["a", "c"], ["a", "c", "any", "b"]]
