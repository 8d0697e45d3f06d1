"""Calls of one kernel with several signatures: classes, positions, options, and mistakes."""

import threading

import numpy as np
import pytest
from stub_libraries import CupyArray, TorchTensor

from blocknumba.dispatch.launch import kernel as kernel_module
from blocknumba.dispatch.launch.launchers import FIRST_PATIENCE
from blocknumba.dispatch.launch.kernel import jit
from blocknumba.dispatch.launch.launcher import generate_launcher
from blocknumba.errors import BlockTypeError


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


def make_scale():
    @jit
    def scale(x, out, n=7, B: constexpr = 64):
        """Never compiled: the test's compiler makes it."""

    return scale


def arrays_of(library) -> tuple:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    return library(values), library(np.zeros_like(values))


@pytest.fixture
def arrays():
    return arrays_of(CupyArray)


def test_positions_names_and_defaults_make_the_same_launch(stub, compiler, arrays):
    scale, (x, out) = make_scale(), arrays

    for _ in range(2):
        scale[1](x, out, 7, 64)
        scale[1](x, out, 7, B=64)
        scale[1](x, out, B=64, n=7)
        scale[1](x, out, n=7, B=64)
        scale[1](B=64, n=7, out=out, x=x)
        scale[1](x, out)
        scale[1](x, out, num_warps=4)

    first, *others = [list(launch.parameters[:11]) for launch in stub.launches]
    assert others == [first] * 13
    assert len(compiler.compilations) == 2  # one with an option


def test_signatures_that_alternate_each_get_their_own_arguments(stub, compiler):
    scale = make_scale()
    calls = [arrays_of(CupyArray) + (n,) for n in (3, np.int64(3), np.uint8(3), np.int16(3))]
    calls += [arrays_of(TorchTensor) + (n,) for n in (3, np.int64(3), None)]

    for _ in range(3):
        for call in calls:
            scale[1](*call)

    pointers = [x.data.ptr if isinstance(x, CupyArray) else x.data_ptr() for x, _, _ in calls]
    assert [launch.parameters[0] for launch in stub.launches] == pointers * 3
    assert len(compiler.compilations) == 5  # the library does not matter


MISTAKES = [
    (lambda launch, x, out: launch(x), "scale: missing out"),
    (lambda launch, x, out: launch(out=out), "scale: missing x"),
    (lambda launch, x, out: launch(), "scale: missing x, out"),
    (lambda launch, x, out: launch(x, out, 7, 64, 5),
     r"scale: given 5 positional arguments, accepted 4 \(x, out, n, B\)"),
    (lambda launch, x, out: launch(x, out, 7, BLOCK=64), "scale: given BLOCK=, accepted 4"),
    (lambda launch, x, out: launch(x, out, 7, B=64, warps=4), "scale: given warps=, accepted 4"),
    (lambda launch, x, out: launch(x, "out", 7, B=64), "scale: argument out: given 'out'")]


@pytest.mark.parametrize("mistake, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_the_same_error_cold_and_warm(stub, compiler, arrays, mistake, message):
    scale, texts = make_scale(), []

    for _ in range(2):
        with pytest.raises(BlockTypeError, match=message) as caught:
            mistake(scale[1], *arrays)
        texts.append(str(caught.value))
        scale[1](*arrays, 7, B=64)
        scale[1](*arrays)

    assert texts[0] == texts[1]


def test_an_argument_that_is_given_twice_is_an_error_cold_and_warm(stub, compiler, arrays):
    scale = make_scale()
    with pytest.raises(BlockTypeError, match="scale: given x twice, by position and by name"):
        scale[1](*arrays, x=arrays[0])
    scale[1](*arrays)

    with pytest.raises(TypeError, match=r"scale\(\) got multiple values for argument 'x'"):
        scale[1](*arrays, x=arrays[0])


def test_positions_and_names_are_one_call_signature(stub, compiler, arrays, monkeypatch):
    scale, (x, out) = make_scale(), arrays
    made = []
    monkeypatch.setattr(kernel_module, "generate_launcher",
                        lambda *given: made.append(given) or generate_launcher(*given))

    for _ in range(2):
        scale[1](x, out, 7, 64)
        scale[1](x, out, n=7, B=64)
        scale[1](B=64, n=7, out=out, x=x)
        scale[1](x, B=64, out=out, n=7)

    assert len(made) == 1
    assert len({bytes(launch.parameters) for launch in stub.launches}) == 1


@pytest.mark.parametrize("name, warps", [("num_warps", 8), ("n", None)])
def test_a_parameter_named_like_an_option_is_one_only_by_name(stub, compiler, arrays, name, warps):
    scope = {"constexpr": constexpr}
    exec(f"def copy(x, {name}: constexpr, out): pass", scope)
    copy, (x, out) = jit(num_warps=2)(scope["copy"]), arrays

    for _ in range(2):
        copy[1](x, 8, out)
        copy[1](x, out=out, **{name: 8})

    by_position, by_name = 64, 32 * (warps or 2)
    assert [launch.block[0] for launch in stub.launches] == [by_position, by_name] * 2
    assert {launch.parameters[5] for launch in stub.launches} == {out.data.ptr}


def test_a_signature_that_is_launched_again_and_again_is_tried_first(stub, compiler, monkeypatch):
    scale, made = make_scale(), []
    monkeypatch.setattr(kernel_module, "generate_launcher",
                        lambda *given: made.append(generate_launcher(*given)) or made[-1])
    calls = [arrays_of(library) for library in (CupyArray, TorchTensor)]
    for call in calls:
        scale[1](*call)

    tried_first = []
    for call in calls * 3:
        for _ in range(FIRST_PATIENCE + 1):
            scale[1](*call)
        tried_first.append(scale[1].__func__)

    assert tried_first == made * 3
    assert len(stub.launches) == 2 + 6 * (FIRST_PATIENCE + 1)


def test_a_launch_made_before_the_first_call_serves_every_signature(stub, compiler, arrays):
    launch = make_scale()[2]

    for _ in range(2):
        launch(*arrays, 7, B=64)
        launch(*arrays)

    assert [list(launch.grid) for launch in stub.launches] == [[2, 1, 1]] * 4


@pytest.mark.parametrize("name", ["_x", "self", "grid", "place", "plan", "key",
                                  "type", "arguments", "launch"])
def test_a_parameter_may_have_any_name_but_stream(stub, compiler, arrays, name):
    scope = {}
    exec(f"def copy({name}, out): pass", scope)
    copy = jit(scope["copy"])

    for _ in range(2):
        copy[1](arrays[0], arrays[1])
        copy[1](**{name: arrays[0], "out": arrays[1]})

    assert [launch.parameters[0] for launch in stub.launches] == [arrays[0].data.ptr] * 4


def test_threads_that_launch_with_different_signatures_do_not_disturb_each_other(stub, compiler):
    scale = make_scale()
    kinds = [int, np.int64, np.uint8, np.int16, np.uint32, np.int8]
    calls = [(*arrays_of(CupyArray), kind(number)) for number, kind in enumerate(kinds, 3)]
    together = threading.Barrier(len(calls))

    def work(call):
        together.wait()
        for _ in range(50):
            scale[1](*call)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    given = [(call[0].data.ptr, int(call[2])) for call in calls]
    launched = [(launch.parameters[0], launch.parameters[10] & 0xFF) for launch in stub.launches]
    assert sorted(launched) == sorted(given * 50)
