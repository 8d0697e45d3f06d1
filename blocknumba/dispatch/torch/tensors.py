"""Torch's tensors in launches: gradients, versions, and tensors without memory.

A launch computes no gradient, so that one on a tensor that requires gradients is refused while
gradients are computed.  Tensors that are stored to get a new version, by which autograd notices
that what it saved was overwritten.  A fake tensor stands for one while Torch traces a function: it
is typed in an operator of blocknumba.torch, and refused elsewhere.

Torch is never imported here: where there is a tensor, there is Torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.errors import BlockValueError, require
from blocknumba.tile_ir.ir.types import DTYPES

_ALIGNED = 256  # the address of a fake tensor: those that Torch allocates are such multiples
_UNKNOWN = 16  # an extent of which Torch has no example


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of Torch whose function runs now.

    name: "space::name".
    tensors: its arguments that are tensors, by name.
    mutated: names of those that it says it stores to.
    is_traced: launches are typed and not run.
    """

    name: str
    tensors: Mapping[str, object]
    mutated: Sequence[str]
    is_traced: bool

    def require_declared(self, kernel: str, arrays: Mapping[str, ArrayInfo],
                         stored: Iterable[str]) -> None:
        """Errors: BlockValueError for a store to an argument that the operator does not name."""
        for name in stored:
            tensor = arrays[name].owner
            for own, given in self.tensors.items():
                if own not in self.mutated and _share_storage(tensor, given):
                    raise BlockValueError(
                        f"{self.name}: kernel {kernel} stores to argument {own}, which the "
                        "operator does not say it mutates",
                        hint=f"store to a new tensor, or say mutates_args=({own!r},)")


OPERATOR: ContextVar[Operator | None] = ContextVar("blocknumba_operator", default=None)


def is_fake(cls: type) -> bool:
    """Whether tensors of a class have no memory, and stand for others while Torch traces."""
    return cls.__name__ == "FakeTensor" and cls.__module__ == "torch._subclasses.fake_tensor"


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of Torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fake_info(value: object, where: str) -> ArrayInfo:
    """Information on a fake tensor, whose symbolic extents are those of Torch's example.

    Errors: BlockTypeError outside of an operator that is traced.
    """
    running = OPERATOR.get()
    require(running is not None and running.is_traced,
            "{}: given a FakeTensor, which has no memory: Torch traces this launch", where,
            hint="launch in a function under @blocknumba.torch.op")
    name = str(value.dtype).removeprefix("torch.")
    require(name in DTYPES, "{}: given a tensor of {}, accepted {}", where, name,
            ", ".join(DTYPES))
    device = None if value.device.type == "cpu" else value.device.index or 0
    return ArrayInfo(DTYPES[name], tuple(map(example, value.shape)),
                     tuple(map(example, value.stride())), _ALIGNED, device, False, value)


def example(value: object) -> object:
    """An int for a symbolic one, without a guard; any other value as it is."""
    if type(value).__name__ != "SymInt":
        return value
    node = value.node
    return int(node.hint) if node.has_hint() and node.hint is not None else _UNKNOWN


def require_no_gradients(arrays: Mapping[str, ArrayInfo], kernel: str) -> None:
    """Errors: BlockValueError for a tensor whose gradients Torch would compute."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return
    for name, info in arrays.items():
        if isinstance(info.owner, torch.Tensor) and info.owner.requires_grad:
            raise BlockValueError(
                f"{kernel}: argument {name} requires gradients, which a launch does not compute",
                hint="launch in an operator (blocknumba.torch.op) or an autograd.Function, or use "
                     "x.detach() or torch.no_grad()")


def touch(arrays: Iterable[object]) -> None:
    """Give tensors that were stored to a new version."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for array in arrays:
        if isinstance(array, torch.Tensor) and not array.is_inference():
            torch.autograd.graph.increment_version(array)


def _share_storage(one: object, other: object) -> bool:
    if not (is_tensor(one) and is_tensor(other)):
        return False
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata

