"""Code of atomics: vectors where the hardware has them, and their order.

A tile's atomics are relaxed, in between fences of all threads.  That of a scalar is done by one
thread, and ordered by its own instruction:

    barrier                           all threads' earlier accesses          (insert_barriers)
    atom.acq_rel                      first thread
    write, barrier, read              the old value, by way of shared memory (stage_conversions)

A result that nothing reads makes a reduction, which acquires nothing; but of an exchange, which
there is no reduction of: what gives a lock back so keeps the cache of its multiprocessor fresh.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.placement.coalescing import atomic_width
from blocknumba.nvvm_lower.elements import memory_type, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1
from blocknumba.nvvm_lower.ops.elementwise import element_code
from blocknumba.nvvm_lower.ops.memory import (
    Widths, access_width, cut_vectors, does_work, guarded_width,
)
from blocknumba.nvvm_lower.ptx import atomic as ptx, memory
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.services.floats import of_bits, to_bits
from blocknumba.nvvm_lower.services.global_memory import byte_address
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.memory import atomic_cas, atomic_rmw

_OPERATION = {"add": "add", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor",
              "exchange": "exch"}
# Of floats as integers: the operation where the value's sign bit is 0, and where it is 1.
_OF_SIGN = {"max": (("max", "s"), ("min", "u")), "min": (("min", "s"), ("max", "u"))}
_RELEASES, _ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")


@dataclass(frozen=True, slots=True)
class _Update:
    """The updates of one op.

    kind, dtype, scope: the op's.   wants_old: whether something reads its result.
    semantics: of each instruction.
    """

    emitter: Emitter
    kind: str
    dtype: DType
    scope: str
    semantics: str
    wants_old: bool

    def run(self, address: str, values: Registers, predicate: str) -> Registers:
        """Replace neighbours from address on by kind(element, value) where predicate, an i1, holds.

        The result, zeros where it does not, are the old elements; meaningless unless wanted.
        """
        form = self._form(len(values))
        if form is not None:
            old = self._instruction(form, address, self._words(values, form), predicate,
                                    self._nothing(form))
            return self._elements(old, form) if old else values
        return [self._one(address, value, predicate) for value in values]

    def _form(self, count: int) -> ptx.Update | None:
        """The instruction that updates count neighbours of the dtype; None if there is none."""
        type_, words = _ptx_type(self.kind, self.dtype), count
        if count > 1 and self.dtype.bits == 16:
            type_, words = f"{type_}x2", count // 2
        operation = _OPERATION[self.kind]
        if (operation, type_) not in ptx.OPERATIONS:
            return None
        form = ptx.Update(operation, type_, self.scope, self.emitter.space, self.semantics, words)
        return form if form.needs is None or self.emitter.target.has(form.needs) else None

    def _words(self, values: Registers, form: ptx.Update) -> Registers:
        """Values in the registers of an instruction."""
        if len(values) > form.count:
            return pack(self.emitter, self.dtype, values)
        if form.register == register_type(self.dtype):
            return values
        return [to_bits(self.emitter, self.dtype, value) for value in values]

    def _elements(self, words: Registers, form: ptx.Update) -> Registers:
        """The elements that the registers of an instruction hold."""
        if form.type.endswith("x2"):
            return unpack(self.emitter, self.dtype, words, 2 * form.count)
        if form.register == register_type(self.dtype):
            return words
        return [of_bits(self.emitter, self.dtype, word) for word in words]

    def _nothing(self, form: ptx.Update) -> Registers:
        """The old words where nothing is updated."""
        is_own = form.register == register_type(self.dtype)
        return [zero(self.dtype) if is_own else "0"] * form.count

    def _instruction(self, form: ptx.Update, address: str, words: Registers, predicate: str,
                     nothing: Registers) -> Registers:
        """The old words; none if they are not wanted."""
        emitter = self.emitter
        operands = byte_address(emitter, self.dtype, address), emitter.flag(predicate), *words
        if self.wants_old or self.kind == "exchange":
            return list(emitter.assembly(ptx.update(form), *operands, *nothing))
        emitter.assembly(ptx.reduce(form), *operands)
        return []

    def _one(self, address: str, value: str, predicate: str) -> str:
        """Update one element for which there is no instruction."""
        if self.kind in _OF_SIGN and self.dtype.bits > 16:
            return self._by_sign(address, value, predicate)
        return _by_swapping(self, address, value, predicate)

    def _by_sign(self, address: str, value: str, predicate: str) -> str:
        """The greater or the lesser of floats by their bits; beside a NaN, either.

        As signed integers, floats without a sign are ordered among themselves, and above those
        with one; as unsigned integers, floats with a sign are, downwards.
        """
        emitter, type_ = self.emitter, memory_type(self.dtype)
        bits = to_bits(emitter, self.dtype, value)
        old = ["0"]
        for (operation, sign), condition in zip(_OF_SIGN[self.kind], ("sge", "slt"), strict=True):
            form = ptx.Update(operation, f"{sign}{self.dtype.bits}", self.scope, emitter.space,
                              self.semantics)
            chosen = emitter.body.compare(f"icmp {condition}", type_, bits, "0")
            old = self._instruction(form, address, [bits], emitter.both(predicate, chosen),
                                    old) or old
        return of_bits(emitter, self.dtype, old[0])


def swap_if_equal(emitter: Emitter, op: Op, address: str, compare: str, value: str,
                  predicate: str) -> str:
    """Replace the element at address by value where its bits are compare's; the old element."""
    dtype = op.result.type.dtype
    row = ptx.compare_and_swap(f"b{dtype.bits}", attribute(op, "scope"), emitter.space,
                               _of_instructions(op, wants_old=True))
    (old,) = emitter.assembly(
        row, byte_address(emitter, dtype, address), emitter.flag(predicate),
        to_bits(emitter, dtype, compare), to_bits(emitter, dtype, value), "0")
    return of_bits(emitter, dtype, old)


def _ptx_type(kind: str, dtype: DType) -> str:
    """The PTX type of an operation on a dtype; there may be no such instruction."""
    if kind in ("and", "or", "xor", "exchange"):
        return f"b{dtype.bits}"
    if dtype.is_float:
        short = "bf16" if dtype.name == "bfloat16" else f"f{dtype.bits}"
        return f"noftz.{short}" if dtype.bits == 16 else short
    # addition is the same for both signs, and PTX has no s64 one
    return f"s{dtype.bits}" if dtype.is_signed and kind != "add" else f"u{dtype.bits}"


def _by_swapping(update: _Update, address: str, value: str, predicate: str) -> str:
    """Read, add, and compare-and-swap the sum until no other thread came between."""
    emitter, dtype = update.emitter, update.dtype
    body, type_ = emitter.body, memory_type(dtype)
    address = byte_address(emitter, dtype, address)
    access = memory.Access(emitter.space, type_, 1, predicated=True, volatile=True)
    flag = emitter.flag(predicate)
    (first,) = emitter.assembly(memory.load(access), address, flag, "0")
    again, done = body.new_label("swap"), body.new_label("swapped")
    before = body.block
    body.branch(again)
    body.begin_block(again)
    expected = body.phi(type_)
    expected.add(first, before)
    with body.scope():
        new = element_code(update.kind, dtype)(
            emitter, dtype, of_bits(emitter, dtype, expected.name), value)
        row = ptx.compare_and_swap(f"b{dtype.bits}", update.scope, emitter.space, update.semantics)
        (seen,) = emitter.assembly(row, address, flag, expected.name, to_bits(emitter, dtype, new),
                                   expected.name)
    expected.add(seen, body.block)
    body.branch_if(body.compare("icmp eq", type_, seen, expected.name), done, again)
    body.begin_block(done)
    return of_bits(emitter, dtype, body.select(predicate or "true", type_, seen, "0"))


@code(atomic_rmw)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> Registers:
    dtype, wants_old = op.result.type.dtype, op.result in emitter.used
    update = _Update(emitter, op.attrs["kind"], dtype, attribute(op, "scope"),
                     _of_instructions(op, wants_old), wants_old)
    _order_before(emitter, op)
    predicates = _predicates(emitter, op, len(pointers), masks)
    limit = atomic_width(op, emitter.target.capabilities, emitter.space == "global")
    width = min(limit, access_width(emitter.axis_infos, op))
    whole = min(limit, guarded_width(emitter.axis_infos, op))
    old: Registers = []
    if whole > width and not wants_old:
        _update_guarded(update, pointers, values, predicates, Widths(whole, width))
        old = values
    else:
        for first in range(0, len(pointers), width):
            old += update.run(pointers[first], values[first:first + width], predicates[first])
    _order_after(emitter, op)
    return old


def _update_guarded(update: _Update, pointers: Registers, values: Registers, masks: Registers,
                    widths: Widths) -> None:
    """Update whole vectors without a branch, and the elements of cut ones under a branch.

    Each element once: threads with a cut vector may hold whole ones too.
    """
    vector, body = widths.vector, update.emitter.body
    for first in range(0, len(pointers), vector):
        update.run(pointers[first], values[first:first + vector], masks[first + vector - 1])
    with cut_vectors(update.emitter, masks, widths) as remaining:
        for register in remaining[::widths.uniform]:
            last = masks[register - register % vector + vector - 1]
            is_left = body.binary("xor", I1, masks[register], last)  # true up to one of them
            update.run(pointers[register], values[register:register + widths.uniform], is_left)


@code(atomic_cas)
def _(emitter: Emitter, op: Op, pointers: Registers, compares: Registers, values: Registers,
      masks: Registers | None = None) -> Registers:
    _order_before(emitter, op)
    old = [swap_if_equal(emitter, op, *operands) for operands in zip(
        pointers, compares, values, _predicates(emitter, op, len(pointers), masks), strict=True)]
    _order_after(emitter, op)
    return old


def _predicates(emitter: Emitter, op: Op, count: int, masks: Registers | None) -> Registers:
    return global_memory.with_predicate(emitter, masks or global_memory.always(count),
                                        does_work(emitter, op.pointer))


def _of_instructions(op: Op, wants_old: bool) -> str:
    """The semantics of each instruction of an op: a scalar's only one has the op's."""
    semantics = attribute(op, "semantics")
    if not op.pointer.type.is_scalar:
        return "relaxed"
    if wants_old or op.attrs.get("kind") == "exchange":
        return semantics
    return "release" if semantics in _RELEASES else "relaxed"


def _order_before(emitter: Emitter, op: Op) -> None:
    """Release by all threads, after a barrier (of insert_barriers)."""
    if attribute(op, "semantics") in _RELEASES and not op.pointer.type.is_scalar:
        emitter.assembly(ptx.fence(attribute(op, "scope")))


def _order_after(emitter: Emitter, op: Op) -> None:
    """Acquire by all threads: their accesses come after (fence, then barrier)."""
    is_scalar, is_read = op.pointer.type.is_scalar, op.result in emitter.used
    if attribute(op, "semantics") in _ACQUIRES and is_read and not is_scalar:
        emitter.assembly(ptx.fence(attribute(op, "scope")))
        emitter.barrier()
