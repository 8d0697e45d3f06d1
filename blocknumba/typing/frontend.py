"""A Python function into a tile IR function: the way through this folder."""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from numba.core import bytecode, ir

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.arguments import Argument
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function
from blocknumba.typing.context import Context, Options
from blocknumba.typing.function import bare
from blocknumba.typing.inference import BlockTypingContext, Inferer, keep_live_edges
from blocknumba.typing.numba_ir.assertions import call_assertions
from blocknumba.typing.numba_ir.bytecode import Source, function_place, source_of
from blocknumba.typing.numba_ir.graph import Graph
from blocknumba.typing.numba_ir.iteration import count_iterations
from blocknumba.typing.numba_ir.slices import find_spans
from blocknumba.typing.numba_ir.specialize import Specializer, bind_constants
from blocknumba.typing.numba_ir.ssa import construct_ssa
from blocknumba.typing.parameters import Parameters, is_wide
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
    wide = is_wide(argument_types)
    parameters = Parameters(argument_types, source.arguments)
    specializer = Specializer(source, argument_types, constants, options.watched)
    specializer.run()
    while True:
        inferer = _infer(specializer.result(), source, parameters, options, wide)
        variable_types = inferer.infer()
        if not inferer.open_calls:
            break
        specializer.make_calls(inferer.open_calls)
    blocks = inferer.blocks
    graph = keep_live_edges(blocks, inferer.graph, inferer.live_edges)

    builder = Builder()
    context = Context(builder, options, wide)
    place = function_place(python_function)
    builder.loc = place
    with builder.region(*parameters.types, hints=parameters.hints) as (body, arguments):
        values = parameters.bind(context, arguments)
        Structurer(Translator(context, variable_types, values), blocks, graph).emit()
    return Function(python_function.__name__, parameters.descriptions, body, place)


def _infer(blocks: dict[int, ir.Block], source: Source, parameters: Parameters, options: Options,
           wide: bool) -> Inferer:
    """What infers the types of specialised blocks, once they are in SSA form."""
    call_assertions(blocks)
    count_iterations(blocks)
    graph = Graph(blocks, source.entry)
    construct_ssa(blocks, graph)
    find_spans(blocks)
    identity = bytecode.FunctionIdentity.from_function(bare(source.function))
    function_ir = ir.FunctionIR(blocks, False, identity, None, {}, len(source.arguments),
                                source.arguments)
    return Inferer(BlockTypingContext(), function_ir, graph, parameters.stand_ins(), options, wide)
