"""Typing of launches in functions that Numba compiles: from Numba's types to a description.

Mistakes that a launch from Python reports before it compiles are reported here, in the same words,
as errors of Numba's typing.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping, Sequence

from llvmlite import ir
from numba.core import types
from numba.core.errors import ForceLiteralArg, TypingError
from numba.core.ir import Arg, Var
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import models, register_model

from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.signature import Formal
from blocknumba.dispatch.njit.grids import MetaType, grid_signature
from blocknumba.dispatch.njit.numba_types import ConstantType, DeviceArrayType, KernelType
from blocknumba.dispatch.njit.parts import parts_of_types
from blocknumba.dispatch.njit.record import ArrayEntry, Entry, Layout, ScalarEntry
from blocknumba.dispatch.njit.site import Description
from blocknumba.errors import BlockError, BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.types import DTYPES, bool_, float16

STREAM = "stream"  # the keyword that chooses it
_WHERE = "in a function that Numba compiles"
_WITH_LITERALS = (types.Integer, types.Boolean, types.UnicodeType)


class LaunchType(types.Callable):
    """`kernel[grid]`, whose value is that of the grid.

    kernel: the kernel itself where a decorator's choice is known.  grid: its type.
    chosen: constants and options that a decorator chose.
    """

    def __init__(self, kernel: Named, grid: types.Type):
        choice = kernel.last_choice()
        is_layer = kernel.chosen is not None and choice is not None
        self.kernel, self.grid = kernel.base if is_layer else kernel, grid
        self.chosen: tuple[tuple[str, object], ...] = tuple((choice or {}).items())
        super().__init__(f"kernel {kernel.__module__}.{kernel.__qualname__}[{grid}]")

    @property
    def key(self) -> object:
        """Identity of the type."""
        return self.kernel, self.grid, self.chosen

    def get_call_type(self, context: object, args: tuple, kws: Mapping) -> Signature:
        """See launch_signature.

        Errors: ForceLiteralArg, on which Numba compiles the function for the values of arguments.
        """
        request_literals(context, self.kernel, args, kws)
        return launch_signature(context, self, args, kws)

    def get_call_signatures(self) -> tuple[list[Signature], bool]:
        """The signatures that Numba shows in errors, and whether there are others: see above."""
        return [], True

    def get_impl_key(self, _signature: Signature) -> object:
        """The key of what lowers a call."""
        return launch_signature


@register_model(LaunchType)
class _LaunchModel(models.StructModel):
    """The grid's value."""

    def __init__(self, manager: object, of: LaunchType):
        super().__init__(manager, of, [("grid", of.grid)])


@infer_global(operator.getitem)
class _GridOfKernel(AbstractTemplate):
    """`kernel[...]`, whatever is in the brackets: its launch says what is wrong with it."""

    def generic(self, args: tuple, kws: dict) -> Signature | None:
        kernel, grid = args
        if not isinstance(kernel, KernelType):
            return None
        grid = types.unliteral(grid)
        return signature(LaunchType(kernel.kernel, grid), kernel, grid)


def request_literals(context: object, kernel: Named, args: Sequence[types.Type],
                     kws: Mapping[str, types.Type]) -> None:
    """Ask Numba for the values of arguments of the caller that are given for constants.

    context: Numba's typing context.  args, kws: types of the launch's arguments.
    Errors: ForceLiteralArg, on which Numba compiles the caller for these values.  It asks for the
    variables first; a TypingError tells if one is no argument of the caller.
    """
    formals = {formal.name: formal for formal in kernel.signature.formals if formal.is_constant}
    given = [*enumerate(args), *kws.items()]
    names = dict(enumerate(kernel.signature.names)) | {name: name for name in kws}
    wanted = [(place, formals[names[place]], of) for place, of in given
              if names.get(place) in formals and value_of(of) is MISSING
              and isinstance(of, _WITH_LITERALS)]
    if not wanted:
        return
    caller = context.callstack[0]

    def variables(positional: Sequence[Var], keywords: Iterable[tuple[str, Var]]) -> list[Var]:
        written = {**dict(enumerate(positional)), **dict(keywords)}
        for place, formal, of in wanted:
            if place not in written or not _is_given(written[place], caller):
                _raise_no_constant(formal, of, kernel.signature.kernel)
        return [written[place] for place, _, _ in wanted]
    raise ForceLiteralArg(range(len(wanted)), fold_arguments=variables)


def _is_given(variable: Var, caller: object) -> bool:
    """Whether a variable is an argument that the caller was given, and not left with its default.

    caller: frame of Numba's stack of compilations.
    """
    definition = caller.typeinfer.func_ir.get_definition(variable)
    return isinstance(definition, Arg) and not isinstance(caller.args[definition.index],
                                                          types.Omitted)


def _raise_no_constant(formal: Formal, given: types.Type, kernel: str) -> None:
    try:
        constant_of_type(formal, given, kernel)
    except BlockError as error:
        raise TypingError(str(error)) from None


def launch_signature(context: object, launch: LaunchType, args: tuple,
                     kws: Mapping[str, types.Type]) -> Signature:
    """The signature of a call of `kernel[grid]`: an argument for each parameter, then options.

    context: Numba's typing context.
    Errors: TypingError with the message of the BlockError that a launch from Python raises.
    """
    try:
        return _signature(context, launch, args, dict(kws))
    except BlockError as error:
        raise TypingError(str(error)) from None


def _signature(context: object, launch: LaunchType, args: tuple,
               kws: dict[str, types.Type]) -> Signature:
    kernel, chosen = launch.kernel, dict(launch.chosen)
    name, formals = kernel.signature.kernel, kernel.signature.formals
    require(kernel.chosen is None, "{}: given a kernel under bn.autotune or bn.heuristics whose "
            f"choice is not known, accepted one that is {_WHERE}", name,
            hint="under bn.autotune, launch it from Python before; constants that depend on "
                 "arguments, compute before")
    taken = sorted({*kernel.signature.names[:len(args)], *kws} & chosen.keys())
    require(not taken, "{}: given {}, which bn.autotune chooses", name, ", ".join(taken),
            error=BlockValueError, hint="leave it out")
    require(kernel.signature.rest is None, "{}: given a kernel with *{}, accepted parameters with "
            f"one name each {_WHERE}", name, kernel.signature.rest)
    stream = kws.pop(STREAM, None)
    require(stream is None or is_int(stream), "{}: given {} as stream, accepted an int (the "
            f"driver's handle) {_WHERE}", name, stream)
    bound, options = kernel.signature.bind(args, kws | chosen)
    options = {option: of if isinstance(of, types.Type) else types.Omitted(of)
               for option, of in options.items()}
    bound = {argument: _present(of) for argument, of in bound.items()}
    flat, parts = parts_of_types(kernel, bound)
    require_one_device(entries(flat.signature.formals, parts, name), name)
    for formal in flat.signature.formals:
        if formal.is_constant:
            require_constant(formal, parts[formal.name], name)
    for option, of in options.items():
        require(isinstance(of, (types.Literal, types.Omitted)) or of == types.none,
                "{}: given {} for the option {}, accepted a literal {}", name, of, option, _WHERE)
    given = {formal.name: run_time_type(formal, bound[formal.name]) for formal in formals}
    given |= {option: options.get(option, types.Omitted(None)) for option in OPTION_NAMES
              if option not in given}
    given[STREAM] = types.Omitted(None) if stream is None else types.unliteral(stream)
    require_grid(grid_type(context, launch, given), name)
    names = argument_names(kernel)
    return signature(types.none, *map(given.get, names), recvr=launch).replace(
        pysig=_python_signature(formals, names, chosen))


def grid_type(context: object, launch: LaunchType, given: Mapping[str, types.Type]) -> types.Type:
    """The type of a grid, and of a stream beside it; of the result where the grid is a function.

    context: Numba's typing context.  given: types of the kernel's arguments.
    """
    grid, stream = grid_and_stream(launch.grid)
    if isinstance(grid, types.Dispatcher):
        grid = grid_signature(context, grid, meta_type(launch.kernel, given)).return_type
    return grid if stream is None else types.Tuple((grid, stream))


def grid_and_stream(of: types.Type) -> tuple[types.Type, types.Type | None]:
    """The type of the grid in the brackets, and of the stream if there is one."""
    if isinstance(of, types.BaseTuple) and len(of) == 2 and is_int(of[1]) and isinstance(
            of[0], (types.BaseTuple, types.Dispatcher)):
        return of[0], of[1]
    return of, None


def meta_type(kernel: Named, given: Mapping[str, types.Type]) -> MetaType:
    """The type of what a grid that is a function gets.  given: types of the kernel's arguments."""
    items = {}
    for formal in kernel.signature.formals:
        of = given[formal.name]
        is_known = formal.is_constant or isinstance(of, types.Omitted)
        items[formal.name] = value_of(of) if is_known else of
    return MetaType.of(kernel.signature.kernel, items)


def argument_names(kernel: Named) -> list[str]:
    """The names of a launch's arguments in the order of its Numba signature.

    They are the kernel's parameters, all options, and the stream; Numba fills in Omitted for
    those that are not given.
    """
    names = kernel.signature.names
    return [*names, *sorted(OPTION_NAMES.difference(names)), STREAM]


def _python_signature(formals: Iterable[Formal], names: Iterable[str],
                      chosen: Mapping[str, object]) -> inspect.Signature:
    """The parameters of a call for Numba, in the order of its signature.

    chosen: values of those that are not given.
    Which of them must be given, and how, was checked; Numba takes none by keyword only.
    """
    defaults = {formal.name: formal.default for formal in formals if formal.has_default}
    defaults |= chosen
    return inspect.Signature([
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(name))
        for name in names])


def _present(of: object) -> object:
    """A type; of what may be None the type of what is not, which Numba checks at run time."""
    return of.type if isinstance(of, types.Optional) else of


def run_time_type(formal: Formal, given: object) -> types.Type:
    """The type that an argument is passed as.

    given: its type in the caller, or the default of a parameter that was left out.
    """
    if not isinstance(given, types.Type):
        return types.Omitted(given)
    return given if formal.is_constant else types.unliteral(given)


def is_int(of: types.Type) -> bool:
    """Whether a type is an int's; a bool's is not."""
    return isinstance(of, types.Integer)


def require_grid(grid: types.Type, kernel: str) -> None:
    """Raise unless a type is that of a grid, or of a grid and a stream."""
    axes, _ = grid_and_stream_types(grid)
    hint = ("compute it before: kernel[(n + 1023) // 1024](...)"
            if isinstance(grid, types.Callable) else "")
    require(axes is not None, "{}: given {} as the grid, accepted an int or a tuple of 1 to 3 "
            f"ints {_WHERE}", kernel, _short(grid), hint=hint)


def grid_and_stream_types(grid: types.Type) -> tuple[list[types.Type] | None, types.Type | None]:
    """Types of the axes of a grid and of its stream, None if there is none.

    The first is None for what is no grid.
    """
    grid, stream = grid_and_stream(grid)
    if stream is not None:
        return grid_and_stream_types(grid)[0], stream
    axes = list(grid) if isinstance(grid, types.BaseTuple) else [grid]
    return (axes if 1 <= len(axes) <= 3 and all(map(is_int, axes)) else None), None


def entries(formals: Iterable[Formal], bound: Mapping[str, object],
            kernel: str) -> Iterable[Entry]:
    """The entry of each argument that has a value at run time.

    Errors: BlockTypeError for a type that a kernel cannot be given.
    """
    for formal in formals:
        given = bound[formal.name]
        if not formal.is_constant and not is_none(given):
            yield _entry(formal, given, f"{kernel}: argument {formal.called}")


def is_none(given: object) -> bool:
    """Whether an argument is None, by its type or by its default."""
    return given is None or given == types.none or (
        isinstance(given, types.Omitted) and given.value is None)


def _entry(formal: Formal, given: object, where: str) -> Entry:
    if not isinstance(given, types.Type):  # a default
        given = types.unliteral(types.literal(given)) if isinstance(given, (int, bool)) else (
            types.float64)
    given = types.unliteral(given)
    if isinstance(given, types.Array):
        dtype = DTYPES.get(_dtype_name(given.dtype))
        require(dtype is not None, "{}: given an array of {}, accepted {}", where, given.dtype,
                ", ".join(DTYPES))
        return ArrayEntry(formal.name, dtype, given.ndim, None, not given.mutable, given.layout)
    if isinstance(given, DeviceArrayType):
        return ArrayEntry(formal.name, given.dtype, given.ndim, given.device, given.readonly, "C")
    dtype = DTYPES.get(_dtype_name(given))
    if dtype is None or dtype is float16 or not isinstance(
            given, (types.Integer, types.Float, types.Boolean)):
        raise BlockTypeError(f"{where}: given {_short(given)}, accepted arrays, numbers, bools and "
                             f"None {_WHERE}", hint=_advice(formal, given))
    _require_number(formal, dtype, where)
    return ScalarEntry.of(formal, dtype)


def _require_number(formal: Formal, dtype: object, where: str) -> None:
    """Raise unless numbers of a dtype can be given for a parameter that is annotated with one."""
    declared = formal.dtype
    if declared is None:
        return
    fits = (dtype.is_integer if declared.is_integer
            else (dtype is bool_) is not declared.is_float)
    require(fits, "{}: given {}, accepted {}", where, dtype, declared)


def _dtype_name(of: types.Type) -> str:
    return "bool" if of == types.boolean else str(of)


def _short(of: types.Type) -> str:
    """A type in a message."""
    return "a function" if isinstance(of, types.Callable) else str(of)


def _advice(formal: Formal, given: types.Type) -> str:
    if isinstance(given, (types.List, types.ListType)):
        return "use an array"
    if isinstance(given, (types.UnicodeType, types.Callable, KernelType)):
        return ("to pass it as a constant, annotate the parameter: "
                f"{formal.name}: bn.constexpr")
    if "cuda" in str(given).lower() or isinstance(given, types.PyObject):
        return "pass bn.device(x)"
    return ""


def require_one_device(listed: Iterable[Entry], kernel: str) -> None:
    """Raise unless all arrays are in host memory, or all on one GPU."""
    first: dict[int | None, str] = {}
    for entry in listed:
        if isinstance(entry, ArrayEntry):
            first.setdefault(entry.device, entry.name)
    if len(first) > 1:
        (one, x), (other, y), *_ = first.items()
        raise BlockValueError(
            f"{kernel}: argument {x} is {_place(one)} and argument {y} is {_place(other)}, "
            "accepted arrays of one device")


def _place(device: int | None) -> str:
    return "in host memory" if device is None else f"on device {device}"


def require_constant(formal: Formal, given: object, kernel: str) -> None:
    """Raise unless the value of a constant may be known from its type, or later from its code."""
    if isinstance(given, types.Type):
        constant_of_type(formal, given, kernel)


def constant_of_type(formal: Formal, given: types.Type, kernel: str) -> object:
    """Value of a constant that its type says; UNKNOWN for floats, which Numba's types do not say.

    Errors: BlockTypeError for a type of which no value is known.
    """
    value = value_of(given)
    if value is MISSING:
        raise BlockTypeError(
            f"{kernel}: given a value of type {_short(given)} for the constant {formal.called}, "
            f"accepted one that is known when Numba compiles",
            hint=("make it a parameter of its own" if formal.label else
                  f"write a literal, a global or an argument that is given: {formal.name}=1024"))
    return value


class _Marker:
    """A value that is none of a user's."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN, MISSING = _Marker("a float"), _Marker("no constant")


def value_of(given: types.Type) -> object:
    """Value that a type says; UNKNOWN for a float's type, MISSING for others that say none."""
    if isinstance(given, types.Literal):
        return given.literal_value
    if isinstance(given, types.Omitted):
        return given.value
    if isinstance(given, ConstantType):
        return given.value
    if isinstance(given, KernelType):
        return given.kernel
    if isinstance(given, types.Dispatcher):
        return given.dispatcher
    if isinstance(given, types.Function) and inspect.isbuiltin(given.typing_key):
        return given.typing_key
    if isinstance(given, types.NumberClass):
        return DTYPES.get(_dtype_name(given.dtype), MISSING)
    if isinstance(given, types.DType):
        return DTYPES.get(_dtype_name(given.dtype), MISSING)
    if given == types.none:
        return None
    if isinstance(given, types.BaseTuple):
        items = [value_of(item) for item in given]
        return MISSING if MISSING in items or UNKNOWN in items else tuple(items)
    return UNKNOWN if isinstance(given, types.Float) else MISSING


def describe(kernel: Named, given: Mapping[str, types.Type],
             values: Mapping[str, ir.Value]) -> Description:
    """Description of the launch that a call makes.

    given, values: types and values in the code of its arguments, by argument_names.
    Errors: BlockTypeError for a float that is given for a constant and not known.
    """
    name, formals = kernel.signature.kernel, kernel.signature.formals
    constants = {}
    for formal in formals:
        if formal.is_constant:
            constants[formal.name] = _constant(formal, given[formal.name], values[formal.name],
                                               name)
        elif is_none(given[formal.name]):
            constants[formal.name] = None
    options = {option: value_of(of) for option, of in given.items()
               if option in OPTION_NAMES and value_of(of) is not None}
    layout = Layout(tuple(entries(formals, {n: _default_taken_out(of)
                                            for n, of in given.items()}, name)))
    return Description(layout, constants, kernel.options.override(options))


def _default_taken_out(of: types.Type) -> object:
    return of.value if isinstance(of, types.Omitted) else of


def _constant(formal: Formal, given: types.Type, value: ir.Value, kernel: str) -> object:
    known = constant_of_type(formal, given, kernel)
    if known is not UNKNOWN:
        return known
    require(isinstance(value, ir.Constant), "{}: given a float that is computed for the constant "
            "{}, accepted one that is known when Numba compiles", kernel, formal.name,
            hint="write a literal in the call (in a prange loop a global EPS = bn.constexpr(0.5))")
    return float(value.constant)


