"""The decorator that makes an operator, and its fake rule, of one function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType

import torch
from torch.library import CustomOpDef

import blocknumba as bn
# now: while Torch exports, it has functions of its own for some of Python's
import blocknumba.dispatch.compile.pipeline  # noqa: F401
from blocknumba.dispatch.torch.tensors import OPERATOR, Operator, example
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tracebacks import without_our_frames


@without_our_frames
def op(name: str, *, mutates_args: Sequence[str] = (),
       **options: object) -> Callable[[FunctionType], CustomOpDef]:
    """Make an operator of Torch of a function that makes its results and launches kernels on them.

    The schema comes from the function's annotations.  The fake rule, by which Torch traces, is the
    same function, whose launches are typed but not run: what a kernel refuses is refused while it
    is traced.  The result is Torch's CustomOpDef: `register_autograd`, `register_vmap` and
    `register_autocast` are Torch's.

    name: "space::name".
    mutates_args: names of the arguments that kernels store to.
    options: further ones of torch.library.custom_op.
    Errors: BlockTypeError for what is no function; BlockValueError, traced and called, for a
    store to an argument that is not in mutates_args; those of torch.library.custom_op.

    Example:
    >>> import torch, blocknumba.torch
    >>> @bn.jit
    ... def double_kernel(x, out, BLOCK: bn.constexpr):
    ...     r = bn.block(0, BLOCK)
    ...     out[r] = x[r] * 2
    >>> @blocknumba.torch.op("examples::double")
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     out = torch.empty_like(x)
    ...     double_kernel[bn.cdiv(x.numel(), 64)](x, out, BLOCK=64)
    ...     return out
    >>> double(torch.ones(3))
    tensor([2., 2., 2.])
    """
    require(isinstance(name, str), "op: given {!r}, accepted a name as \"space::name\"", name)

    @without_our_frames
    def wrap(function: FunctionType) -> CustomOpDef:
        require(callable(function), "op: given {!r}, accepted a function", function,
                error=BlockTypeError)
        made = torch.library.custom_op(name, _within(function, name, mutates_args, False),
                                       mutates_args=mutates_args, **options)
        made.register_fake(_within(function, name, mutates_args, True))
        return made

    return wrap


def next_power_of_2(n: int | torch.SymInt) -> int:
    """The least power of two that is not less than n, which may be a symbolic extent.

    Of a symbolic one it is that of Torch's example and makes no guard, so that a function that is
    traced is not specialised on it; it is for constants of launches in operators.

    Example:
    >>> import blocknumba.torch
    >>> blocknumba.torch.next_power_of_2(100)
    128
    """
    return bn.next_power_of_2(example(n))


def _within(function: FunctionType, name: str, mutated: Sequence[str],
            is_traced: bool) -> Callable[..., object]:
    """The function, whose launches know that they are in an operator."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: object, **keywords: object) -> object:
        bound = signature.bind(*arguments, **keywords).arguments
        tensors = {key: value for key, value in bound.items() if isinstance(value, torch.Tensor)}
        versions = {} if is_traced else _versions(tensors, mutated)
        token = OPERATOR.set(Operator(name, tensors, mutated, is_traced))
        try:
            return function(*arguments, **keywords)
        finally:
            OPERATOR.reset(token)
            _require_same(name, tensors, versions)

    return run


def _versions(tensors: Mapping[str, torch.Tensor], mutated: Sequence[str]) -> dict[str, int]:
    """The versions of the tensors that stay as they are."""
    return {name: tensor._version for name, tensor in tensors.items()
            if name not in mutated and not tensor.is_inference()}


def _require_same(operator: str, tensors: Mapping[str, torch.Tensor],
                  versions: Mapping[str, int]) -> None:
    """Errors: BlockValueError where a launch that needed no look at its arguments stored."""
    for name, version in versions.items():
        require(tensors[name]._version == version, "{}: a kernel stored to argument {}, which the "
                "operator does not say it mutates", operator, name, error=BlockValueError,
                hint=f"store to a new tensor, or say mutates_args=({name!r},)")
