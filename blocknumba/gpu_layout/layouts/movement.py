"""Plans of conversions: how a tile moves from one register layout to another.

The map from a destination (register, lane, warp) to the source that holds its element decides:

    it keeps lane and warp      RegisterMove   registers are renamed
    it keeps the warp           ShuffleMove    selects, shuffles, selects
    it crosses warps            SharedMove     write, barrier, read (also where it costs less)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, LANE_BITS, REGISTER, WARP, replication
from blocknumba.gpu_layout.layouts.shared import BANK_BYTES, SharedAccess, access, best_shared

# Costs are issue slots of one warp on one SM sub-partition, measured in shared-memory passes.
SHUFFLE_LATENCY = 25  # cycles: shfl, as microbenchmarks of sm_80 and sm_90 report it
SHARED_LATENCY = 90  # cycles: a write, a barrier of four warps and a read
SELECTS_PER_SLOT = 2  # CUDA Programming Guide, 'Arithmetic Instructions': 64 selects a cycle


@dataclass(frozen=True, slots=True)
class RegisterMove:
    """Within threads: register r of the result is register sources[r] of the operand."""

    sources: tuple[int, ...]

    @property
    def cost(self) -> int:
        """Issue slots: a renaming takes none."""
        return 0


@dataclass(frozen=True, slots=True)
class Select:
    """Selection in threads with parity(thread & thread_mask) 1: register r gets r ^ register_xor.

    thread: lane in the low 5 bits, warp above them.
    """

    thread_mask: int
    register_xor: int


@dataclass(frozen=True, slots=True)
class ShuffleRound:
    """One shuffle of one register: every thread offers `register`, and reads from its source lane
    xor lane_xor."""

    register: int
    lane_xor: int


@dataclass(frozen=True, slots=True)
class ShuffleMove:
    """Within a warp, in three steps, all of them the same code in every thread:

    1. the `before` selects, in order, on the operand's registers;
    2. round i fills slot i with the value of rounds[i].register in lane
       apply(source_lane, thread) ^ rounds[i].lane_xor of the same warp;
    3. the `after` selects, in order, on the slots, which then are the result's registers.

    source_lane: one column (a lane) per bit of thread: lane in the low 5 bits, warp above them.
    element_bits: size of an element.
    """

    before: tuple[Select, ...]
    source_lane: gf2.Matrix
    rounds: tuple[ShuffleRound, ...]
    after: tuple[Select, ...]
    element_bits: int

    @property
    def stays_in_lane(self) -> bool:
        """Whether every lane reads itself: step 2 is a renaming of registers."""
        own = gf2.identity(LANE_BITS) + (0,) * (len(self.source_lane) - LANE_BITS)
        return self.source_lane == own and not any(r.lane_xor for r in self.rounds)

    @property
    def shuffles(self) -> int:
        """The number of different shuffles."""
        return 0 if self.stays_in_lane else len(set(self.rounds))

    @property
    def cost(self) -> int:
        """Issue slots of the shuffles and selects, and the latency of a shuffle."""
        words = max(1, self.element_bits // 32)
        latency = SHUFFLE_LATENCY if self.shuffles else 0
        return words * (self.shuffles + -(-self._select_count // SELECTS_PER_SLOT)) + latency

    @property
    def _select_count(self) -> int:
        """Selects of single registers, without dead ones."""
        count = len(self.after) * len(self.rounds)
        needed = {shuffle.register for shuffle in self.rounds}
        for select in reversed(self.before):
            count += len(needed)
            needed |= {register ^ select.register_xor for register in needed}
        return count


@dataclass(frozen=True, slots=True)
class SharedMove:
    """Through shared memory: write, barrier, read.

    shared: offset -> tile.  within_warp: every thread reads what its own warp wrote.
    """

    shared: LinearLayout
    write: SharedAccess
    read: SharedAccess
    within_warp: bool


Move = RegisterMove | ShuffleMove | SharedMove


@lru_cache(maxsize=4096)
def plan_move(source: LinearLayout, destination: LinearLayout, element_bits: int) -> Move:
    """The cheapest move of a tile from source to destination, by the costs above.

    Both layouts have the same number of warps and hold every element.  element_bits: in memory.
    """
    direct = _direct_move(source, destination, element_bits)
    if direct is not None:
        return direct
    shared = best_shared(source, destination, element_bits)
    return SharedMove(
        shared,
        access(source, shared, element_bits),
        access(destination, shared, element_bits),
        stays_in_warp(source, destination),
    )


@lru_cache(maxsize=4096)
def move_cost(source: LinearLayout, destination: LinearLayout, element_bits: int) -> int:
    """The cost of plan_move(source, destination, element_bits), assuming no bank conflicts."""
    if source == destination:
        return 0
    direct = _direct_move(source, destination, element_bits)
    if direct is not None:
        return direct.cost
    return _min_shared_cost(source, destination, element_bits)


@lru_cache(maxsize=4096)
def _direct_move(
    source: LinearLayout, destination: LinearLayout, element_bits: int
) -> RegisterMove | ShuffleMove | None:
    """The move without shared memory, if there is one and it costs less."""
    pull = source_of(destination, source)
    own_registers = _register_move(pull)
    if own_registers is not None:
        return own_registers
    shuffle = _shuffle_move(pull, element_bits)
    if shuffle is None or shuffle.cost > _min_shared_cost(source, destination, element_bits):
        return None
    return shuffle


def _min_shared_cost(source: LinearLayout, destination: LinearLayout, element_bits: int) -> int:
    """The cost of a move through shared memory without bank conflicts."""
    registers = (1 << source.bits(REGISTER)) + (1 << destination.bits(REGISTER))
    return SHARED_LATENCY + max(2, registers * element_bits // (8 * BANK_BYTES))


@lru_cache(maxsize=4096)
def stays_in_warp(source: LinearLayout, destination: LinearLayout) -> bool:
    """Whether every warp reads only elements that it writes itself."""
    return _stays_in_warp(source_of(destination, source)) and not replication(source).warp


def source_of(destination: LinearLayout, source: LinearLayout) -> LinearLayout:
    """The map p with source(p(x)) == destination(x): where to read the element that belongs at x.

    Where source holds an element several times, the copy nearest to x is chosen: in the same
    thread if there is one, else in the same warp.
    """
    assert source.outs == destination.outs, f"{source.outs} and {destination.outs} differ"
    assert source.bits(WARP) == destination.bits(WARP), f"{source} and {destination}"
    reach = source.columns
    near = (source[REGISTER], source[REGISTER] + source[LANE], reach)
    spans = tuple(gf2.Echelon(columns) for columns in near)
    columns = ()
    for dim, _ in destination.ins:
        for bit, target in enumerate(destination[dim]):
            own = 0 if dim == REGISTER else 1 << source.first_bit(dim) + bit
            columns += (_nearest(spans, target, own, gf2.apply(reach, own), dim == WARP),)
    return LinearLayout(destination.ins, source.ins, columns)


def _nearest(
    spans: tuple[gf2.Echelon, ...], target: int, own: int, own_image: int, keep_warp: bool
) -> int:
    """A packed source of target: in the thread `own` if possible, else in its warp, else any."""
    in_thread, in_warp, anywhere = spans
    rest, used = in_thread.reduce(target ^ own_image)
    if not rest:
        return own | used
    rest, used = in_warp.reduce(target ^ (own_image if keep_warp else 0))
    if not rest:
        return used | (own if keep_warp else 0)
    rest, used = anywhere.reduce(target)
    assert not rest, "the source layout does not hold every element"
    return used


def _split(pull: LinearLayout) -> tuple[gf2.Matrix, gf2.Matrix, gf2.Matrix, gf2.Matrix]:
    """The four blocks of pull: register and thread reached from register, then from thread."""
    bits = pull.outs[0][1]
    low = (1 << bits) - 1
    register, thread = pull[REGISTER], pull[LANE] + pull[WARP]
    return (
        tuple(column & low for column in register),
        tuple(column >> bits for column in register),
        tuple(column & low for column in thread),
        tuple(column >> bits for column in thread),
    )


def _stays_in_warp(pull: LinearLayout) -> bool:
    _, of_register, _, of_thread = _split(pull)
    expected = (0,) * LANE_BITS + gf2.identity(len(of_thread) - LANE_BITS)
    return not any(column >> LANE_BITS for column in of_register) and expected == tuple(
        column >> LANE_BITS for column in of_thread
    )


def _register_move(pull: LinearLayout) -> RegisterMove | None:
    register, thread_of_register, register_of_thread, thread = _split(pull)
    if any(thread_of_register) or any(register_of_thread) or thread != gf2.identity(len(thread)):
        return None
    return RegisterMove(tuple(gf2.images(register)))


def _shuffle_move(pull: LinearLayout, element_bits: int) -> ShuffleMove | None:
    """The shuffles that implement pull; None if it crosses warps or lanes need two sources.

    A lane reads one lane per round, and a lane offers one register per round.  So the registers of
    the result are taken in an order that depends on the thread (register = slot ^ after(thread)),
    such that threads which read different registers read different lanes; what a lane offers then
    is a linear function of the lane (register = round ^ before(thread)).
    """
    if not _stays_in_warp(pull):
        return None
    register, lane_of_register, register_of_thread, thread = _split(pull)
    after = _distinct_sources(thread, lane_of_register)
    source_thread = tuple(
        own ^ gf2.apply(lane_of_register, slot) for own, slot in zip(thread, after)
    )
    offered = tuple(
        own ^ gf2.apply(register, slot) for own, slot in zip(register_of_thread, after)
    )
    before = gf2.factor_through(offered, source_thread, len(thread))
    if before is None:
        return None
    rounds = []
    for slot_register, lane in zip(gf2.images(register), gf2.images(lane_of_register)):
        rounds.append(ShuffleRound(slot_register ^ gf2.apply(before, lane), lane))
    lane_mask = (1 << LANE_BITS) - 1
    return ShuffleMove(
        _selects(before),
        tuple(column & lane_mask for column in source_thread),
        tuple(rounds),
        _selects(after),
        element_bits,
    )


def _distinct_sources(thread: gf2.Matrix, lane_of_register: gf2.Matrix) -> gf2.Matrix:
    """after: per thread bit a set of registers, such that lanes read from distinct lanes."""
    echelon = gf2.Echelon()
    dependent = [bit for bit, column in enumerate(thread) if not echelon.add(column)[0]]
    after = [0] * len(thread)
    for bit in dependent:
        for index, lane in enumerate(lane_of_register):
            if echelon.add(lane)[0]:
                after[bit] = 1 << index
                break
    return tuple(after)


def _selects(by_thread: gf2.Matrix) -> tuple[Select, ...]:
    """The selects that together replace register r by r ^ by_thread(thread)."""
    basis = gf2.independent(by_thread)
    masks = [0] * len(basis)
    for bit, column in enumerate(by_thread):
        combination = gf2.solve(basis, column)
        for index in range(len(basis)):
            masks[index] |= (combination >> index & 1) << bit
    return tuple(Select(mask, vector) for mask, vector in zip(masks, basis))

