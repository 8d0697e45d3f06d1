"""Kernels in pickles, copies and pools of processes."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@bn.jit
def double(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = 2 * x[r]


@bn.autotune(configs=[bn.Config({"B": 4})], key=[])
@bn.jit
def tuned(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = 3 * x[r]


@bn.heuristics({"B": lambda arguments: 4})
@bn.jit
def chosen(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = 4 * x[r]


class Kernels:
    @bn.jit
    def inner(x, out):
        out[0] = x[0]


KERNELS = {"double": double, "tuned": tuned, "chosen": chosen, "inner": Kernels.inner}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@every_kernel
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda kernel: copy.deepcopy({"k": [kernel]})["k"][0]])
def test_a_copy_of_a_kernel_is_the_kernel_itself_as_of_functions(kernel, copied):
    assert copied(kernel) is kernel


@pytest.mark.parametrize("kernel, protocol", [
    pytest.param(kernel, protocol, id=f"{name}-{protocol}") for name, kernel in KERNELS.items()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    if protocol >= 4 or name != "inner"])  # before, names had no dots
def test_a_kernel_is_pickled_by_its_name(kernel, protocol):
    content = pickle.dumps((kernel, [kernel]), protocol)

    first, (second,) = pickle.loads(content)

    assert first is second is kernel
    assert len(content) < 200


def closure():
    @bn.jit
    def inside(x):
        x[0] = 1
    return inside


@pytest.mark.parametrize("kernel, name", [
    (closure(), r"closure\.<locals>\.inside"), (tuned.kernel, "tuned")])
def test_a_kernel_that_its_name_does_not_find_is_refused(kernel, name, monkeypatch):
    monkeypatch.delitem(sys.modules, "cloudpickle", raising=False)

    with pytest.raises(pickle.PicklingError,
                       match=rf"a kernel is pickled by its name, and {__name__}\.{name} is not "
                             "this one; define it at the top level"):
        pickle.dumps(kernel)


def stored(kernel, **constants) -> list[float]:
    out = np.full(4, np.nan, np.float32)
    kernel[1](np.arange(4, dtype=np.float32), out, interpret=True, **constants)
    return out.tolist()


def test_cloudpickle_writes_a_kernel_whole_where_no_other_process_finds_it():
    factor = 5

    @bn.heuristics({"B": lambda arguments: 4})
    @bn.jit(num_warps=8)
    def local(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = factor * x[r]

    again, same = pickle.loads(cloudpickle.dumps((local, local)))

    assert again is same is not local
    assert again.base.options == local.base.options
    assert stored(again) == [0, 5, 10, 15]
    assert pickle.loads(cloudpickle.dumps(double)) is double


def test_cloudpickle_takes_the_source_along():
    @triton.jit
    def sent(x, out, B: tl.constexpr):
        at = tl.arange(0, B)
        if B > 2 and B < 8:
            tl.store(out + at, tl.load(x + at) * 3)

    @bn.jit
    def wrong(x):
        x[bn.span(0, 4)] = "text"

    done = subprocess.run([sys.executable, "-c", READER], input=cloudpickle.dumps((sent, wrong)),
                          capture_output=True, timeout=120, check=False)

    assert done.stdout.decode().splitlines()[0] == "[0. 3. 6. 9.]", done.stderr
    told = done.stdout.decode()
    line = wrong.py_func.__code__.co_firstlineno + 2
    assert f"test_pickling.py, line {line}, in wrong" in told
    assert 'x[bn.span(0, 4)] = "text"' in told


READER = """
import pickle, sys
import numpy as np
sent, wrong = pickle.load(sys.stdin.buffer)
x, out = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)
sent[(1,)](x, out, B=4)
print(out)
try:
    wrong[1](x)
except Exception as error:
    print(error)
"""
PROGRAM = """
import multiprocessing, sys
import numpy as np
import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from kernels_of_a_module import scale

@bn.jit
def negate(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = -x[r]

def launched(kernel):
    out = np.full(4, np.nan, np.float32)
    kernel[1](np.arange(4, dtype=np.float32), out, B=4, interpret=True)
    return out.tolist()

if __name__ == "__main__":
    print([launched(negate), launched(scale)])
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(launched, [negate, scale]))
"""
MODULE = """
import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl

@bn.jit
def scale(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = 3 * x[r]
"""


def test_kernels_go_to_the_processes_of_a_pool(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "kernels_of_a_module.py").write_text(MODULE)
    methods = ["spawn", *(["fork"] if hasattr(os, "fork") else [])]
    environment = os.environ | {"BLOCKNUMBA_CACHE": "1",
                                "PYTHONPATH": str(Path(bn.__file__).parents[1]),
                                "BLOCKNUMBA_CACHE_DIR": str(tmp_path / "cache")}

    done = subprocess.run([sys.executable, "program.py", *methods], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=120, check=False)

    expected = str([[-0.0, -1.0, -2.0, -3.0], [0.0, 3.0, 6.0, 9.0]])
    assert done.stdout.splitlines() == [expected] * (1 + len(methods)), done.stderr


def test_the_kernel_of_the_parts_of_arguments_is_found_through_its_own():
    flat, _ = double.nested.taken_apart({"x": (1, (2, 3)), "out": 4, "B": 8})

    assert flat is not double
    assert pickle.loads(pickle.dumps(flat)) is flat
