"""The straight line from a Python function to a compiled kernel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType

from blocknumba.dispatch.compiled import Compiled, MachineCode
from blocknumba.dispatch.effects import effects
from blocknumba.dispatch.signature import location
from blocknumba.dispatch.specialize import Specialization
from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir import Function

# Numba's bytecode analysis and type inference keep global state
_ONE_AT_A_TIME = threading.RLock()


def compile_function(function: FunctionType, specialization: Specialization,
                     constants: Mapping[str, object]) -> Compiled:
    """Compile a kernel.

    constants: the values whose frozen form is in the specialization.
    Errors: those of the user's code, as BlockErrors that show it; anything else is a bug of
    ours, and says which kernel met it.
    """
    with _ONE_AT_A_TIME:
        try:
            return _compile(function, specialization, constants)
        except BlockError:
            raise
        except Exception as error:
            error.add_note(f"blocknumba failed to compile {function.__name__} "
                           f"({location(function)}) for "
                           f"{specialization.target or 'the interpreter'}: this is a bug of ours")
            raise


def _compile(function: FunctionType, specialization: Specialization,
             constants: Mapping[str, object]) -> Compiled:
    # here and not above: numba takes longer to import than all the rest
    from blocknumba.typing.frontend import build

    options, target = specialization.options, specialization.target
    times_ms: dict[str, float] = {}
    with _timed("typing", times_ms):
        tile = build(function, dict(specialization.arguments), dict(constants), options)
    machine = None
    return Compiled(function.__name__, specialization, tile, effects(tile), machine, times_ms)


@contextmanager
def _timed(stage: str, times_ms: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times_ms[stage] = (time.perf_counter() - start) * 1e3
