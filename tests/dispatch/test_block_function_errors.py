"""Wrong block functions and wrong calls of them: whole messages, at the call."""

import re
from types import SimpleNamespace
from unittest import mock

import numba
import numpy as np
import pytest
from numba_callers import EMULATED, Machine

import blocknumba as bn
from blocknumba.emulator.errors import KernelAssertionError, TrapError
from blocknumba.errors import BlockError, BlockTypeError, BlockValueError, ResourceError

cuda = pytest.importorskip("numba.cuda")

MATRIX, ROW = np.zeros((3, 8), np.float32), np.zeros(8, np.float32)
EMULATOR = Machine(EMULATED)


@bn.jit
def scale(x, y, BLOCK: bn.constexpr):
    row, columns = bn.program_id(0), bn.span(0, BLOCK)
    y[row, columns] = x[row, columns] * 2


scaled = bn.block_function(scale, {"BLOCK": 32}, num_warps=2)


def calls(function, text):
    """A kernel of two arguments that makes one call."""
    namespace = {"f": function, "cuda": cuda}
    exec(compile(f"def kernel(x, y):\n    {text}\n", "caller.py", "exec"), namespace)
    return namespace["kernel"]


def message_of(kernel, *arguments, machine=EMULATOR, **options) -> str:
    with pytest.raises(BlockError) as caught:
        machine.ptx(kernel, arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize("call, message", [
    ("f(0, 1, x, y)", "scale: given 2 program ids before x, y, accepted 1, as many as it reads"),
    ("f(x, y)", "scale: given 0 program ids before x, y, accepted 1, as many as it reads"),
    ("f(x)", "scale: given 1 arguments, accepted up to 3 program ids and 2 (x, y)"),
    ("f(0, 1, 2, 3, x, y)", "scale: given 6 arguments, accepted up to 3 program ids and 2 (x, y)"),
    ("f(0, x, z=y)", "scale: given the arguments z, accepted x, y"),
    ("f(0, x, x=y)", "scale: given x twice, by position and by name"),
    ("f(0.5, x, y)", "scale: program id 0: given the type float64, accepted an int"),
    ("f(0, None, y)", "scale: argument x: given the type none, accepted arrays "
     "and numbers of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
     "bfloat16, float32, float64, float8_e4m3fn, float8_e5m2"),
])
def test_calls_that_do_not_fit(call, message):
    assert message_of(calls(scaled, call), MATRIX, MATRIX) == (
        f"{message}\n  caller.py, line 2")


def test_launches_of_a_block_kernel_in_a_kernel_of_threads():
    assert message_of(calls(scale, "f[1](x, y, BLOCK=8)"), MATRIX, MATRIX) == (
        "scale: a block kernel in a @cuda.jit kernel, accepted launches from Python and @njit\n"
        "  hint: a block calls bn.block_function(scale, constants, num_warps)")


def test_calls_under_njit():
    with pytest.raises(BlockTypeError) as caught:
        numba.njit(calls(scaled, "f(0, x, y)"))(MATRIX, MATRIX)

    assert str(caught.value) == (
        "scale: a block function called in a function under @njit, accepted calls in @cuda.jit "
        "kernels\n  hint: launch the kernel itself: scale[grid](...)")


def test_elements_that_the_language_has_not():
    message = message_of(calls(scaled, "f(0, x, y)"), MATRIX.astype(np.complex64), MATRIX)

    assert message.startswith("scale: argument x: given the type array(complex64, 2d, C), "
                              "accepted arrays and numbers of bool, ")


def test_a_mistake_in_the_kernel_is_shown_there_and_at_the_call():
    message = message_of(calls(scaled, "f(0, x, y)"), ROW, MATRIX)

    assert re.sub(r"line \d\d", "line N", message) == (
        "x: given 2 indices, accepted 1, one for each axis of the array\n"
        "  test_block_function_errors.py, line N, in scale\n"
        "    y[row, columns] = x[row, columns] * 2\n"
        "                      ^^^^^^^^^^^^^^^\n"
        "  called from caller.py, line 2")


def test_a_read_only_array_that_the_kernel_stores_to():
    given = MATRIX.copy()
    given.flags.writeable = False

    assert message_of(calls(scaled, "f(0, y, x)"), given, MATRIX) == (
        "scale: argument y: given a read-only array, accepted one to store to\n"
        "  caller.py, line 2")
    EMULATOR.ptx(calls(scaled, "f(0, x, y)"), (given, MATRIX))  # which it only reads


def test_a_launch_with_another_number_of_threads():
    launch = SimpleNamespace(blockdim=(64, 2, 1))
    with mock.patch("numba.cuda.launchconfig.current_launch_config", lambda: launch):
        message = message_of(calls(scaled, "f(0, x, y)"), MATRIX, MATRIX)

    assert message == (
        "scale: called in a block of (64, 2, 1) threads, accepted (64, 1, 1), as num_warps=2 "
        "needs\n  caller.py, line 2\n"
        "  hint: launch the kernel with 64 threads per block, or make the block function with "
        "another num_warps")


def test_a_later_launch_with_another_number_of_threads_stops_the_kernel():
    with_message = bn.block_function(scale, {"BLOCK": 32}, num_warps=2, debug=True)

    with pytest.raises(TrapError):
        EMULATOR.run(calls(scaled, "f(0, x, y)"), 1, 32, MATRIX, MATRIX)
    with pytest.raises(KernelAssertionError, match=re.escape(
            "scale: called in a block whose threads are not (64, 1, 1), as num_warps=2 needs")):
        EMULATOR.run(calls(with_message, "f(0, x, y)"), 1, 32, MATRIX, MATRIX)


def test_a_caller_whose_arithmetic_is_approximate():
    assert message_of(calls(scaled, "f(0, x, y)"), MATRIX, MATRIX, fastmath=True) == (
        "scale: called in a kernel with fastmath=True, whose arithmetic it would get\n"
        "  caller.py, line 2\n"
        "  hint: make it with fastmath=True too, or compile the kernel without")
    approximate = bn.block_function(scale, {"BLOCK": 32}, num_warps=2, fastmath=True)
    EMULATOR.ptx(calls(approximate, "f(0, x, y)"), (MATRIX, MATRIX), fastmath=True)


def test_lto_ir_in_a_kernel_without():
    linked = bn.block_function(scale, {"BLOCK": 32}, num_warps=2, link="ltoir")

    assert message_of(calls(linked, "f(0, x, y)"), MATRIX, MATRIX) == (
        "scale: linked as LTO IR into a kernel without lto=True\n  caller.py, line 2\n"
        '  hint: compile the kernel with lto=True, or make it with link="ir"')


def test_a_gpu_that_is_too_old():
    message = message_of(calls(scaled, "f(0, x, y)"), MATRIX, MATRIX,
                         machine=Machine(EMULATED, (7, 5)))

    assert message == (
        "block function: given a kernel for sm_75, accepted sm_80, sm_86, sm_89, sm_90, sm_90a, "
        "sm_100, sm_100a, sm_120\n  caller.py, line 2")


@bn.jit
def square(x, y, N: bn.constexpr):
    at = bn.arange(N)
    y[at[:, None], at] = x[at[:, None], at] @ x[at[:, None], at]


def test_more_shared_memory_than_a_block_has_without_opting_in():
    large = bn.block_function(square, {"N": 128}, num_warps=4)
    with pytest.raises(ResourceError) as caught:
        EMULATOR.ptx(calls(large, "f(x, y)"), (np.zeros((128, 128)), np.zeros((128, 128))))

    assert re.sub(r"line 1\d\d", "line N", str(caught.value).splitlines()[0]) == (
        "square: needs 131072 bytes of shared memory, a block function has 49152 per program: "
        "131072 bytes for 128x128xfloat64 at line N")
    assert str(caught.value).splitlines()[-2:] == [
        "  called from caller.py, line 2", "  hint: use smaller tiles or fewer num_stages"]


def test_more_shared_memory_than_a_block_has_besides_arrays_and_other_functions():
    first, second = (bn.block_function(square, {"N": n}, num_warps=4) for n in (64, 32))

    def kernel(x, y):
        array = cuda.shared.array((64, 20), np.float64)
        first(x, array)
        second(x, y)

    wide = MATRIX.astype(np.float64)
    lines = message_of(kernel, wide, wide).splitlines()

    assert lines[0] == (
        "square: needs 8192 bytes of shared memory, beside 10240 of arrays and 32768 of other "
        "block functions in the same kernel, accepted 49152 together")
    assert lines[2] == "    second(x, y)"


@bn.jit
def grid_of(x):
    x[0] = bn.num_programs(0)


def test_a_kernel_that_asks_for_its_grid():
    function = bn.block_function(grid_of, num_warps=1)

    assert re.sub(r"line \d\d\d", "line N", message_of(calls(function, "f(x)"), ROW, ROW)) == (
        "grid_of: num_programs in a block function, which has no grid\n"
        "  test_block_function_errors.py, line N, in grid_of\n"
        "    x[0] = bn.num_programs(0)\n"
        "           ^^^^^^^^^^^^^^^^^^\n"
        "  called from caller.py, line 2\n"
        "  hint: pass the number of programs as an argument")


def test_fields_of_records_whose_strides_are_no_multiples_of_their_size():
    function = bn.block_function(scale, {"BLOCK": 4}, num_warps=1, debug=True)
    records = np.zeros((2, 4), np.dtype([("value", "f4"), ("flag", "i2")]))

    with pytest.raises(KernelAssertionError, match=(
            "scale: the strides of x are no multiples of its element size")):
        EMULATOR.run(calls(function, "f(0, x, y)"), 1, 32, records["value"], MATRIX)


def test_arrays_of_more_elements_than_offsets_of_32_bits_reach():
    function = bn.block_function(scale, {"BLOCK": 4}, num_warps=1, debug=True)
    huge = np.broadcast_to(np.float32(1), (2**31, 4))

    with pytest.raises(KernelAssertionError, match=(
            "scale: given an array of 2\\*\\*31 elements or more, which needs wide=True")):
        EMULATOR.run(calls(function, "f(0, x, y)"), 1, 32, huge, MATRIX)


def test_wide_reaches_them():
    function = bn.block_function(scale, {"BLOCK": 4}, num_warps=1, wide=True)
    huge, result = np.broadcast_to(np.float32(1), (2**31, 4)), np.zeros((3, 4), np.float32)

    EMULATOR.run(calls(function, "f(2, x, y)"), 1, 32, huge, result)

    assert result.tolist() == [[0] * 4, [0] * 4, [2] * 4]


@pytest.mark.parametrize("arguments, options, message", [
    ((len,), {}, "block_function: given the built-in function len, accepted a @bn.jit kernel"),
    ((scale, {"BLOCK": 32}), {},
     "scale: missing num_warps\n"
     "  hint: a block function has as many threads as its caller: num_warps=4 for 128"),
    ((scale,), {"num_warps": 1}, "scale: missing the constant BLOCK"),
    ((scale, {"BLOK": 1}), {"num_warps": 1},
     "scale: given the constants BLOK, accepted x, y, BLOCK\n  hint: did you mean BLOCK?"),
    ((scale, {"BLOCK": 1}), {"num_warps": 1, "maxnreg": 32},
     "scale: given the options maxnreg, accepted num_warps, num_stages, fastmath, debug, lineinfo"),
    ((scale, {"BLOCK": 1}), {"num_warps": 3},
     "num_warps: given 3, accepted a power of two up to 32"),
    ((scale, {"BLOCK": 1}), {"num_warps": 1, "link": "ptx"},
     "scale: given link='ptx', accepted 'ir' and 'ltoir'"),
    ((scale, {"BLOCK": 1}), {"num_warps": 1, "wide": 1},
     "scale: wide: given 1, accepted True or False"),
])
def test_block_functions_that_cannot_be_made(arguments, options, message):
    with pytest.raises((BlockTypeError, BlockValueError)) as caught:
        bn.block_function(*arguments, **options)

    assert str(caught.value) == message


def test_a_call_in_python():
    with pytest.raises(BlockTypeError) as caught:
        scaled(0, MATRIX, MATRIX)

    assert str(caught.value) == (
        "scale: a block function called in Python, accepted calls in @cuda.jit kernels\n"
        "  hint: launch the kernel itself: scale[grid](...)")
