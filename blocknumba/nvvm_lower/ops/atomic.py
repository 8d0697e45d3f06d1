"""Code of atomic ops: an atom or red instruction, or a loop of compare-and-swap."""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import memory_type, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.ops.elementwise import element_code
from blocknumba.nvvm_lower.ops.memory import does_work
from blocknumba.nvvm_lower.ptx import atomic as ptx, memory
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.services.floats import of_bits, to_bits
from blocknumba.nvvm_lower.services.global_memory import generic_address
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.atomic import atomic_cas, atomic_rmw

_OPERATION = {"add": "add", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor",
              "exchange": "exch"}
_COMBINE = {"add": "add", "max": "maximum", "min": "minimum"}


def update(emitter: Emitter, kind: str, dtype: DType, address: str, value: str, predicate: str,
           scope: str, wants_old: bool) -> str:
    """Replace the element at address by kind(element, value) where predicate (an i1) holds.

    The result, 0 where it does not, is the old element; without wants_old it is meaningless.
    """
    operation, type_ = _OPERATION[kind], _ptx_type(kind, dtype)
    if (operation, type_) not in ptx.OPERATIONS:
        return _by_swapping(emitter, kind, dtype, address, value, predicate, scope)
    row = ptx.update(operation, type_, scope)
    if row.needs is not None and not emitter.target.has(row.needs):
        return _by_swapping(emitter, kind, dtype, address, value, predicate, scope)
    address = generic_address(emitter, dtype, address)
    in_bits = row.results[0] != register_type(dtype)
    word = to_bits(emitter, dtype, value) if in_bits else value
    if not wants_old and kind != "exchange":
        emitter.assembly(ptx.reduce(operation, type_, scope), address, emitter.flag(predicate),
                         word)
        return value
    nothing = "0" if in_bits else zero(dtype)
    (old,) = emitter.assembly(row, address, emitter.flag(predicate), word, nothing)
    return of_bits(emitter, dtype, old) if in_bits else old


def swap_if_equal(emitter: Emitter, dtype: DType, address: str, compare: str, value: str,
                  predicate: str, scope: str) -> str:
    """Replace the element at address by value where its bits are compare's; the old element."""
    row = ptx.compare_and_swap(f"b{dtype.bits}", scope)
    (old,) = emitter.assembly(
        row, generic_address(emitter, dtype, address), emitter.flag(predicate),
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


def _by_swapping(emitter: Emitter, kind: str, dtype: DType, address: str, value: str,
                 predicate: str, scope: str) -> str:
    """Read, combine, and compare-and-swap the result until no other thread came between."""
    body, type_ = emitter.body, memory_type(dtype)
    combine = element_code(_COMBINE[kind], dtype)
    address = generic_address(emitter, dtype, address)
    access = memory.Access("global", type_, 1, predicated=True, volatile=True)
    flag = emitter.flag(predicate)
    (first,) = emitter.assembly(memory.load(access), address, flag, "0")
    again, done = body.new_label("swap"), body.new_label("swapped")
    before = body.block
    body.branch(again)
    body.begin_block(again)
    expected = body.phi(type_)
    expected.add(first, before)
    with body.scope():
        new = combine(emitter, dtype, of_bits(emitter, dtype, expected.name), value)
        row = ptx.compare_and_swap(f"b{dtype.bits}", scope)
        (seen,) = emitter.assembly(row, address, flag, expected.name, to_bits(emitter, dtype, new),
                                   expected.name)
    expected.add(seen, body.block)
    body.branch_if(body.compare("icmp eq", type_, seen, expected.name), done, again)
    body.begin_block(done)
    return of_bits(emitter, dtype, body.select(predicate or "true", type_, seen, "0"))


_RELEASES, _ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")


@code(atomic_rmw)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> Registers:
    dtype, scope, is_used = op.result.type.dtype, attribute(op, "scope"), op.result in emitter.used
    _order_before(emitter, op)
    old = [update(emitter, op.attrs["kind"], dtype, address, value, predicate, scope,
                          is_used)
           for address, value, predicate in zip(
               pointers, values, _predicates(emitter, op, len(pointers), masks), strict=True)]
    _order_after(emitter, op)
    return old


@code(atomic_cas)
def _(emitter: Emitter, op: Op, pointers: Registers, compares: Registers, values: Registers,
      masks: Registers | None = None) -> Registers:
    dtype, scope = op.result.type.dtype, attribute(op, "scope")
    _order_before(emitter, op)
    old = [swap_if_equal(emitter, dtype, address, compare, value, predicate, scope)
           for address, compare, value, predicate in zip(
               pointers, compares, values, _predicates(emitter, op, len(pointers), masks),
               strict=True)]
    _order_after(emitter, op)
    return old


def _predicates(emitter: Emitter, op: Op, count: int, masks: Registers | None) -> Registers:
    return global_memory.with_predicate(emitter, masks or global_memory.always(count),
                                        does_work(emitter, op.pointer))


def _order_before(emitter: Emitter, op: Op) -> None:
    """Release: the accesses of all threads of the program come first (barrier, then fence)."""
    if attribute(op, "semantics") in _RELEASES:
        emitter.barrier()
        emitter.assembly(ptx.fence(attribute(op, "scope")))


def _order_after(emitter: Emitter, op: Op) -> None:
    """Acquire: the accesses of all threads of the program come after (fence, then barrier)."""
    if attribute(op, "semantics") in _ACQUIRES:
        emitter.assembly(ptx.fence(attribute(op, "scope")))
        emitter.barrier()
