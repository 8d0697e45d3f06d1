"""Pointers as values in Triton's dialect: addresses in memory, conditions, casts."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError


@triton.jit
def copy_groups(sources, out, SIZE: tl.constexpr):
    group = tl.program_id(0)
    i = tl.arange(0, SIZE)
    source = tl.load(sources + group).to(tl.pointer_type(tl.float32))
    tl.store(out + group * SIZE + i, tl.load(source + i))


def test_pointers_are_loaded_from_memory():
    arrays = [np.random.default_rng().standard_normal(64).astype(np.float32) for _ in range(3)]
    sources = np.array([array.ctypes.data for array in arrays])
    out = np.full((3, 64), np.nan, np.float32)
    copy_groups[3](sources, out, SIZE=64, device="cpu")
    np.testing.assert_array_equal(out, arrays)


def test_the_interpreter_refuses_what_is_of_no_argument():
    x = np.zeros(64, np.float32)
    with pytest.raises(BlockError, match="pointer"):
        copy_groups[1](np.array([x.ctypes.data]), np.zeros(64, np.float32), SIZE=64, interpret=True)


@triton.jit
def moved(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tile = x + i
    tl.store(out + i, tl.load((tile.to(tl.int64) + 4).to(tl.pointer_type(tl.float32))))


@pytest.mark.parametrize("interpret", (False, True))
def test_addresses_count_bytes(interpret):
    x = np.arange(65, dtype=np.float32)
    out = np.full(64, np.nan, np.float32)
    moved[1](x, out, SIZE=64, interpret=interpret)
    np.testing.assert_array_equal(out, x[1:])


@triton.jit
def chosen(x, y, out, HAS_Y: tl.constexpr):
    i = tl.arange(0, 4)
    if y:
        tl.store(out + i, tl.load(tl.where(i < 2, x + i, y + i)))
    else:
        tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize("interpret", (False, True))
def test_a_pointer_is_a_condition_and_an_operand_of_where(interpret):
    x, y, out = np.arange(12, dtype=np.int32).reshape(3, 4)
    chosen[1](x, y, out, HAS_Y=True, interpret=interpret)
    np.testing.assert_array_equal(out, [0, 1, 6, 7])
    chosen[1](x, None, out, HAS_Y=False, interpret=interpret)
    np.testing.assert_array_equal(out, x)


def test_code_for_a_gpu_loads_through_such_pointers():
    compiled = bn.compile(copy_groups, "*i64:16, *fp32:16", {"SIZE": 1024}, target="sm_90a")
    assert "ld.global" in compiled.asm["ptx"]


@triton.jit
def reinterpreted(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    words = x.to(tl.pointer_type(tl.int32))
    tl.store(out + i, tl.load(words + i))
    tl.store(out + SIZE, (x.to(tl.int64) % 4).to(tl.int32))


def test_an_array_is_a_pointer_to_what_it_is_cast_to():
    x, out = np.random.default_rng().standard_normal(8).astype(np.float32), np.full(9, -1, np.int32)
    reinterpreted[1](x, out, SIZE=8)
    np.testing.assert_array_equal(out[:8], x.view(np.int32))
    assert out[8] == 0


@triton.jit
def through_const(source: tl.const, x, flag, HOW: tl.constexpr):
    i = tl.arange(0, 8)
    value = tl.load(source + i)
    if HOW == "itself":
        tl.store(source + i, value)
    elif HOW == "either":
        tl.store((source if flag > 3 else x) + i, value)
    elif HOW == "branch":
        to = x
        if flag > 3:
            to = source
        tl.store(to + i, value)
    elif HOW == "atomic":
        tl.atomic_add(tl.where(i > 2, source + i, x + i), 1.0)
    else:
        tl.store(x + i, value)


@pytest.mark.parametrize("how", ["itself", "either", "branch", "atomic"])
def test_nothing_is_stored_through_const_pointers(how):
    with pytest.raises(triton.CompilationError, match="a parameter annotated with const"):
        through_const[1](np.ones(8, np.float32), np.zeros(8, np.float32), 5, HOW=how)


def test_const_pointers_are_read():
    x = np.zeros(8, np.float32)
    through_const[1](np.ones(8, np.float32), x, 5, HOW="no")
    np.testing.assert_array_equal(x, np.ones(8))
