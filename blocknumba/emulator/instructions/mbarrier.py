"""mbarrier: init, inval, arrive, expect_tx, complete_tx, try_wait and test_wait."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator.access import shared_offsets, spaces_of
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.errors import AccessError
from blocknumba.emulator.instructions.warp import uniform
from blocknumba.emulator.memory import SHARED_WINDOW, WINDOWS
from blocknumba.emulator.syntax import Address, Sink
from blocknumba.emulator.waits import Wait

SIZE = 8  # bytes of an mbarrier; PTX ISA, "Size and alignment of mbarrier object"


def offsets_in_shared(cohort: Cohort, address: np.ndarray, size: int, what: str) -> np.ndarray:
    """Offsets in shared memory of each active lane's address, generic or shared.

    Errors: AccessError out of bounds or misaligned to size.
    """
    address = cohort.chosen(address)
    if (address & (size - 1)).any():
        raise AccessError(f"{what}: misaligned, accepted an address that is a multiple of {size}")
    if int(address.max()) >= SHARED_WINDOW:
        (space, _), *more = spaces_of(address)
        if more or space != "shared":
            raise AccessError(f"{what}: given {space} memory, accepted shared")
        address = address - WINDOWS["shared"]
    return shared_offsets(cohort, address, cohort.chosen(cohort.blocks), size, what)


def _order_behind_init(cohort: Cohort, offsets: np.ndarray) -> None:
    """Refuse the use of an mbarrier whose initialization nothing orders before it."""
    races = cohort.launch.races
    if races is not None:
        races.check_behind_write(cohort, offsets, SIZE)


def initialize(site: Site) -> Step:
    """mbarrier.init [address], count."""
    address, count = site.address(site.operands[0]), site.read(site.operands[1], "u32")
    pc = site.pc

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        offsets = offsets_in_shared(cohort, address(cohort), SIZE, "mbarrier.init")
        for offset, number in zip(offsets, cohort.chosen(count(cohort))):
            launch.mbarriers.create(int(offset), int(number))
        if launch.races is not None:
            mbarriers = launch.races.is_mbarrier.reshape(-1, SIZE)
            mbarriers[offsets // SIZE] = False
            launch.races.write(cohort, offsets, SIZE, False, pc, None)
            mbarriers[offsets // SIZE] = True
        if launch.shared_written is not None:
            launch.shared_written.scatter(offsets, SIZE, np.uint64(2**64 - 1))
    return step


def invalidate(site: Site) -> Step:
    """mbarrier.inval [address]."""
    address = site.address(site.operands[0])

    def step(cohort: Cohort) -> None:
        offsets = offsets_in_shared(cohort, address(cohort), SIZE, "mbarrier.inval")
        for offset in offsets:
            cohort.launch.mbarriers.remove(int(offset))
        if cohort.launch.races is not None:
            cohort.launch.races.is_mbarrier.reshape(-1, SIZE)[offsets // SIZE] = False
    return step


def _read_count(site: Site, operands: tuple) -> Reader:
    if operands:
        return site.read(operands[0], "u32")
    one = np.ones(1, np.uint32)
    return lambda cohort: one


def arrive(site: Site) -> Step:
    """mbarrier.arrive, with .expect_tx, .noComplete, and arrive_drop."""
    has_state = not isinstance(site.operands[0], Address)
    index = 1 if has_state else 0
    address = site.address(site.operands[index])
    amount = _read_count(site, site.operands[index + 1:])
    expects, drops = site.has("expect_tx"), site.opcode[1] == "arrive_drop"
    write = site.write(site.operands[0] if has_state else Sink(), "b64")
    relaxed = site.has("relaxed")

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        offsets = offsets_in_shared(cohort, address(cohort), SIZE, "mbarrier.arrive")
        _order_behind_init(cohort, offsets)
        amounts = cohort.chosen(amount(cohort))
        tokens = np.zeros(cohort.lanes, np.uint64)
        lanes = np.flatnonzero(cohort.active_lanes())
        clocks = _clocks(cohort, relaxed)
        for lane, offset, number in zip(lanes, offsets, amounts):
            barrier = launch.mbarriers.at(int(offset))
            tokens[lane] = barrier.phase
            if expects:
                barrier.bytes += int(number)
            barrier.arrive(1 if expects else int(number),
                           None if clocks is None else clocks[lane // LANES], drops)
        write(cohort, tokens)
    return step


def _clocks(cohort: Cohort, relaxed: bool) -> np.ndarray | None:
    """Clocks that each warp of a cohort brings to an mbarrier; none if the arrival is relaxed."""
    races = cohort.launch.races
    if races is None or relaxed:
        return None
    return races.snapshot(*races.members(cohort))


def expect(site: Site) -> Step:
    """mbarrier.expect_tx and mbarrier.complete_tx [address], bytes."""
    address, size = site.address(site.operands[0]), site.read(site.operands[1], "u32")
    completes = site.opcode[1] == "complete_tx"

    def step(cohort: Cohort) -> None:
        offsets = offsets_in_shared(cohort, address(cohort), SIZE, site.opcode[1])
        for offset, number in zip(offsets, cohort.chosen(size(cohort))):
            barrier = cohort.launch.mbarriers.at(int(offset))
            if completes:
                barrier.deliver(int(number), None)
            else:
                barrier.bytes += int(number)
    return step


def wait(site: Site) -> Step:
    """mbarrier.try_wait: waits until a phase is complete, given by its parity or its state."""
    done = site.write(site.operands[0], "pred")
    address = site.address(site.operands[1])
    by_parity = site.has("parity")
    phase = site.read(site.operands[2], "u32" if by_parity else "u64")
    blocks = site.opcode[1] == "try_wait"

    def step(cohort: Cohort) -> bool:
        if blocks:
            cohort.split_off_absent()
        launch = cohort.launch
        addresses = uniform(cohort, address, "mbarrier.try_wait")
        wanted = uniform(cohort, phase, "mbarrier.try_wait").astype(np.int64)
        first = cohort.blocks[::LANES]
        addresses = np.where(addresses >= SHARED_WINDOW, addresses - SHARED_WINDOW, addresses)
        offsets = shared_offsets(cohort, addresses, first, SIZE, "mbarrier")
        _order_behind_init(cohort, np.repeat(offsets, LANES)[cohort.active_lanes()])

        def ready(keys: np.ndarray) -> np.ndarray:
            phases = np.array([launch.mbarriers.at(int(offset)).phase for offset in keys[:, 0]])
            if by_parity:
                return (phases & 1) != (keys[:, 1] & 1)
            return phases > keys[:, 1]

        def resume(woken: Cohort, keys: np.ndarray) -> None:
            _acquire(woken, keys[:, 0], np.ones(len(keys), bool))
            done(woken, np.ones(1, bool))
        keys = np.stack((offsets, wanted), 1)
        if blocks:
            return Wait(keys, ready, lambda row: _reason(cohort, row, by_parity),
                        resume).begin(cohort)
        over = ready(keys)
        _acquire(cohort, offsets, over)
        done(cohort, np.repeat(over, LANES))
        return not over.all()
    return step


def _acquire(cohort: Cohort, offsets: np.ndarray, over: np.ndarray) -> None:
    """Warps whose wait is over see what the arrivals had seen."""
    races = cohort.launch.races
    if races is None:
        return
    for offset, cluster, warp, done in zip(offsets, *races.members(cohort), over):
        past = cohort.launch.mbarriers.at(int(offset)).past
        if done and past is not None:
            races.acquire(int(cluster), int(warp), past)


def _reason(cohort: Cohort, row: np.ndarray, by_parity: bool) -> str:
    launch = cohort.launch
    barrier = launch.mbarriers.at(int(row[0]))
    block, address = divmod(int(row[0]), launch.shared_stride)
    what = "parity" if by_parity else "phase"
    missing = (f"{barrier.bytes} bytes to come" if barrier.bytes >= 0
               else f"{-barrier.bytes} bytes too many")
    return (f"the mbarrier at {address:#x} of block {launch.block_name(block)}, {what} "
            f"{int(row[1])} (phase {barrier.phase} is under way: {barrier.pending} of "
            f"{barrier.count} arrivals to come, {missing})")


def pending_count(site: Site) -> Step:
    """mbarrier.pending_count: a state of this emulator does not hold it."""
    raise site.refuse("the emulator keeps no count in a state")


_VARIANTS: dict[str, Decoder] = {
    "init": initialize, "inval": invalidate, "arrive": arrive, "arrive_drop": arrive,
    "expect_tx": expect, "complete_tx": expect, "try_wait": wait, "test_wait": wait,
    "pending_count": pending_count,
}


def decode(site: Site) -> Step:
    """Any mbarrier instruction."""
    variant = _VARIANTS.get(site.opcode[1])
    if variant is None:
        raise site.refuse("accepted mbarrier with {}", ", ".join(_VARIANTS))
    return variant(site)


TABLE: dict[str, Decoder] = {"mbarrier": decode}
