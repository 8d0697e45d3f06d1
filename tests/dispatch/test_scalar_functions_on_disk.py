"""Kernels that call scalar functions, from the disk: found by other programs, and never stale."""

import math
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from blocknumba.dispatch.compile import kernel_code
from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.compile.fingerprint import environment
from blocknumba.settings import SETTINGS, read_settings

PROGRAM = """
import math
import numpy as np
from numba import njit, types, vectorize
from numba.extending import intrinsic, overload
import blocknumba as bn

FACTOR = 3.0
TABLE = np.array([1.0, 2.0])

@njit
def inner(x):
    return x + 1

@njit
def function(x):
    if x < 0:
        raise ValueError("negative")
    return inner(x) * FACTOR + TABLE[0]

def plain(x):
    return inner(x) - 1

@vectorize
def vectorised(x):
    return inner(x) * 2

def of_library(x):
    raise NotImplementedError

@overload(of_library)
def implementation(x):
    return lambda x: x * 4

@intrinsic
def twice(context, x):
    return x(x), lambda context, builder, signature, given: builder.fadd(given[0], given[0])

@bn.jit
def kernel(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = bn.map(function, x[r])
"""
CACHED = ["cache"]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Cache:
    """A folder that this test alone uses."""
    made = Cache(tmp_path / "cache", 1 << 24)
    monkeypatch.setattr(kernel_code, "user_cache", lambda: made)
    return made


def launch(source: str) -> tuple[bool, list[float]]:
    """Whether the kernel of a program that has just started is on disk; what it makes of 0 to 3."""
    module = types.ModuleType("user_program")
    exec(compile(source, "user_program.py", "exec"), module.__dict__)
    x, out = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)
    compiled = module.kernel[1](x, out, B=4, device="cpu")
    assert compiled.native is not None
    return list(compiled.times_ms) == CACHED, out.tolist()


def calling(function: str) -> str:
    """The program whose kernel calls a function."""
    return PROGRAM.replace("bn.map(function,", f"bn.map({function},")


@pytest.mark.parametrize("function, expected", [
    ("function", [4, 7, 10, 13]), ("plain", [0, 1, 2, 3]), ("vectorised", [2, 4, 6, 8])])
def test_the_second_program_finds_what_the_first_compiled(cache, function, expected):
    first = launch(calling(function))

    second = launch(calling(function))

    assert first == (False, expected)
    assert second == (True, expected)


@pytest.mark.parametrize("old, new, expected", [
    ("* FACTOR", "- FACTOR", [-1, 0, 1, 2]),
    ("FACTOR = 3.0", "FACTOR = 4.0", [5, 9, 13, 17]),
    ("[1.0, 2.0]", "[5.0, 2.0]", [8, 11, 14, 17]),
    ("return x + 1", "return x + 2", [7, 10, 13, 16]),
    ("def inner(x):", "def inner(x, by=1):", [4, 7, 10, 13]),
], ids=["function", "global", "array", "callee", "parameters"])
def test_a_program_that_changed_compiles_again(cache, old, new, expected):
    assert PROGRAM.count(old) == 1
    launch(PROGRAM)

    is_cached, out = launch(PROGRAM.replace(old, new))

    assert not is_cached
    assert out == expected


@pytest.mark.parametrize("function, expected", [
    ("lambda x: of_library(x)", [0, 4, 8, 12]), ("lambda x: twice(x)", [0, 2, 4, 6])],
    ids=["overload", "intrinsic"])
def test_what_others_registered_with_numba_is_compiled_by_each_program(cache, function, expected):
    """No digest knows the implementation, so nothing would tell that it changed."""
    for _ in range(2):
        assert launch(calling(function)) == (False, expected)


def test_a_setting_that_changes_what_numba_makes_compiles_again(cache, monkeypatch):
    launch(PROGRAM)
    monkeypatch.setattr(SETTINGS, "numba", read_settings({"NUMBA_OPT": "1"}).numba)
    environment.cache_clear()

    is_cached, _ = launch(PROGRAM)

    monkeypatch.undo()
    environment.cache_clear()
    assert not is_cached


def test_another_process_runs_code_that_calls_numbas_library(tmp_path):
    """`math.gamma` is a function of Numba's, which is not loaded where kernels come from disk."""
    (tmp_path / "program.py").write_text("""
import math
import numpy as np
import blocknumba as bn

def helped(x):
    return math.gamma(x)

@bn.jit
def kernel(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = bn.map(helped, x[r])

x, out = np.arange(1, 5, dtype=np.float32), np.full(4, np.nan, np.float32)
compiled = kernel[1](x, out, B=4, device="cpu")
print(*compiled.times_ms, *out)
""")
    variables = os.environ | {"BLOCKNUMBA_CACHE_DIR": str(tmp_path / "cache")}
    variables.pop("BLOCKNUMBA_CACHE", None)
    told = [subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=variables, text=True,
                           capture_output=True, check=True).stdout.split() for _ in range(2)]

    made = [float(value) for value in told[0][-4:]]
    assert told[1] == [*CACHED, *told[0][-4:]]
    np.testing.assert_allclose(made, [math.gamma(x) for x in range(1, 5)], rtol=1e-6)
