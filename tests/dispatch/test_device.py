"""What is known of the device that kernels run on."""

import pytest

import blocknumba as bn

from blocknumba.dispatch.launch import device
from blocknumba.nvvm_lower.target import Target


def test_without_a_gpu_kernels_run_on_the_cpu(monkeypatch):
    monkeypatch.setattr(device, "find_driver", lambda: None)

    found = bn.current_device()

    assert found == device.CPU
    assert not found.has("wgmma")
    assert found.multiprocessors == 1


def test_a_gpu_has_what_its_target_has():
    hopper = device.Device("H100", Target.parse("sm_90a"), 132)

    assert hopper.has("wgmma")
    assert not hopper.has("tcgen05")


def test_what_no_target_has_is_an_error():
    with pytest.raises(ValueError, match="warp_drive"):
        device.CPU.has("warp_drive")
