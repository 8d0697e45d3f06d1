"""A plugin of pytest: blocknumba.triton in the place of Triton, for Triton's own unit tests.

It is for this process alone: `sys.modules["triton"]` is ours here.  The tests believe that they
have an H100.  A case that expects an error is right where an error of that class is raised, at
the place that the test names; the words are ours and are not compared.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import itertools
import json
import linecache
import os
import pkgutil
import re
import signal
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CellType, ModuleType, SimpleNamespace

os.environ.setdefault("BLOCKNUMBA_CACHE", "0")

import pytest  # noqa: E402
import torch  # noqa: E402
from table import reason_to_leave_out, records_of, running_case  # noqa: E402

import blocknumba.triton as triton  # noqa: E402
from blocknumba.errors import UNKNOWN, BlockError, Loc  # noqa: E402


def _set(name: str) -> str:
    return os.environ[f"SUITE_{name}"]


CASES, SAMPLE, PART, PARTS = (int(_set(name)) for name in ("CASES", "SAMPLE", "PART", "PARTS"))
ANSWERS = Path(_set("ANSWERS"))
TIMEOUT_S = 120  # of one case
_TYPES = {"bool": "u1", "int1": "u1", "float8e4nv": "fp8e4nv", "float8_e4m3fn": "fp8e4nv",
          "float8e5": "fp8e5", "float8_e5m2": "fp8e5", "float16": "fp16", "bfloat16": "bf16",
          "float32": "fp32", "float64": "fp64", "double": "fp64", "void": "void",
          **{f"{kind}int{bits}".removeprefix("i_"): f"{short}{bits}"
             for kind, short in (("", "i"), ("u", "u")) for bits in (8, 16, 32, 64)}}


class _Knobs(ModuleType):
    """Switches of a compiler that we are not: each is false, and can be set and called."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Knobs(name)
        setattr(self, name, made)
        return made

    def __call__(self, *arguments: object, **keywords: object) -> _Knobs:
        return self

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> _Knobs:
        return self

    def __exit__(self, *error: object) -> None:
        return None


_patched = itertools.count()


def _update_source(kernel: object, text: str) -> None:
    """Give a kernel other code: what Triton's tests do with the text of a template."""
    file, function = f"<patched {next(_patched)}>", kernel.python_function
    free = {name: cell.cell_contents for name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or ()) if cell != CellType()}
    around = (f"def around({', '.join(free)}):\n" + textwrap.indent(text, "    ")
              + f"\n    return {function.__name__}")
    linecache.cache[file] = (len(around), None, around.splitlines(True), file)
    found: dict[str, object] = {}
    exec(compile(around, file, "exec"), function.__globals__, found)
    made = found["around"](**free)
    kernel.__init__(getattr(made, "python_function", made))


def _replace_triton() -> None:
    sys.modules["triton"] = triton
    for module in pkgutil.walk_packages(triton.__path__, "blocknumba.triton."):
        name = module.name.removeprefix("blocknumba.")
        sys.modules[name] = importlib.import_module(module.name)
    triton.knobs = sys.modules["triton.knobs"] = _Knobs("triton.knobs")
    for name, value in (("launch_enter_hook", None), ("launch_exit_hook", None)):
        setattr(triton.knobs.runtime, name, value)
    for name in ("interpret", "debug", "sanitize_overflow"):
        for switches in (triton.knobs.runtime, triton.knobs.compilation):
            setattr(switches, name, False)
    triton.knobs.nvidia.ptxas.version = "13.0"
    triton.runtime.jit.type_canonicalisation_dict = _TYPES
    triton.JITFunction._unsafe_update_src = _update_source
    triton.__path__.append(_set("HELPERS"))
    triton.tools.__path__.append(str(Path(_set("HELPERS")) / "tools"))


def _pretend_a_gpu() -> None:
    """Answers of an H100 to what tests ask Torch."""
    card = SimpleNamespace(multi_processor_count=132, name="H100", total_memory=80 << 30, major=9,
                           minor=0)
    answers = {"get_device_capability": (9, 0), "current_device": 0, "synchronize": None,
               "get_device_properties": card, "get_device_name": "H100", "empty_cache": None,
               "device": contextlib.nullcontext()}
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    target = replace(triton.runtime.driver.active.get_current_target(), warp_size=32)
    triton.runtime.driver.active.get_current_target = lambda: target


_replace_triton()
_emulated: collections.Counter = collections.Counter()  # launches of the case that runs
_differences: list[str] = []
if _set("EMULATE") == "1":
    emulation = importlib.import_module("emulation")
    emulation.install(_emulated, _differences)
if _set("DEVICE") == "cpu":
    _pretend_a_gpu()


# errors that tests expect -------------------------------------------------------------------------

_raised: list[BlockError] = []  # by the case that runs, where it expected one
_pytest_raises = pytest.raises


def _is_ours(expected: object) -> bool:
    classes = expected if isinstance(expected, tuple) else (expected,)
    return any(isinstance(each, type) and issubclass(each, (triton.TritonError, BlockError))
               for each in classes)


@contextlib.contextmanager
def _noted(expected: object, match: str | None):
    with _pytest_raises(expected) as information:
        yield information
    error = information.value
    if not isinstance(error, BlockError | triton.TritonError):
        assert match is None or information.match(match)
        return
    _raised.append(error)
    inner = getattr(error, "loc", UNKNOWN)
    if inner is not UNKNOWN:
        error.__class__ = type(type(error).__name__, (type(error),), {"__str__": _with_places})
        if inner.caller is not None:
            error.__cause__ = Exception(_place(inner))


def _with_places(error: BlockError) -> str:
    """The text of an error, and where it is as Triton says it: from the function's first line."""
    return "\n".join((type(error).__mro__[1].__str__(error), *map(_place, _locations(error))))


def _place(loc: Loc) -> str:
    """A place as Triton says it: line and column from the `def` of its function, 1:0."""
    lines = linecache.getlines(loc.file)
    for above in range(loc.line, 0, -1):
        indented = re.match(r"(\s*)def ", lines[above - 1])
        if indented:
            return f"at {loc.line - above + 1}:{max(loc.column - len(indented.group(1)), 0)}:"
    return f"at {loc.line}:{loc.column}:"


def _locations(error: BlockError) -> Iterator[Loc]:
    """Where an error is, and where the functions that it is in were called."""
    loc: Loc | None = error.loc
    while loc is not None and loc is not UNKNOWN:
        yield loc
        loc = loc.caller


def _raises(expected: object, *arguments: object, match: str | None = None, **keywords: object):
    """pytest.raises; of Triton's classes the text is not compared."""
    if not arguments and (_is_ours(expected) or match is not None):
        return _noted(expected, match)
    return _pytest_raises(expected, *arguments, **keywords)


pytest.raises = _raises


def _only_words_differ(error: BaseException, file: str) -> bool:
    """Whether a case saw the error that it expects, and dislikes but its words."""
    caught = _caught(error, file)
    if isinstance(caught, triton.TritonError):
        _raised.append(caught)
        return True
    if not _raised or not isinstance(error, (AssertionError, AttributeError)):
        return False
    frames = [frame for frame in _all_frames(error) if frame.filename == file]
    asserted = next((frame.line for frame in frames if "assert" in (frame.line or "")
                     and "raise" not in frame.line), "")
    is_about_words = re.search(r"err|exc|e\.value|str\(e|inner|outer", asserted)
    is_about_a_place = re.search(r"at \d+:\d+", asserted)
    return bool(isinstance(_raised[-1], BlockError) and is_about_words and not is_about_a_place)


def _caught(error: BaseException, file: str) -> object:
    """What a case caught by itself and asks, last, for words in the text of."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)
              if frame.f_code.co_filename == file]
    asked = frames and re.match(
        r"""\s*assert (\w+) is not None and (f?(["']).+\3 in )?str\(""",
        linecache.getline(file, frames[-1][1]))
    # a name that `except` binds is gone after it
    return frames[-1][0].f_locals.get(asked.group(1), error.__context__) if asked else None


def _only_compiled_text_differs(error: BaseException, file: str) -> bool:
    """Whether a case came to a question about another compiler's text."""
    lines = [frame.line or "" for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == file]
    return isinstance(error, (AssertionError, KeyError)) and any(re.search(
        r"\basm\b|\bt?ptx\b|ttg?ir|llir|sass|amdgcn", line) for line in lines)


def _all_frames(error: BaseException | None) -> list[traceback.FrameSummary]:
    found = []
    while error is not None and isinstance(error, (AssertionError, AttributeError)):
        found += traceback.extract_tb(error.__traceback__)
        error = error.__context__
    return found[::-1]


# pytest -------------------------------------------------------------------------------------------

def pytest_configure(config) -> None:
    for name in ("interpreter", "cpu"):
        config.addinivalue_line("markers", f"{name}: of Triton's tests")


@pytest.fixture
def device() -> str:
    return _set("DEVICE")


@pytest.fixture
def fresh_triton_cache():
    with tempfile.TemporaryDirectory() as folder:
        yield folder


@pytest.fixture
def fresh_knobs():
    return triton.knobs


@pytest.fixture
def with_allocator():
    yield


def pytest_collection_modifyitems(config, items) -> None:
    """Of each function at most CASES cases, evenly; of this process's part those left to run."""
    groups = collections.defaultdict(list)
    for item in items:
        name = f"{item.path.name}::{_function(item)}"
        if any(part in name for part in _set("ONLY").split(",")) and _reason(item) is None:
            groups[item.path, item.cls, _function(item)].append(item)
    chosen = [group[place] for group in groups.values() for place in _sampled(len(group))]
    done = {(record["file"], record["case"]) for record in records_of(
        ANSWERS.read_text() if ANSWERS.exists() else "")}
    items[:] = [item for item in chosen[PART::PARTS] if (item.path.name, item.name) not in done]


def _function(item) -> str:
    return getattr(item, "originalname", item.name)


def _named(item) -> dict[str, str]:
    return {"file": item.path.name, "function": _function(item), "case": item.name}


def _reason(item) -> str | None:
    return reason_to_leave_out(_set("DEVICE"), item.path.name, _function(item), item.name)


def _sampled(count: int) -> list[int]:
    """Places of the cases that are run, evenly; those of another sample lie between them."""
    if count <= CASES:
        return list(range(count))
    shift = (0.5, 0.0, 0.25, 0.75)[SAMPLE % 4]
    return sorted({min(int((number + shift) * count / CASES), count - 1)
                   for number in range(CASES)})


def pytest_runtest_setup(item):
    """Tell who runs this which case it is, in case that the process ends."""
    running_case(ANSWERS).write_text(json.dumps(_named(item)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Stop a case that takes too long, once it is back from native code."""
    def stop(*_: object) -> None:
        pytest.fail(f"more than {TIMEOUT_S} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """One line of JSON a case."""
    report = (yield).get_result()
    if call.when == "setup":
        _raised.clear()
        _emulated.clear()
        _differences.clear()
    if call.when != "call" and report.outcome == "passed":
        return
    error = None if call.excinfo is None else call.excinfo.value
    if report.outcome == "failed" and _only_words_differ(error, str(item.path)):
        report.outcome = "passed"
    text = report.outcome == "failed" and _only_compiled_text_differs(error, str(item.path))
    answer = {**_named(item),
              "outcome": "text" if text else report.outcome, "seconds": round(report.duration, 2),
              "expects_error": bool(_raised) or "DID NOT RAISE" in str(error)}
    if _emulated:
        answer |= {"emulated": dict(_emulated), "differences": list(_differences)}
    if error is not None:
        answer |= {"error": f"{type(error).__name__}: {error}"[:900],
                   "at": [f"{frame.filename}:{frame.lineno} {frame.line}" for frame in
                          traceback.extract_tb(error.__traceback__)[-4:]]}
    with ANSWERS.open("a") as file:
        print(json.dumps(answer), file=file)
