"""Several compilations at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import blocknumba as bn

from blocknumba.dispatch.compile import compilation
from blocknumba.dispatch.launch import kernel as kernel_module

pytest.importorskip("cuda.bindings")
SIZES = (64, 128, 256, 512)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Everything is compiled."""
    monkeypatch.setattr(compilation, "user_cache", lambda: None)


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
    compile_function = kernel_module.compile_function

    def counted(*arguments):
        compilations.append(arguments)
        return compile_function(*arguments)

    monkeypatch.setattr(kernel_module, "compile_function", counted)
    kernel = make_softmax()

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: compiled(kernel, 64), range(4)))

    assert len(compilations) == len(found) == 1
