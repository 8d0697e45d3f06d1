"""What the name of a compilation on disk depends on."""

import io
import math
import re
import types

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.dispatch.compile import fingerprint as fingerprint_module
from blocknumba.dispatch.compile.fingerprint import environment, fingerprint
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir.types import ArrayArgument, ScalarArgument, float32, int32

ARRAY = ArrayArgument(float32, (1,), (None,), 16, (1,), (16,))
SM_90 = Target.parse("sm_90a")


def define(source: str, **names) -> types.ModuleType:
    """A module of a user, as a new process would have it."""
    module = types.ModuleType("user_module")
    module.__dict__.update(bn=bn, np=np, math=math, **names)
    exec(compile(source, "user_module.py", "exec"), module.__dict__)
    return module


def key(module: types.ModuleType, arguments=(("x", ARRAY),), constants=None, target=SM_90,
        disjoint=True, **options) -> str | None:
    kernel = Kernel(module.f)
    constants = constants or {}
    specialization, _ = kernel.specialize(arguments, constants, kernel.options.override(options),
                                          target, disjoint)
    return fingerprint(kernel.python_function, specialization, constants)


SOURCES = [
    "def f(x): x[0] = 1",
    "def f(x): x[0] = 1 + A\nA = 7",
    "A = (1, 2.5, None, 'text', b'bytes', True)\ndef f(x): x[0] = A[0]",
    "def g(x, k=3): return x + k\ndef f(x): x[0] = g(1)",
    "@bn.jit\ndef g(x): return bn.exp(x)\ndef f(x): x[0] = g(1)",
    "def f(x): x[0] = bn.cdiv(math.pi, np.float32(2)) + np.exp(1)",
    "from math import sin\nfrom numpy import exp, float32\nfrom blocknumba import cdiv, load\n"
    "def f(x): x[0] = sin(1) + exp(float32(1)) + cdiv(load(x), 2)",
    "A = np.float32(3)\nB = np.array(4)\nC = bn.constexpr(5)\nD = np.dtype('int8')\nE = bn.int8\n"
    "def f(x): x[0] = A + B + C + D(E(1))",
    "def f(x):\n    g = lambda y: y + 1\n    x[0] = g(x[1]) in {1, 2, 3}",
    "def make(n):\n    def g(x): return x + n\n    return g\ng, h = make(1), make(2)\n"
    "def f(x): x[0] = g(1) + h(2)",
    "def g(x): return f(x)\ndef f(x): x[0] = g(x) + f(x)",
    "import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x): x[0] = E.A",
    "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\nA = P(1)\n"
    "def f(x): x[0] = A.a",
]


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_code_has_the_same_name_again(source):
    first = key(define(source))

    assert first is not None
    assert key(define(source)) == first


@pytest.mark.parametrize("old, new", [
    ("def f(x): x[0] = 1", "def f(x): x[0] = 2"),
    ("def f(x): x[0] = 1", "def f(x): x[0] = True"),
    ("def f(x): x[0] = 1", "def f(x): x[0] = 1.0"),
    ("def f(x): x[0] = 0.0", "def f(x): x[0] = -0.0"),
    ("A = 1\ndef f(x): x[0] = A", "A = 2\ndef f(x): x[0] = A"),
    ("A = 1\ndef f(x): x[0] = A", "A = np.int64(1)\ndef f(x): x[0] = A"),
    ("A = 1\ndef f(x): x[0] = A", "A = (1,)\ndef f(x): x[0] = A"),
    ("A = 1\nB = 2\ndef f(x): x[0] = A", "A = 1\nB = 2\ndef f(x): x[0] = B"),
    ("def f(x): x[0] = bn.exp(1)", "def f(x): x[0] = bn.log(1)"),
    ("from blocknumba import exp as e\ndef f(x): x[0] = e(1)",
     "from blocknumba import log as e\ndef f(x): x[0] = e(1)"),
    ("def g(): return 1\ndef f(x): x[0] = g()", "def g(): return 2\ndef f(x): x[0] = g()"),
    ("def g(a=1): return a\ndef f(x): x[0] = g()", "def g(a=2): return a\ndef f(x): x[0] = g()"),
    ("def g(*, a=1): return a\ndef f(x): x[0] = g()",
     "def g(*, a=2): return a\ndef f(x): x[0] = g()"),
    ("def g(a): return a\ndef f(x): x[0] = g(1)",
     "def g(a: bn.constexpr): return a\ndef f(x): x[0] = g(1)"),
    ("@bn.jit\ndef g(): return 1\ndef f(x): x[0] = g()",
     "@bn.jit\ndef g(): return 2\ndef f(x): x[0] = g()"),
    ("A = 1\ndef g(): return A\ndef f(x): x[0] = g()",
     "A = 2\ndef g(): return A\ndef f(x): x[0] = g()"),
    ("import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x): x[0] = E.A",
     "import enum\nclass E(enum.IntEnum):\n    A = 2\ndef f(x): x[0] = E.A"),
])
def test_code_that_differs_has_another_name(old, new):
    assert None is not key(define(old)) != key(define(new))


def test_functions_of_one_code_are_told_apart_by_their_closures():
    head = "def make(n):\n    def g(x): return x + n\n    return g\np, q = make(1), make(2)\n"
    code = "def f(x): x[0] = a(1) + b(1) + c(1)\n"

    names = {key(define(f"{head}a, b, c = {order}\n{code}"))
             for order in ("p, p, q", "q, p, q", "p, q, q", "q, q, p", "p, p, p")}

    assert len(names) == 5


def test_an_attribute_of_an_imported_module_counts():
    one, two = types.ModuleType("constants"), types.ModuleType("constants")
    one.BLOCK, two.BLOCK = 64, 128
    source = "def f(x): x[0] = constants.BLOCK"

    assert None is not key(define(source, constants=one)) != key(define(source, constants=two))


@pytest.mark.parametrize("change", [
    {"arguments": (("y", ARRAY),)},
    {"arguments": (("x", ScalarArgument(int32)),)},
    {"arguments": (("x", ArrayArgument(float32, (1,), (None,), 4, (1,), (16,))),)},
    {"arguments": (("x", ArrayArgument(float32, (1,), (None,), 16, (1,), (16,), wide=True)),)},
    {"target": Target.parse("sm_80")}, {"target": None}, {"disjoint": False},
    {"num_warps": 8}, {"num_stages": 2}, {"fastmath": True}, {"debug": True}, {"maxnreg": 64},
    {"lineinfo": True}])
def test_everything_that_a_compilation_is_given_counts(change):
    module = define("def f(x): x[0] = 1")

    assert key(module, **change) != key(module)


def test_constants_count_with_their_types():
    module = define("def f(x, B): x[0] = B")
    values = (1, 2, True, 1.0, np.int32(1), "1", None, (1,), float32)

    assert len({key(module, constants={"B": value}) for value in values}) == len(values)


@pytest.mark.parametrize("options, same", [({}, True), ({"lineinfo": True}, False),
                                           ({"debug": True}, False), ({"target": None}, False)])
def test_lines_count_where_the_code_knows_them(options, same):
    above, below = define("def f(x): x[0] = 1"), define("\n\ndef f(x): x[0] = 1")

    assert (key(above, **options) == key(below, **options)) is same


@pytest.mark.parametrize("value", [io.BytesIO(), re.compile("a"), (1, io.BytesIO()), [1], {1: 2},
                                   type("Own", (int,), {})(1)])
def test_a_value_that_nobody_can_know_is_never_on_disk(value):
    assert key(define("def f(x): x[0] = A", A=value)) is None


@pytest.mark.parametrize("change", [
    {"source_digest": lambda: "other blocknumba"},
    {"_packages": lambda _: ["numba-0.1.dist-info"]},
    {"SETTINGS": types.SimpleNamespace(toolkit=("CUDA_HOME=/elsewhere",), numba=())}])
def test_another_toolchain_has_another_name(change, monkeypatch):
    module = define("def f(x): x[0] = 1")
    environment.cache_clear()
    before = key(module)
    environment.cache_clear()
    for name, value in change.items():
        monkeypatch.setattr(fingerprint_module, name, value)

    after = key(module)

    environment.cache_clear()
    assert None is not before != after


def test_without_numbas_version_nothing_is_on_disk(monkeypatch):
    environment.cache_clear()
    monkeypatch.setattr(fingerprint_module, "_packages", lambda _: ["numpy-2.0.dist-info"])

    found = key(define("def f(x): x[0] = 1"))

    environment.cache_clear()
    assert found is None
