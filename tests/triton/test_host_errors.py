"""Errors of ours that code written for Triton catches, each raised for its cause."""

import pickle

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import (
    BlockAssertionError, BlockError, BlockTypeError, ResourceError, UnsupportedError,
)
from blocknumba.nvvm_lower.toolchain import ToolchainError
from blocknumba.triton.compiler.errors import (
    CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct,
)
from blocknumba.triton.errors import TritonError, of_compilation
from blocknumba.triton.runtime.errors import InterpreterError, OutOfResources, PTXASError


@triton.jit
def too_large(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)


@triton.jit
def asserts(x, B: tl.constexpr):
    tl.static_assert(B > 16, "B is too small")
    tl.store(x + tl.arange(0, B), 1.0)


@triton.jit
def asks_for_a_set(x, B: tl.constexpr):
    found = {B}
    tl.store(x, len(found))


@triton.jit
def wrong_shapes(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), tl.arange(0, B) + tl.arange(0, 2 * B))


CASES = [(too_large, 1 << 29, ResourceError, OutOfResources),
         (asserts, 16, BlockAssertionError, CompileTimeAssertionFailure),
         (asks_for_a_set, 16, UnsupportedError, UnsupportedLanguageConstruct),
         (wrong_shapes, 16, BlockTypeError, CompilationError)]
by_cause = pytest.mark.parametrize("kernel, block, ours, theirs", CASES,
                                   ids=[case[0].__name__ for case in CASES])


def caught(action):
    with pytest.raises(BlockError) as found:
        action()
    return found.value


@by_cause
@pytest.mark.parametrize("launch", [
    lambda kernel, x, block: kernel[(1,)](x, B=block),
    lambda kernel, x, block: kernel.run(x, B=block, grid=(1,), warmup=False),
    lambda kernel, x, block: kernel.warmup(x, B=block, grid=(1,)),
    lambda kernel, x, block: triton.heuristics({"B": lambda _: block})(kernel)[(1,)](x)])
def test_an_error_is_caught_by_both_names(kernel, block, ours, theirs, launch):
    error = caught(lambda: launch(kernel, np.zeros(64, np.float32), block))

    assert isinstance(error, ours) and isinstance(error, theirs) and isinstance(error, TritonError)
    assert type(error).__name__ == ours.__name__
    assert isinstance(error, CompilationError) == issubclass(theirs, CompilationError)


@by_cause
def test_the_text_is_ours_and_survives_a_pickle(kernel, block, ours, theirs):
    plain = caught(lambda: bn.jit(kernel.fn)[1](np.zeros(64, np.float32), B=block))

    error = caught(lambda: kernel[(1,)](np.zeros(64, np.float32), B=block))
    again = pickle.loads(pickle.dumps(error))

    if kernel is not too_large:  # whose tile of numbers has another dtype
        assert str(error) == str(plain)
    assert f"line {error.loc.line}" in str(error)
    assert type(again) is type(error) and str(again) == str(error) and again.loc == error.loc


def test_an_error_of_a_compilation_says_where():
    error = caught(lambda: wrong_shapes[(1,)](np.zeros(64, np.float32), B=16))

    assert error.node.lineno == error.loc.line and error.node.col_offset > 0
    assert error.src.splitlines()[-1].strip().startswith("tl.store(x + tl.arange(0, B), tl.ar")
    assert error.error_message == str(error)


def test_what_there_is_too_little_of_is_said():
    @triton.jit
    def product(x, out, B: tl.constexpr):
        i = tl.arange(0, B)
        at = i[:, None] * B + i[None, :]
        a = tl.load(x + at)
        tl.store(out + at, tl.dot(a, tl.trans(a)))

    source = triton.compiler.ASTSource(product, {"x": "*fp16", "out": "*fp32"}, {"B": 512})

    error = caught(lambda: triton.compile(source, target="cuda:80", options={"num_warps": 32}))

    assert isinstance(error, OutOfResources)
    assert error.required > error.limit > 0
    assert error.name in ("shared memory", "registers")


def test_a_refusal_of_the_tools_is_ptxas_and_their_absence_is_not():
    refused = of_compilation(ToolchainError("ptxas refused", tool="nvJitLink", source="code"))
    missing = of_compilation(ToolchainError("needs libNVVM", tool="libNVVM"))

    assert isinstance(refused, PTXASError) and refused.tool == "nvJitLink"
    assert isinstance(missing, CompilationError) and not isinstance(missing, PTXASError)


def test_an_error_in_the_interpreter_is_tritons_of_it():
    @triton.jit
    def checks(x, n):
        tl.device_assert(n < 3, "n is too large")
        tl.store(x, n)

    error = caught(lambda: checks[(1,)](np.zeros(1, np.float32), 5, debug=True, interpret=True))

    assert isinstance(error, InterpreterError) and isinstance(error, BlockAssertionError)
    assert "n is too large" in str(error)


def test_a_mistake_in_the_call_is_not_one_of_the_compilation():
    error = caught(lambda: too_large[(1,)]())

    assert isinstance(error, TypeError) and not isinstance(error, TritonError)


def test_bn_jit_raises_what_it_did():
    error = caught(lambda: bn.jit(wrong_shapes.fn)[1](np.zeros(64, np.float32), B=16))

    assert not isinstance(error, TritonError)
