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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from blocknumba.dispatch.block_functions.compilation import (
    BlockCode, any_array, compile_block_function,
)
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.errors import (
    UNKNOWN, BlockError, BlockTypeError, BlockValueError, Loc, require, require_known,
)
from blocknumba.nvvm_lower.target import TARGETS, Target
from blocknumba.tile_ir.ir.types import DTYPES, Argument, ScalarArgument
from blocknumba.tracebacks import without_our_frames

MAX_PROGRAM_IDS = 3
OPTIONS = ("num_warps", "num_stages", "fastmath", "debug", "lineinfo")  # the others are of launches
LINKS = ("ir", "ltoir")
# Numba's names of scalar types -> ours, where they differ
_NUMBA_NAMES = {"boolean": "bool", "__nv_bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The kernel that calls a block function, as Numba compiles it.

    compute_capability: (9, 0) or (9, 0, "a").
    fastmath: whether its arithmetic, and with it that of what it calls, is approximate.
    block: threads along x, y and z of the launch that it is compiled for; None if that is unknown.
    loc: of the call.
    """

    compute_capability: tuple
    fastmath: bool
    block: tuple[int, int, int] | None
    loc: Loc

    @property
    def target(self) -> Target:
        """The target that it is compiled for, or the best whose code it may contain.

        Errors: BlockValueError for one older than the oldest.
        """
        major, minor, *suffix = self.compute_capability
        name = f"sm_{major}{minor}{''.join(suffix)}"
        if name in TARGETS:
            return TARGETS[name]
        usable = [target for target in TARGETS.values() if not target.name.endswith("a")
                  and target.compute_capability <= (major, minor)
                  and target.compute_capability[0] == major]
        require(usable, "block function: given a kernel for {}, accepted {}", name,
                ", ".join(TARGETS), error=BlockValueError)
        return max(usable, key=lambda target: target.compute_capability)


class CallableKernel:
    """A kernel with its constants and number of warps, callable in kernels of Numba.

    kernel: of @bn.jit.   constants: values by name.   options: of its code.
    link: how its code gets into the caller: "ir", by libNVVM; "ltoir", by nvJitLink.
    wide: arrays may have 2**31 elements and more.
    num_warps, threads: of the blocks that may call it: (threads, 1, 1).
    """

    def __init__(self, kernel: Kernel, constants: Mapping[str, object], options: Options,
                 link: str, wide: bool):
        self.kernel, self.constants, self.options = kernel, constants, options
        self.link, self.wide = link, wide
        self.__name__ = kernel.signature.kernel
        self._compiled: dict[tuple, BlockCode] = {}
        self._lock = Lock()

    @property
    def num_warps(self) -> int:
        return self.options.num_warps

    @property
    def threads(self) -> int:
        """Of a block that calls it, all along x."""
        return self.num_warps * Target.warp_size

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments of a call, after the program ids."""
        return tuple(name for name in self.kernel.signature.names if name not in self.constants)

    @property
    def _numba_type_(self) -> object:
        """Its type to Numba, which looks for this name."""
        # each package of Numba's for CUDA has a copy of the code that asks, and its own types
        asking = sys._getframe(1).f_globals["__name__"].partition(".")[0]
        if asking == "numba_cuda_mlir":
            # imported by who has it
            from blocknumba.dispatch.block_functions import numba_cuda_mlir as adapter
        else:
            # imported by who has it
            from blocknumba.dispatch.block_functions import numba_cuda as adapter
        return adapter.type_of(self)

    @without_our_frames
    def __call__(self, *arguments: object, **keywords: object) -> None:
        raise BlockTypeError(
            f"{self.__name__}: a block function called in Python, accepted calls in @cuda.jit "
            "kernels", hint=f"launch the kernel itself: {self.__name__}[grid](...)")

    def bind(self, positional: Sequence[object], keywords: Mapping[str, object],
             ) -> tuple[list[object], dict[str, object]]:
        """Program ids, and the kernel's arguments by name in order.

        Errors: BlockTypeError for arguments that are missing, left over or given twice.
        """
        names = self.parameters
        require_known(f"{self.__name__}: given the arguments", keywords, names)
        count = len(positional) + len(keywords) - len(names)
        require(0 <= count <= MAX_PROGRAM_IDS and len(positional) >= count,
                "{}: given {} arguments, accepted up to {} program ids and {} ({})", self.__name__,
                len(positional) + len(keywords), MAX_PROGRAM_IDS, len(names), ", ".join(names))
        given = dict(zip(names, positional[count:]))
        twice = sorted(given.keys() & keywords.keys())
        require(not twice, "{}: given {} twice, by position and by name", self.__name__,
                ", ".join(twice))
        given |= keywords
        return list(positional[:count]), {name: given[name] for name in names}

    def code(self, ids: Sequence[object], given: Mapping[str, object],
             caller: Caller) -> BlockCode:
        """The code for a call, from Numba's types of its program ids and arguments.

        Errors: BlockError at the call, or in the kernel, called from there.
        """
        with _called_from(caller.loc):
            self._check_caller(caller)
            for number, type_ in enumerate(ids):
                require(str(type_).startswith(("int", "uint")),
                        "{}: program id {}: given {}, accepted an int", self.__name__, number,
                        _named(type_))
            arguments = tuple((name, self._argument(name, type_)) for name, type_ in given.items())
            code = self._code_for(arguments, caller.target)
            self._check_ids(code, len(ids))
            for name, type_ in given.items():
                require(name not in code.stored or getattr(type_, "mutable", True),
                        "{}: argument {}: given a read-only array, accepted one to store to",
                        self.__name__, name)
        return code

    def _code_for(self, arguments: tuple[tuple[str, Argument], ...], target: Target) -> BlockCode:
        captured = self.kernel.captures(self.constants).values
        key = arguments, target, captured
        with self._lock:
            if key not in self._compiled:
                self._compiled[key] = compile_block_function(
                    self.kernel, self.constants, self.options, arguments, target)
            return self._compiled[key]

    def _check_caller(self, caller: Caller) -> None:
        require(caller.block in (None, (self.threads, 1, 1)),
                "{}: called in a block of {} threads, accepted ({}, 1, 1), as num_warps={} needs",
                self.__name__, caller.block, self.threads, self.num_warps, error=BlockValueError,
                hint=f"launch the kernel with {self.threads} threads per block, or make the block "
                     "function with another num_warps")
        require(self.options.fastmath or not caller.fastmath,
                "{}: called in a kernel with fastmath=True, whose arithmetic it would get",
                self.__name__, error=BlockValueError,
                hint="make it with fastmath=True too, or compile the kernel without")

    def _check_ids(self, code: BlockCode, given: int) -> None:
        names = ", ".join(self.parameters)
        require(given == code.program_ids,
                "{}: given {} program ids before {}, accepted {}, as many as it reads",
                self.__name__, given, names or "no arguments", code.program_ids)

    def _argument(self, name: str, type_: object) -> Argument:
        """Attributes of an argument of one of Numba's types."""
        where = f"{self.__name__}: argument {name}"
        is_array = hasattr(type_, "layout") and hasattr(type_, "ndim")
        dtype_name = str(type_.dtype if is_array else type_)
        dtype = DTYPES.get(_NUMBA_NAMES.get(dtype_name, dtype_name))
        require(dtype is not None, "{}: given {}, accepted arrays and numbers of {}", where,
                _named(type_), ", ".join(DTYPES))
        if not is_array:
            return ScalarArgument(dtype)
        require(type_.aligned, "{}: given an array whose elements are not aligned", where)
        unit = {"C": type_.ndim - 1, "F": 0}.get(type_.layout) if type_.ndim else None
        return any_array(dtype, type_.ndim, unit, self.wide)

    def __repr__(self) -> str:
        return f"<block function {self.__name__} of {self.num_warps} warps>"


@without_our_frames
def block_function(kernel: Kernel, constants: Mapping[str, object] | None = None, *,
                   link: str = "ir", wide: bool = False, **options: object) -> CallableKernel:
    """A kernel as a function of a block: all its threads call it in a `@cuda.jit` kernel.

    The call runs one program.  It takes program ids, one int for each axis that the kernel reads,
    then the kernel's arguments: arrays in global or shared memory, and numbers.  It returns
    nothing.  All threads of the block call it together, with the same arguments; the kernel sees
    what they wrote before, and all of them see what it wrote after.

    constants: values of the constexprs, and of other parameters that are no arguments of calls.
    link: how its code gets into the caller: "ir", compiled together with it; "ltoir", linked with
        it, for kernels with lto=True.
    wide: whether arrays may have 2**31 elements and more; without, a call with one stops the
        kernel (with debug, by a message).
    num_warps: of the block, which has 32 times as many threads, along x; as of the kernel if it
        is left out.
    options: num_stages, fastmath, debug and lineinfo, as for @bn.jit.
    Errors: BlockTypeError for constants or options that do not fit.  A call that does not fit is
    an error when its kernel is compiled.
    """
    require(isinstance(kernel, Kernel), "block_function: given {!r}, accepted a @bn.jit kernel",
            kernel)
    name, formals = kernel.signature.kernel, kernel.signature.formals
    require_known(f"{name}: given the options", options, OPTIONS)
    require_known(f"{name}: given the constants", constants or {}, kernel.signature.names)
    require(isinstance(wide, bool), "{}: wide: given {!r}, accepted True or False", name, wide)
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
    return CallableKernel(kernel, ordered, Options(**of_code), link, wide)


@contextmanager
def _called_from(loc: Loc) -> Iterator[None]:
    """Errors of the body are at this call; those within the kernel say that it came from there."""
    try:
        yield
    except BlockError as error:
        error.loc = _with_caller(error.loc, loc)
        raise


def _with_caller(loc: Loc, caller: Loc) -> Loc:
    """A location, called from another one."""
    if loc is UNKNOWN:
        return caller
    outer = caller if loc.caller is None else _with_caller(loc.caller, caller)
    return replace(loc, caller=outer)


def _named(type_: object) -> str:
    """One of Numba's types in a message."""
    return f"the type {type_}"
