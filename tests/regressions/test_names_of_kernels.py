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
NAMES = ("_", "é", "日本", "vprintf", "WARP_SZ", "__nv_expf", "__nvvm_reflect", "trunc", "memcpy",
         "reg", "x" * 300)
needs_nvvm = pytest.mark.skipif(not find_spec("cuda"), reason="needs libNVVM")


def kernel(name: str, x: str = "x", out: str = "out"):
    module = types.ModuleType("user_program")
    source = SOURCE.format(name=name, x=x, out=out)
    exec(compile(source, "user_program.py", "exec"), module.__dict__)
    return getattr(module, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["interpreter", "cpu", pytest.param("emulator",
                                                                      marks=needs_nvvm)])
def test_any_python_identifier_names_a_kernel(name, place):
    x, out = np.random.default_rng(7).normal(size=64).astype(np.float32), np.full(64, np.nan, "f4")

    if place != "emulator":
        how = {"interpret": True} if place == "interpreter" else {"device": "cpu"}
        compiled = kernel(name)[1](x, out, B=64, **how)
    else:
        compiled = emulated_gpu.launch(kernel(name), 1, (x, out), {"B": 64})

    assert compiled.name == name
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("name", ["exp", "trunc", "malloc", "é", "bn_masked"])
@pytest.mark.parametrize("place", ["cpu", pytest.param("emulator", marks=needs_nvvm)])
def test_any_name_names_a_scalar_function(name, place):
    module = types.ModuleType("user_program")
    text = f"""
import blocknumba as bn

def {name}(v):
    while v > 1.0:
        v = v / 2
    return v

@bn.jit
def k(x, out):
    r = bn.span(0, 64)
    out[r] = bn.map({name}, bn.exp(x[r]))
"""
    exec(compile(text, "user_program.py", "exec"), module.__dict__)
    x, out = np.random.default_rng(7).normal(size=64).astype(np.float32), np.full(64, np.nan, "f4")

    if place == "cpu":
        module.k[1](x, out, device="cpu")
    else:
        emulated_gpu.launch(module.k, 1, (x, out), {})

    expected = np.exp(x.astype(np.float64))
    expected /= np.exp2(np.maximum(np.ceil(np.log2(expected)), 0))
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@needs_nvvm
def test_the_c_header_has_names_of_c_and_tells_arguments_apart():
    compiled = bn.compile(kernel("é", "αβ", "αγ"), ("f32[::1]:16",) * 2, {"B": 64},
                          target="sm_90a")

    code = re.sub(r"/\*.*?\*/", "", c_header(compiled), flags=re.DOTALL)

    assert code.isascii()
    assert len(set(re.findall(r"CUdeviceptr (\w+)", code))) == 2
    assert f"{compiled.machine.symbol}_launch(" in code
