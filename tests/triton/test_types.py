"""Dtypes of results in Triton's dialect: the rows that Triton itself made, all of them."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from generate_types import FUNCTIONS, OPERATORS, UNARY, made, read, source

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import (
    ArrayArgument, DType, ScalarArgument, dtype_of, float64, int32,
)
from blocknumba.typing.context import Options
from blocknumba.typing.frontend import build

ROWS = list(read(Path(__file__).with_name("types.txt")))
MAX_GROUP = 40  # operations in one kernel
TYPED, REFUSED = 7, 29  # every so manyth row is tried, but for --all-cases
_NUMBERS = itertools.count()
_NAMES = sorted({name.split(" ")[0] for name, _, _ in ROWS})


def results_of(rows: list[tuple]) -> list[DType | str]:
    """The dtypes of results in kernels of ours; "error" where one is refused."""
    try:
        return _typed(rows)
    except BlockError:
        if len(rows) == 1:
            return ["error"]
    return [result for row in rows for result in results_of([row])]


def _typed(rows: list[tuple]) -> list[DType]:
    """The dtypes of the results of operations with one first operand, in one kernel."""
    arguments, constants, found, names = {}, {}, [], {"triton": triton, "tl": tl}
    for number, (name, given, _) in enumerate(rows):
        for i, (kind, value) in enumerate((*given, ("none", ""))[:2]):
            pointee = getattr(tl, value) if kind in ("tile", "scalar") else int32
            array = ArrayArgument(pointee, strides=(1,), extents=(None,))
            arguments[f"P{i}_{number}"] = array
            scalar = ScalarArgument(float64 if value == "float" else int32, weak=True)
            arguments[f"A{i}_{number}"] = scalar
            constants[f"C{i}_{number}"] = eval(value) if kind == "constexpr" else 1
    parameters = ", ".join([*arguments, *(f"{name}: tl.constexpr" for name in constants)])
    bodies = [_body(row, number) for number, row in enumerate(rows)]
    text = "\n".join([f"@triton.jit\ndef kernel({parameters}):", *bodies])
    kernel = made(text, f"ours {next(_NUMBERS)}", names | {"keep": _keeper(found)})
    found.clear()
    build(kernel.python_function, arguments, constants, Options(dialect="triton"))
    kept = dict(found)
    return [kept[number] for number in range(len(rows))]


def _body(row: tuple, number: int) -> str:
    """The statements of a row, its arguments being those of a number."""
    lines = source(*row[:2]).split("\n")[2:]
    body = re.sub(r"\b([PAC][01])\b", rf"\1_{number}", "\n".join(lines))
    return f"{body}\n    keep({number}, result.dtype)"


def _keeper(found: list) -> object:
    def keep(number, dtype):
        found.append((number, dtype))
    keep.__compile_time__ = True
    return keep


def groups(name: str, all_cases: bool) -> Iterable[list[tuple]]:
    """Rows of an operation, those that Triton refuses by themselves: a part, or all cases."""
    own = [row for row in ROWS if row[0].split(" ")[0] == name]
    typed = [row for row in own if row[2] != "error"][::1 if all_cases else TYPED]
    yield from (typed[first:first + MAX_GROUP] for first in range(0, len(typed), MAX_GROUP))
    refused = [row for row in own if row[2] == "error"]
    yield from ([row] for row in refused[::1 if all_cases else REFUSED])


def is_accepted_here(operation: str, given: tuple, expected: str) -> bool:
    """Whether a row is of what Triton refuses and we accept: integers to 8-bit floats and back."""
    return expected == "error" and operation.startswith("to ") and (
        "float8" in operation or "float8" in given[0][1])


@pytest.mark.parametrize("name", _NAMES)
def test_results_have_the_dtypes_of_triton(name, request):
    wrong, count = [], 0
    for group in groups(name, request.config.getoption("--all-cases")):
        count += len(group)
        for (operation, given, expected), found in zip(group, results_of(group), strict=True):
            if is_accepted_here(operation, given, expected):
                continue
            if found != (expected if expected == "error" else getattr(tl, expected)):
                wrong.append((operation, given, f"{expected} in Triton, {found} here"))
    assert not wrong, f"{len(wrong)} of {count}: {wrong[:5]}"


def test_the_rows_are_of_all_operations():
    assert {*OPERATORS, *UNARY, *FUNCTIONS[1], *FUNCTIONS[2], "to"} == set(_NAMES)
    assert len(ROWS) > 20_000 and dtype_of("float32") == tl.float32
