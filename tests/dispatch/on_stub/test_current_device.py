"""The current device, asked of the stub driver."""

import blocknumba as bn


def test_the_driver_says_how_many_multiprocessors_a_gpu_has(stub):
    found = bn.current_device()

    assert (found.name, str(found.target), found.multiprocessors) == ("stub 0", "sm_90a", 132)
