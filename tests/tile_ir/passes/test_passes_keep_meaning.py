"""Passes on random functions: what is computed stays the same, bit for bit."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))
from equal_functions import equal  # noqa: E402
from random_functions import random_function, results  # noqa: E402

from blocknumba.tile_ir.ir.verifier import TILE  # noqa: E402
from blocknumba.tile_ir.ir.verifier import verify  # noqa: E402
from blocknumba.tile_ir.passes.pipeline import TILE_PASSES  # noqa: E402
from blocknumba.tile_ir.passes.pipeline import optimise  # noqa: E402
from blocknumba.tile_ir.text.printer import text  # noqa: E402  # noqa: E402

PASSES = list(dict.fromkeys(TILE_PASSES))


@pytest.mark.parametrize("pass_", PASSES, ids=lambda pass_: pass_.name)
@pytest.mark.parametrize("seed", range(30))
def test_a_pass_changes_no_bit_of_what_a_function_stores(pass_, seed):
    fn = random_function(seed)

    changed = pass_(fn)

    verify(changed, TILE)
    assert results(changed, seed) == results(fn, seed)


@pytest.mark.parametrize("seed", range(100, 150))
def test_all_passes_together_change_no_bit(seed):
    fn = random_function(seed)

    changed = optimise(fn, verify=True)

    assert results(changed, seed) == results(fn, seed)


@pytest.mark.parametrize("seed", range(200, 230))
def test_the_folding_builder_changes_no_bit(seed):
    fn = random_function(seed)

    folded = random_function(seed, folding=True)

    verify(folded, TILE)
    assert results(folded, seed) == results(fn, seed)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda pass_: pass_.name)
def test_a_pass_leaves_what_it_was_given_as_it_was(pass_):
    fn, same = random_function(7), random_function(7)
    before = text(fn)

    pass_(fn)

    assert text(fn) == before
    assert equal(fn, same)
    verify(fn, TILE)
