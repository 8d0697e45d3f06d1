"""Functions of libdevice that no op has, against mpmath within their stated errors."""

import numpy as np
import pytest

import blocknumba as bn

mp = pytest.importorskip("mpmath")
L = bn.libdevice
N = 64


@bn.jit
def apply(x, out, F: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = F(x[r])


@bn.jit
def apply_order(n, x, out, F: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = F(n[r], x[r])


def uniform(low, high):
    return lambda random: random.uniform(low, high, N)


def sizes(low, high, signed=False):
    def draw(random):
        sign = random.choice([-1, 1], N) if signed else 1
        return sign * 10.0 ** random.uniform(low, high, N)
    return draw


def below_one(random):
    return random.choice([-1, 1], N) * (1 - 10.0 ** random.uniform(-15, -1, N))


def inverse_erfc(x):
    """The root of log(erfc(y)) - log(x), from the leading terms of its size."""
    if x > 1e-6:
        return mp.erfinv(1 - x)
    start = mp.sqrt(-mp.log(x) - mp.log(-mp.log(x) * mp.pi) / 2)
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(x), start)


# name -> (exact, draws, error in units, error of a number of size 1)
SPECIAL = {
    "sinpi": (mp.sinpi, (uniform(-3, 3), uniform(-1e4, 1e4), sizes(-20, 0, True)), 6, 0),
    "cospi": (mp.cospi, (uniform(-3, 3), uniform(-1e4, 1e4)), 6, 0),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), (uniform(-5, 30), sizes(-9, 9)), 16, 0),
    "erfinv": (mp.erfinv, (uniform(-1, 1), below_one, sizes(-20, -1, True)), 8, 0),
    "erfcinv": (inverse_erfc, (uniform(0, 2), sizes(-8, 0), sizes(-37, -8)), 8, 0),
    "normcdf": (mp.ncdf, (uniform(-5, 5), uniform(-12, -5), sizes(-10, 0, True)), 10, 0),
    "normcdfinv": (lambda x: -mp.sqrt(2) * inverse_erfc(2 * x), (uniform(0, 1), sizes(-30, -1)),
                   9, 0),
    "j0": (lambda x: mp.besselj(0, x), (uniform(-40, 40), sizes(-10, 6)), 0, 1e-14),
    "j1": (lambda x: mp.besselj(1, x), (uniform(-40, 40), sizes(-10, 6)), 0, 1e-14),
    "y0": (lambda x: mp.bessely(0, x), (uniform(0, 40), sizes(-10, 6)), 0, 1e-14),
    "y1": (lambda x: mp.bessely(1, x), (uniform(0, 40), sizes(-10, 6)), 0, 1e-14),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), (uniform(-40, 40), uniform(-80, 80)), 16, 0),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), (uniform(-40, 40), uniform(-80, 80)), 16, 0),
}
IN_FLOAT32_TOO = ("sinpi", "cospi")  # the others are computed in float64


def require_near(name, x, out, exact, ulps, absolute):
    if out.dtype == np.float32 and name not in IN_FLOAT32_TOO:
        ulps = 1
    for value, found, wanted in zip(x, out, exact):
        near = out.dtype.type(float(wanted))
        if not np.isfinite(near) or abs(near) < np.finfo(out.dtype).tiny:
            continue
        limit = ulps * abs(float(np.spacing(near))) + absolute * max(1, abs(float(wanted)))
        assert abs(mp.mpf(float(found)) - wanted) <= limit, (name, value, found, wanted)


@pytest.mark.parametrize("name", SPECIAL)
def test_errors_are_within_what_is_stated(name, device):
    function, draws, ulps, absolute = SPECIAL[name]
    random = np.random.default_rng()
    for dtype in (np.float64, np.float32):
        for draw in draws if device.kind == "cpu" else draws[:1]:
            x, out = draw(random).astype(dtype), np.full(N, 77, dtype)

            device.run(apply, 1, x, out, getattr(L, name), N)

            with mp.workdps(40):
                exact = [function(mp.mpf(float(v))) for v in x if abs(v) < np.inf]
                require_near(name, x, out, exact, ulps, absolute)


@pytest.mark.parametrize("name,exact", [("jn", "besselj"), ("yn", "bessely")])
def test_orders_are_those_of_mpmath(name, exact, device):
    random = np.random.default_rng()
    for high in (4, 40, 150) if device.kind == "cpu" else (12,):
        n = random.integers(-high if name == "jn" else 0, high, N, np.int32)
        x = random.uniform(-60 if name == "jn" else 0.5, 60, N)
        out = np.full(N, 77.0)

        device.run(apply_order, 1, n, x, out, getattr(L, name), N)

        with mp.workdps(40):
            values = [getattr(mp, exact)(int(k), mp.mpf(float(v))) for k, v in zip(n, x)]
            require_near(name, x, out, values, 0, 1e-12)


ENDS = {
    "sinpi": [(1.0, 0.0), (-2.0, -0.0), (0.5, 1.0), (1.5, -1.0), (-0.0, -0.0), (np.inf, np.nan)],
    "cospi": [(0.5, 0.0), (-1.5, 0.0), (1.0, -1.0), (2.0**60, 1.0), (np.nan, np.nan)],
    "erfinv": [(1.0, np.inf), (-1.0, -np.inf), (0.0, 0.0), (-0.0, -0.0), (1.5, np.nan)],
    "erfcinv": [(0.0, np.inf), (2.0, -np.inf), (1.0, 0.0), (2.5, np.nan), (-0.5, np.nan)],
    "erfcx": [(np.inf, 0.0), (-30.0, np.inf), (0.0, 1.0), (np.nan, np.nan), (-np.inf, np.inf)],
    "normcdf": [(np.inf, 1.0), (-np.inf, 0.0), (0.0, 0.5), (np.nan, np.nan), (-50.0, 0.0)],
    "normcdfinv": [(0.0, -np.inf), (1.0, np.inf), (0.5, 0.0), (1.5, np.nan), (np.nan, np.nan)],
    "j0": [(0.0, 1.0), (np.inf, 0.0), (-np.inf, 0.0), (np.nan, np.nan), (1e-300, 1.0)],
    "j1": [(0.0, 0.0), (np.inf, 0.0), (1e-300, 5e-301), (-1e-300, -5e-301), (np.nan, np.nan)],
    "y0": [(0.0, -np.inf), (-1.0, np.nan), (np.inf, 0.0), (np.nan, np.nan)],
    "y1": [(0.0, -np.inf), (-1.0, np.nan), (np.inf, 0.0), (np.nan, np.nan)],
    "cyl_bessel_i0": [(0.0, 1.0), (np.inf, np.inf), (-np.inf, np.inf), (np.nan, np.nan)],
    "cyl_bessel_i1": [(0.0, 0.0), (np.inf, np.inf), (-np.inf, -np.inf), (np.nan, np.nan)],
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_of_domains(name, device):
    x = np.resize([a for a, _ in ENDS[name]], N)
    expected = np.resize([b for _, b in ENDS[name]], N)
    out = np.full(N, 77.0)

    device.run(apply, 1, x, out, getattr(L, name), N)

    np.testing.assert_allclose(out, expected, 1e-15)
    zeros = expected == 0
    if name in ("sinpi", "erfinv"):
        assert np.array_equal(np.signbit(out[zeros]), np.signbit(expected[zeros]))
