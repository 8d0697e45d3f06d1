"""Pointers as values in Triton's dialect: addresses in memory, conditions, casts."""

import emulated_gpu
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


@triton.jit
def told(x, n, out, SIZE: tl.constexpr):
    one, all_ = x + 1, x + tl.arange(0, SIZE)
    tl.static_assert(x.dtype == tl.pointer_type(tl.float16) and x.type == x.dtype)
    tl.static_assert(one.dtype == x.dtype and all_.dtype == x.dtype and all_.type.scalar == x.dtype)
    tl.static_assert(x.dtype.is_ptr() and not x.dtype.is_block() and not x.dtype.is_floating())
    tl.static_assert(not x.dtype.element_ty.is_ptr() and not x.dtype == tl.float16)
    tl.static_assert(n.dtype == tl.int32 and not n.dtype.is_ptr())
    if x.dtype.is_ptr():  # known before types are
        kind: tl.constexpr = x.dtype.element_ty
    else:
        kind: tl.constexpr = tl.undefined_name
    tile = tl.full((SIZE,), n, kind)
    tl.store(out + tl.arange(0, SIZE), (tile / 4).to(tile.type).to(out.dtype.element_ty))


def test_the_dtype_of_a_pointer_is_tritons_pointer_type():
    out = np.full(8, np.nan, np.float32)
    told[1](np.zeros(8, np.float16), 3, out, SIZE=8)
    np.testing.assert_array_equal(out, np.full(8, 0.75))


@bn.jit
def of_elements(x):
    tl.static_assert(x.dtype == bn.float16 and x.dtype.element_ty == bn.float16)


@triton.jit
def of_pointers(x):
    tl.static_assert(x.dtype == tl.pointer_type(tl.float16))


@triton.jit
def triton_asks(x):
    of_elements(x)
    of_pointers(x)


@bn.jit
def numpy_asks(x):
    of_elements(x)
    of_pointers(x)


@pytest.mark.parametrize("kernel", (triton_asks, numpy_asks), ids=("triton", "numpy"))
def test_a_functions_own_dialect_says_what_the_dtype_of_a_pointer_is(kernel):
    kernel[1](np.zeros(8, np.float16))


@triton.jit
def as_a_pointer(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, (tl.load(x + i) * 2).to(out.dtype))


def test_numbers_that_are_cast_to_the_dtype_of_a_pointer_are_told_of_element_ty():
    with pytest.raises(BlockError, match=r"accepted int64, uint64 and pointers") as raised:
        as_a_pointer[1](np.ones(8, np.float32), np.zeros(8, np.float16))
    assert "x_ptr.dtype.element_ty" in str(raised.value)


@triton.jit
def beyond(x, out, rows, CHECK: tl.constexpr):
    start = tl.program_id(0) * 4
    source = tl.make_block_ptr(x, (rows, 8), (8, 1), (start, 0), (4, 16), (1, 0))
    target = tl.make_block_ptr(out, (rows, 8), (16, 1), (start, 0), (4, 16), (1, 0))
    tl.store(target, tl.load(source, boundary_check=CHECK))


@pytest.mark.parametrize("on", ["cpu", "interpreter", "emulator"])
@pytest.mark.parametrize("check", [(), (0,), (1,), [0, 1]])
def test_a_block_pointer_ends_on_the_axes_that_boundary_check_names(check, on):
    x = np.random.default_rng().integers(1, 100, (9, 8)).astype(np.int32)
    out = np.full((8, 16), -1, np.int32)
    named = {"rows": 5, "CHECK": tuple(check)}
    if on == "emulator":
        emulated_gpu.launch(beyond, (2,), (x, out), named)
    else:
        beyond[(2,)](x, out, **named, interpret=on == "interpreter")

    expected = np.concatenate([x[:8], x[1:9]], axis=1)  # a row goes on in the next
    expected[5:] *= 0 not in check
    expected[:, 8:] *= 1 not in check
    np.testing.assert_array_equal(out, expected)


def test_block_pointers_have_methods():
    @triton.jit
    def kernel(x, out):
        source = tl.make_block_ptr(x, (6,), (1,), (0,), (4,), (0,))
        to = tl.make_block_ptr(out, (6,), (1,), (0,), (4,), (0,))
        for _ in range(2):
            to.store(tl.load(source, boundary_check=(0,)) + 1, boundary_check=(0,))
            source, to = source.advance([4]), to.advance((4,))

    x, out = np.random.default_rng().integers(0, 99, 6), np.full(6, -1)
    kernel[(1,)](x, out)

    np.testing.assert_array_equal(out, x + 1)
