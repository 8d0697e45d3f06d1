"""Runs laid-out functions by emulated threads, and finds races.

A value is an array [warp, lane, register]; a scalar has one register.  A pointer is the number of
an element: array number << 32 | element.  Threads run op by op in step, but memory remembers which
thread touched it and what barriers came since: an access that no barrier orders after another
thread's is a race, and fails.
"""

import numpy as np
from emulated_threads import dimensions, distribute, element_index, execute

from blocknumba.gpu_layout.layouts.movement import SharedMove, plan_move
from blocknumba.gpu_layout.layouts.registers import replication, shape_of
from blocknumba.gpu_layout.layouts.shared import access
from blocknumba.gpu_layout.placement.reductions import reduction_plan
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.types import PointerType
from blocknumba.tile_ir.ops.reduce import KINDS

ARRAY_SHIFT = 32
LANES = 32
POISON = 77  # of a thread that received no result


class Memory:
    """Elements, each with the last accesses by each thread."""

    def __init__(self, machine, values):
        self._machine = machine
        self.values = values
        self._writes = {}
        self._reads = {}

    def read(self, place, thread):
        self._order(self._writes.get(place, {}), thread, place)
        self._reads.setdefault(place, {})[thread] = self._machine.now(thread)
        return self.values[place]

    def write(self, place, thread, value):
        self._order(self._writes.get(place, {}), thread, place)
        self._order(self._reads.pop(place, {}), thread, place)
        self._writes[place] = {thread: self._machine.now(thread)}
        self.values[place] = value

    def _order(self, accesses, thread, place):
        program, warp = self._machine.now(thread)
        for other, (other_program, other_warp) in accesses.items():
            ordered = other == thread or other_program < program
            if other[0] == thread[0]:
                ordered = ordered or other_warp < warp
            assert ordered, f"race at {place} between threads {other} and {thread}"


class ThreadMachine:
    """One program: its threads, its shared memory, and the arrays it is given.

    scalars: by (kind, argument, axis) of the parameter.
    """

    def __init__(self, fn, num_warps, arrays, scalars, program_ids=(0, 0, 0)):
        self.fn = fn
        self.warps = num_warps
        self.program_ids = program_ids
        self._program_epoch = 0
        self._warp_epoch = 0
        self.arrays = [Memory(self, array.reshape(-1)) for array in arrays.values()]
        self.shared = Memory(self, {})
        self.values = {}
        numbers = {name: number for number, name in enumerate(arrays)}
        for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
            if parameter.kind == "pointer":
                given = np.int64(numbers[parameter.argument] << ARRAY_SHIFT)
            else:
                name = (parameter.kind, parameter.argument, parameter.axis)
                given = arg.type.dtype.numpy.type(scalars[name])
            self.values[arg] = np.full((num_warps, LANES, 1), given)

    def now(self, _thread):
        return self._program_epoch, self._warp_epoch

    def run(self):
        self.region(self.fn.body)

    def region(self, region):
        """Run a region; the values that its terminator yields."""
        for op in region.ops[:-1]:
            operands = [self.values[value] for value in op.operands]
            results = self.op(op, operands)
            for value, result in zip(op.results, results, strict=True):
                self._check(value, result)
                self.values[value] = result
        return [self.values[value] for value in region.terminator.operands]

    def _check(self, value, result):
        expected = (self.warps, LANES, 1)
        if not value.type.is_scalar and "register" in dict(value.type.layout.ins):
            expected = dimensions(value.type.layout)
            assert len({*result.shape[:2], *expected[:2]}) <= 2
        if result is not None:
            assert result.shape == expected, f"{value.type}: {result.shape}"

    def op(self, op, operands):
        method = getattr(self, f"_{op.name}", None)
        if method is not None:
            result = method(op, *operands)
            return result if isinstance(result, tuple) else (result,) if op.results else ()
        if op.opdef.has(ELEMENTWISE):
            layouts = {value.type.layout for value in op.operands + op.results}
            assert len(layouts) == 1, f"{op.name} mixes layouts"
            if op.name == "offset":
                return (operands[0] + operands[1].astype(np.int64),)
            with np.errstate(all="ignore"):
                result = op.opdef.evaluate(*operands, **op.attrs)
            return (np.ascontiguousarray(result),)
        raise AssertionError(f"{op.name} cannot be emulated")

    # made from nothing ---------------------------------------------------------------------------
    def _constant(self, op):
        return np.full((self.warps, LANES, 1), op.opdef.evaluate(**op.attrs)[0])

    def _program_id(self, op):
        return np.full((self.warps, LANES, 1), np.int32(self.program_ids[op.attrs["axis"]]))

    def _arange(self, op):
        held = element_index(op.result.type.layout) + op.attrs["start"]
        return held.astype(np.int32)

    # shapes: every element of the result must be found in the thread itself ----------------------
    def _rearranged(self, op, operands, within_warp=False):
        """Run op on element numbers: the result says which elements each register needs."""
        sizes = np.cumsum([0] + [value.type.size for value in op.operands])
        numbers = [
            np.arange(start, start + value.type.size).reshape(1, *value.type.shape)
            for start, value in zip(sizes, op.operands)
        ]
        made = op.opdef.evaluate(*numbers, **op.attrs)
        made = made if isinstance(made, tuple) else (made,)
        results = []
        for value, needed in zip(op.results, made, strict=True):
            needed = np.broadcast_to(needed, (1, *value.type.shape))[0]
            if value.type.is_scalar:
                wanted = np.full((self.warps, LANES, 1), needed)
            else:
                wanted = distribute(np.ascontiguousarray(needed), value.type.layout)
            results.append(self._found(op, operands, sizes, wanted, within_warp))
        return tuple(results)

    def _found(self, op, operands, sizes, wanted, within_warp):
        result = np.zeros(wanted.shape, operands[0].dtype)
        for warp, lane in np.ndindex(self.warps, LANES):
            held = {}
            for number, value in enumerate(op.operands):
                lanes = range(LANES) if within_warp else (lane,)
                for other in lanes:
                    index = np.zeros(1, int)
                    if not value.type.is_scalar:
                        index = element_index(value.type.layout)[warp, other]
                    held.update(zip(index + sizes[number], operands[number][warp, other]))
            result[warp, lane] = [held[number] for number in wanted[warp, lane]]
        return result

    def _splat(self, op, x):
        if op.result.type.is_scalar:
            return x
        return np.broadcast_to(x, dimensions(op.result.type.layout)).copy()

    def _broadcast(self, op, x):
        return self._rearranged(op, [x])

    def _reshape(self, op, x):
        return self._rearranged(op, [x])

    def _transpose(self, op, x):
        return self._rearranged(op, [x])

    def _join(self, op, x, y):
        return self._rearranged(op, [x, y])

    def _split(self, op, x):
        return self._rearranged(op, [x])

    def _extract(self, op, x):
        return self._rearranged(op, [x])

    def _flip(self, op, x):
        return self._rearranged(op, [x], within_warp=True)

    # memory --------------------------------------------------------------------------------------
    def _place(self, pointer):
        return self.arrays[int(pointer) >> ARRAY_SHIFT], int(pointer) & (1 << ARRAY_SHIFT) - 1

    def _accessed(self, pointer, mask):
        for warp, lane, register in np.ndindex(pointer.shape):
            if mask is None or mask[warp, lane, register]:
                memory, place = self._place(pointer[warp, lane, register])
                yield (warp, lane), (warp, lane, register), memory, place

    def _keepers(self, layout, shape):
        """Which registers do an access that must be done once per element."""
        if layout is None:
            keep = np.zeros(shape, bool)
            keep[0, 0, 0] = True
            return keep
        masks = replication(layout)
        warp, lane, register = np.indices(shape)
        return (warp & masks.warp | lane & masks.lane | register & masks.register) == 0

    def _load(self, op, pointer, mask=None, other=None):
        dtype = op.result.type.dtype.numpy
        result = np.zeros(pointer.shape, dtype) if other is None else other.copy()
        once = attribute(op, "volatile") and op.result.type.is_scalar
        if once:
            result[...] = POISON
            mask = self._keepers(None, pointer.shape)
        for thread, at, memory, place in self._accessed(pointer, mask):
            result[at] = memory.read(place, thread)
        return result

    def _store(self, op, pointer, value, mask=None):
        keep = self._keepers(op.operands[0].type.layout, pointer.shape)
        keep = keep if mask is None else keep & mask
        for thread, at, memory, place in self._accessed(pointer, keep):
            memory.write(place, thread, value[at])
        return ()

    def _atomic_rmw(self, op, pointer, value, mask=None):
        keep = self._keepers(op.operands[0].type.layout, pointer.shape)
        result = np.full(pointer.shape, POISON, value.dtype)
        if mask is not None:
            result[keep & ~mask] = 0
            keep = keep & mask
        combine = {"add": np.add, "max": np.maximum, "min": np.minimum}[op.attrs["kind"]]
        for thread, at, memory, place in self._accessed(pointer, keep):
            result[at] = memory.read(place, thread)
            memory.write(place, thread, combine(result[at], value[at]))
        return result

    # reductions ----------------------------------------------------------------------------------
    def _lane_swapped(self, x, mask):
        return x[:, np.arange(LANES) ^ mask]

    def _partial_reduce(self, op, x):
        plan = reduction_plan(op.operands[0].type.layout, op.attrs["axis"])
        combine = KINDS[op.attrs["kind"]][0]
        result = np.stack([combine.reduce(x[:, :, list(g)], axis=2) for g in plan.groups], axis=-1)
        for mask in plan.lane_masks:
            result = combine(result, self._lane_swapped(result, mask))
        return result.astype(x.dtype)

    def _reduce(self, op, x):
        assert reduction_plan(op.operands[0].type.layout, op.attrs["axis"]).warps == 1
        return self._partial_reduce(op, x)

    def _pairs(self, op, values, indices):
        plan = reduction_plan(op.operands[0].type.layout, op.attrs["axis"])
        values, indices = (
            np.stack([part[:, :, list(group)] for group in plan.groups], axis=2)
            for part in (values, indices)
        )
        for mask in plan.lane_masks:
            values = np.concatenate([values, self._lane_swapped(values, mask)], axis=-1)
            indices = np.concatenate([indices, self._lane_swapped(indices, mask)], axis=-1)
        sign = 1 if op.attrs["kind"] == "max" else -1
        key = np.where(values != values, np.inf, sign * values.astype(np.float64))
        best = np.lexsort((indices, -key), axis=-1)[..., :1]
        return tuple(np.take_along_axis(part, best, -1)[..., 0] for part in (values, indices))

    def _partial_arg_reduce(self, op, x):
        layout = op.operands[0].type.layout
        place = np.indices(shape_of(layout))[op.attrs["axis"]]
        return self._pairs(op, x, distribute(place, layout).astype(np.int32))

    def _arg_reduce(self, op, x):
        assert reduction_plan(op.operands[0].type.layout, op.attrs["axis"]).warps == 1
        return self._partial_arg_reduce(op, x)[1]

    def _finish_arg_reduce(self, op, values, indices):
        assert reduction_plan(op.operands[0].type.layout, op.attrs["axis"]).warps == 1
        return self._pairs(op, values, indices)[1]

    # movement ------------------------------------------------------------------------------------
    def _convert_layout(self, op, x):
        source, destination = op.operands[0].type.layout, op.result.type.layout
        move = plan_move(source, destination, _bits(op.result.type))
        assert not isinstance(move, SharedMove)
        return execute(move, x, source, destination)

    def _shared_allocate(self, op):
        return None

    def _shared_write(self, op, _, value):
        self._exchange(op, op.operands[1].type.layout, value, True)
        return ()

    def _shared_read(self, op, _):
        layout = op.result.type.layout
        shape = dimensions(layout) if layout is not None else (self.warps, LANES, 1)
        dtype = op.result.type.dtype
        result = np.zeros(shape, np.int64 if isinstance(dtype, PointerType) else dtype.numpy)
        self._exchange(op, layout, result, False)
        return result

    def _exchange(self, op, layout, value, writes):
        buffer = op.operands[0]
        size = _bits(buffer.type) // 8
        start = buffer.owner.attrs["offset"]
        keep = self._keepers(layout, value.shape) if writes else np.ones(value.shape, bool)
        if layout is None:
            places = np.zeros(value.shape, int)
        else:
            moved = access(layout, buffer.type.layout, size * 8)
            places = np.zeros(value.shape, int)
            for group in moved.groups:
                for warp, lane in np.ndindex(*value.shape[:2]):
                    first = moved.offsets(register=group[0], lane=lane, warp=warp)["offset"]
                    assert first % moved.vector == 0
                    places[warp, lane, list(group)] = first + np.arange(len(group))
        for at in np.ndindex(*value.shape):
            if not keep[at]:
                continue
            for byte in range(start + places[at] * size, start + (places[at] + 1) * size):
                if writes:
                    self.shared.write(byte, at[:2], value[at])
                else:
                    value[at] = self.shared.read(byte, at[:2])

    def _barrier(self, op):
        self._warp_epoch += 1
        self._program_epoch += attribute(op, "scope") == "program"
        return ()

    # control -------------------------------------------------------------------------------------
    def _uniform(self, scalar):
        assert len(np.unique(scalar)) == 1, "threads disagree on a scalar"
        return scalar.ravel()[0]

    def _if(self, op, condition):
        return tuple(self.region(op.regions[0 if self._uniform(condition) else 1]))

    def _for(self, op, start, stop, step, *carried):
        (region,) = op.regions
        bounds = [int(self._uniform(bound)) for bound in (start, stop, step)]
        for number in range(*bounds):
            self.values[region.args[0]] = np.full_like(start, number)
            self.values.update(zip(region.args[1:], carried, strict=True))
            carried = self.region(region)
        return tuple(carried)

    def _loop(self, op, *carried):
        (region,) = op.regions
        while True:
            self.values.update(zip(region.args, carried, strict=True))
            condition, *carried = self.region(region)
            if not self._uniform(condition):
                return tuple(carried)


def _bits(tile):
    return 64 if tile.is_pointer else tile.dtype.bits
