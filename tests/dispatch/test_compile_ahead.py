"""bn.compile: code for a GPU that need not be there."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError, BlockValueError, ResourceError

TARGETS = ["sm_80", "sm_90a", "sm_100"]


@bn.jit
def add(x, y, out, n, B: bn.constexpr = 1024):
    r = bn.block(0, B)
    out[r] = x[r] + y[r] * n


@pytest.fixture(scope="module", params=TARGETS)
def compiled(request):
    pytest.importorskip("cuda.bindings.nvvm")
    return bn.compile(add, "f32[::1]:16, f32[::1]:16, f32[::1]:16, i32", target=request.param)


def test_there_is_text_at_every_level(compiled):
    assert list(compiled.asm) == ["tile", "gpu", "nvvm", "ptx", "sass", "cubin"]
    assert compiled.asm["tile"].startswith("kernel add(")
    assert "register:" in compiled.asm["gpu"]
    assert "define void @add(" in compiled.asm["nvvm"]
    assert f".target {compiled.specialization.target}" in compiled.asm["ptx"]
    assert compiled.asm["cubin"].startswith(b"\x7fELF")


def test_statistics_say_what_the_kernel_uses(compiled):
    stats = compiled.stats

    assert 8 <= stats.registers <= 64
    assert stats.spills == stats.shared_bytes == 0
    assert 0 < stats.occupancy <= 1
    assert set(stats.loads) == {16}


def test_the_time_of_every_stage_is_known(compiled):
    assert list(compiled.times_ms) == ["typing", "tile", "layout", "nvvm", "assemble"]
    assert all(time >= 0 for time in compiled.times_ms.values())


def test_arrays_that_are_not_known_to_be_aligned_are_read_by_the_element():
    pytest.importorskip("cuda.bindings.nvvm")

    compiled = bn.compile(add, "*fp32, *fp32, *fp32, i32", target="sm_90a")

    assert set(compiled.stats.loads) == {4}


def test_equal_types_and_constants_give_the_same_code():
    first = bn.compile(add, "f32[:], f32[:], f32[:], i32", {"B": 64}, target=None)

    assert bn.compile(add, ("f32[:]",) * 3 + ("i32",), {"B": 64}) is first
    assert bn.compile(add, ("f32[:]",) * 3 + ("i32",), {"B": 128}) is not first


@pytest.mark.parametrize("signature", [
    "f32[:], f32[:], f32[:], i32, 64", ("f32[:]", "f32[:]", "f32[:]", "i32", 64)])
def test_a_signature_may_have_the_values_of_constants(signature):
    by_name = bn.compile(add, "f32[:], f32[:], f32[:], i32", {"B": 64})

    assert bn.compile(add, signature) is by_name


@pytest.mark.parametrize("signature, constants, message", [
    ("f32[:], f32[:], f32[:], i32, n", {}, "add: argument B: given ' n', accepted the value"),
    ("f32[:], f32[:], f32[:], i32, 64", {"B": 64}, "add: given the constant B twice")])
def test_a_value_in_a_signature_that_is_none_or_given_twice_is_an_error(signature, constants,
                                                                        message):
    with pytest.raises(BlockTypeError, match=message):
        bn.compile(add, signature, constants)


def test_code_compiled_ahead_serves_a_launch():
    kernel = bn.jit(add.python_function)
    arrays = [np.zeros(32, np.float32) for _ in range(3)]
    ahead = bn.compile(kernel, ("f32[::1]:16",) * 3 + ("int",), {"B": 32}, interpret=True)

    assert kernel[1](*arrays, 7, B=32, interpret=True).specialization == ahead.specialization


@pytest.mark.parametrize("signature, constants, options, error, message", [
    ("f32[:]", {}, {}, BlockTypeError, r"add: given 1 types, accepted 4 \(x, y, out, n\)"),
    ("f32[:], f32[:], f32[:], i32", {"BB": 1}, {}, BlockTypeError, "given the constants BB"),
    ("f32[:], f32[:], f32[:], i32", {}, {"warps": 1}, BlockTypeError, "given the options warps"),
    ("f32[:], f32[:], f32[:], i32", {}, {"target": "sm_30"}, BlockValueError, "given 'sm_30'")])
def test_a_compilation_that_does_not_fit_is_an_error(signature, constants, options, error, message):
    with pytest.raises(error, match=message):
        bn.compile(add, signature, constants, **options)


def test_a_plain_function_is_not_a_kernel():
    with pytest.raises(BlockTypeError, match="compile: given the function .*, accepted a @bn.jit kernel"):
        bn.compile(add.python_function, "f32[:]")


def test_a_missing_constant_is_an_error():
    @bn.jit
    def fill(out, B: bn.constexpr):
        out[bn.block(0, B)] = 1

    with pytest.raises(BlockTypeError, match="fill: missing the constant B"):
        bn.compile(fill, "f32[:]")


@bn.jit
def transpose(x, out, B: bn.constexpr):
    rows, columns = bn.span(0, B), bn.span(0, B)
    out[columns, rows] = x[rows, columns].T


def test_too_much_shared_memory_is_an_error_that_names_the_buffers():
    with pytest.raises(ResourceError) as error:
        bn.compile(transpose, "f32[:,::1]:16, f32[:,::1]:16", {"B": 512}, target="sm_90a")

    message = str(error.value)
    assert message.startswith("transpose: needs 1048576 bytes of shared memory, sm_90a has 232448")
    assert "1048576 bytes for 512x512xfloat32 at line" in message
    assert "test_compile_ahead.py, line" in message
    assert "hint: use smaller tiles" in message


def test_loops_may_be_nested_deeply():
    pytest.importorskip("cuda.bindings.nvvm")

    def inner(x, n):
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    for _ in range(n):
                        for _ in range(n):
                            for _ in range(n):
                                for _ in range(n):
                                    for _ in range(n):
                                        x[0] += 1

    def middle(x, n):
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    for _ in range(n):
                        for _ in range(n):
                            for _ in range(n):
                                for _ in range(n):
                                    for _ in range(n):
                                        inner(x, n)

    @bn.jit
    def kernel(x, n):
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    for _ in range(n):
                        for _ in range(n):
                            for _ in range(n):
                                for _ in range(n):
                                    for _ in range(n):
                                        middle(x, n)

    compiled = bn.compile(kernel, "f32[::1], i32", target="sm_90a")

    assert compiled.asm["tile"].count("for %") == 24
