"""Code of gathers: the tile lies in a buffer, of which elements are loaded by their indices."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import Lanes
from blocknumba.cpu_lower.emitter import Coordinates, Emitter, root
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops.gather import gather


@root(gather)
def _(emitter: Emitter, op: Op) -> None:
    axis, type_ = op.attrs["axis"], op.x.type
    source = emitter.materialise(op.x)
    lane_axis, lanes = emitter.lanes_of([op.indices])
    result = emitter.buffer(op.result.type)

    def element(coordinates: Coordinates) -> None:
        index = emitter.at(op.indices, coordinates)
        inside = _inside(emitter, index, type_.shape[axis])
        place = emitter.place(type_.dtype, source,
                              (*coordinates[:axis], index, *coordinates[axis + 1:]))
        emitter.keep(op.result, coordinates, emitter.load(type_.dtype, place, inside), result)

    with emitter.filled_by([op.indices], op.result.type.shape, lane_axis):
        emitter.nest(op.result.type.shape, lane_axis, lanes, element,
                     lambda coordinates: [(op.indices, coordinates)])
    emitter.known.buffers[op.result] = result


def _inside(emitter: Emitter, index: Lanes, extent: int) -> Lanes:
    """Whether an index is in [0, extent): taken as unsigned, a negative one is greater."""
    if index.is_uniform:
        return Lanes(emitter.writer.assign(f"icmp ult i32 {index.name}, {extent}"), 0)
    type_, dense = vector("i32", emitter.lanes), emitter.dense_index(index)
    return Lanes(emitter.writer.assign(f"icmp ult {type_} {dense}, splat (i32 {extent})"))
