"""Changes to the Numba IR of a scalar function before its types are inferred.

Both of Numba's compilers, for the CPU and for CUDA, make Numba IR of a function, with classes of
their own that have the same names.  Between that and type inference:

    y = x * 0.5            0.5 is float32: a literal is weak, unless a parameter is float64
    s = 1 - y              so is 1 (see weak_integers.py)
    z = g(y) * math.pi     g, a Python function or one that Numba compiled, is compiled likewise
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType

import numpy as np
from numba.core import types

from blocknumba.errors import UNKNOWN, BlockTypeError, Loc
from blocknumba.typing.function import python_function
from blocknumba.typing.numba_ir.written import written_code
from blocknumba.typing.scalars.counters import narrow_counters
from blocknumba.typing.scalars.loop_tests import merge_loop_tests
from blocknumba.typing.scalars.powers import make_real
from blocknumba.typing.scalars.refusals import (
    CONSTANTS, require_no_with, require_not_random, require_one_element,
)
from blocknumba.typing.scalars.weak_integers import WeakIntegers

_CONTAINERS = (types.Array, types.List, types.ListType, types.Set, types.DictType)
_SSA = "ReconstructSSA"  # the name of Numba's pass
_NUMBA = ("numba", "numba_cuda")
_DOUBLES = (types.float64, types.complex128)


class Preparation:
    """The changes to one scalar function and to those that it calls.

    weak: floats that the code names are float32.
    compiled: Python function -> what stands for it in Numba IR, compiled with this preparation.
    double: where the first float64 appears; UNKNOWN where none does.
    is_known: no library but Numba's own says what a function that it calls does.
    """

    def __init__(self, weak: bool, compiled: Callable[[FunctionType], object]):
        self.weak, self._compiled = weak, compiled
        self._known: dict[FunctionType, object] = {}
        self._open: list[CodeType] = []  # of functions whose types are being inferred
        self.double: Loc = UNKNOWN
        self.is_known = True

    def function(self, function: FunctionType) -> object:
        """The dispatcher of a function; the same for each of its calls, which may be recursive."""
        if function not in self._known:
            require_no_with(function)
            defaults = function.__defaults__
            made = FunctionType(written_code(function), function.__globals__, function.__name__,
                                self.weakened(defaults) if defaults else defaults,
                                function.__closure__)
            made.__module__, made.__qualname__ = function.__module__, function.__qualname__
            self._known[function] = self._compiled(made)
        return self._known[function]

    def before_inference(self, state: object) -> None:
        """Change the IR of Numba's compiler state, in place, and how it is typed."""
        self._close(state.func_id.code)  # of an attempt that failed
        self._open.append(state.func_id.code)
        if self.weak:
            state.typingctx = WeakIntegers(state.typingctx)
        name, definitions = state.func_id.func_name, state.func_ir._definitions
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                require_one_element(statement, name, definitions)
                node = getattr(statement, "value", None)
                if type(node).__name__ in CONSTANTS:
                    node.value = self._replacement(node.value, state, statement)
                elif getattr(node, "op", None) == "getattr":
                    self._replace_attribute(state, statement, node)

    def after_inference(self, state: object, infer: Callable[[object], object]) -> None:
        """Narrow counters of loops, make exponents real, and note where float64 appears first.

        infer: Numba's pass.  It is run again where variables that hold both ints of the code and
        float32 turned out to be float32 at last: what was made of the ints meanwhile was wider.
        Errors: BlockTypeError where the function makes an array, a list or the like.
        """
        self._close(state.func_id.code)
        self.is_known &= all(map(_is_of_numba, state.typemap.values()))
        known = 0
        while self.weak and _first_double(state) and len(found := _float32_phis(state)) > known:
            known, state.locals, state.return_type = len(found), found, None
            infer(state)
        state.locals = {}
        narrow_counters(state.func_ir.blocks, state.typemap)
        make_real(state)
        double = _first_double(state)
        # what is given float64 is called by code that has float64 itself
        if double is not None and self.double is UNKNOWN and types.float64 not in state.args:
            self.double = _location(state, double)
        for statement in _assignments(state):
            of = state.typemap[statement.target.name]
            if isinstance(of, _CONTAINERS) and _makes(statement.value):
                raise BlockTypeError(
                    f"map: {state.func_id.func_name} makes {_article(of)}, accepted functions that "
                    "compute with numbers and tuples", loc=_location(state, statement),
                    hint="use variables, or a tuple")

    def _close(self, code: CodeType) -> None:
        """Take a function, and those that it called, from the open ones."""
        if code in self._open:
            del self._open[self._open.index(code):]

    def _replacement(self, value: object, state: object, statement: object) -> object:
        """A constant as it is to be typed.

        Errors: BlockTypeError for a function that is being compiled: it would call itself; for
        one that draws random numbers.
        """
        if type(value) is tuple:
            return tuple(self._replacement(item, state, statement) for item in value)
        require_not_random(value, state.func_id.func_name, _location(state, statement))
        function = python_function(value)
        if function is None:
            return self.weakened(value)
        if function is value and _has_type(value, state.typingctx):
            return value  # a function of a library that Numba has an implementation of
        if written_code(function) in self._open:
            raise BlockTypeError(f"map: {function.__name__} calls itself, accepted functions "
                                 "without recursion", loc=_location(state, statement),
                                 hint="write a loop")
        return self.function(function)

    def _replace_attribute(self, state: object, statement: object, node: object) -> None:
        """Make `math.pi` the constant that it is."""
        definitions = state.func_ir._definitions
        owner = definitions.get(node.value.name, ())
        if len(owner) != 1 or type(owner[0]).__name__ not in CONSTANTS:
            return
        if not isinstance(owner[0].value, ModuleType):
            return
        found = getattr(owner[0].value, node.attr, None)
        require_not_random(found, state.func_id.func_name, _location(state, statement))
        inner = python_function(found)
        is_own = inner is not None and inner is not found
        if type(found) is not float and not is_own:
            return
        value = self.weakened(found) if inner is None else self.function(inner)
        constant = type(owner[0])(node.attr, value, node.loc)
        statement.value = constant
        definitions[statement.target.name] = [constant]

    def weakened(self, value: object) -> object:
        """Python floats as float32, in tuples too."""
        if not self.weak:
            return value
        if type(value) is tuple:
            return tuple(map(self.weakened, value))
        with np.errstate(over="ignore"):
            return np.float32(value) if type(value) is float else value


def passes(function_pass: type, register: Callable, inference: type) -> tuple[type, ...]:
    """The passes before the SSA form, and before and after type inference.

    function_pass, register, inference: FunctionPass, register_pass and NopythonTypeInference of
    one of the compilers, which have registries of their own.
    """

    class Merge(function_pass):
        _name = "blocknumba_merge_loop_tests"

        def __init__(self):
            super().__init__()

        def run_pass(self, state: object) -> bool:
            return merge_loop_tests(state.func_ir.blocks)

    class Prepare(function_pass):
        _name = "blocknumba_prepare"

        def __init__(self):
            super().__init__()

        def run_pass(self, state: object) -> bool:
            state.pipeline.preparation.before_inference(state)
            return True

    class Examine(function_pass):
        _name = "blocknumba_examine"

        def __init__(self):
            super().__init__()

        def run_pass(self, state: object) -> bool:
            state.pipeline.preparation.after_inference(state, inference().run_pass)
            return False

    return (register(mutates_CFG=True, analysis_only=False)(Merge),
            register(mutates_CFG=False, analysis_only=False)(Prepare),
            register(mutates_CFG=False, analysis_only=True)(Examine))


def with_passes(managers: list, added: tuple[type, ...], inference: type) -> list:
    """Numba's pipelines with the passes; type inference and the SSA form are passes too."""
    merge, before, after = added
    for manager in managers:
        names = [made for made, _ in manager.passes]
        manager.add_pass_after(before, names[names.index(inference) - 1])
        manager.add_pass_after(after, inference)
        for name, previous in zip(names[1:], names):
            if name.__name__ == _SSA:
                manager.add_pass_after(merge, previous)
        manager.finalize()
    return managers


def _assignments(state: object) -> Iterator:
    """Assignments of variables that have a type, in the order of the code."""
    for _, block in sorted(state.func_ir.blocks.items()):
        for statement in block.body:
            if getattr(getattr(statement, "target", None), "name", "") in state.typemap:
                yield statement


def _first_double(state: object) -> object | None:
    """The first assignment of a float64."""
    return next((statement for statement in _assignments(state)
                 if state.typemap[statement.target.name] in _DOUBLES), None)


def _float32_phis(state: object) -> dict[str, types.Type]:
    """Variables that have several assignments and are float32."""
    return {statement.target.name: types.float32 for statement in _assignments(state)
            if getattr(statement.value, "op", "") == "phi"
            and state.typemap[statement.target.name] == types.float32}


def _location(state: object, statement: object) -> Loc:
    return Loc(statement.loc.filename, statement.loc.line, function=state.func_id.func_name)


def _makes(node: object) -> bool:
    """Whether an expression makes something new, and not a reference to a constant."""
    operation = getattr(node, "op", "getattr")
    return operation == "call" or operation.startswith("build_")


def _article(of: types.Type) -> str:
    return "an array" if isinstance(of, types.Array) else "a list, a set or a dict"


def _is_of_numba(of: types.Type) -> bool:
    """Whether Numba itself says what a function does, if the type is one's: others may register
    implementations, whose code nobody can compare."""
    if isinstance(of, types.BoundFunction):
        templates = (of.template,)
    else:
        templates = of.templates if isinstance(of, types.Function) else ()
    written = [getattr(made, "_overload_func", None) or getattr(made, "_definition_func", made)
               for made in templates]
    homes = [getattr(made, "__globals__", {}).get("__name__", made.__module__) for made in written]
    return all(home.partition(".")[0] in _NUMBA for home in homes)


def _has_type(value: object, typing_context: object) -> bool:
    try:
        typing_context.resolve_value_type(value)
    except (ValueError, KeyError):
        return False
    return True
