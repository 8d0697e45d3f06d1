"""Kernels whose names are no names in PTX, or names that a module has itself."""

import re
import types
from importlib.util import find_spec

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.compile.export import c_header

SOURCE = """
import blocknumba as bn

@bn.jit
def {name}({x}, {out}, B: bn.constexpr):
    r = bn.block(0, B)
    {out}[r] = bn.exp({x}[r])
"""
NAMES = ("_", "é", "日本", "vprintf", "WARP_SZ", "__nv_expf")
needs_nvvm = pytest.mark.skipif(not find_spec("cuda"), reason="needs libNVVM")


def kernel(name: str, x: str = "x", out: str = "out"):
    module = types.ModuleType("user_program")
    exec(compile(SOURCE.format(name=name, x=x, out=out), "user_program.py", "exec"), module.__dict__)
    return getattr(module, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["cpu", pytest.param("emulator", marks=needs_nvvm)])
def test_any_python_identifier_names_a_kernel(name, place):
    x, out = np.random.default_rng(7).normal(size=64).astype(np.float32), np.full(64, np.nan, "f4")

    if place == "cpu":
        compiled = kernel(name)[1](x, out, B=64, interpret=True)
    else:
        compiled = emulated_gpu.launch(kernel(name), 1, (x, out), {"B": 64})

    assert compiled.name == name
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=1e-6)


@needs_nvvm
def test_the_c_header_has_names_of_c_and_tells_arguments_apart():
    compiled = bn.compile(kernel("é", "αβ", "αγ"), ("f32[::1]:16",) * 2, {"B": 64},
                          target="sm_90a")

    code = re.sub(r"/\*.*?\*/", "", c_header(compiled), flags=re.DOTALL)

    assert code.isascii()
    assert len(set(re.findall(r"CUdeviceptr (\w+)", code))) == 2
    assert f"{compiled.machine.symbol}_launch(" in code
