"""Random control flow means in a kernel what it means in Python."""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from random_programs import ProgramMaker

from blocknumba.tile_ir import types
from blocknumba.tile_ir.arguments import ArrayArgument, ScalarArgument
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir import walk
from blocknumba.tile_ir.verifier import verify
from blocknumba.typing.frontend import build
from blocknumba.typing.loops import static_range

PROGRAMS, PER_TEST = 1000, 50
INPUTS = (0, 3, 8)
OUT = ArrayArgument(types.int32, (1,), (None,), 16)
NUMBER = ScalarArgument(types.int32)


def program(seed: int):
    """The function `program` of a seed, its source known to tracebacks."""
    source, name = ProgramMaker(seed).source(), f"<random program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"static_range": static_range}
    exec(compile(source, name, "exec"), namespace)
    return namespace["program"]


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_random_programs_do_what_python_does(first):
    for seed in range(first, first + PER_TEST):
        function = program(seed)
        kernel = build(function, {"out": OUT, "n": NUMBER})
        verify(kernel)
        for n in INPUTS:
            expected, found = np.full(4, -1, np.int32), np.full(4, -1, np.int32)
            function(expected, n)
            run(kernel, (1, 1, 1), {"out": found, "n": n})
            np.testing.assert_array_equal(found, expected, f"seed {seed}, n = {n}")


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
