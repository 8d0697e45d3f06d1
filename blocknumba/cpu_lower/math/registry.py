"""Registry of the vector functions, and the text of each for a dtype and a number of lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from blocknumba.cpu_lower.vectors import Body, Vector
from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import OpTable

SCALARS = {"float32": "float", "float64": "double"}
LANES = (1, 2, 4, 8, 16)
MATHEMATICAL = 30  # vector instructions of a function of which nothing else is said

Code = Callable[..., Vector]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """The code of an op, the number of its operands, its largest error, and its cost.

    ulps: in units in the last place of the exact result, by dtype; 0 where the result is exact.
    cost: vector instructions of one vector, for plans.
    """

    code: Code
    arity: int
    ulps: dict[str, float]
    cost: int


FUNCTIONS = OpTable[Elementwise]("vector function")


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """A function on vectors.

    symbol: its name in a module; definition: its text, which needs no declarations, and may stand
    in a module once.
    """

    symbol: str
    definition: str


def elementwise(name: str, *, float32: float, float64: float, arity: int = 1,
                cost: int = MATHEMATICAL) -> Callable[[Code], Code]:
    """Decorator: the code of an elementwise op, on vectors of float or double.

    float32, float64: the largest errors in units in the last place, which tests keep.
    cost: see Elementwise.
    """

    def register(code: Code) -> Code:
        FUNCTIONS.enter(name, Elementwise(
            code, arity, {"float32": float32, "float64": float64}, cost))
        return code

    return register


@cache
def vector_function(name: str, dtype: str, lanes: int) -> VectorFunction:
    """The function of an elementwise op: `T @symbol(T, ...)`, internal and always inlined.

    name: of the op; dtype: float32 or float64; lanes: 1, 2, 4, 8 or 16; T is `<lanes x float>` or
    double, a scalar for one lane.
    """
    require(name in FUNCTIONS, "no vector function {}: there are {}", name,
            ", ".join(sorted(FUNCTIONS)))
    require(str(dtype) in SCALARS, "{}: given {}, accepted float32, float64", name, dtype)
    require(lanes in LANES, "{}: given {} lanes, accepted {}", name, lanes,
            ", ".join(map(str, LANES)))
    scalar = SCALARS[str(dtype)]
    symbol = f"bn.{name}.{dtype}.{lanes}"
    body = Body(lanes, symbol)
    operands = [body.argument(scalar) for _ in range(FUNCTIONS[name].arity)]
    result = FUNCTIONS[name].code(*operands)
    return VectorFunction(symbol, body.function(operands, result))
