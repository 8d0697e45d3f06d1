"""Source to cubin, in a warm process, and import: pytest perf/bench_compile.py (no GPU)."""

import subprocess
import sys

import pytest
from example_kernels import attention, matmul, softmax, vector_add
from measure import CLOCK, host_timer, interleaved

import blocknumba as bn

from blocknumba.dispatch.compile import kernel_code

TARGET = "sm_90a"
KERNELS = {
    "vector add": (vector_add.add, ("f32[::1]",) * 3, {"BLOCK": 1024}),
    "softmax": (softmax.softmax, ("f32[:,::1]",) * 2, {"BLOCK": 1024}),
    "matmul": (matmul.matmul, ("f16[:,::1]:16",) * 3, {"BM": 128, "BN": 256, "BK": 64}),
    "attention": (attention.attention, ("f16[:,:,:,::1]:16",) * 4 + ("float",),
                  {"CAUSAL": False, "D": 128, "BM": 128, "BN": 128}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_source_to_cubin(benchmark, name, monkeypatch):
    kernel, signature, constants = KERNELS[name]

    def compile_it():
        # a new kernel: one that has compiled for these types remembers the code
        return bn.compile(bn.jit(kernel.python_function), signature, constants, target=TARGET)

    monkeypatch.setattr(kernel_code, "user_cache", lambda: None)  # nothing from disk
    compiled = benchmark.pedantic(compile_it, rounds=15, warmup_rounds=2)
    assert compiled.asm["cubin"].startswith(b"\x7fELF")


def start_python(statement: str) -> None:
    """Run a statement in a new process."""
    subprocess.run([sys.executable, "-c", statement], check=True)


@pytest.mark.benchmark(timer=CLOCK)
def test_import(benchmark):
    runs = {"import blocknumba": lambda: start_python("import blocknumba"),
            "import numpy": lambda: start_python("import numpy"),
            "empty process": lambda: start_python("pass")}
    CLOCK.replay(benchmark, interleaved(runs, host_timer, rounds=9, repeats=1),
                 "import blocknumba")
