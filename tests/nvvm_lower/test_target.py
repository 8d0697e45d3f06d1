"""Targets: names, capabilities, which one a device runs."""

import pytest

from blocknumba.errors import BlockValueError
from blocknumba.nvvm_lower.target import TARGETS, Capability, Target


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_found_by_the_name_it_prints(name):
    assert str(Target.parse(name)) == name


def test_an_unknown_target_names_the_known_ones():
    with pytest.raises(BlockValueError) as caught:
        Target.parse("sm_75")

    assert str(caught.value).startswith("target: given 'sm_75', accepted sm_80, sm_86, ")


@pytest.mark.parametrize("capability, name", [
    ((8, 0), "sm_80"), ((8, 6), "sm_86"), ((8, 7), "sm_86"), ((8, 9), "sm_89"),
    ((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((10, 3), "sm_100"), ((12, 0), "sm_120"),
    ((12, 1), "sm_120")])
def test_a_device_gets_the_most_capable_code_that_it_runs(capability, name):
    assert Target.of_capability(capability).name == name


@pytest.mark.parametrize("capability", [(7, 5), (13, 0)])
def test_a_device_that_runs_none_of_our_code_is_an_error(capability):
    with pytest.raises(BlockValueError):
        Target.of_capability(capability)


def test_architecture_specific_code_can_do_more():
    plain, specific = Target.parse("sm_90"), Target.parse("sm_90a")

    assert not plain.has(Capability.WGMMA)
    assert specific.has("wgmma")
    assert plain.capabilities < specific.capabilities


def test_a_misspelt_capability_is_not_silently_absent():
    with pytest.raises(ValueError):
        Target.parse("sm_80").has("wmma")


@pytest.mark.parametrize("warps, registers, shared, blocks", [
    (4, 32, 0, 16),  # threads: 2048 / 128
    (1, 16, 0, 32),  # blocks
    (8, 255, 0, 1),  # registers: 65536 / (8 * 8192)
    (4, 32, 100 * 1024, 2),  # shared: 228 / (100 + 1)
])
def test_resident_blocks_are_limited_by_the_scarcest_resource(warps, registers, shared, blocks):
    assert Target.parse("sm_90a").resident_blocks(warps, registers, shared) == blocks
