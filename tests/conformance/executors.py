"""Who runs cases, and how results are compared."""

from __future__ import annotations

import io

import numpy as np

from blocknumba.tile_ir.interpreter import run

from case import Case


def interpreted(case: Case) -> dict[str, np.ndarray]:
    """The arrays that a case writes, run by the interpreter."""
    arguments = {name: value.copy() if isinstance(value, np.ndarray) else value
                 for name, value in case.arguments.items()}
    run(case.function, case.grid, arguments, output=io.StringIO())
    return {name: arguments[name] for name in case.expected}


def difference(case: Case, found: dict[str, np.ndarray]) -> str:
    """Where the results of a case are not what they must be; empty when they are."""
    for name, expected in case.expected.items():
        wrong = ~_agree(found[name], expected, case)
        if wrong.any():
            first = int(wrong.argmax())
            given = [value.ravel()[first] for value in case.arguments.values()
                     if isinstance(value, np.ndarray) and value.size > first][:-1]
            return (f"{name}[{first}] is {found[name][first]!r}, must be {expected[first]!r}; "
                    f"operands there: {given!r}; {int(wrong.sum())} of {wrong.size} are wrong")
    return ""


def _agree(found: np.ndarray, expected: np.ndarray, case: Case) -> np.ndarray:
    """Which elements are as a case wants them."""
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    if expected.dtype.kind in "biu":
        return found == expected
    with np.errstate(all="ignore"):
        nan = np.isnan(found), np.isnan(expected)
        zeros = (found == 0) & (expected == 0)
        if case.ulps:
            same = np.abs(_ordered(found) - _ordered(expected)) <= case.ulps
            same |= np.abs(found - expected) <= case.absolute
        else:
            same = found == expected
        signs = np.signbit(found) == np.signbit(expected)
    close = same & ~nan[0] & ~nan[1]
    if case.signed_zeros:
        close &= ~zeros | signs
    return close | nan[0] & nan[1]


def _ordered(floats: np.ndarray) -> np.ndarray:
    """Floats as consecutive integers, in their order; as long double, which holds them exactly."""
    bits = floats.view(f"i{floats.dtype.itemsize}").astype(np.int64)
    least = -(1 << floats.dtype.itemsize * 8 - 1)
    return np.where(bits < 0, least - bits, bits).astype(np.longdouble)
