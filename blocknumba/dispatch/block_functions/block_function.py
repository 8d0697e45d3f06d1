"""`bn.block_function`: a kernel that all threads of a block call in kernels of Numba.

    softmax_row = bn.block_function(softmax, {"BLOCK": 1024}, num_warps=4)

    @cuda.jit
    def rows(x, y):                                 # launched with softmax_row.threads per block
        row = cuda.blockIdx.x
        while row < x.shape[0]:
            softmax_row(row, x, y)                  # program ids, then the kernel's arguments
            row += cuda.gridDim.x
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from blocknumba.dispatch.block_functions.cached_text import Promise
from blocknumba.dispatch.block_functions.call import CallableKernel
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.errors import BlockTypeError, BlockValueError, require, require_known
from blocknumba.tracebacks import without_our_frames

OPTIONS = ("num_warps", "num_stages", "fastmath", "debug", "lineinfo")  # the others are of launches
LINKS = ("ir", "ltoir")
ARRAYS = ("any", "aligned", "global")


class DeviceBlockFunction(CallableKernel):
    """A block function as Numba and Python meet it."""

    @property
    def _numba_type_(self) -> object:
        """Its type to Numba, which looks for this name."""
        # each package has a copy of the code that asks, and types of its own
        asking = sys._getframe(1).f_globals["__name__"]
        if asking.startswith("numba.core"):
            raise self._not_here("in a function under @njit")
        if asking.partition(".")[0] == "numba_cuda_mlir":
            # optional: imported where it asks
            from blocknumba.dispatch.block_functions.numba_cuda_mlir import type_of
        else:
            # optional: imported where it asks
            from blocknumba.dispatch.block_functions.numba_cuda import type_of
        return type_of(self)

    @without_our_frames
    def __call__(self, *arguments: object, **keywords: object) -> None:
        raise self._not_here("in Python")

    def _not_here(self, where: str) -> BlockTypeError:
        return BlockTypeError(
            f"{self.__name__}: a block function called {where}, accepted calls in @cuda.jit "
            "kernels", hint=f"launch the kernel itself: {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"<block function {self.__name__} of {self.num_warps} warps>"


@without_our_frames
def block_function(kernel: Kernel, constants: Mapping[str, object] | None = None, *,
                   link: str = "ir", arrays: str = "any", shared_bytes: int | None = None,
                   wide: bool = False, **options: object) -> DeviceBlockFunction:
    """A kernel as a function of a block: all its threads call it in a `@cuda.jit` kernel.

    The call runs one program.  It takes program ids, one int for each axis that the kernel reads,
    then the kernel's arguments: arrays in global or shared memory, and numbers.  It returns
    nothing.  All threads of the block call it together, with the same arguments; the kernel sees
    what they wrote before, and all of them see what it wrote after.

    constants: values of the constexprs, and of other parameters that are no arguments of calls.
    link: how its code gets into the caller: "ir", compiled together with it; "ltoir", linked with
        it, for kernels with lto=True.
    arrays: which arrays callers may give: "any"; "aligned", in any memory, whose rows are
        contiguous and at multiples of 16 bytes; "global", such ones in global memory.  Others stop
        the kernel.  Code for fewer kinds needs fewer registers.
    shared_bytes: dynamic shared memory that it may take, where the caller has none of its own;
        without, launches give what it needs, and text for other launches has static shared memory.
    wide: whether arrays may have 2**31 elements and more; without, a call with one stops the
        kernel (with debug, by a message).
    num_warps: of the block, which has 32 times as many threads, along x; as of the kernel if it
        is left out.
    options: num_stages, fastmath, debug and lineinfo, as for @bn.jit.
    Errors: BlockTypeError for constants or options that do not fit.  A call that does not fit is
    an error when its kernel is compiled.

    Example:
    >>> @bn.jit
    ... def total(x, out, BLOCK: bn.constexpr):
    ...     out[0] = bn.sum(x[bn.span(0, BLOCK)])
    >>> block_total = bn.block_function(total, {"BLOCK": 256}, num_warps=4)
    >>> block_total.threads
    128
    """
    require(isinstance(kernel, Kernel), "block_function: given {!r}, accepted a @bn.jit kernel",
            kernel)
    name, formals = kernel.signature.kernel, kernel.signature.formals
    require(kernel.signature.rest is None, "{}: given a kernel with *{}, accepted parameters with "
            "one name each", name, kernel.signature.rest)
    require_known(f"{name}: given the options", options, OPTIONS)
    require_known(f"{name}: given the constants", constants or {}, kernel.signature.names)
    require(isinstance(wide, bool), "{}: wide: given {!r}, accepted True or False", name, wide)
    require(arrays in ARRAYS, "{}: given arrays={!r}, accepted {}", name, arrays,
            ", ".join(map(repr, ARRAYS)), error=BlockValueError)
    require(shared_bytes is None or type(shared_bytes) is int and shared_bytes > 0,
            "{}: shared_bytes: given {!r}, accepted None or a number of bytes", name, shared_bytes)
    require(link in LINKS, "{}: given link={!r}, accepted {}", name, link,
            " and ".join(map(repr, LINKS)), error=BlockValueError)
    chosen = kernel.options.override(options)
    require(chosen.num_warps is not None, "{}: missing num_warps", name,
            hint="a block function has as many threads as its caller: num_warps=4 for 128")
    values = dict(constants or {})
    for formal in formals:
        if formal.is_constant and formal.name not in values:
            require(formal.has_default, "{}: missing the constant {}", name, formal.name)
            values[formal.name] = formal.default
    ordered = {each: values[each] for each in kernel.signature.names if each in values}
    of_code = {each: getattr(chosen, each) for each in OPTIONS}
    return DeviceBlockFunction(kernel, ordered, Options(**of_code), link,
                               Promise(arrays, wide, shared_bytes))
