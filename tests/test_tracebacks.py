"""Tracebacks of errors: they end where the user's code calls blocknumba."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

import blocknumba as bn
from blocknumba import tracebacks
from blocknumba.errors import BlockError
from blocknumba.settings import Settings


@bn.jit
def misspelt(x, B: bn.constexpr):
    x[0] = bn.expp(1.0)


@bn.jit
def correct(x, B: bn.constexpr = 1):
    x[0] = B


class ArrayThatFails:
    """An array of an unknown library, whose protocol fails."""

    @property
    def __cuda_array_interface__(self):
        raise ZeroDivisionError("of the user's array")


def failing_grid(arguments):
    raise LookupError("of the user's grid")


def failing_hook(event):
    raise LookupError("of the user's hook")


ARRAY = np.zeros(4, np.float32)
CALLS = {
    "launch": lambda: misspelt[1](ARRAY, B=8),
    "warmup": lambda: misspelt.warmup(ARRAY, B=8),
    "bind": lambda: misspelt.bind(1, ARRAY, B=8),
    "bound launch": lambda: correct.bind(1, ARRAY, B=8)(stream="no stream"),
    "compile": lambda: bn.compile(misspelt, ("f32[:]",), {"B": 8}),
    "wrong arguments": lambda: misspelt[1](ARRAY, ARRAY, ARRAY, ARRAY),
    "wrong grid": lambda: correct[1.5](ARRAY),
    "no grid": lambda: correct(ARRAY),
    "option of jit": lambda: bn.jit(num_warp=4),
    "decorated": lambda: bn.jit(num_warps=4)(3),
    "Kernel": lambda: bn.Kernel(3),
    "autotune": lambda: bn.autotune(configs=[3])(correct),
    "autotuned": lambda: bn.autotune(configs=[bn.Config({"C": 1})])(correct),
    "autotuned launch": lambda: bn.autotune(
        configs=[bn.Config({"B": 1}), bn.Config({"B": 2})])(misspelt)[1](ARRAY),
    "heuristics": lambda: bn.heuristics(3),
    "heuristics of a function": lambda: bn.heuristics({})(print),
    "Config": lambda: bn.Config({}, num_warps=3),
    "function of the language": lambda: bn.exp(1.0),
    "hook": lambda: correct.remove_launch_hook(print),
}


def frames_of(error: BaseException) -> list[str]:
    """The names of the functions in a traceback, from this file's `with` on."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_error_ends_where_the_user_calls(call):
    with pytest.raises(BlockError) as caught:
        call()

    assert frames_of(caught.value) == ["test_an_error_ends_where_the_user_calls", "<lambda>"]
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("call,kind,frames", [
    (lambda: correct[failing_grid](ARRAY), LookupError, ["<lambda>", "failing_grid"]),
    (lambda: correct[1](ArrayThatFails()), ZeroDivisionError,
     ["<lambda>", "__cuda_array_interface__"]),
    (lambda: bn.heuristics({"B": failing_grid})(correct)[1](ARRAY), LookupError,
     ["<lambda>", "failing_grid"])], ids=["grid", "array", "heuristics"])
def test_frames_of_functions_of_the_user_stay(call, kind, frames):
    with pytest.raises(kind) as caught:
        call()

    assert frames_of(caught.value)[1:] == frames


def test_frames_of_a_hook_stay():
    correct.add_launch_hook(failing_hook)
    try:
        with pytest.raises(LookupError) as caught:
            correct[1](ARRAY)
    finally:
        correct.remove_launch_hook(failing_hook)

    assert frames_of(caught.value)[1:] == ["failing_hook"]


def test_an_exception_that_is_being_handled_stays_in_the_chain():
    handled = KeyError("of the user")
    with pytest.raises(BlockError) as caught:
        try:
            raise handled
        except KeyError:
            correct[1.5](ARRAY)

    shown = "".join(traceback.format_exception(caught.value))
    assert "KeyError: 'of the user'" in shown or caught.value.__suppress_context__
    assert shown.count("Traceback") <= 2


def test_a_bug_of_ours_keeps_its_frames(monkeypatch):
    monkeypatch.setattr(bn.Kernel, "captures", eval(
        "lambda self, constants: {}['broken']", {"__name__": "blocknumba.dispatch.launch.kernel"}))
    with pytest.raises(KeyError) as caught:
        correct[1](ARRAY)

    assert "prepare" in frames_of(caught.value)


def test_all_frames_are_kept_where_the_settings_ask(monkeypatch):
    monkeypatch.setattr(tracebacks, "SETTINGS", Settings(full_traceback=True))
    with pytest.raises(BlockError) as caught:
        misspelt[1](ARRAY, B=8)

    assert len(frames_of(caught.value)) > 5


PROGRAM = """
    import numpy as np
    import blocknumba as bn

    @bn.jit
    def kernel(x):
        x[0] = bn.expp(1.0)

    kernel[1](np.zeros(4, np.float32))
"""


def test_a_program_shows_its_own_line_and_the_message(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))

    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)

    assert done.stderr.count("File ") == 1
    assert done.stderr.splitlines()[1].endswith("line 9, in <module>")
    assert "    x[0] = bn.expp(1.0)" in done.stderr
