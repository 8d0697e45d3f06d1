"""Random control flow and scopes mean in a kernel what they mean in Python."""

from __future__ import annotations

import os
import secrets

import pytest
from program_fuzzer import CPU, EMULATOR, MAX_REFUSED, Program, Report, check, failure_text, reduced

from blocknumba.tile_ir.ir import types
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.types import ArrayArgument, ScalarArgument
from blocknumba.typing.frontend import build

TESTS, PER_TEST, EMULATED = 8, 25, 1
OUT = ArrayArgument(types.int32, (1,), (None,), 16)
NUMBER = ScalarArgument(types.int32)


def first_seed(test: int) -> int:
    """The first seed of a test: FUZZ_SEED and on, or others every time."""
    given = os.environ.get("FUZZ_SEED")
    return secrets.randbits(40) if given is None else int(given) + test * PER_TEST


@pytest.mark.parametrize("test", range(TESTS))
def test_random_programs_do_what_python_does(test, record_property):
    first, whole = first_seed(test), Report()
    record_property("measured", f"random programs {first} to {first + PER_TEST - 1}")

    for seed in range(first, first + PER_TEST):
        whole.add(check(seed, (CPU, EMULATOR) if seed < first + EMULATED else (CPU,)))

    for seed, problem in whole.failures.items():
        pytest.fail(f"FUZZ_SEED={first - test * PER_TEST}, {failure_text(seed, problem)}",
                    pytrace=False)
    # with one more than the share: a few programs say little about the share
    assert sum(whole.refused.values()) <= MAX_REFUSED * PER_TEST + 2, str(whole)


def test_a_program_that_fails_is_reduced():
    source = "\n".join(["def program(x, out, n):", "    r = program_id(0)",
                        "    for i in range(2):", "        if n > i:", "            out[r, 0] = 1 + wide(n) // True",
                        "        else:", "            n += 1"])

    shorter = reduced(Program(1, source, 32), lambda p: "wrong" if "// True" in p.source else "")

    assert shorter.source == "out[r, 0] = 1 + wide(n) // True"


def nested_conditions(depth: int):
    """A function of `depth` conditions in sequence, each an `and` and `or` of several."""
    lines = ["def program(out, n):", "    a = n"]
    for i in range(depth):
        lines += [f"    if (n > {i} and a < {i + 5}) or (a == {i} and n != 3) or not (n < a):",
                  "        a = a + 1", "    else:", "        a = a - 2"]
    lines.append("    out[0] = a")
    namespace: dict = {}
    exec("\n".join(lines), namespace)
    return namespace["program"]


def test_code_grows_no_faster_than_the_program():
    """Arms that conditions share are not copied."""
    sizes = [sum(1 for _ in walk(build(nested_conditions(d), {"out": OUT, "n": NUMBER}).body))
             for d in (10, 20, 40)]
    assert sizes[1] < 2.2 * sizes[0]
    assert sizes[2] < 2.2 * sizes[1]
