"""Reductions against NumPy's: kinds, dtypes, axes, warps, NaN and ties."""

import numpy as np
import pytest
from kernels import emulated, kernel

from blocknumba.nvvm_lower.ops.reduce import in_tree
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DTYPES
from blocknumba.tile_ir.ops.reduce import KINDS


def tile(shape, dtype):
    extents = "".join(f"{n}x" for n in shape)
    return f"tile<{extents}{dtype}>" if shape else dtype


def row_major(shape, name="at"):
    """Tile IR that makes %at, the C-order index of each element."""
    lines = [f"%{name}.none = constant {{value=0}} : int32",
             f"%{name}.0 = splat %{name}.none : {tile(shape, 'int32')}"]
    for axis, extent in enumerate(shape):
        flat = tuple(extent if i == axis else 1 for i in range(len(shape)))
        step = int(np.prod(shape[axis + 1:]))
        prefix = f"%{name}.a{axis}"
        lines += [f"{prefix}.i = arange {{size={extent}, start=0}} : tile<{extent}xint32>",
                  f"{prefix}.r = reshape {prefix}.i : {tile(flat, 'int32')}",
                  f"{prefix}.b = broadcast {prefix}.r : {tile(shape, 'int32')}",
                  f"{prefix}.c = constant {{value={step}}} : int32",
                  f"{prefix}.s = splat {prefix}.c : {tile(shape, 'int32')}",
                  f"{prefix}.m = mul {prefix}.b, {prefix}.s : {tile(shape, 'int32')}",
                  f"%{name}.{axis + 1} = add %{name}.{axis}, {prefix}.m : {tile(shape, 'int32')}"]
    zero = f"%{name}.{len(shape)}"
    return "\n".join(lines + [f"%{name} = add {zero}, %{name}.0 : {tile(shape, 'int32')}"])


def tile_kernel(shape, dtype, body, result_shape, result):
    """A kernel that loads %x of a shape and stores %y of another."""
    if result_shape:
        put = f"""{row_major(result_shape, 'to')}
%os = splat %op : {tile(result_shape, f'ptr<{result}>')}
%oq = offset %os, %to : {tile(result_shape, f'ptr<{result}>')}
store %oq, %y"""
    else:
        put = "store %op, %y"
    return kernel(f"%xp: ptr<{dtype}> = pointer(x) {{divisibility=16}}\n"
                  f"%op: ptr<{result}> = pointer(out) {{divisibility=16}}", f"""
{row_major(shape)}
%xs = splat %xp : {tile(shape, f'ptr<{dtype}>')}
%xq = offset %xs, %at : {tile(shape, f'ptr<{dtype}>')}
%x = load %xq : {tile(shape, dtype)}
{body}
{put}""")


def reduced(x, axis, kind, op="reduce", num_warps=4):
    """The result of the kernel on x."""
    shape = x.shape[:axis] + x.shape[axis + 1:]
    dtype = next(d.name for d in DTYPES.values() if d.numpy == x.dtype)
    result = "int32" if op == "arg_reduce" else dtype
    out = np.zeros(shape or 1, DTYPES[result].numpy)
    body = f'%y = {op} %x {{axis={axis}, kind="{kind}"}} : {tile(shape, result)}'
    emulated(tile_kernel(x.shape, dtype, body, shape, result), 1, x, out, num_warps=num_warps)
    return out if shape else out[0]


def small_integers(shape, dtype, seed=0):
    values = np.random.default_rng(seed).integers(0, 4, shape)
    return values.astype(DTYPES[dtype].numpy)


@pytest.mark.parametrize("kind, dtype", [(kind, dtype.name) for kind, (_, domain) in KINDS.items()
                                         for dtype in sorted(domain, key=str)])
def test_every_kind_reduces_every_dtype(kind, dtype):
    x = small_integers((4, 64), dtype)

    found = reduced(x, 1, kind)

    np.testing.assert_array_equal(found, OPS["reduce"].evaluate(x[None], axis=1, kind=kind)[0])


@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize("shape", [(1,), (2,), (32,), (1024,), (4096,), (16, 8), (64, 64), (1, 128),
                                   (128, 1), (2, 2, 32), (4, 8, 2, 2), (8, 2, 4)], ids=str)
def test_every_axis_of_every_shape_sums_exactly(shape, num_warps):
    x = small_integers(shape, "int32")

    for axis in range(len(shape)):
        np.testing.assert_array_equal(reduced(x, axis, "sum", num_warps=num_warps), x.sum(axis))


@pytest.mark.parametrize("num_warps", [16, 32])
@pytest.mark.parametrize("op, kind", [("reduce", "sum"), ("reduce", "max"), ("arg_reduce", "max")])
def test_many_warps_combine_their_results_by_lanes(op, kind, num_warps):
    """Of a row, of columns whose sums lie in lanes, and of rows with warps of their own."""
    reference = {"sum": np.sum, "max": np.argmax if op == "arg_reduce" else np.max}[kind]
    for seed, (shape, axis) in enumerate([((8192,), 0), ((512, 4), 0), ((2, 4096), 1),
                                          ((32, 64), 1)]):
        x = np.random.default_rng(seed).permutation(np.prod(shape)).astype(np.int32).reshape(shape)

        found = reduced(x, axis, kind, op, num_warps)

        np.testing.assert_array_equal(found, reference(x, axis))


@pytest.mark.parametrize("index", [0, 1, 77, 255])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_a_nan_anywhere_makes_the_extremum_nan(kind, index):
    x = np.full(256, np.inf if kind == "max" else -np.inf, np.float32)
    x[index] = np.nan

    assert np.isnan(reduced(x, 0, kind))


def test_fmax_ignores_nan():
    x = np.float32([np.nan, 1, 3, np.nan])

    assert reduced(x, 0, "fmax") == 3


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("values", [
    [1, np.nan, 5, np.nan], [np.nan] * 4, [0.0, -0.0, 0.0, -0.0], [2, 7, 7, 2], [-1, -5, -5, -1],
    [np.inf, -np.inf, np.inf, -np.inf]], ids=str)
@pytest.mark.parametrize("size", [4, 64, 1024])
def test_arg_reduce_gives_the_first_best(values, kind, size):
    x = np.float32(values * (size // 4))

    found = reduced(x, 0, kind, "arg_reduce")

    assert found == getattr(np, f"arg{kind}")(x)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float16", "bfloat16", "float64",
                                   "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_arg_reduce_takes_every_dtype(dtype, axis):
    x = small_integers((32, 16), dtype, seed=5)

    found = reduced(x, axis, "max", "arg_reduce")

    np.testing.assert_array_equal(found, x.astype(np.float64).argmax(axis))


def test_float16_sums_are_rounded_once():
    x = np.ones(4096, np.float16)

    assert reduced(x, 0, "sum") == 4096  # a float16 accumulator stops at 2048


def test_a_reduction_of_a_reduction_counts_each_element_once():
    x = small_integers((8, 128), "float32")
    body = ('%s = reduce %x {axis=0, kind="sum"} : tile<128xfloat32>\n'
            '%y = reduce %s {axis=0, kind="sum"} : float32')
    out = np.zeros(1, np.float32)

    emulated(tile_kernel((8, 128), "float32", body, (), "float32"), 1, x, out)

    assert out[0] == x.sum()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_few_partial_results_wait_for_others(count):
    waiting, most = set(), 0

    def combine(a, b):
        nonlocal most
        waiting.difference_update((a, b))
        waiting.add((a, b))
        most = max(most, len(waiting))
        return a, b

    level = list(range(count))
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2]))
        level = pairs + level[len(pairs) * 2:]

    assert in_tree(list(range(count)), combine) == level[0]
    assert most <= count.bit_length()
