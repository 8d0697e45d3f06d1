"""Calls of block functions in kernels of Numba: checks, and code for the types of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from blocknumba.dispatch.block_functions.cached_text import Origin, Promise
from blocknumba.dispatch.block_functions.compilation import (
    BlockCode, any_array, compile_block_function,
)
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.launch.structured import Part
from blocknumba.errors import UNKNOWN, BlockError, BlockValueError, Loc, require, require_known
from blocknumba.nvvm_lower.target import TARGETS, Target
from blocknumba.tile_ir.ir.types import DTYPES, Argument, ScalarArgument

MAX_PROGRAM_IDS = 3
# Numba's names of scalar types -> ours, where they differ
_NUMBA_NAMES = {"boolean": "bool", "__nv_bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The kernel that calls a block function, as Numba compiles it.

    compute_capability: (9, 0) or (9, 0, "a").
    fastmath: whether its arithmetic, and with it that of what it calls, is approximate.
    block: threads along x, y and z of the launch that it is compiled for; None if that is unknown.
    is_launched: whether its launches give block functions their shared memory, without the user.
    loc: of the call.
    """

    compute_capability: tuple
    fastmath: bool
    block: tuple[int, int, int] | None
    is_launched: bool
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

    kernel: what it runs.   constants: values by name.   options: of its code.
    link: how its code gets into the caller: "ir", by libNVVM; "ltoir", by nvJitLink.
    promise: of its callers.
    """

    def __init__(self, kernel: Kernel, constants: Mapping[str, object], options: Options,
                 link: str, promise: Promise):
        self.kernel, self.constants, self.options = kernel, constants, options
        self.link, self.promise = link, promise
        self.__name__ = kernel.signature.kernel
        self._compiled: dict[tuple, BlockCode] = {}
        self._of_parts: dict[Kernel, CallableKernel] = {}

    @property
    def num_warps(self) -> int:
        """Warps of a block that calls it."""
        return self.options.num_warps

    @property
    def threads(self) -> int:
        """Threads of a block that calls it, all along x."""
        return self.num_warps * Target.warp_size

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments of a call, after the program ids."""
        return tuple(name for name in self.kernel.signature.names if name not in self.constants)

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

    def taken_apart(self, given: Mapping[str, object]) -> tuple[CallableKernel, dict[str, Part]]:
        """The callable of the parts of arguments that are made of several, and these by name.

        given: the arguments by name, each a Part or a tuple of them, nested.
        """
        kernel, parts = self.kernel.nested.taken_apart({**self.constants, **given}, are_types=True)
        if kernel is self.kernel:
            return self, dict(given)
        constants = {name: value for name, value in parts.items() if not isinstance(value, Part)}
        if kernel not in self._of_parts:
            self._of_parts[kernel] = CallableKernel(kernel, constants, self.options, self.link,
                                                    self.promise)
        return self._of_parts[kernel], {name: part for name, part in parts.items()
                                        if isinstance(part, Part)}

    def code(self, ids: Sequence[object], given: Mapping[str, object],
             caller: Caller) -> BlockCode:
        """The code for a call, from Numba's types of its program ids and arguments.

        Errors: BlockError for what does not fit, and those of the kernel for these types.
        """
        self._check_caller(caller)
        for number, type_ in enumerate(ids):
            require(str(type_).startswith(("int", "uint")),
                    "{}: program id {}: given {}, accepted an int", self.__name__, number,
                    _named(type_))
        arguments = tuple((name, self._argument(name, type_)) for name, type_ in given.items())
        code = self._code_for(arguments, caller)
        self._check_ids(code, len(ids))
        for name, type_ in given.items():
            require(name not in code.stored or getattr(type_, "mutable", True),
                    "{}: argument {}: given a read-only array, accepted one to store to",
                    self.__name__, name)
        return code

    def _code_for(self, arguments: tuple[tuple[str, Argument], ...], caller: Caller) -> BlockCode:
        captured = self.kernel.captures(self.constants).values
        key = arguments, caller.target, caller.is_launched, captured
        if key not in self._compiled:  # two threads at once would make the same code
            self._compiled[key] = compile_block_function(Origin(
                self.kernel, tuple(self.constants.items()), self.options, arguments,
                caller.target, self.promise, caller.is_launched))
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
        return any_array(dtype, type_.ndim, unit, self.promise.wide)


@contextmanager
def called_from(loc: Loc) -> Iterator[None]:
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
