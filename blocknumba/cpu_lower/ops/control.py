"""Code of structured control flow; tiles that it carries lie in buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocknumba.cpu_lower.elements import Lanes, register_type
from blocknumba.cpu_lower.emitter import Buffer, Coordinates, Emitter, Failure, root
from blocknumba.cpu_lower.ops.resident_loops import loop_of_pieces
from blocknumba.cpu_lower.versions import in_two_versions
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops import control


@root(control.if_)
def _(emitter: Emitter, op: Op) -> None:
    writer, outer = emitter.writer, emitter.known
    buffers = {value: emitter.buffer(value.type) for value in op.results if value.type.shape}
    labels = [writer.label(hint) for hint in ("then", "else", "join")]
    writer.branch_if(emitter.scalar(op.condition), *labels[:2])
    scalars: list[list[str]] = []
    ends: list[str] = []
    for label, region in zip(labels, op.regions):
        writer.begin(label)
        emitter.known = outer.copy()
        yielded = emitter.run(region).operands
        for result, value in zip(op.results, yielded):
            if result.type.shape:
                emitter.write(value, buffers[result])
        scalars.append([emitter.scalar(v) for v in yielded if not v.type.shape])
        ends.append(writer.block)
        writer.branch(labels[2])
    writer.begin(labels[2])
    emitter.known = outer
    outer.buffers.update(buffers)
    for result, *values in zip([v for v in op.results if not v.type.shape], *scalars):
        incoming = ", ".join(f"[ {v}, %{end} ]" for v, end in zip(values, ends))
        outer.scalars[result] = writer.assign(
            f"phi {register_type(result.type.dtype)} {incoming}")


@root(control.for_)
def _(emitter: Emitter, op: Op) -> None:
    writer, (region,) = emitter.writer, op.regions
    index, *args = region.args
    dtype = index.type.dtype
    start, stop, step = (emitter.scalar(v) for v in (op.start, op.stop, op.step))
    count = _trip_count(emitter, op, dtype, start, stop, step)

    def counted(carried: Sequence[tuple[str, str]],
                body: Callable[[Sequence[str]], list[str]]) -> list[str]:
        """Run body(names) `count` times; carried: types and first values.  Returns the last."""
        before, head, after = writer.block, writer.label("for"), writer.label("after")
        is_some = writer.assign(f"icmp ne i64 {count}, 0")
        writer.branch_if(is_some, head, after)
        writer.begin(head)
        slot, outer = writer.reserve(), emitter.known
        counter, position, *names = (writer.name() for _ in range(2 + len(carried)))
        emitter.known = outer.copy()
        emitter.known.elements = {}
        emitter.known.scalars[index] = position
        following = body(names)
        done = writer.assign(f"add nuw i64 {counter}, 1")
        type_ = register_type(dtype)
        moved = writer.assign(f"add {type_} {position}, {step}")
        more = writer.assign(f"icmp ne i64 {done}, {count}")
        types, first = zip(*carried) if carried else ((), ())
        phis = [(counter, "i64", "0", done), (position, type_, start, moved),
                *zip(names, types, first, following)]
        writer.insert(slot, [f"{name} = phi {kind} [ {one}, %{before} ], [ {new}, "
                             f"%{writer.block} ]" for name, kind, one, new in phis])
        last = writer.block
        writer.branch_if(more, head, after)
        writer.begin(after)
        emitter.known = outer
        return [writer.assign(f"phi {kind} [ {one}, %{before} ], [ {new}, %{last} ]")
                for kind, one, new in zip(types, first, following)]

    if loop_of_pieces(emitter, op, counted):
        return
    carried = _Carried(emitter, args, op.initial)

    def body(names: Sequence[str]) -> list[str]:
        carried.enter(emitter, names)
        return in_two_versions(
            emitter, region, lambda: carried.following(emitter, emitter.run(region).operands),
            carried.types)
    carried.leave(emitter, op.results, counted(
        list(zip(carried.types, carried.initial)), body))


@root(control.loop)
def _(emitter: Emitter, op: Op) -> None:
    writer, (region,) = emitter.writer, op.regions
    carried = _Carried(emitter, region.args, op.initial)
    before, head, after = writer.block, writer.label("loop"), writer.label("after")
    writer.branch(head)
    writer.begin(head)
    slot, outer = writer.reserve(), emitter.known
    emitter.known = outer.copy()
    emitter.known.elements = {}
    names = [writer.name() for _ in carried.scalars]
    carried.enter(emitter, names)
    end = emitter.run(region)
    more = emitter.scalar(end.condition)
    following = carried.following(emitter, end.values)
    last = writer.block
    writer.insert(slot, [f"{name} = phi {kind} [ {first}, %{before} ], [ {new}, %{last} ]"
                         for name, kind, first, new in zip(
                             names, carried.types, carried.initial, following)])
    writer.branch_if(more, head, after)
    writer.begin(after)
    emitter.known = outer
    carried.leave(emitter, op.results, following)


@root(control.yield_, control.continue_if, control.return_)
def _(emitter: Emitter, op: Op) -> None:
    """Nothing: the op around it reads the values that it yields."""


def _trip_count(emitter: Emitter, op: Op, dtype: DType, start: str, stop: str,
                step: str) -> str:
    """The length of range(start, stop, step), an i64; exact even where the index overflows."""
    writer, type_ = emitter.writer, register_type(dtype)
    extend = "sext" if dtype.is_signed else "zext"
    a, b, by = (writer.convert(extend, type_, x, "i64") for x in (start, stop, step))
    if step.lstrip("-") == "0" or step.startswith("%"):
        is_zero = writer.assign(f"icmp eq {type_} {step}, 0")
        emitter.fail_if(is_zero, Failure("step", op))
    less = "slt" if dtype.is_signed else "ult"
    rises = writer.assign(f"icmp sgt i64 {by}, 0") if dtype.is_signed else "true"
    up, down = writer.assign(f"sub i64 {b}, {a}"), writer.assign(f"sub i64 {a}, {b}")
    span = writer.assign(f"select i1 {rises}, i64 {up}, i64 {down}")
    back = writer.assign(f"sub i64 0, {by}")
    size = writer.assign(f"select i1 {rises}, i64 {by}, i64 {back}")
    is_up = writer.assign(f"icmp {less} i64 {a}, {b}")
    is_down = writer.assign(f"icmp {less} i64 {b}, {a}")
    is_some = writer.assign(f"select i1 {rises}, i1 {is_up}, i1 {is_down}")
    whole = writer.assign(f"udiv i64 {writer.assign(f'sub i64 {span}, 1')}, {size}")
    return writer.assign(f"select i1 {is_some}, i64 "
                         f"{writer.assign(f'add i64 {whole}, 1')}, i64 0")


class _Carried:
    """The loop-carried values of a loop: scalars in phis, tiles in buffers of their own.

    types, initial: of the scalars.
    """

    def __init__(self, emitter: Emitter, args: Sequence[Value], initial: Sequence[Value]):
        self.args = args
        self.scalars = [v for v in args if not v.type.shape]
        self.types = [register_type(v.type.dtype) for v in self.scalars]
        self.initial = [emitter.scalar(v) for v in initial if not v.type.shape]
        self.buffers: dict[Value, Buffer] = {}
        for arg, value in zip(args, initial, strict=True):
            if arg.type.shape:
                self.buffers[arg] = emitter.buffer(arg.type)
                emitter.write(value, self.buffers[arg])

    def enter(self, emitter: Emitter, names: Sequence[str]) -> None:
        """Make them known in the loop's body; names: of the scalars."""
        emitter.known.scalars.update(zip(self.scalars, names))
        emitter.known.buffers.update(self.buffers)

    def following(self, emitter: Emitter, values: Sequence[Value]) -> list[str]:
        """Write the tiles for the next iteration; the scalars' names."""
        pairs = [(arg, value) for arg, value in zip(self.args, values, strict=True)
                 if arg.type.shape and not self._stays(emitter, arg, value)]
        in_place = _are_in_place(emitter, pairs, self.buffers)
        if in_place:
            _written_at_once(emitter, pairs, self.buffers)
        else:
            made = [(arg, emitter.buffer(arg.type)) for arg, _ in pairs]
            for (_, value), (_, buffer) in zip(pairs, made):
                emitter.write(value, buffer)
            for arg, buffer in made:
                emitter.copy(arg.type, buffer, self.buffers[arg])
        return [emitter.scalar(v) for v in values if not v.type.shape]

    def _stays(self, emitter: Emitter, arg: Value, value: Value) -> bool:
        """Whether a tile is already where the next iteration finds it."""
        found = emitter.known.buffers.get(value)
        return found is not None and found == self.buffers[arg]

    def leave(self, emitter: Emitter, results: Sequence[Value], scalars: Sequence[str]) -> None:
        """Make the results known after the loop."""
        emitter.known.scalars.update(zip([v for v in results if not v.type.shape], scalars))
        for result, arg in zip(results, self.args, strict=True):
            if result.type.shape:
                emitter.known.buffers[result] = self.buffers[arg]


def _are_in_place(emitter: Emitter, pairs: Sequence[tuple[Value, Value]],
                  buffers: dict[Value, Buffer]) -> bool:
    """Whether one nest may read all elements at some coordinates, then write them."""
    if len({arg.type.shape for arg, _ in pairs}) != 1:
        return False
    places = frozenset(buffer.address for buffer in buffers.values())
    return all(emitter.reads_in_place(value, places) for _, value in pairs)


def _written_at_once(emitter: Emitter, pairs: Sequence[tuple[Value, Value]],
                     buffers: dict[Value, Buffer]) -> None:
    values = [value for _, value in pairs]
    shape = values[0].type.shape
    axis, lanes = emitter.lanes_of(values)

    def body(coordinates: Coordinates) -> None:
        found: list[Lanes] = [emitter.at(value, coordinates) for value in values]
        for (arg, value), x in zip(pairs, found):
            emitter.keep(value, coordinates, x, buffers[arg])

    with emitter.filled_by(values, shape, axis):
        emitter.nest(shape, axis, lanes, body,
                     lambda coordinates: [(value, coordinates) for value in values])


