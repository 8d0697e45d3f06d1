"""Shared memory: bank conflicts against counting, swizzles against the best there is."""

import random
from collections import defaultdict

import pytest

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import blocked, drop_axis, from_columns, transpose
from blocknumba.gpu_layout.layouts.shared import access, best_shared, conflict_degree, in_order


def count_conflicts(words):
    """How many different words of one bank are touched, at most over banks."""
    banks = defaultdict(set)
    for word in words:
        banks[word % 32].add(word)
    return max(map(len, banks.values()))


@pytest.mark.parametrize("seed", range(200))
def test_the_conflict_degree_is_the_most_words_of_one_bank(seed):
    rng = random.Random(seed)
    lanes = tuple(rng.randrange(1 << 9) for _ in range(5))

    assert conflict_degree(lanes) == count_conflicts(gf2.images(lanes))


def test_lanes_that_read_one_word_do_not_conflict():
    assert conflict_degree((0, 0, 0, 0, 0)) == 1


def wavefronts(moved):
    """Passes of one warp, counted: as many lanes at a time as move 128 bytes together."""
    total = 0
    lanes_together = max(1, min(32, 128 * 8 // (moved.vector * moved.element_bits)))
    for group in moved.groups:
        for first in range(0, 32, lanes_together):
            words = set()
            for lane in range(first, first + lanes_together):
                offset = moved.offsets(register=group[0], lane=lane, warp=0)["offset"]
                start = offset * moved.element_bits // 8
                stop = start + moved.vector * moved.element_bits // 8
                words |= set(range(start // 4, -(-stop // 4)))
            total += count_conflicts(words)
    return total


PAIRS = [
    (transpose(blocked((64, 64), (1, 0), vector, 4), (1, 0)), blocked((64, 64), (1, 0), vector, 4))
    for vector in (1, 4, 8)
] + [
    (blocked((32, 64), (1, 0), 4, 2), blocked((32, 64), (0, 1), 2, 2)),
    (drop_axis(blocked((256, 64), (1, 0), 4, 4), 1), blocked((256,), (0,), 2, 4)),
    (from_columns((4,), (), (0,) * 5, (1, 2)), from_columns((4,), (1, 2), (0,) * 5, (0, 0))),
]


@pytest.mark.parametrize("element_bits", [8, 16, 32, 64])
@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=str)
def test_wavefronts_are_what_the_hardware_would_need(writer, reader, element_bits):
    for shared in (in_order(writer), best_shared(writer, reader, element_bits)):
        for layout in (writer, reader):
            moved = access(layout, shared, element_bits)

            assert moved.wavefronts >= wavefronts(moved)
            if moved.degree == 1 or element_bits >= 32:
                assert moved.wavefronts == wavefronts(moved) or not layout.is_injective


@pytest.mark.parametrize("element_bits", [16, 32, 64])
@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=str)
def test_the_best_swizzle_has_no_conflicts(writer, reader, element_bits):
    shared = best_shared(writer, reader, element_bits)

    assert shared.is_injective and shared.is_surjective
    assert access(writer, shared, element_bits).degree == 1
    assert access(reader, shared, element_bits).degree == 1


def test_rows_that_are_read_as_they_were_written_use_16_bytes_and_no_swizzle():
    layout = blocked((32, 64), (1, 0), 4, 4)

    shared = best_shared(layout, layout, 32)

    assert shared == in_order(layout)
    assert access(layout, shared, 32).vector == 4


def test_every_register_is_in_one_group():
    layout = blocked((32, 64), (1, 0), 4, 2)

    moved = access(layout, in_order(layout), 16)

    registers = [register for group in moved.groups for register in group]
    assert sorted(registers) == list(range(1 << layout.bits("register")))


def test_copies_in_a_thread_are_moved_once():
    layout = LinearLayout.parse("register:1.1.2;lane:4..64;warp:/dim0:7")

    moved = access(layout, in_order(layout), 32)

    assert sorted(r for group in moved.groups for r in group) == [0, 1, 4, 5]
