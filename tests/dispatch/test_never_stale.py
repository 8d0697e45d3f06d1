"""Everything that a kernel reads while it is compiled can change: the next launch sees it."""

import os
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from blocknumba.dispatch.compile import kernel_code, pipeline
from blocknumba.dispatch.compile.cache import Cache

HEAD = """
import dataclasses, enum, functools, math, types
from typing import NamedTuple
import numpy as np
import blocknumba as bn
"""
KERNEL = """
@bn.jit
def kernel(out, GIVEN: bn.constexpr = None):
    {statement}
"""
UNWATCHED = "in place"  # a comparison of objects cannot see it: each launch looks anew


@dataclass(frozen=True)
class Case:
    """A program that stores 1, and what makes it store 2.

    setup: what is at the module's level.  expression: what is stored, or statements that store.
    change: statements that run in the module, after the first launch.
    given: expression of the constexpr argument.
    watched: a warm launch sees the change by comparing, and a repeated one sees none.
    """

    setup: str
    expression: str
    change: str
    given: str = "None"
    watched: bool = True

    def __str__(self) -> str:
        return f"{self.expression} | {self.change}".replace("\n", "; ")


def variants(setup: str, expression: str, *changes: str, given: str = "None",
             watched: bool = True) -> list[Case]:
    return [Case(setup, expression, change, given, watched) for change in changes]


# a function that stores 1, under every name that it can be called by ------------------------
FUNCTION = """
G = 1
def one(x, by=1, *, to=0): return x * G * by + to
"""
CHANGES_OF_A_FUNCTION = (
    "G = 2", "one.__defaults__ = (2,)", "one.__kwdefaults__['to'] = 1",
    "one.__kwdefaults__ = {'to': 1}", "one.__code__ = (lambda x, by=1, *, to=0: 2 * x).__code__")
CALLED = {
    "one(1)": "", "OPS[0](1)": "OPS = (one,)", "OPS[1][0](1)": "OPS = (0, (one,))",
    "S.f(1)": "class S:\n    f = staticmethod(one)",
    "S.T.f(1)": "class S:\n    class T:\n        f = staticmethod(one)",
    "S.f()": "class S:\n    n = 1\n    @classmethod\n    def f(cls): return one(cls.n)",
    "s.f()": "class S:\n    def __init__(self): self.n = 1\n"
             "    def f(self): return one(self.n)\ns = S()",
    "default(1)": "def default(x, f=one): return f(x)",
    "named(1)": "def named(x, *, f=one): return f(x)",
    "closed(1)": "def make(f): return lambda x: f(x)\nclosed = make(one)",
    "within(1)": "def within(x):\n    return (lambda y: one(y))(x)",
    "wrapper(1)": "def wrap(f):\n    @functools.wraps(f)\n    def inner(*a): return f(*a)\n"
                  "    return inner\nwrapper = wrap(one)",
    "jitted(1)": "jitted = bn.jit(one)", "library.f(1)": "library = types.SimpleNamespace(f=one)",
    "tagged.f(1)": "def tagged(): pass\ntagged.f = one",
    "P.f(1)": "class Pair(NamedTuple):\n    f: object\nP = Pair(one)",
    "(one if G else one)(1)": "",
}
FUNCTIONS = [case for call, setup in CALLED.items() for case in
             variants(FUNCTION + setup, call, *CHANGES_OF_A_FUNCTION)]

# attributes ---------------------------------------------------------------------------------
OBJECT = """
class B: A = 1
class C(B):
    class D: A = 1
c, d = C(), C()
"""
ATTRIBUTES = [
    *variants("A = 1", "A", "A = 2", "A = True + True", "A = np.int8(2)"),
    *variants("m = types.ModuleType('m')\nm.A = 1", "m.A", "m.A = 2",
              "m = types.ModuleType('m'); m.A = 2"),
    *variants("m = types.ModuleType('m')\nm.A = 1", "n = m\n    out[0] = n.A", "m.A = 2"),
    *variants("m = types.ModuleType('m')\nm.n = types.ModuleType('n')\nm.n.A = 1", "m.n.A",
              "m.n.A = 2", "m.n = types.SimpleNamespace(A=2)"),
    *variants(OBJECT, "B.A", "B.A = 2", "class B: A = 2"),
    *variants(OBJECT, "C.A", "B.A = 2", "C.A = 2", "class C: A = 2"),
    *variants(OBJECT, "C.D.A", "C.D.A = 2", "C.D = type('D', (), {'A': 2})"),
    *variants(OBJECT, "c.A", "c.A = 2", "C.A = 2", "B.A = 2",
              "c.__class__ = type('E', (), {'A': 2})", "c = types.SimpleNamespace(A=2)"),
    *variants(OBJECT, "c.D.A", "c.D = types.SimpleNamespace(A=2)", "C.D.A = 2"),
    *variants(OBJECT + "T = (0, (c,))", "T[1][0].A", "c.A = 2", "B.A = 2",
              "T = (0, (d,)); d.A = 2"),
    *variants(OBJECT, "e = c\n    out[0] = e.A", "c.A = 2", "B.A = 2"),
    *variants(OBJECT, "(lambda e: e.A)(c)", "c.A = 2"),
    *variants(OBJECT + "def of(e): return e.A", "of(c)", "c.A = 2"),
    *variants(OBJECT, "out[0] = 0\n    for e in (c, c):\n        out[0] = e.A", "c.A = 2"),
    *variants(OBJECT + "def make(e):\n    def f(): return e.A\n    return f\nf = make(c)", "f()",
              "c.A = 2", "f.__closure__[0].cell_contents = types.SimpleNamespace(A=2)"),
    *variants("class C:\n    __slots__ = ('A',)\nc = C()\nc.A = 1", "c.A", "c.A = 2"),
    *variants("G = 1\nclass C:\n    @property\n    def A(self): return self.B + G - 1\nc = C()\n"
              "c.B = 1", "c.A", "c.B = 2", "G = 2", "C.A = property(lambda self: 2)", "C.A = 2"),
    *variants("class C:\n    @property\n    def A(self): return (10 ** 20, self.B)\nc = C()\n"
              "c.B = 1", "c.A[1]", "c.B = 2"),
    *variants("class C:\n    def __getattr__(self, name): return self.__dict__['_' + name]\n"
              "c = C()\nc._A = 1", "c.A", "c._A = 2", "c.A = 2"),
    *variants("@dataclasses.dataclass\nclass C:\n    A: int\nc = C(1)", "c.A", "c.A = 2",
              "c = C(2)"),
    *variants("@dataclasses.dataclass(frozen=True)\nclass C:\n    A: int\nc = C(1)", "c.A",
              "object.__setattr__(c, 'A', 2)", "c = C(2)"),
    *variants("class C(NamedTuple):\n    A: int\n    @property\n    def B(self): return self.A\n"
              "c = C(1)", "c.B", "c = C(2)", "C.B = property(lambda self: 2)"),
    *variants("class C(enum.IntEnum):\n    A = 1\n    B = 2", "C.A",
              "C = enum.IntEnum('C', {'A': 2})"),
    *variants("class C(enum.Enum):\n    A = 1", "C.A.value", "C.A._value_ = 2",
              "class C(enum.Enum): A = 2"),
    *variants("class C(enum.Enum):\n    A = 1\nC.A.B = 1", "C.A.B", "C.A.B = 2"),
    *variants("c = types.SimpleNamespace(A=1, B=types.SimpleNamespace(A=1))", "c.A + c.B.A - 1",
              "c.A = 2", "c.B.A = 2", "c.B = types.SimpleNamespace(A=2)"),
    *variants("def f(): pass\nf.A = 1", "f.A", "f.A = 2"),
    *variants("@bn.jit\ndef f(): pass\nf.A = 1", "f.A", "f.A = 2"),
    *variants("N = bn.constexpr(1)", "N", "N.value = 2", "N = bn.constexpr(2)", "N = 2"),
    *variants("c = types.SimpleNamespace(A=bn.constexpr(1))", "c.A.value", "c.A.value = 2"),
]

# attributes that no code names ---------------------------------------------------------------
UNNAMED = [
    *variants("class C: dtype = np.dtype('int32')\nc = C()",
              "out[0] = bn.sum(bn.full((2,), 0.5, bn.float32).to(c).to(bn.float32)) + 1",
              "c.dtype = np.dtype('float32')", "C.dtype = np.dtype('float32')"),
    *variants("m = types.ModuleType('m')\nm.B = 1\nm.__getattr__ = lambda name: m.B", "m.A",
              "m.B = 2", "m.A = 2", "m.__getattr__ = lambda name: 2"),
    *variants("class C:\n    n = 1\n    def __index__(self): return self.n\nc = C()",
              "bn.sum(bn.full((c,), 1, bn.int32))", "c.n = 2", "C.n = 2",
              "C.__index__ = lambda self: 2"),
    *variants(FUNCTION + "class C: pass\nc = C()\nc.py_func = one", "c(1)", "G = 2",
              "c.py_func = lambda x: 2", "c.python_function = lambda x: 2"),
    *variants("class V:\n    def __get__(self, holder, cls): return self.n\n"
              "class C: A = V()\nV.n = 1\nc = C()", "c.A + C.A - 1", "V.n = 1.5",
              "C.A = 1.5"),
    *variants("import ctypes\nc = ctypes.c_int(1)", "c.value", "c.value = 2", "c = ctypes.c_int(2)"),
]

# names that are computed, or not there yet ----------------------------------------------------
NAMES = [
    *variants(OBJECT, "getattr(c, 'A')", "c.A = 2", "B.A = 2"),
    *variants(OBJECT, "getattr(c, 'X', 1)", "c.X = 2", "B.X = 2"),
    *variants(OBJECT, "2 if hasattr(c, 'X') else 1", "c.X = 0", "B.X = 0"),
    *variants(OBJECT + "NAME = 'X'", "getattr(c, NAME, 1)", "c.X = 2", "NAME = 'Y'; c.Y = 2"),
    *variants(OBJECT + "c._X1 = 1\nH = '_X'", "getattr(c, H + '1')", "c._X1 = 2"),
    *variants(OBJECT + "H = '_X'", "2 if hasattr(c, H + '1') else 1", "c._X1 = 0"),
    *variants(OBJECT + "get = getattr", "get(c, 'A')", "c.A = 2"),
    *variants(OBJECT, "(lambda e, n: getattr(e, n))(c, 'A')", "c.A = 2"),
]

# builtins, operators and special methods --------------------------------------------------------
SPECIAL = [
    *variants("", "abs(-1)", "def abs(x): return 2", "from builtins import len as abs\n"
              "abs = lambda x: 2"),
    *variants("", "min(1, 2)", "min = max"),
    *variants("def f(x): return abs(x)", "f(-1)", "abs = lambda x: 2"),
    *variants("", "out[0] = 0\n    for i in range(1):\n        out[0] += 1",
              "range = lambda n: (0, 1)"),
    *variants("class C: pass\nc = C()", "1 if c else 2", "C.__bool__ = lambda self: False",
              "C.__len__ = lambda self: 0"),
    *variants("class C:\n    n = 1\n    def __bool__(self): return self.n == 1\nc = C()",
              "1 if c else 2", "c.n = 2", "C.n = 2", "C.__bool__ = lambda self: False"),
    *variants("class C:\n    def __init__(self, n): self.n = n\n"
              "    def __eq__(self, other): return self.n == other.n\n"
              "    def __hash__(self): return 0\nc, d = C(1), C(1)",
              "1 if c == d else 2", "c.n = 2", "C.__eq__ = lambda self, other: False"),
    *variants("@dataclasses.dataclass(eq=True)\nclass C:\n    n: int\nc, d = C(1), C(1)",
              "1 if c == d else 2", "c.n = 2"),
    *variants("class C:\n    def __init__(self): self.n = 1\n"
              "    def __len__(self): return self.n\nc = C()", "len(c)", "c.n = 2"),
    *variants("class C: pass\nc, d = C(), C()\ne = c", "1 if e is c else 2", "e = d"),
    *variants("class C: pass\nclass D: pass\nc = C()", "1 if isinstance(c, C) else 2", "c = D()",
              "c.__class__ = D"),
    *variants("import abc\nclass A(abc.ABC): pass\nclass C: pass\nc = C()",
              "2 if isinstance(c, A) else 1", "A.register(C)", "class C(A): pass\nc = C()"),
    *variants("class C: A = 1\nc = C()", "type(c).A", "C.A = 2",
              "c.__class__ = type('D', (), {'A': 2})"),
    *variants("class C: A = 1\nc = C()\nc.A = 0", "c.__class__.A", "C.A = 2"),
    *variants("class C: A = 1\nc = C()\nc.A = 0", "type(c).A", "C.A = 2"),
    *variants("class C:\n    n = 1\n    def __repr__(self): return 'n' * self.n\nc = C()",
              "len(str(c))", "c.n = 2", "C.n = 2", "C.__str__ = lambda self: 'no'"),
    *variants("class C:\n    n = 1\n    def __str__(self): return 'n' * self.n\nc = C()",
              "len(f'{c}')", "c.n = 2", "C.__str__ = lambda self: 'no'"),
    *variants("c = types.SimpleNamespace(A=1)", "len(repr(c)) - 13", "c.A = 10", "c.A = ''"),
    *variants("c, d = types.SimpleNamespace(A=1), types.SimpleNamespace(A=1)",
              "1 if c == d else 2", "c.A = 2", "c.B = 0"),
    *variants("class C: pass\nc = C()", "2 if callable(c) else 1", "C.__call__ = lambda self: 0"),
    *variants(OBJECT + "def f(x, e=c): return x * e.A", "f(1)", "c.A = 2", "C.A = 2"),
    *variants("L = [1]", "len(L)", "L.append(1)", watched=False),
    *variants("L = [1]", "sum(tuple(L))", "L[0] = 2", watched=False),
    *variants("L = {1: 0}", "max(L)", "L[2] = 0", watched=False),
    *variants("A = np.array(1)", "A", "A[()] = 2", watched=False),
    *variants(FUNCTION + "L = [one]", "tuple(L)[0](1)", "G = 2", "L[0] = lambda x: 2",
              watched=False),
    *variants(FUNCTION + "L = frozenset([one])", "tuple(L)[0](1)", "G = 2"),
    *variants("import collections\nL = collections.deque([1])", "len(L)", "L.append(1)",
              watched=False),
    *variants("import collections\nL = collections.UserList([1])", "sum(tuple(L))", "L[0] = 2",
              watched=False),
    *variants("c = types.SimpleNamespace(A=[1])", "len(c.A)", "c.A.append(1)", watched=False),
]

# what is passed as a constexpr ----------------------------------------------------------------
EQUAL = """
class C:
    def __init__(self, A): self.A = A
    def __eq__(self, other): return isinstance(other, C)
    def __hash__(self): return 0
given = C(1)
"""
GIVEN = [
    *variants(OBJECT, "GIVEN.A", "c.A = 2", "C.A = 2", "B.A = 2", "c = d; d.A = 2", given="c"),
    *variants(OBJECT, "GIVEN.A", "C.A = 2", "B.A = 2", "class C: A = 2", given="C"),
    *variants(OBJECT, "GIVEN[0].A", "c.A = 2", given="(c,)"),
    *variants(OBJECT, "GIVEN.D.A", "C.D.A = 2", given="c"),
    *variants(OBJECT, "getattr(c, GIVEN, 1)", "c.X = 2", given="'X'"),
    *variants(FUNCTION, "GIVEN(1)", *CHANGES_OF_A_FUNCTION, given="one"),
    *variants(FUNCTION, "GIVEN[0](1)", *CHANGES_OF_A_FUNCTION, given="(one,)"),
    *variants(FUNCTION + "jitted = bn.jit(one)", "GIVEN(1)", *CHANGES_OF_A_FUNCTION,
              given="jitted"),
    *variants(FUNCTION + "one.A = 1", "GIVEN.A", "one.A = 2", given="one"),
    *variants(EQUAL, "GIVEN.A", "given.A = 2", "given = C(2)", given="given"),
    *variants(EQUAL + "pair = (given,)", "GIVEN[0].A", "pair = (C(2),)", given="pair"),
    *variants("@dataclasses.dataclass(frozen=True)\nclass C:\n    n: int\n"
              "    A: int = dataclasses.field(compare=False)\n    m = 1\n"
              "    def f(self): return self.A * self.m\ngiven = C(1, 1)", "GIVEN.f()",
              "given = C(1, 2)", "C.m = 2", "object.__setattr__(given, 'A', 2)", given="given"),
    *variants("m = types.ModuleType('m')\nm.A = 1", "GIVEN.A", "m.A = 2", given="m"),
    *variants("class C(enum.Enum):\n    A = 1\n    B = 2", "GIVEN.value", "C.A._value_ = 2",
              given="C.A"),
]

# scalar functions, which Numba compiles ------------------------------------------------------
SCALAR = """
import numba
from numba import cuda
G = 1
m = types.SimpleNamespace(f=lambda x: x)
mod = types.ModuleType('mod')
mod.A = 1
@numba.njit
def inner(x, by=1): return x * G * by
def one(x, to=0):
    if x < 0:
        return 0
    return inner(x) + to
vectorized = numba.vectorize(one)
jitted = numba.njit(one)
on_device = cuda.jit(device=True)(one)
def of_module(x): return x * mod.A
def make(by):
    def f(x): return x * by
    return f
closed = make(1)
"""
CHANGES_OF_SCALARS = (
    "G = 2", "one.__defaults__ = (1,)", "inner = lambda x: 2 * x",
    "one.__code__ = (lambda x, to=0: 2 * x).__code__", "inner.py_func.__defaults__ = (2,)")
MAPPED = [
    *(case for name in ("one", "vectorized", "jitted", "on_device")
      for case in variants(SCALAR, f"bn.map({name}, 1)", *CHANGES_OF_SCALARS)),
    *(case for name in ("vectorized", "jitted", "on_device") for case in variants(
        SCALAR, f"bn.sum({name}(bn.full((1,), 1, bn.int32)))", *CHANGES_OF_SCALARS)),
    *variants(SCALAR, "bn.map(closed, 1)", "closed = make(2)", "closed = jitted; G = 2",
              "closed.__closure__[0].cell_contents = 2"),
    *variants(SCALAR, "bn.map(of_module, 1)", "mod.A = 2"),
    *variants(SCALAR, "bn.map(lambda x: inner(x), 1)", "G = 2"),
    *variants(SCALAR, "bn.map(GIVEN, 1)", *CHANGES_OF_SCALARS, given="jitted"),
]
CASES = MAPPED + FUNCTIONS + ATTRIBUTES + UNNAMED + NAMES + SPECIAL + GIVEN
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def program(case: Case) -> dict:
    """The names of a program that has just started."""
    statement = case.expression if "out[0]" in case.expression else f"out[0] = {case.expression}"
    module = types.ModuleType("user_program")
    text = HEAD + case.setup + KERNEL.format(statement=statement)
    exec(compile(text, "user_program.py", "exec"), module.__dict__)
    return module.__dict__


def stored(case: Case, names: dict) -> float:
    """What a launch stores."""
    out = np.full(1, np.nan)
    names["kernel"][1](out, GIVEN=eval(case.given, names), interpret=True)
    return out[0]


def is_current(case: Case, names: dict):
    """What a warm launch asks before it uses the code of the last one."""
    return names["kernel"].captures({"GIVEN": eval(case.given, names)}).is_current


@every_case
def test_the_next_launch_sees_a_change(case):
    names = program(case)
    assert stored(case, names) == 1
    unchanged, given = is_current(case, names), eval(case.given, names)
    assert unchanged() is case.watched

    exec(case.change, names)

    # a launch compares what it is given itself
    assert not unchanged() or eval(case.given, names) is not given
    assert stored(case, names) == 2


def test_what_changes_while_a_kernel_is_compiled_is_not_kept(cache, monkeypatch):
    case = Case("A = 1", "A", "A = 1")
    names = program(case)
    monkeypatch.setattr(kernel_code, "user_cache", lambda: cache)
    build = pipeline.build

    def change_and_build(*arguments):
        names["A"] = 2
        return build(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "build", change_and_build)
        assert stored(case, names) == 2
    names["A"] = 1

    assert stored(case, names) == 1
    assert stored(case, program(case)) == 1


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Cache:
    """A folder that the programs of this module share."""
    return Cache(tmp_path_factory.mktemp("never_stale"), 1 << 30)


@every_case
def test_another_program_sees_a_change(case, cache, monkeypatch):
    monkeypatch.setattr(kernel_code, "user_cache", lambda: cache)
    assert stored(case, program(case)) == 1

    changed = program(case)
    exec(case.change, changed)

    assert stored(case, changed) == 2
    assert stored(case, program(case)) == 1


def stored_by_all(is_changed: bool) -> list[float]:
    """What each case stores in a program that has just started, changed before it launches."""
    found = []
    for case in CASES:
        names = program(case)
        if is_changed:
            exec(case.change, names)
        found.append(stored(case, names))
    return found


def test_other_processes_see_changes(tmp_path):
    folder = Path(__file__).parent
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(folder), str(folder.parents[1]))),
        "BLOCKNUMBA_CACHE_DIR": str(tmp_path), "BLOCKNUMBA_CACHE": "1"}

    for is_changed, expected in ((False, 1), (True, 2), (False, 1)):
        script = f"import test_never_stale as t; print(t.stored_by_all({is_changed}))"
        done = subprocess.run([sys.executable, "-c", script], env=environment, text=True,
                              capture_output=True, check=True)
        assert eval(done.stdout) == [expected] * len(CASES)
    assert any(tmp_path.iterdir())
