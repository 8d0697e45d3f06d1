"""What kernels ask in Triton's dialect: attributes, the size of a program, subscripts, limits."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError
from blocknumba.triton.language.extra.cuda import num_threads, num_warps


@triton.jit
def capped(x):
    if (x is not None) and hasattr(x, "dtype") and isinstance(x.dtype, tl.pointer_type) and (
            x.dtype.element_ty == tl.int32) and (tl.load(x) > 42):
        tl.store(x, 42)


@pytest.mark.parametrize("given", (None, 1, 2, np.full(1, 84.0, np.float32)), ids=str)
def test_hasattr_decides_what_the_rest_of_a_condition_means(given):
    before = None if given is None else np.array(given)
    capped[(1,)](given)
    assert given is None or np.array_equal(given, before)


def test_hasattr_of_a_pointer_is_true_where_the_attribute_is():
    x = np.full(1, 100, np.int32)
    capped[(1,)](x)
    assert x[0] == 42


@triton.jit
def asks_tiles(x):
    i = tl.arange(0, 4)
    tl.static_assert(hasattr(i, "shape") and hasattr(i, "to") and not hasattr(i, "no_such_name"))
    tl.static_assert(hasattr(x, "dtype") and not hasattr(x, "no_such_name"))


def test_hasattr_of_tiles_knows_attributes_and_methods():
    asks_tiles[1](np.zeros(4))


@triton.jit
def threads(out):
    count: tl.constexpr = num_threads()
    tl.store(out + tl.arange(0, count), num_warps())


def test_a_kernel_knows_its_threads():
    out = np.full(256, -1, np.int32)
    threads[1](out, num_warps=8)
    assert (out == 8).all()


def test_threads_that_the_compiler_chooses_are_not_known():
    with pytest.raises(triton.CompilationError, match="num_warps: the compiler chooses it") as told:
        threads[1](np.zeros(256, np.int32))
    assert "pass num_warps=" in str(told.value)


@triton.jit
def with_axes(x, out):
    one = x[None, None, :]
    tl.static_assert(one.shape == (1, 1) and one.dtype == x.dtype)
    tl.store(out + tl.arange(0, 1)[None, :], tl.load(one))


def test_none_and_colons_give_a_pointer_axes():
    out = np.zeros(1, np.float32)
    with_axes[1](np.full(3, 7, np.float32), out)
    assert out[0] == 7


@triton.jit
def sliced(x):
    x[10:]


@triton.jit
def indexed(x):
    tl.store(x, x[3])


@pytest.mark.parametrize("kernel", (sliced, indexed), ids=lambda kernel: kernel.__name__)
def test_a_pointer_is_not_indexed_as_an_array(kernel):
    with pytest.raises(triton.CompilationError, match="of a pointer, accepted None and `:`"):
        kernel[1](np.zeros(16, np.float32))


@triton.jit
def counted(out, STAGES: tl.constexpr):
    for _ in tl.range(3, num_stages=STAGES):
        tl.store(out, tl.load(out) + 1)
    for _ in range(0, 3, num_stages=STAGES):
        tl.store(out, tl.load(out) + 1)


@pytest.mark.parametrize("stages", (0, 1, 64))
def test_stages_beyond_what_a_loop_can_have_are_a_hint(stages):
    out = np.zeros(1, np.float32)
    counted[1](out, STAGES=stages, num_stages=stages)
    assert out[0] == 6


def test_more_warps_than_a_program_can_have_are_out_of_resources():
    with pytest.raises(triton.OutOfResources, match="num_warps: given 128, accepted 1 to 32") as e:
        counted[1](np.zeros(1, np.float32), STAGES=1, num_warps=128)
    assert (e.value.name, e.value.required, e.value.limit) == ("threads", 4096, 1024)


@pytest.mark.parametrize("expected", (AssertionError, ValueError, BlockError))
def test_warps_that_are_no_power_of_two_are_an_assertion_for_triton(expected):
    with pytest.raises(expected, match="num_warps: given 3, accepted a power of two up to 32"):
        counted.warmup(np.zeros(1, np.float32), STAGES=1, num_warps=3, grid=(1,))


@triton.jit
def next_one(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    following = tl.inline_asm_elementwise("add.u64 $0, $1, 4;", "=l,l", [x + i], dtype=x.dtype,
                                          is_pure=True, pack=1)
    tl.store(out + i, tl.load(following))


def test_the_result_of_assembly_is_a_pointer_emulated():
    x = np.random.default_rng().integers(-99, 99, 129).astype(np.int32)
    out = np.full(128, 1 << 30, np.int32)
    emulated_gpu.launch(next_one, 1, (x, out), {"SIZE": 128}, "sm_90a")
    np.testing.assert_array_equal(out, x[1:])


@pytest.mark.gpu(emulated="test_the_result_of_assembly_is_a_pointer_emulated")
def test_the_result_of_assembly_is_a_pointer():
    x = np.random.default_rng().integers(-99, 99, 129).astype(np.int32)
    out = np.full(128, 1 << 30, np.int32)
    next_one[1](x, out, SIZE=128)
    np.testing.assert_array_equal(out, x[1:])


@triton.jit
def through_assembly(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.inline_asm_elementwise(
        "ld.global.u32 $0, [$1]; shl.b32 $0, $0, 3; st.global.u32 [$2], $0;", "=r,l,l",
        [x + i, out + i], dtype=tl.int32, is_pure=False, pack=1)


def test_assembly_reads_and_writes_through_pointers_emulated():
    x, out = np.random.default_rng().integers(0, 1 << 20, (2, 128)).astype(np.int32)
    emulated_gpu.launch(through_assembly, 1, (x, out), {"SIZE": 128}, "sm_90a")
    np.testing.assert_array_equal(out, x << 3)


@pytest.mark.gpu(emulated="test_assembly_reads_and_writes_through_pointers_emulated")
def test_assembly_reads_and_writes_through_pointers():
    x, out = np.random.default_rng().integers(0, 1 << 20, (2, 128)).astype(np.int32)
    through_assembly[1](x, out, SIZE=128)
    np.testing.assert_array_equal(out, x << 3)
