"""What a kernel prints and asserts: calls of the driver's functions."""

import io

import numpy as np
import pytest
from ptx import module, run

import blocknumba as bn
from blocknumba.emulator import KernelAssertionError, Module, UnknownInstructionError
from emulated_gpu import launch

_DECLARED = """
.extern .func (.param .b32 result) vprintf (.param .b64 a, .param .b64 b);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
    .param .b64 e);
.extern .func (.param .b32 result) malloc (.param .b64 a);
"""


def text(name, characters):
    """A global variable that holds a C string."""
    octets = ", ".join(map(str, [*characters.encode(), 0]))
    return f".global .align 1 .b8 {name}[] = {{{octets}}};\n"


def printed(form, stores, guard=""):
    """What a warp prints, and what vprintf returns to each thread.

    stores: instructions that write the arguments to [%rd11].
    """
    output, returned = io.StringIO(), np.full(32, -1, np.int32)
    body = f"""
    .local .align 8 .b8 buffer[64];
    .param .b64 first; .param .b64 second; .param .b32 result;
    mov.u64 %rd10, form; cvta.global.u64 %rd10, %rd10;
    mov.u64 %rd11, buffer;
    {stores}
    cvta.local.u64 %rd11, %rd11;
    st.param.b64 [first], %rd10; st.param.b64 [second], %rd11;
    mov.b32 %r9, -7;
    {guard}
    call (result), vprintf, (first, second);
    ld.param.b32 %r9, [result];
    OUT:
    mad.wide.u32 %rd60, %r1, 4, %rd1; st.global.b32 [%rd60], %r9;"""
    run(body, returned, variables=_DECLARED + text("form", form), output=output)
    return output.getvalue(), returned.tolist()


def test_each_thread_prints_its_own_arguments_in_order():
    stores = """st.local.b32 [%rd11], %r1; cvt.rn.f64.u32 %fd1, %r1;
    st.local.f64 [%rd11+8], %fd1; mov.b64 %rd12, -5000000000; st.local.b64 [%rd11+16], %rd12;"""
    found, returned = printed("%d is %5.2f and %lld, 100%%\n", stores)

    assert found.splitlines() == [f"{i} is {i:5.2f} and -5000000000, 100%" for i in range(32)]
    assert returned == [3] * 32


@pytest.mark.parametrize("form, number, expected", [
    ("%u", -1, "4294967295"), ("%d", -1, "-1"), ("%i", 7, "7"), ("%x", 255, "ff"),
    ("%#010x", 255, "0x000000ff"), ("%c", 65, "A"), ("%-4d|", 3, "3   |"), ("%hd", 3, "3"),
    ("50% and %", 3, "50% and %"),
])
def test_a_conversion_prints_as_in_c(form, number, expected):
    found, _ = printed(form + "\n", f"mov.b32 %r2, {number}; st.local.b32 [%rd11], %r2;")

    assert found.splitlines() == [expected] * 32


def test_only_the_threads_that_call_print():
    guard = "setp.lt.u32 %p1, %r1, 30; @%p1 bra OUT;"

    found, returned = printed("hello %s\n", "mov.u64 %rd12, form; st.local.b64 [%rd11], %rd12;", guard)

    assert found == "hello hello %s\n\n" * 2
    assert returned == [-7] * 30 + [1] * 2


def test_a_failed_assertion_names_message_file_line_and_thread():
    body = """
    .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd10, message; st.param.b64 [a], %rd10;
    mov.u64 %rd10, file; st.param.b64 [b], %rd10;
    st.param.b32 [c], 17;
    mov.u64 %rd10, function; st.param.b64 [d], %rd10; st.param.b64 [e], 1;
    setp.ne.u32 %p1, %r1, 20;
    @%p1 bra OUT;
    call __assertfail, (a, b, c, d, e);
    OUT:"""
    texts = text("message", "n is odd") + text("file", "kernel.py") + text("function", "kernel")
    with pytest.raises(KernelAssertionError) as caught:
        run(body, np.zeros(1), variables=_DECLARED + texts)

    assert caught.value.message == "n is odd: false in thread (20, 0, 0) of block (0, 0, 0)"
    assert str(caught.value.loc) == "kernel.py:17" and caught.value.loc.function == "kernel"
    assert caught.value.instruction.startswith("call __assertfail")


def test_another_function_that_is_only_declared_is_unknown():
    body = """.param .b64 a; .param .b32 result; st.param.b64 [a], 8;
    call (result), malloc, (a);"""
    found = Module.parse(module(body, 1, _DECLARED)).unknown_instructions()

    assert found == ["call: given the function malloc, accepted one that this module defines, "
                     "vprintf, __assertfail"]
    with pytest.raises(UnknownInstructionError, match="malloc"):
        run(body, np.zeros(1), variables=_DECLARED)


@bn.jit
def talkative(x, n, HEX: bn.constexpr):
    tile = x[bn.span(0, 4)]
    bn.device_print("start, 100 %")
    bn.device_print("n", n, hex=HEX)
    bn.device_print("both", tile, tile > 1, hex=HEX)
    bn.device_print("", tile)
    bn.device_print("wide: ", bn.arange(0, 16))


@pytest.mark.parametrize("hexadecimal", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_the_emulated_gpu_prints_what_the_cpu_device_prints(dtype, hexadecimal, capsys):
    x = np.array([-2, 0, 1, 3]).astype(dtype)

    talkative[2](x, -5, hexadecimal, interpret=True)
    expected = capsys.readouterr().out.splitlines()
    launch(talkative, 2, (x, -5, hexadecimal), {})

    assert sorted(capsys.readouterr().out.splitlines()) == sorted(expected)
    assert len(expected) == 2 * (1 + 1 + 8 + 4 + 16)
    assert {"pid (1, 0, 0) start, 100 %", "pid (0, 0, 0) idx ( 9) wide: 9"} < set(expected)


def test_pointers_are_printed_as_addresses(capsys):
    @bn.jit
    def show(x):
        bn.device_print("x", x + bn.arange(0, 2))

    x = np.zeros(2, np.float32)
    launch(show, 1, (x,), {})
    first, second = (line.split(" x: 0x") for line in capsys.readouterr().out.splitlines())

    assert (first[0], second[0]) == ("pid (0, 0, 0) idx (0)", "pid (0, 0, 0) idx (1)")
    assert int(second[1], 16) - int(first[1], 16) == 4


@bn.jit
def asserting(x, n):
    bn.device_assert(n > 3, "n is too small")
    x[n] = 0


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
@pytest.mark.parametrize("n, message", [(2, "n is too small"), (4, "index out of range of axis 0")])
def test_an_assertion_and_a_check_of_a_kernel_fail_with_their_lines(n, message, target):
    with pytest.raises(KernelAssertionError, match=message) as caught:
        launch(asserting, 1, (np.zeros(4), n), {"debug": True}, target)

    assert "device_assert(n > 3" in str(caught.value) or "x[n] = 0" in str(caught.value)
