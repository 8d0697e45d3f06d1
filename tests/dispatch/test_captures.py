"""Globals and closure variables."""

import math
import types

import numpy as np
import pytest

from blocknumba.dispatch.compile.captures import capture
from blocknumba.dispatch.launch.kernel import jit
from blocknumba.dispatch.launch.watching import MISSING


@pytest.fixture
def module():
    """A module of a user, and a function that makes functions in it."""
    made = types.ModuleType("user_module")
    made.__dict__.update(np=np, math=math)

    def define(source: str, name: str = "f"):
        exec(source, made.__dict__)
        return made.__dict__[name]

    made.define = define
    return made


def names(captures) -> set[str]:
    """What was captured of variables; not the code of the functions."""
    return {read.path.removeprefix("user_module.") for read in captures.reads
            if not read.name.startswith("__")}


def test_globals_that_the_code_reads_are_captured_and_no_others(module):
    f = module.define("A = 1\nB = 2\ndef f(x): return x + A")

    assert names(capture(f)) == {"A"}


def test_changing_a_global_is_seen_and_changes_the_key(module):
    f = module.define("A = 1\ndef f(x): return x + A")
    before = capture(f)
    assert before.is_current()

    module.A = 2
    after = capture(f)

    assert not before.is_current()
    assert before.values != after.values


@pytest.mark.parametrize("value", [1, None, np, 1.5])
@pytest.mark.parametrize("change", [
    lambda module: setattr(module, "A", 2), lambda module: setattr(module, "A", True),
    lambda module: delattr(module, "A")])
@pytest.mark.parametrize("source", ["def f(x): return x + A", "B = 1\ndef f(x): return x + A + B"])
def test_a_global_that_changes_or_is_gone_is_a_change(module, source, value, change):
    f = module.define(source)
    module.A = value
    before = capture(f)
    assert before.is_current()

    change(module)

    assert not before.is_current()


def test_code_that_reads_no_globals_is_always_current(module):
    captures = capture(module.define("def f(x): return x"))

    assert captures.is_current()


def test_what_can_change_in_place_is_never_current(module):
    captures = capture(module.define("A = [1]\ndef f(x): return x + A[0]"))

    assert not captures.is_current()


def test_a_closure_variable_that_is_gone_is_a_change():
    def outer():
        a = 1

        def inner(x):
            return x + a

        def forget():
            nonlocal a
            del a

        return inner, forget

    inner, forget = outer()
    before = capture(inner)
    assert before.is_current()

    forget()

    assert not before.is_current()


def test_changing_a_global_back_gives_the_first_key_again(module):
    f = module.define("A = 1000\ndef f(x): return x + A")
    first = capture(f)

    module.A = 2
    module.A = int("1000")

    assert capture(f).values == first.values


@pytest.mark.parametrize("old, new", [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (1.0,))])
def test_a_global_of_another_type_changes_the_key(module, old, new):
    f = module.define("def f(x): return x + A")
    module.A = old
    before = capture(f)
    module.A = new

    assert capture(f).values != before.values


def test_globals_of_functions_that_are_called_count(module):
    f = module.define("A = 1\ndef g(x): return x + A\ndef f(x): return g(x)")
    before = capture(f)

    module.A = 2

    assert not before.is_current()
    assert capture(f).values != before.values


def test_globals_of_kernels_that_are_called_count(module):
    module.jit = jit
    f = module.define("A = 1\n@jit\ndef g(x): return x + A\ndef f(x): return g(x)")
    before = capture(f)

    module.A = 2

    assert not before.is_current()


def test_replacing_a_function_that_is_called_counts(module):
    f = module.define("def g(x): return x\ndef f(x): return g(x)")
    before = capture(f)

    module.define("def g(x): return -x", "g")

    assert not before.is_current()
    assert capture(f).values != before.values


def test_functions_that_call_each_other_are_followed_once(module):
    f = module.define("A = 1\ndef g(x): return f(x) + A\ndef f(x): return g(x)")

    assert names(capture(f)) == {"f", "g", "A"}


def test_attributes_of_users_modules_count(module):
    settings = types.ModuleType("user_settings")
    settings.BLOCK = 128
    module.settings = settings
    f = module.define("def f(x): return x + settings.BLOCK")
    before = capture(f)

    settings.BLOCK = 256

    assert not before.is_current()
    assert capture(f).values != before.values


def test_attributes_of_a_module_under_another_name_count(module):
    settings = types.ModuleType("user_settings")
    settings.BLOCK = 128
    module.settings = settings
    f = module.define("def f(x):\n    s = settings\n    return x + s.BLOCK")
    before = capture(f)
    assert capture(f).values == before.values

    settings.BLOCK = 256

    assert not before.is_current()
    assert capture(f).values != before.values


def test_attributes_of_numpy_and_blocknumba_are_not_watched(module):
    f = module.define("def f(x): return np.exp(x) + math.pi")

    assert names(capture(f)) == {"np", "math"}


def test_variables_of_enclosing_functions_count(module):
    def make(step):
        def f(x):
            return x + step

        def change(value):
            nonlocal step
            step = value

        return f, change

    f, change = make(1)
    before = capture(f)
    change(2)

    assert not before.is_current()
    assert capture(f).values != before.values


def test_code_inside_the_function_counts(module):
    f = module.define("A = 1\ndef f(x):\n    g = lambda y: y + A\n    return g(x)")

    assert "A" in names(capture(f))


def test_an_array_that_is_changed_in_place_changes_the_key(module):
    module.TABLE = np.array([1, 2, 3])
    f = module.define("def f(x): return x + TABLE[0]")
    before = capture(f)

    module.TABLE[0] = 7

    assert not before.is_current()
    assert capture(f).values != before.values


@pytest.mark.parametrize("value", [
    np.bool_(True), np.int8(-3), np.uint64(2**63), np.float16(0.5), np.complex64(1j),
    np.array(3.0)])
def test_numpy_scalars_are_captured_with_their_dtype(module, value):
    f = module.define("def f(x): return x + A")
    module.A = value
    before = capture(f)
    module.A = value.astype(np.complex128)

    assert capture(f).values != before.values


def test_a_name_that_is_not_defined_is_left_to_typing(module):
    f = module.define("def f(x): return x + undefined + len(x)")

    found = {read.name: read.value for read in capture(f).reads}
    assert found["undefined"] is MISSING and found["len"] is len
