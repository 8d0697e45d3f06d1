"""Code that a function of one element may not have, refused for all devices alike.

Numba's code for the CPU could do some of that: but it would wait for Python's lock, which a thread
that runs programs never gets, or give another result at each call of a function taken to be pure.
"""

from __future__ import annotations

import dis
import random
from collections.abc import Sequence
from types import FunctionType

import numpy as np

from blocknumba.errors import BlockTypeError, Loc
from blocknumba.typing.function import python_function

CONSTANTS = frozenset(("Const", "Global", "FreeVar"))  # names of classes of nodes
_WITH = ("SETUP_WITH", "BEFORE_WITH")  # names of instructions
_TRY = "mark_try_block"  # the name of a function that stands in Numba IR for `try:`
_RANDOM = {random: "random", np.random: "np.random"}
_GENERATORS = {random.Random: "random", np.random.RandomState: "np.random"}


def require_no_with(function: FunctionType) -> None:
    """Errors: BlockTypeError for a function with a `with` statement, such as numba.objmode."""
    code = function.__code__
    for instruction in dis.get_instructions(code):
        if instruction.opname in _WITH:
            line = instruction.positions.lineno or code.co_firstlineno
            raise BlockTypeError(
                f"map: {function.__name__} has a with statement, accepted functions without",
                loc=Loc(code.co_filename, line, function=function.__name__),
                hint="Python cannot be called for an element")


def require_one_element(statement: object, name: str, definitions: dict[str, list]) -> None:
    """Refuse a statement of Numba IR, before types are inferred.

    name: of the function.  definitions: variable -> what it is assigned.
    Errors: BlockTypeError.
    """
    node = getattr(statement, "value", None)
    operation, constant = getattr(node, "op", ""), _constant(node)
    problem = hint = ""
    if type(statement).__name__ == "Print":
        problem, hint = "uses print, accepted a function of one element", (
            "print(...) of tiles, in the kernel")
    elif getattr(constant, "__name__", "") == _TRY:
        problem, hint = "has a try statement, accepted functions without", (
            "test the condition with if")
    elif operation == "getitem" and _are_functions(definitions.get(node.value.name, ())):
        problem, hint = "chooses a function at run time, accepted calls of one", (
            "call each function in its arm of an if")
    if problem:
        raise BlockTypeError(f"map: {name} {problem}", hint=hint, loc=Loc(
            statement.loc.filename, statement.loc.line, function=name))


def require_not_random(value: object, name: str, loc: Loc) -> None:
    """Refuse what draws random numbers from a state.

    value: what a function reads.  name: of the function.
    Errors: BlockTypeError.
    """
    source = next((text for module, text in _RANDOM.items() if value is module), "")
    owner = getattr(value, "__self__", None)
    source = source or next((text for of, text in _GENERATORS.items() if isinstance(owner, of)), "")
    if source:
        raise BlockTypeError(
            f"map: {name} uses random numbers of {source}, accepted a function that gives the "
            "same result at each call", loc=loc,
            hint="draw in the kernel and pass a tile: bn.rand(seed, r.index), bn.randn")


def _are_functions(found: Sequence[object]) -> bool:
    """Whether a variable that is assigned these has one value: a tuple of functions."""
    value = _constant(found[0]) if len(found) == 1 else None
    return type(value) is tuple and any(python_function(item) is not None for item in value)


def _constant(node: object) -> object:
    """The value that a node of Numba IR names; None for other nodes."""
    return node.value if type(node).__name__ in CONSTANTS else None
