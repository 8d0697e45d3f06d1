"""Every op gives what it must in a function that a kernel calls, on generic addresses too."""

import pytest

from called_executor import called, is_callable
from cases import SAMPLED, cases_of
from executors import difference

MAX_CASES = 2  # of an op: what a function changes is not in the dtypes


@pytest.mark.parametrize("name", SAMPLED)
def test_called_code_agrees_with_exact_arithmetic(name):
    callable_ = [case for case in cases_of(name) if is_callable(case)]
    chosen = callable_[::-(-len(callable_) // MAX_CASES) or 1]
    wrong = {str(case): found for case in chosen if (found := difference(case, called(case)))}
    assert not wrong
