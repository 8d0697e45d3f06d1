"""erf and erfc on float64 arrays, which NumPy lacks.

Source: fdlibm, s_erf.c (Sun Microsystems, 1993): a rational function on each of five intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# coefficients, the constant first; every denominator starts with 1
_SMALL = ((1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
           -5.77027029648944159157e-03, -2.37630166566501626084e-05),
          (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
           1.32494738004321644526e-04, -3.96022827877536812320e-06))
_MIDDLE = ((-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
            3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
            -2.16637559486879084300e-03),
           (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
            1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02))
_LARGE = ((-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
           -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
           -8.12874355063065934246e+01, -9.81432934416914548592e+00),
          (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
           6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
           6.57024977031928170135e+00, -6.04244152148580987438e-02))
_TAIL = ((-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
          -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
          -4.83519191608651397019e+02),
         (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
          3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
          -2.24409524465858183362e+01))
# erf(1), rounded to float32; where the intervals meet; where erfc(x) is below every float64
_ERF_ONE = 8.45062911510467529297e-01
_FIRST, _SECOND, _THIRD, _LAST = 0.84375, 1.25, 1 / 0.35, 28.0


def erf(x: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x; float64."""
    size = np.abs(x)
    result = np.where(size < _FIRST, x + x * _ratio(_SMALL, np.minimum(x * x, 1)),
                      np.copysign(_ERF_ONE + _ratio(_MIDDLE, np.minimum(size, _SECOND) - 1), x))
    return np.where(size < _SECOND, result, np.where(
        np.isnan(x), x, np.copysign(1 - _tail(size), x)))


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), without the loss of digits where erf(x) is near 1; float64."""
    size = np.abs(x)
    part = x * _ratio(_SMALL, np.minimum(x * x, 1))
    small = np.where(x < 0.25, 1 - (x + part), 0.5 - (x - 0.5 + part))
    near_one = _ratio(_MIDDLE, np.minimum(size, _SECOND) - 1)
    middle = np.where(x > 0, 1 - _ERF_ONE - near_one, 1 + (_ERF_ONE + near_one))
    tail = _tail(size)
    large = np.where(x > 0, tail, 2 - tail)
    result = np.where(size < _FIRST, small, np.where(size < _SECOND, middle, large))
    return np.where(np.isnan(x), x, result)


def _tail(size: np.ndarray) -> np.ndarray:
    """erfc of numbers from 1.25 up."""
    s = np.clip(size, _SECOND, _LAST)
    inverse = 1 / (s * s)
    ratio = np.where(s < _THIRD, _ratio(_LARGE, inverse), _ratio(_TAIL, inverse))
    # s * s exactly: of a number of half the digits, and the rest
    head = (s.view(np.int64) & -1 << 32).view(np.float64)
    result = np.exp(-head * head - 0.5625) * np.exp((head - s) * (head + s) + ratio) / s
    return np.where(size < _LAST, result, 0)


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: np.ndarray) -> np.ndarray:
    """One polynomial divided by another."""
    over, under = (_polynomial(c, x) for c in coefficients)
    return over / under


def _polynomial(coefficients: Sequence[float], x: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= x
        total += coefficient
    return total
