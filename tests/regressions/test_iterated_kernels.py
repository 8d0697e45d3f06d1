"""list(kernel) asked for kernel[0], kernel[1] and so on, until there was no memory."""

import pytest

import blocknumba as bn
import blocknumba.triton as triton
from blocknumba.errors import BlockTypeError


@bn.jit
def fill(x, B: bn.constexpr):
    x[bn.block(0, B)] = 1


TUNED = bn.autotune([bn.Config({"B": 8})], key=["x"])(fill)


@pytest.mark.parametrize("kernel", [fill, TUNED, triton.jit(fill.py_func),
                                    triton.KernelInterface()], ids=lambda k: type(k).__name__)
def test_a_kernel_has_no_items(kernel):
    with pytest.raises(TypeError, match="not iterable"):
        next(iter(kernel))
    with pytest.raises(TypeError, match="not iterable|not a container"):
        3 in kernel


@pytest.mark.parametrize("decorator", [staticmethod, classmethod])
def test_the_order_of_decorators_is_explained(decorator):
    name = decorator.__name__

    with pytest.raises(BlockTypeError) as raised:
        bn.jit(decorator(fill.py_func))

    assert str(raised.value) == (f"jit: given a {name}, accepted a Python function\n"
                                 f"  hint: write @{name} above @jit")
