"""Code of atomic read-modify-write: by one thread per element; passes tell the others."""

from __future__ import annotations

from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.ops.memory import does_work
from blocknumba.nvvm_lower.ptx import atomic as ptx
from blocknumba.nvvm_lower.services import atomics, global_memory
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.atomic import atomic_cas, atomic_rmw

_RELEASES, _ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")


@code(atomic_rmw)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> Registers:
    dtype, scope, is_used = op.result.type.dtype, attribute(op, "scope"), op.result in emitter.used
    _order_before(emitter, op)
    old = [atomics.update(emitter, op.attrs["kind"], dtype, address, value, predicate, scope,
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
    old = [atomics.swap_if_equal(emitter, dtype, address, compare, value, predicate, scope)
           for address, compare, value, predicate in zip(
               pointers, compares, values, _predicates(emitter, op, len(pointers), masks),
               strict=True)]
    _order_after(emitter, op)
    return old


def _predicates(emitter: Emitter, op: Op, count: int, masks: Registers | None) -> Registers:
    return global_memory.with_predicate(emitter, masks or global_memory.always(count),
                                        does_work(emitter, op.operands[0]))


def _order_before(emitter: Emitter, op: Op) -> None:
    """What the whole program did before is seen by who sees the update: barrier, then fence."""
    if attribute(op, "semantics") in _RELEASES:
        emitter.barrier()
        emitter.assembly(ptx.fence(attribute(op, "scope")))


def _order_after(emitter: Emitter, op: Op) -> None:
    """What the whole program does after sees what was done before the value that was read."""
    if attribute(op, "semantics") in _ACQUIRES:
        emitter.assembly(ptx.fence(attribute(op, "scope")))
        emitter.barrier()
