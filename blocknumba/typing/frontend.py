"""A Python function into a tile IR function: the way through this folder."""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from numba.core import bytecode, ir

from blocknumba.errors import BlockError
from blocknumba.tile_ir.arguments import Argument
from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.ir import Function
from blocknumba.typing.assertions import call_assertions
from blocknumba.typing.bytecode import function_place, source_of
from blocknumba.typing.context import Context, Options
from blocknumba.typing.function import bare
from blocknumba.typing.graph import Graph
from blocknumba.typing.inference import BlockTypingContext, Inferer
from blocknumba.typing.iteration import count_iterations
from blocknumba.typing.parameters import Parameters, is_wide
from blocknumba.typing.pruning import keep_live_edges
from blocknumba.typing.slices import find_spans
from blocknumba.typing.specialize import bind_constants, specialize
from blocknumba.typing.ssa import construct_ssa
from blocknumba.typing.structure import Structurer
from blocknumba.typing.translate import Translator


def build(python_function: types.FunctionType, argument_types: Mapping[str, Argument],
          constants: Mapping[str, object] | None = None, options: Options = Options()) -> Function:
    """The tile IR of a kernel for arguments of these types and for these constants.

    constants: values of the other parameters; those not given have their default.
    Errors: a BlockError that shows the place in the user's source.
    """
    if options.debug:
        watched = replace(options, watched=True)
        with suppress(BlockError):
            return _build(python_function, argument_types, constants, watched)
        # a number that not all paths assign may have to be known, as an extent of a tile has
    return _build(python_function, argument_types, constants, options)


def _build(python_function: types.FunctionType, argument_types: Mapping[str, Argument],
           constants: Mapping[str, object] | None, options: Options) -> Function:
    source = source_of(python_function)
    constants = bind_constants(source, argument_types, constants or {})
    blocks = specialize(source, argument_types, constants, options.watched)
    call_assertions(blocks)
    count_iterations(blocks)
    graph = Graph(blocks, source.entry)
    construct_ssa(blocks, graph)
    find_spans(blocks)

    wide = is_wide(argument_types)
    parameters = Parameters(argument_types, source.arguments)
    identity = bytecode.FunctionIdentity.from_function(bare(python_function))
    function_ir = ir.FunctionIR(blocks, False, identity, None, {}, len(source.arguments),
                                source.arguments)
    inferer = Inferer(BlockTypingContext(), function_ir, graph, parameters.stand_ins(), options,
                      wide)
    variable_types = inferer.infer()
    graph = keep_live_edges(blocks, graph, inferer.live_edges)

    builder = Builder()
    context = Context(builder, options, wide)
    place = function_place(python_function)
    builder.loc = place
    with builder.region(*parameters.types, hints=parameters.hints) as (body, arguments):
        values = parameters.bind(context, arguments)
        Structurer(Translator(context, variable_types, values), blocks, graph).emit()
    return Function(python_function.__name__, parameters.descriptions, body, place)
