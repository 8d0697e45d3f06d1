"""How passes are declared and run."""

import time

import pytest

from blocknumba.tile_ir.ir.verifier import Level
from blocknumba.tile_ir.passes.contract import Pipeline, declared, run_passes
from blocknumba.tile_ir.passes.pipeline import TILE_PASSES, optimise
from blocknumba.tile_ir.text.parser import parse


@declared(reads=("ops",), writes=("layouts",))
def place(fn, _):
    """Give layouts."""
    return fn


@declared(reads=("layouts",), writes=())
def use(fn, _):
    """Need layouts."""
    return fn


@declared(reads=("layouts",), writes=())
def look(fn, _):
    """Look at layouts."""
    return fn


def kernel(adds: int = 0):
    lines = [f"  %{i + 1} = add %{i}, %x : int32" for i in range(adds)]
    return parse("\n".join(["kernel f(", "  %x: int32 = value(x)", ") {", "  %0 = neg %x : int32",
                            *lines, f'  print %{adds} {{prefix=""}}', "  return", "}"]))


def test_a_pass_knows_its_name_and_what_it_does():
    assert (place.name, place.summary) == ("place", "Give layouts.")


def test_what_a_pass_reads_must_be_written_before():
    Pipeline((place, use))

    with pytest.raises(AssertionError, match=r"use reads \['layouts'\], which no earlier pass"):
        Pipeline((use, place))


def test_what_a_pass_reads_may_be_given():
    assert Pipeline((use,), given=Pipeline((place,)).written)[0] is use


def test_a_pass_is_registered_before_another_and_taken_out_again():
    passes = Pipeline((place, use))

    passes.register(look, before="use")
    assert list(passes) == [place, look, use]

    passes.unregister(look)
    assert list(passes) == [place, use]


def test_a_pass_that_is_registered_too_early_or_missed_leaves_the_pipeline_as_it_was():
    passes = Pipeline((place, use))

    with pytest.raises(AssertionError, match="look reads"):
        passes.register(look, before="place")
    with pytest.raises(AssertionError, match="use reads"):
        passes.unregister(place)
    assert list(passes) == [place, use]


def test_the_observer_sees_every_pass_in_order():
    seen = []

    optimise(kernel(), observer=lambda pass_, fn, seconds: seen.append(pass_.name))

    assert seen == [pass_.name for pass_ in TILE_PASSES]


def test_each_result_is_verified_at_the_level():
    level = Level("nothing", of_op=(lambda op: "is there",))

    with pytest.raises(AssertionError, match="not well formed at nothing"):
        run_passes(kernel(), (place,), level=level)


def test_passes_take_linear_time():
    def seconds(adds):
        fn, taken = kernel(adds), []
        for _ in range(3):
            started = time.process_time()
            optimise(fn)
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(1600) < 12 * seconds(400)
