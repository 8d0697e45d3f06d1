"""tensormap.replace and tensormap.cp_fenceproxy: tensor maps that kernels make."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator.access import check_alignment, shared_offsets
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import AccessError
from blocknumba.emulator.syntax import Immediate
from blocknumba.emulator.tensor_map import SIZE, replace_field, set_fenced


def tensor_map(site: Site) -> Step:
    """tensormap.replace, or .cp_fenceproxy."""
    return _publish(site) if site.has("cp_fenceproxy") else _replace(site)


def _replace(site: Site) -> Step:
    """[shared]{, axis}, value."""
    if not site.has("shared::cta"):
        raise site.refuse("given a map in global memory, accepted one in shared::cta")
    field, address = site.opcode[3], site.address(site.operands[0])
    axis = site.operands[1] if len(site.operands) > 2 else Immediate(0)
    value = site.read(site.operands[-1], site.opcode[-1].replace("b", "u"))

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        at, values = cohort.by_lane(address(cohort)), cohort.by_lane(value(cohort))
        check_alignment(cohort, at, SIZE, "shared")
        blocks = cohort.chosen(cohort.blocks)
        offsets = shared_offsets(cohort, cohort.chosen(at), blocks, SIZE, "tensormap.replace")
        for offset, one in zip(offsets, cohort.chosen(values)):
            replace_field(launch.shared.data[offset:offset + SIZE], field, int(one),
                          int(axis.value))
    return step


def _publish(site: Site) -> Step:
    """[global], [shared], size: whole warps copy maps; TMA sees them after a fence."""
    target, source = site.address(site.operands[0]), site.address(site.operands[1])

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        to, origin = cohort.by_lane(target(cohort)), cohort.by_lane(source(cohort))
        check_alignment(cohort, to, SIZE, "global")
        check_alignment(cohort, origin, SIZE, "shared")
        for row in LANES * np.flatnonzero(cohort.active_by_warp().any(1)):
            offset = int(shared_offsets(cohort, origin[row:row + 1], cohort.blocks[row:row + 1],
                                        SIZE, "tensormap.cp_fenceproxy")[0])
            address = int(to[row])
            segment = launch.memory.find(address, address + SIZE)
            if segment is None:
                raise AccessError(f"tensormap.cp_fenceproxy: no memory at {address:#x}")
            start = address - segment.base
            segment.bytes.data[start:start + SIZE] = launch.shared.data[offset:offset + SIZE]
            set_fenced(segment.bytes.data[start:], False)
    return step


TABLE: dict[str, Decoder] = {"tensormap": tensor_map}
