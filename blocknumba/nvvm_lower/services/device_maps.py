"""Tensor maps that a device function makes: no launch has encoded them.

    first warp    takes a slot of global memory, which no other block has
                  unless the slot has these maps: writes each map to shared memory, and copies it
                  to the slot; notes there what they were made of
    all warps     the program; the first warp alone uses the maps
    first thread  gives the slot back

Slots belong to multiprocessors, and blocks of one launch have the same maps as a rule.  A new map
costs more than its making: the fence before its use waits for all that TMA does there.
"""

from __future__ import annotations

import functools

from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import GLOBAL, I1, I32, I64, I8, pointer
from blocknumba.nvvm_lower.ptx import tensor_map as tensor_map_ptx
from blocknumba.nvvm_lower.ptx.warp import UNIFORM
from blocknumba.nvvm_lower.services.address import special_register
from blocknumba.nvvm_lower.services.shared_memory import address_of
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.tensor_map import SIZE_BYTES, Number, Product
from blocknumba.tile_ir.ir.types import DType

# Elements that are copied alone: names of ptx.tensor_map.ELEMENT_TYPES
_ELEMENT_TYPES = {"bool": "u8", "int8": "u8", "uint8": "u8", "int16": "u16", "uint16": "u16",
                  "float16": "f16", "bfloat16": "bf16", "int32": "s32", "uint32": "u32",
                  "float32": "f32", "int64": "s64", "uint64": "u64", "float64": "f64"}


def maps_bytes(fn: Function) -> int:
    """Shared memory that making the tensor maps of a function needs, from its first byte on."""
    return SIZE_BYTES * sum(parameter.kind == "tensor_map" for parameter in fn.parameters)


class DeviceMaps:
    """The tensor maps of one device function.

    name: a prefix of names that nothing else in the module has.
    inputs: numbers that the function is given for them, each an i64: addresses of arrays (of kind
        "pointer"), extents, strides in elements.
    """

    def __init__(self, emitter: Emitter, name: str):
        self._emitter, self._name = emitter, name
        parameters = emitter.parameters
        self._maps = {value: parameter for value, parameter in parameters.items()
                      if parameter.kind == "tensor_map"}
        arrays = (Number("pointer", parameter.argument) for parameter in self._maps.values())
        numbers = (number for parameter in self._maps.values()
                   for number in parameter.tensor_map.numbers)
        self.inputs = {number: f"%m{index}"
                       for index, number in enumerate(dict.fromkeys((*arrays, *numbers)))}
        target, threads = emitter.target, emitter.options.num_warps * emitter.target.warp_size
        self._slots = min(target.blocks_per_processor, target.threads_per_processor // threads)
        self._slot = ""
        notes = -(-_WORD_BYTES * (1 + len(self.inputs)) // SIZE_BYTES)
        self._size_bytes = SIZE_BYTES * (len(self._maps) + notes)  # of a slot

    def make(self) -> None:
        """Make the maps the registers of their parameters: addresses, of use to the first warp."""
        if not self._maps:
            return
        body, first = self._emitter.body, self._is_in_first_warp()
        making, made, before = body.new_label("making"), body.new_label("made"), body.block
        body.branch_if(first, making, made)
        body.begin_block(making)
        with body.scope():
            take = tensor_map_ptx.take_slot(self._slots, self._emitter.options.num_warps)
            (slot,) = self._emitter.assembly(take, self._words())
            self._renew(slot)
            last = body.block
            body.branch(made)
        body.begin_block(made)
        phi = body.phi(I32)
        phi.add(slot, last)
        phi.add("0", before)
        self._slot = phi.name
        for number, value in enumerate(self._maps):
            self._emitter.values[value] = [self._address(phi.name, number * SIZE_BYTES)]

    def give_back(self) -> None:
        """Give the slot back, once the first warp has all that it fetched."""
        if self._maps:
            self._emitter.assembly(tensor_map_ptx.give_slot(self._slots), self._words(), self._slot,
                                   self._emitter.flag(self._emitter.threads.is_first))

    def _renew(self, slot: str) -> None:
        """Write the maps of a slot, unless it has them."""
        body, notes = self._emitter.body, self._notes(slot)
        holds = [body.compare("icmp eq", I64, body.assign(f"load volatile {I64}, {_WORD} {place}"),
                              value) for place, value in notes]
        same = functools.reduce(lambda one, other: body.binary("and", I1, one, other), holds)
        (same,) = body.assembly(UNIFORM, body.convert("zext", I1, same, I32))
        writing, written = body.new_label("writing"), body.new_label("written")
        body.branch_if(body.compare("icmp ne", I32, same, "0"), written, writing)
        body.begin_block(writing)
        with body.scope():
            for number, (value, parameter) in enumerate(self._maps.items()):
                self._write(number, value, parameter)
                there = self._address(slot, number * SIZE_BYTES)
                self._emitter.assembly(
                    tensor_map_ptx.PUBLISH, body.assign(f"inttoptr {I64} {there} to {_BYTES}"),
                    address_of(self._emitter, str(number * SIZE_BYTES)))
            for place, value in notes:
                body.do(f"store volatile {I64} {value}, {_WORD} {place}")
            self._emitter.assembly(tensor_map_ptx.FENCE_DEVICE)
            body.branch(written)
        body.begin_block(written)

    def _notes(self, slot: str) -> list[tuple[str, str]]:
        """Words that a slot's maps were made of, as places, and those of the maps that are needed.

        The multiprocessor is one of them: where others share its slots, they may have cached maps
        that are gone.
        """
        body, start = self._emitter.body, len(self._maps) * SIZE_BYTES
        processor = body.convert("zext", I32, special_register(body, "smid"), I64)
        values = [body.binary("add", I64, processor, "1"), *self.inputs.values()]
        places = (self._address(slot, start + index * _WORD_BYTES) for index in range(len(values)))
        return [(body.assign(f"inttoptr {I64} {place} to {_WORD}"), value)
                for place, value in zip(places, values)]

    def _is_in_first_warp(self) -> str:
        return self._emitter.body.compare("icmp eq", I32, self._emitter.threads.uniform_warp, "0")

    def _words(self) -> str:
        """The words of slots, as a pointer to bytes."""
        array = f"[{tensor_map_ptx.WORDS} x {I32}]"
        name = self._emitter.body.module.global_variable(
            f"{self._name}_slots", f"internal addrspace({GLOBAL}) global {array} zeroinitializer, "
                                   f"align {tensor_map_ptx.WORD_BYTES}")
        return f"bitcast ({pointer(array, GLOBAL)} {name} to {_BYTES})"

    def _address(self, slot: str, offset: int) -> str:
        """The address of what lies at an offset of a slot, an i64."""
        body, slots = self._emitter.body, tensor_map_ptx.WORDS * self._slots
        array = f"[{slots * self._size_bytes} x {I8}]"
        name = body.module.global_variable(
            f"{self._name}_maps", f"internal addrspace({GLOBAL}) global {array} zeroinitializer, "
                                  f"align {SIZE_BYTES}")
        base = body.pure(f"ptrtoint {pointer(array, GLOBAL)} {name} to {I64}")
        wide = body.convert("zext", I32, slot, I64)
        start = body.binary("add", I64, base, body.binary("mul", I64, wide, str(self._size_bytes)))
        return body.binary("add", I64, start, str(offset))

    def _write(self, number: int, value: Value, parameter: Parameter) -> None:
        """Write a map to its place in shared memory."""
        body, map_ = self._emitter.body, parameter.tensor_map
        address = self.inputs[Number("pointer", parameter.argument)]
        dtype = value.type.dtype.pointee
        extents = [body.convert("trunc", I64, self._product(extent), I32)
                   for extent in map_.extents]
        strides = [body.binary("mul", I64, self._product(stride), str(dtype.bytes))
                   for stride in map_.strides]
        row = tensor_map_ptx.write_fields(_element_type(dtype, map_.as_tf32), map_.box,
                                          map_.swizzle_bytes)
        self._emitter.assembly(row, address_of(self._emitter, str(number * SIZE_BYTES)), address,
                               *extents, *strides)

    def _product(self, product: Product) -> str:
        body, value = self._emitter.body, str(product.factor)
        for number in product.numbers:
            value = body.binary("mul", I64, value, self.inputs[number])
        return value


_BYTES, _WORD, _WORD_BYTES = pointer(I8, GLOBAL), pointer(I64, GLOBAL), 8


def _element_type(dtype: DType, as_tf32: bool) -> str:
    if as_tf32:
        return "tf32"
    return _ELEMENT_TYPES.get(dtype.name, "u8")  # floats of 8 bits
