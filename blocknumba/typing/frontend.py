"""From a Python function and its parameters to a tile IR function."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial

from numba.core import bytecode, ir

from blocknumba.errors import UNKNOWN, BlockError, Loc
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.types import (
    Argument, ArrayArgument, DType, PointerType, ScalarArgument, TileType, int32, int64,
)
from blocknumba.typing.context import Context, Options
from blocknumba.typing.dialect import NUMPY_NAME, TRITON_NAME, dialect
from blocknumba.typing.function import BlockFunction, bare
from blocknumba.typing.inference import BlockTypingContext, Inferer, keep_live_edges
from blocknumba.typing.numba_ir.bytecode import Source, source_of
from blocknumba.typing.numba_ir.graph import Graph
from blocknumba.typing.numba_ir.idioms import call_assertions, count_iterations, find_spans
from blocknumba.typing.numba_ir.specialize import Specializer, bind_constants
from blocknumba.typing.numba_ir.ssa import construct_ssa
from blocknumba.typing.scalars.functions import ScalarFunctions
from blocknumba.typing.structure import Structurer
from blocknumba.typing.translate import Translator
from blocknumba.typing.values import Array, Descriptor, Function as LocalFunction, Number


def is_wide(arguments: Mapping[str, Argument]) -> bool:
    """Whether positions in some array need 64 bits."""
    return any(isinstance(a, ArrayArgument) and a.wide for a in arguments.values())


class Parameters:
    """The parameters of a kernel, in the order of its Python parameters.

    descriptions, types, hints: one of each per tile IR parameter.
    """

    def __init__(self, arguments: Mapping[str, Argument], order: Sequence[str]):
        self._arguments = {name: arguments[name] for name in order if name in arguments}
        self.descriptions: tuple[Parameter, ...] = ()
        self.types: tuple[TileType, ...] = ()
        self.hints: tuple[str, ...] = ()
        for name, argument in self._arguments.items():
            if isinstance(argument, ArrayArgument):
                self._describe_array(name, argument)
            elif argument.value is None:
                self._describe(Parameter("value", name, divisibility=argument.divisibility,
                                         minimum=argument.minimum), argument.dtype, name)

    def bind(self, context: Context, values: Sequence[Value]) -> dict[str, object]:
        """The value of each argument, from those of the tile IR parameters."""
        given = iter(values)
        for description, value in zip(self.descriptions, values):
            if description.minimum is not None and description.minimum >= 0:
                context.nonnegative.add(value)
        return {name: self._bind(context, name, argument, given)
                for name, argument in self._arguments.items()}

    def stand_ins(self) -> dict[str, object]:
        """Stand-ins of the arguments, on which inference runs."""
        given = iter([Value(t) for t in self.types])
        return {name: self._bind(None, name, argument, given)
                for name, argument in self._arguments.items()}

    def _bind(self, context: Context | None, name: str, argument: Argument, given) -> object:
        if isinstance(argument, ScalarArgument):
            scalar = self._scalar(context, argument, given)
            return Number(scalar) if argument.weak else scalar
        pointer = next(given)
        extents = tuple([next(given) if n is None else n for n in argument.extents])
        strides = tuple([next(given) if n is None else n for n in argument.strides])
        array = Array(name, argument.dtype, argument.wide, pointer, extents, strides)
        box = argument.box
        return array if box is None else Descriptor(array, box.shape, box.padding)

    @staticmethod
    def _scalar(context: Context | None, argument: ScalarArgument, given) -> Value:
        if argument.value is None:
            return next(given)
        if context is None:
            return Value(TileType(argument.dtype))
        return context.constant(argument.value, argument.dtype)

    def _describe_array(self, name: str, argument: ArrayArgument) -> None:
        self._describe(Parameter("pointer", name, divisibility=argument.alignment,
                                 mappable=argument.mappable),
                       PointerType(argument.dtype), name)
        number = int64 if argument.wide else int32
        for kind, known, divisors, least in (
                ("extent", argument.extents, argument.extent_divisibility, 0),
                ("stride", argument.strides, argument.stride_divisibility, None)):
            for axis, size in enumerate(known):
                if size is None:
                    divisor = divisors[axis] if axis < len(divisors) else 1
                    self._describe(Parameter(kind, name, axis, divisor, least), number,
                                   f"{name}_{kind}{axis}")

    def _describe(self, description: Parameter, dtype: DType | PointerType, hint: str) -> None:
        self.descriptions += (description,)
        self.types += (TileType(dtype),)
        self.hints += (hint,)


def build(python_function: types.FunctionType, argument_types: Mapping[str, Argument],
          constants: Mapping[str, object] | None = None, options: Options = Options()) -> Function:
    """The tile IR of a kernel for arguments of these types and for these constants.

    constants: values of the other parameters; those not given have their default.
    Errors: a BlockError that shows the location in the user's source.
    """
    if options.debug:
        watched = replace(options, watched=True)
        with suppress(BlockError):
            return _build(python_function, argument_types, constants, watched)
        # a number that not all paths assign may have to be known, as an extent of a tile has
    return _build(python_function, argument_types, constants, options)


def infer(python_function: types.FunctionType, constants: Mapping[str, object]) -> None:
    """Run the rules of a kernel of constants alone on stand-ins; nothing is emitted.

    Errors: as of build, those that typing finds.
    """
    source = source_of(python_function, dialect(NUMPY_NAME))
    options = Options()
    context = Context(Builder(), options, False, ScalarFunctions(options.target))
    _inferred(source, {}, bind_constants(source, {}, constants), {}, context)


def _build(python_function: types.FunctionType, argument_types: Mapping[str, Argument],
           constants: Mapping[str, object] | None, options: Options) -> Function:
    source = source_of(python_function, dialect(options.dialect))
    constants = bind_constants(source, argument_types, constants or {})
    if options.dialect == TRITON_NAME:
        argument_types, constants = _with_known_ones(argument_types, constants)
    wide = is_wide(argument_types)
    parameters = Parameters(argument_types, source.arguments)

    builder = Builder()
    context = Context(builder, options, wide, ScalarFunctions(options.target))
    inferer = _inferred(source, argument_types, constants, parameters.stand_ins(), context)
    context.call = partial(call_in_place, context)
    location = Loc.of(python_function)
    builder.loc = location
    with builder.region(*parameters.types, hints=parameters.hints) as (body, arguments):
        bound = parameters.bind(context, arguments)
        if options.dialect == TRITON_NAME:
            context.read_only = _read_only(python_function, bound)
        _emit(context, inferer, bound)
        context.emit("return")
    attrs = {"strides_are_given": True} if options.dialect == TRITON_NAME else {}
    return Function(python_function.__name__, parameters.descriptions, body, location, attrs,
                    tuple(context.scalar_functions.remarks))


def _read_only(python_function: types.FunctionType, bound: Mapping[str, object]) -> set[Value]:
    """The pointers of the parameters that are annotated with Triton's const."""
    annotated = {name for name, annotation in python_function.__annotations__.items()
                 if _name_of(annotation) == "const"}
    return {value.pointer for name, value in bound.items()
            if name in annotated and isinstance(value, Array)}


def _name_of(annotation: object) -> str:
    """The last name of an annotation, or of its text."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2]


def _with_known_ones(arguments: Mapping[str, Argument], constants: Mapping[str, object],
                     ) -> tuple[dict[str, Argument], dict[str, object]]:
    """Arguments and constants, the ints whose value is known being constants, as in Triton."""
    known = {name: int(argument.value) for name, argument in arguments.items()
             if isinstance(argument, ScalarArgument) and argument.value is not None}
    rest = {name: argument for name, argument in arguments.items() if name not in known}
    return rest, {**constants, **known}


def _inferred(source: Source, argument_types: Mapping[str, Argument],
              constants: Mapping[str, object], stand_ins: Mapping[str, object],
              context: Context) -> Inferer:
    """Inference of a function that is specialised for these constants, at its fixed point.

    stand_ins: of the arguments, by name.  context: where it will be emitted.
    """
    specializer = Specializer(source, argument_types, constants, context.root,
                              context.options.watched)
    specializer.run()
    while True:
        inferer = _inferer(specializer.result(), source, stand_ins, context)
        inferer.infer()
        if not inferer.open_calls:
            return inferer
        specializer.make_calls(inferer.open_calls)


def _inferer(blocks: dict[int, ir.Block], source: Source, stand_ins: Mapping[str, object],
             context: Context) -> Inferer:
    """An inferer for specialised blocks, once they are in SSA form."""
    call_assertions(blocks)
    count_iterations(blocks)
    graph = Graph(blocks, source.entry)
    construct_ssa(blocks, graph)
    find_spans(blocks)
    identity = bytecode.FunctionIdentity.from_function(bare(source.function))
    function_ir = ir.FunctionIR(blocks, False, identity, None, {}, len(source.arguments),
                                source.arguments)
    emission = Context(Builder(folding=False), context.options, context.wide,
                       context.scalar_functions, is_inference=True)
    emission.root = context.root
    emission.call = partial(call_in_place, emission)
    return Inferer(BlockTypingContext(), function_ir, graph, stand_ins, emission)


def _emit(context: Context, inferer: Inferer, arguments: Mapping[str, object]) -> None:
    """Emit the body of a function whose types are inferred."""
    graph = keep_live_edges(inferer.blocks, inferer.graph, inferer.live_edges)
    Structurer(Translator(context, inferer.types, arguments), inferer.blocks, graph).emit()


def call_in_place(context: Context, function: object, values: Sequence[Value]) -> object:
    """Result of a user's function for values; its ops are emitted at the insertion point.

    Errors: as of build; the location of the call is that of the builder.
    """
    site, returned, root, own = context.builder.loc, [], context.root, context.dialect
    context.root = own
    if isinstance(function, LocalFunction):
        function = function.settled()
    keep = BlockFunction(lambda _, value: returned.append(value), "return")
    caller = _caller(len(values))
    arguments = dict(zip(caller.__code__.co_varnames[2:], values))
    stand_ins = {name: Value(value.type) for name, value in arguments.items()}
    try:
        inferer = _inferred(source_of(caller, dialect(NUMPY_NAME)), {},
                            {"function": function, "keep": keep}, stand_ins, context)
        returned.clear()
        _emit(context, inferer, arguments)
    except BlockError as error:
        error.loc = _within(error.loc, site, caller)
        raise
    finally:
        context.builder.loc, context.root, context.dialect = site, root, own
    return returned[-1]


@lru_cache(maxsize=None)
def _caller(count: int) -> types.FunctionType:
    """A function that calls another with so many arguments and keeps what it returns.

    Made of text: what inlines calls must see the number of arguments.
    """
    names = ", ".join(f"value{i}" for i in range(count))
    return eval(f"lambda function, keep, {names}: keep(function({names}))")


def _within(location: Loc, site: Loc, caller: types.FunctionType) -> Loc:
    """A location in a function that was called in place, its outermost caller being the site."""
    if location is UNKNOWN or location.file == caller.__code__.co_filename:
        return site
    return replace(location, caller=_within(location.caller or UNKNOWN, site, caller))
