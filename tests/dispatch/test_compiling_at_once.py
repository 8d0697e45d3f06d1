"""Several compilations at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.compile import kernel_code

pytest.importorskip("cuda.bindings")
SIZES = (64, 128, 256, 512)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Everything is compiled."""
    monkeypatch.setattr(kernel_code, "user_cache", lambda: None)


def make_softmax():
    @bn.jit
    def softmax(x, out, B: bn.constexpr):
        row = bn.load(x + bn.arange(0, B))
        shifted = bn.exp(row - bn.max(row, axis=0))
        bn.store(out + bn.arange(0, B), shifted / bn.sum(shifted, axis=0))

    return softmax


def compiled(kernel, size):
    return bn.compile(kernel, "f32[::1]:16, f32[::1]:16", {"B": size}, target="sm_90a")


def test_threads_compile_what_one_thread_compiles():
    alone = [compiled(make_softmax(), size).asm["ptx"] for size in SIZES]
    kernel = make_softmax()

    with ThreadPoolExecutor(len(SIZES)) as pool:
        together = list(pool.map(lambda size: compiled(kernel, size).asm["ptx"], SIZES))

    assert together == alone


def test_threads_that_want_the_same_code_compile_it_once(monkeypatch):
    compilations = []
    load_or_compile = kernel_code.load_or_compile

    def counted(*arguments):
        compilations.append(arguments)
        return load_or_compile(*arguments)

    monkeypatch.setattr(kernel_code, "load_or_compile", counted)
    kernel = make_softmax()

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: compiled(kernel, 64), range(4)))

    assert len(compilations) == len(found) == 1


def half(number):
    return number * np.float32(0.5)


def make_halves():
    @bn.jit
    def halves(x, out, B: bn.constexpr):
        at = bn.arange(B)
        out[at] = bn.map(half, x[at])

    return halves


def test_numba_may_compile_a_caller_while_a_kernel_asks_it_for_a_scalar_function():
    """A caller's thread holds Numba's lock when a block function is compiled for it."""
    pytest.importorskip("numba.cuda")
    from numba.cuda.core.compiler_lock import global_compiler_lock
    other = threading.Thread(target=compiled, args=(make_halves(), 64), daemon=True)

    def call():
        with global_compiler_lock:
            other.start()
            other.join(1.0)  # until it waits for Numba's lock, unless it is quicker
            compiled(make_softmax(), 64)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    for thread in (caller, other):
        thread.join(60)

    assert not caller.is_alive() and not other.is_alive()
