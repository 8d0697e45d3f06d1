"""Programs give the same whether they run in step, one after the other, or in debug."""

import sys
from pathlib import Path

import numpy as np
import pytest

from blocknumba.tile_ir import interpreter  # noqa: F401  registers how ops with effects are executed
from blocknumba.tile_ir.interpreter import launch
from blocknumba.tile_ir.text.parser import parse

sys.path.append(str(Path(__file__).parent.parent))
import random_functions  # noqa: E402

SEEDS = range(1000, 1040)


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_in_step_do_what_they_do_one_by_one(seed, monkeypatch):
    fn = random_functions.random_function(seed, steps=25)
    in_step = random_functions.results(fn, seed)

    monkeypatch.setattr(launch, "CHUNK_PROGRAMS", 1)
    one_by_one = random_functions.results(fn, seed)

    assert in_step == one_by_one


@pytest.mark.parametrize("seed", SEEDS)
def test_debug_changes_no_result(seed, monkeypatch):
    fn = random_functions.random_function(seed, steps=25)
    plain = random_functions.results(fn, seed)

    monkeypatch.setattr(random_functions.interpreter, "run", lambda *args: interpreter.Interpreter(
        args[0]).run(*args[1:], debug=True))

    assert random_functions.results(fn, seed) == plain


SHIFT = """kernel shift(
  %x: ptr<int32> = pointer(x)
) {
  %pid = program_id {axis=0} : int32
  %size = constant {value=64} : int32
  %first = mul %pid, %size : int32
  %p = offset %x, %first : ptr<int32>
  %zero = constant {value=0} : int32
  %one = constant {value=1} : int32
  %five = constant {value=5} : int32
  %r = arange {start=0, size=16} : tile<16xint32>
  %tail = arange {start=16, size=16} : tile<16xint32>
  %s = splat %p : tile<16xptr<int32>>
  %a = offset %s, %r : tile<16xptr<int32>>
  %b = offset %s, %tail : tile<16xptr<int32>>
  %kept = load %a : tile<16xint32>
  %last = for %zero, %five, %one, %kept : tile<16xint32> (%i: int32, %before: tile<16xint32>) {
    %now = load %a : tile<16xint32>
    %c = lt %i, %pid : bool
    if %c {
      %ones = splat %one : tile<16xint32>
      %next = add %now, %ones : tile<16xint32>
      store %a, %next
      yield
    } else {
      yield
    }
    store %b, %before
    yield %now
  }
  %sum = add %last, %kept : tile<16xint32>
  store %b, %sum
  return
}"""


def test_tiles_that_were_loaded_keep_their_values_while_memory_changes():
    x = np.zeros((8, 64), np.int32)
    x[:, :16] = np.arange(16) * 100

    interpreter.run(parse(SHIFT), (8, 1, 1), {"x": x})

    for program, row in enumerate(x):
        start, times = np.arange(16) * 100, min(program, 5)
        np.testing.assert_array_equal(row[:16], start + times)
        np.testing.assert_array_equal(row[16:32], 2 * start + min(program, 4))
