"""Torch's comparison of tensors with what they were."""

import pytest

torch = pytest.importorskip("torch")

from blocknumba.dispatch.launch.recent import no_check  # noqa: E402
from blocknumba.dispatch.launch.recent import tensor_check  # noqa: E402  # noqa: E402

OTHERS = {
    "shape": lambda: torch.zeros(8, 4), "rank": lambda: torch.zeros(4, 8, 1),
    "strides": lambda: torch.zeros(8, 4).t(), "gaps": lambda: torch.zeros(4, 16)[:, ::2],
    "dtype": lambda: torch.zeros(4, 8, dtype=torch.int32),
    "device": lambda: torch.zeros(4, 8, device="meta"),
    "class": lambda: torch.nn.Parameter(torch.zeros(4, 8)),
    "negative": lambda: torch._neg_view(torch.zeros(4, 8)), "array": lambda: [0.0]}


@pytest.fixture
def tensors():
    return torch.zeros(4, 8), torch.zeros(3)


def test_equal_tensors_pass(tensors):
    check = tensor_check(tensors)

    if check is no_check:
        pytest.skip("this Torch has no check, or one that is not exact")
    assert check(torch.ones(4, 8), torch.ones(3))


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_a_tensor_that_differs_does_not_pass(tensors, make):
    assert not tensor_check(tensors)(make(), tensors[1])


def test_without_tensors_there_is_no_check():
    assert tensor_check(()) is no_check
