"""Kernels beside objects that raise for attributes they do not have, below their first level too."""

import numpy as np

import blocknumba as bn


class Namespace:
    """As torch.classes: any name is a namespace, and any name of that raises."""

    class Inner:
        def __getattr__(self, name):
            raise RuntimeError(f"no class {name}")

    def __getattr__(self, name):
        return Namespace.Inner()


class Holder:
    classes = Namespace()
    scale = 3


HOLDER = Holder()


def scale_of(holder):
    return holder.scale


@bn.jit
def scaled(x, B: bn.constexpr):
    r = bn.block(0, B)
    HOLDER.classes
    x[r] = x[r] * scale_of(HOLDER)


def test_a_kernel_may_read_an_object_that_holds_one():
    x = np.ones(8, np.float32)
    scaled[1](x, B=8)
    np.testing.assert_array_equal(x, 3)
