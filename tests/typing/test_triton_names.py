"""Names and spellings of Triton's kernels: lists, keywords, types, block pointers, descriptors."""

import numpy as np
import pytest
from launching import kernel_of

import blocknumba as bn
import blocknumba.language as tl
from blocknumba.errors import BlockError

N = 64


@bn.jit
def lists(x, y, N: tl.constexpr):
    halves = [i * (N // 2) for i in range(2)]
    parts = [tl.load(x + start + tl.arange(0, N // 2)) for start in halves]
    total = tl.zeros([N // 2], dtype=tl.float32)
    for part in parts:
        total += part
    first, second = [*halves, 3][:2]
    tl.store(y + first + tl.arange(0, N // 2), total)
    tl.store(y + second + tl.arange(0, N // 2), tl.reshape(total, [N // 4, 2]).reshape([N // 2]))


def test_lists_that_nobody_changes_are_tuples():
    x, y = np.random.default_rng().standard_normal((2, N)).astype(np.float32)

    lists[1](x, y, N=N)

    total = x[:N // 2] + x[N // 2:]
    assert np.array_equal(y, np.concatenate([total, total]))


@bn.jit
def types(x, y, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tile = tl.load(x + offsets)
    tl.static_assert(x.type.is_ptr() and x.type.element_ty == tl.float16)
    tl.static_assert((x + offsets).type.scalar.element_ty == tl.float16)
    tl.static_assert(tile.type.is_block() and tile.type.scalar == tl.float16)
    tl.static_assert(tile.type.shape == (N,) and tile.type.numel == N.value)
    tl.static_assert(tile.dtype.is_fp16() and not tile.dtype.is_bf16() and tile.dtype.is_floating())
    tl.static_assert(tile.dtype.primitive_bitwidth == 16 and n.type.is_int32())
    tl.static_assert(tl.int1.is_int_unsigned() and tl.int8.is_int_signed() and tl.uint8.is_int())
    half = tl.constexpr(N // 2)
    tl.store(y + offsets, tile.cast(y.dtype.element_ty) + half.value)


def test_types_answer_as_tritons_do():
    x, y = np.arange(N, dtype=np.float16), np.zeros(N, np.float32)

    types[1](x, y, 3, N=N)

    assert np.array_equal(y, np.arange(N) + N // 2)


@bn.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"], noinline=False, repr=None,
        launch_metadata=None, version=1)
def keywords(x, y, n, N: tl.constexpr):
    offsets = tl.arange(start=0, end=N)
    tile = tl.load(pointer=x + offsets, mask=None, other=0.0)
    tl.debug_barrier()
    total = tl.sum(input=tile, axis=0) + tl.max(input=tile, axis=0) + tl.cdiv(x=n, div=2)
    wide = tl.broadcast_to(input=tl.expand_dims(input=tile, axis=0), shape=(2, N))
    moved = tl.permute(input=wide, dims=(1, 0))
    tl.device_assert(cond=n > 0, msg="positive")
    tl.atomic_add(y, val=tl.sum(moved) + total, mask=True, sem=None, scope=None)


def test_parameters_have_tritons_names_too():
    x, y = np.arange(N, dtype=np.float32), np.zeros(1, np.float32)

    keywords[1](x, y, 7, N=N)

    assert y[0] == 3 * x.sum() + x.max() + 4


@bn.jit
def multiply(a, b, c, M, N, K, strides_a: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(base=a, shape=(M, K), strides=(K, 1), offsets=(row, 0),
                             block_shape=(BM, BK), order=(1, 0))
    right = tl.make_block_ptr(base=b, shape=(K, N), strides=(N, 1), offsets=(0, column),
                              block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=[0]))
        left, right = tl.advance(left, (0, BK)), tl.advance(right, [BK, 0])
    out = tl.make_block_ptr(c, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(out, acc.to(out.type.element_ty), boundary_check=(0, 1))


@bn.jit
def multiply_boxes(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK)):
        acc = tl.dot(left.load([row, k * BK]), tl.load_tensor_descriptor(right, [k * BK, column]),
                     acc)
    out.store([row, column], acc)


@pytest.mark.parametrize("kernel", [multiply, multiply_boxes])
def test_boxes_of_arrays_multiply(kernel, device):
    m, n, k = 50, 40, 72
    random = np.random.default_rng()
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m + 1, n), 77, np.float32)
    named = {"strides_a": None} if kernel is multiply else {}

    device.run(kernel, (4, 3), a, b, c, m, n, k, BM=16, BN=16, BK=32, **named)

    assert np.array_equal(c[:m], a.astype(np.float32) @ b.astype(np.float32))
    assert (c[m] == 77).all()


@bn.jit
def padded(x, y, n, N: tl.constexpr, PADDING: tl.constexpr):
    box = tl.make_block_ptr(x + 1, (n,), (1,), (2,), (N,), (0,))
    tl.store(y + tl.arange(0, N), tl.load(box, padding_option=PADDING))
    desc = tl.make_tensor_descriptor(x, [n], [1], [N], padding_option=PADDING)
    tl.store(y + N + tl.arange(0, N), desc.load([-1]))


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_padding_is_zero_or_nan(padding):
    x, y = np.arange(1, 9, dtype=np.float32), np.full(16, 77, np.float32)

    padded[1](x, y, 5, N=8, PADDING=padding)

    hole = 0 if padding == "zero" else np.nan
    assert np.array_equal(y, [4, 5, 6, *[hole] * 5, hole, 1, 2, 3, 4, 5, hole, hole], equal_nan=True)


FLOATS = {"exp10": lambda x: 10.0 ** x, "pow": np.power, "fmod": np.fmod, "rcp_rn": np.reciprocal,
          "fast_expf": np.exp, "tanh": np.tanh, "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
          "saturatef": lambda x: np.clip(x, 0, 1), "rint": np.rint,
          "fdim": lambda x, y: np.where(x > y, x - y, 0), "float2int_rd": np.floor,
          "double2ll_rz": np.trunc, "llrint": np.rint, "signbit": np.signbit}


@bn.jit
def of_libdevice(x, y, out, function: tl.constexpr, BINARY: tl.constexpr, N: tl.constexpr):
    r = bn.span(0, N)
    if BINARY:
        out[r] = function(x[r], y[r])
    else:
        out[r] = function(x[r])


@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_libdevice_are_numpys(name):
    random = np.random.default_rng()
    binary = name in ("pow", "fmod", "fdim")
    x = random.uniform(0.1 if name == "pow" else -3, 3, N)
    x[:2] = 1.5, 2.5
    y, out = random.uniform(-2, 2, N), np.full(N, 77.0)

    of_libdevice[1](x, y, out, function=getattr(tl.math, name), BINARY=binary, N=N)

    expected = FLOATS[name](x, y) if binary else FLOATS[name](x)
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=0)
    assert getattr(tl.extra.cuda.libdevice, name) is getattr(bn.libdevice, name)


# mistakes -------------------------------------------------------------------------------------

def grown(x, y, n):
    items = [1]
    items += [2]


def of_unknown_length(x, y, n):
    items = [i for i in range(n)]


def of_another_rank(x, y, n):
    tl.make_block_ptr(x, (n,), (1,), (0,), (4, 4), (0,))


def of_a_number(x, y, n):
    tl.make_tensor_descriptor(n, (n,), (1,), (4,))


def without_offsets(x, y, n):
    tl.make_tensor_descriptor(x, (n,), (1,), (4,)).load(0)


def of_another_padding(x, y, n):
    tl.load(tl.make_block_ptr(x, (n,), (1,), (0,), (4,), (0,)), padding_option="one")


def checked_without_bounds(x, y, n):
    tl.load(x + tl.arange(0, 4), boundary_check=(0,))


MISTAKES = [
    (grown, "list: not supported in a kernel", "use a tuple: (a, b), or tuple(... for ...)"),
    (of_unknown_length, "a generator or list: the number of its items is not known at compile time",
     "loop over a tuple or a range of compile-time constants, without a run-time `if`; or add up "
     "in a for loop"),
    (of_another_rank, "make_block_ptr: given a block_shape of 2 axes for an array of 1", ""),
    (of_a_number, "make_tensor_descriptor: given an int of run time as base, accepted an array or "
     "a pointer", ""),
    (without_offsets, "load_tensor_descriptor: given 0 as offsets, accepted 1 ints", ""),
    (of_another_padding, "load: padding_option must be one of ('zero', 'nan', '', None), got 'one'",
     ""),
    (checked_without_bounds, "load: given boundary_check for tile<4xptr<float32>>, accepted for a "
     "block pointer", "give a mask"),
]


@pytest.mark.parametrize("function,message,hint", MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_every_mistake_has_one_message(function, message, hint):
    with pytest.raises(BlockError) as caught:
        kernel_of(function, x=np.zeros(8, np.float32), y=np.zeros((8, 8), np.float32), n=3)

    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc.file == __file__
