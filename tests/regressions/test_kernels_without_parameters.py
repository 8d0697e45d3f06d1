"""The hint for kernels that are methods read the first parameter, which a kernel may not have."""

import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"interpret": True}])
def test_a_kernel_without_parameters_is_launched(options, capfd):
    @bn.jit
    def tells():
        bn.device_print("here")

    tells[2](**options)

    assert capfd.readouterr().out.count("here") == 2


def test_a_kernel_that_is_a_method_says_so():
    class Model:
        @bn.jit
        def forward(self, x):
            x[0] = 1

    with pytest.raises(BlockTypeError, match="forward: missing x") as caught:
        Model().forward[1](0)

    assert caught.value.hint == (
        "it takes self, x; a kernel is no method, define it outside of the class")
