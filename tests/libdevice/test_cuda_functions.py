"""CUDA's own functions, which kernels on GPUs call: where, and with which errors."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
import emulated_gpu
from blocknumba.libdevice.cuda import ERRORS

mp = pytest.importorskip("mpmath")
L = bn.libdevice
N = 64


@bn.jit
def by_spans(x, out, F: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = F(x[r])


@triton.jit
def by_pointers(x, y, z, w, out, F: tl.constexpr, COUNT: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, N)
    if COUNT == 1:
        result = F(tl.load(x + r))
    elif COUNT == 2:
        result = F(tl.load(x + r), tl.load(y + r))
    elif COUNT == 3:
        result = F(tl.load(x + r), tl.load(y + r), tl.load(z + r))
    else:
        result = F(tl.load(x + r), tl.load(y + r), tl.load(z + r), tl.load(w + r))
    tl.store(out + r, result)


def norm(*values):
    return mp.sqrt(sum(value * value for value in values))


def over(low, high):
    return lambda random: random.uniform(low, high, N)


# name -> (exact, draw of each operand); errors are those of the table, or absolute ones below
EXACT = {
    "sinpi": (mp.sinpi, over(-3, 3)), "cospi": (mp.cospi, over(-3, 3)),
    "erfinv": (mp.erfinv, over(-1, 1)), "normcdf": (mp.ncdf, over(-5, 5)),
    "erfcinv": (lambda x: mp.erfinv(1 - x), over(0.1, 1.9)),
    "normcdfinv": (lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), over(0.1, 0.9)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), over(-2, 20)),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), over(-20, 20)),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), over(-20, 20)),
    "j0": (lambda x: mp.besselj(0, x), over(-40, 40)),
    "j1": (lambda x: mp.besselj(1, x), over(-40, 40)),
    "y0": (lambda x: mp.bessely(0, x), over(0.5, 40)),
    "y1": (lambda x: mp.bessely(1, x), over(0.5, 40)),
    "rhypot": (lambda x, y: 1 / norm(x, y), over(-3, 3)), "norm3d": (norm, over(-3, 3)),
    "norm4d": (norm, over(-3, 3)), "rnorm3d": (lambda *v: 1 / norm(*v), over(-3, 3)),
    "rnorm4d": (lambda *v: 1 / norm(*v), over(-3, 3)),
    "rcbrt": (lambda x: mp.sign(x) / mp.cbrt(abs(x)), over(-9, 9)),
    "exp10": (lambda x: mp.mpf(10) ** x, over(-9, 9)),
    "fmod": (lambda x, y: mp.sign(x) * (abs(x) % abs(y)), over(-90, 90)),
    "remainder": (lambda x, y: x - y * mp.nint(x / y), over(-90, 90)),
}
COUNTS = {"rhypot": 2, "fmod": 2, "remainder": 2, "norm3d": 3, "rnorm3d": 3, "norm4d": 4,
          "rnorm4d": 4}
# Source: CUDA Programming Guide, "Mathematical Functions": of the Bessel functions beyond 8
ABSOLUTE = {np.float32: 2.2e-6, np.float64: 5e-12}


# float64 has the same call; our own dialect has most of its functions in test_special_functions
@pytest.mark.parametrize("name,dtype", [*((name, np.float32) for name in EXACT),
                                        ("j0", np.float64), ("remainder", np.float64)])
def test_in_triton_s_dialect_errors_are_those_that_cuda_states(name, dtype):
    exact, draw = EXACT[name]
    random, count = np.random.default_rng(), COUNTS.get(name, 1)
    operands, out = [draw(random).astype(dtype) for _ in range(4)], np.full(N, 77, dtype)

    code = emulated_gpu.launch(by_pointers, (1,), (*operands, out, getattr(L, name), count, N), {})

    assert f'symbol="{name}"' in code.asm["tile"]
    units = ERRORS[name][dtype == np.float64]
    with mp.workdps(40):
        for found, *values in zip(out, *operands[:count]):
            wanted = exact(*(mp.mpf(float(value)) for value in values))
            limit = ABSOLUTE[dtype] if units is None else (
                units * abs(float(np.spacing(dtype(float(wanted))))))
            assert abs(mp.mpf(float(found)) - wanted) <= limit, (values, found, wanted)


@pytest.mark.parametrize("name,exact", [
    ("fast_sinf", np.sin), ("fast_cosf", np.cos), ("fast_tanf", np.tan), ("fast_tanhf", np.tanh),
    ("fast_expf", np.exp), ("fast_exp10f", lambda x: 10**x), ("fast_logf", np.log),
    ("fast_log2f", np.log2), ("fast_log10f", np.log10), ("fast_powf", np.power),
    ("fast_dividef", np.divide), ("fast_fdividef", np.divide)])
def test_fast_functions_are_near(name, exact):
    random = np.random.default_rng()
    x, y = (random.uniform(0.1, 1.5, N).astype(np.float32) for _ in range(2))
    out = np.full(N, 77, np.float32)
    operands = 2 if name in ("fast_powf", "fast_dividef", "fast_fdividef") else 1

    code = emulated_gpu.launch(by_pointers, (1,),
                               (x, y, x, x, out, getattr(L, name), operands, N), {})

    assert "cuda_function" in code.asm["tile"]
    wanted = exact(*(v.astype(np.float64) for v in (x, y)[:operands]))
    np.testing.assert_allclose(out, wanted, 2**-10, 2**-20)


@triton.jit
def orders(n, x, out, F: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, N)
    tl.store(out + r, F(tl.load(n + r), tl.load(x + r)))


@pytest.mark.parametrize("name,exact", [("jn", "besselj"), ("yn", "bessely")])
def test_functions_of_an_order_take_ints(name, exact):
    random = np.random.default_rng()
    n, x = random.integers(0, 6, N, np.int32), random.uniform(8, 40, N)
    out = np.full(N, 77.0)

    code = emulated_gpu.launch(orders, (1,), (n, x, out, getattr(L, name), N), {})

    assert "cuda_function" in code.asm["tile"]
    with mp.workdps(40):
        wanted = [float(getattr(mp, exact)(int(k), mp.mpf(float(v)))) for k, v in zip(n, x)]
    np.testing.assert_allclose(out, wanted, 0, ABSOLUTE[np.float64])


def calls(function, kind, **options):
    """The lines of tile IR that call a function of CUDA's."""
    code = bn.compile(by_spans, (f"{kind}[::1]",) * 2, {"F": function, "N": N}, **options)
    return [line for line in code.asm["tile"].split("\n") if "cuda_function" in line]


def test_in_our_dialect_cuda_s_function_is_called_where_its_error_is_within_the_stated_one():
    assert not calls(L.j0, "f64", target="sm_90a")
    assert not calls(L.fast_expf, "f32", target="sm_90a")
    assert "xfloat64>" in calls(L.erfinv, "f64", target="sm_90a")[0]
    assert "xfloat32>" in calls(L.sinpi, "f32", target="sm_90a")[0]


def test_a_function_that_states_one_unit_of_float32_is_computed_in_float64():
    assert "tile<64xfloat64>" in calls(L.erfinv, "f32", target="sm_90a")[0]


def test_the_cpu_has_our_functions():
    assert not calls(L.erfinv, "f64", device="cpu")
