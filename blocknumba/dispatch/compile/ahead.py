"""Argument types as text, for compiling without arguments: Numba's and Triton's spellings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.options import require_options
from blocknumba.dispatch.launch.call import default_target
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.launch.structured import is_structured
from blocknumba.dispatch.launch.specialize import ALIGNMENT, DIVISIBILITY, Specialization
from blocknumba.errors import BlockTypeError, require, require_known
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir.tensor_map import MAX_RANK
from blocknumba.tile_ir.ir.types import (
    DTYPES, Argument, ArrayArgument, Box, DType, ScalarArgument, dtype_of, float64, int32,
)
from blocknumba.tracebacks import without_our_frames
from blocknumba.wording import quoted, shown

ACCEPTED = ('accepted "f32[:,::1]", "f32[:]:16", "*fp32", "*fp32:16", "int", "int:16", "float", '
            '"i32", "f32"')

_SHORT = {"b1": "bool", "boolean": "bool", "i1": "bool", "bf16": "bfloat16",
          "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
          "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
          **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
          **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
          **{f"{kind}{bits}": f"float{bits}" for kind in ("f", "fp") for bits in (16, 32, 64)}}
# Python's numbers, by the dtypes that they are passed in
_PYTHON = {"int": int32, "float": float64}
_SPELLING = re.compile(
    r"(?P<pointer>\*?)(?P<dtype>\w+)(\[(?P<axes>[:,1 ]*)\])?(:(?P<multiple>[0-9]{1,9}))?")
_DESCRIPTOR = re.compile(r"tensordesc<(?P<dtype>\w+)\[(?P<sizes>[0-9 ]+(,[0-9 ]+)*)\]>")
_BETWEEN = re.compile(r",(?![^\[]*\])")  # a comma that is not within brackets


def split_types(given: object) -> list | Mapping[str, object]:
    """The entries of a signature, one per parameter: those of a string are between commas."""
    if isinstance(given, Mapping):
        return given
    listed = _BETWEEN.split(given) if isinstance(given, str) else list(given)
    return [] if listed == [""] else listed


def literal(entry: object) -> object:
    """The constant that an entry of a signature spells: a literal of Python, a dtype, or itself.

    Errors: ValueError when it spells none.
    """
    if not isinstance(entry, str):
        return entry
    text = entry.strip()
    dtype = DTYPES.get(_SHORT.get(text, text))
    if dtype is not None:
        return dtype
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(text) from error


def parse_types(given: object, names: Sequence[str], kernel: str,
                called: Callable[[str], str] = str) -> tuple[tuple[str, Argument], ...]:
    """(name, Argument) of each run-time parameter.

    given: a string with commas, a sequence, or a dict by name, of types; a type is a string, a
        dtype, or a Numba type.   called: how messages call a parameter.
    Errors: BlockTypeError for a number of types that is not the number of names, and for a type
    that is not understood.
    """
    if isinstance(given, Mapping):
        types = given
        require(set(types) == set(names), "{}: given types of {}, accepted types of {}", kernel,
                ", ".join(types), ", ".join(names))
    else:
        listed = split_types(given)
        require(len(listed) == len(names), "{}: given {} types, accepted {} ({})", kernel,
                len(listed), len(names), ", ".join(names))
        types = dict(zip(names, listed))
    return tuple((name, parse_type(types[name], f"{kernel}: argument {called(name)}"))
                 for name in names)


def parse_type(given: object, where: str) -> Argument:
    """The Argument that one type spells.

    In Numba's spelling an array is aligned as fresh memory is, in Triton's only with ":16".
    "int" and "float", or the classes, are Python numbers, an int being one that fits in 32 bits.
    ":16" also says that extents, strides and numbers are multiples of 16; ":1" that a number is 1,
    or that nothing is known of an array's address.
    """
    if isinstance(given, str):
        return _parse_descriptor(given.strip(), where) or _parse_text(given.strip(), where)
    if hasattr(given, "layout") and hasattr(given, "ndim"):  # numba.types.Array
        return _array(dtype_of(str(given.dtype)), given.ndim, given.layout, None)
    if given in (int, float):
        return ScalarArgument(_PYTHON[given.__name__], weak=True)
    if isinstance(given, (DType, np.dtype)) or isinstance(given, type):
        return ScalarArgument(dtype_of(given))
    return _parse_text(str(given), where)  # numba's scalar types print as their names


def _parse_descriptor(text: str, where: str) -> ArrayArgument | None:
    """Triton's "tensordesc<fp16[64, 64]>": a descriptor, whose rows are aligned; None of others."""
    found = _DESCRIPTOR.fullmatch(text)
    if found is None:
        return None
    sizes = tuple(int(size) for size in found["sizes"].split(","))
    dtype = parse_type(found["dtype"], where).dtype
    return replace(_array(dtype, len(sizes), "C", DIVISIBILITY), box=Box(sizes),
                   extent_divisibility=(1,) * len(sizes))


def _parse_text(text: str, where: str) -> Argument:
    found = _SPELLING.fullmatch(text)
    name = _SHORT.get(found["dtype"], found["dtype"]) if found else ""
    is_weak = name in _PYTHON and not found["pointer"] and found["axes"] is None
    dtype = _PYTHON[name] if is_weak else DTYPES.get(name)
    if dtype is None:
        raise BlockTypeError(f"{where}: given the type {quoted(text)}, {ACCEPTED}")
    multiple = int(found["multiple"]) if found["multiple"] else None
    require(multiple in (None, 1, 2, 4, 8, DIVISIBILITY),
            "{}: given the type {!r}, accepted :1, :2, :4, :8 and :16", where, text)
    if found["pointer"]:
        require(found["axes"] is None, "{}: given the type {!r}, {}", where, text, ACCEPTED)
        return _array(dtype, 1, "C", multiple or 1)
    if found["axes"] is not None:
        axes = [axis.strip() for axis in found["axes"].split(",")] if found["axes"] else []
        return _array(dtype, len(axes), _layout(axes, text, where), multiple)
    if multiple == 1:
        return ScalarArgument(dtype, value=1, weak=is_weak)
    return ScalarArgument(dtype, divisibility=multiple or 1, weak=is_weak)


def _layout(axes: Sequence[str], text: str, where: str) -> str:
    """Numba's layout: "C" when the last axis has unit stride, "F" when the first, "A" else."""
    units = [number for number, axis in enumerate(axes) if axis == "::1"]
    plain = all(axis in (":", "::1") for axis in axes)
    require(plain and (not units or units in ([0], [len(axes) - 1])),
            "{}: given the type {!r}, {}", where, text, ACCEPTED)
    if not units:
        return "A"
    return "C" if units[0] == len(axes) - 1 else "F"


def _array(dtype: DType, rank: int, layout: str, multiple: int | None) -> ArrayArgument:
    strides: list[int | None] = [None] * rank
    if rank and layout in ("C", "F"):
        strides[-1 if layout == "C" else 0] = 1
    known = multiple or 1
    aligned = multiple != 1
    return ArrayArgument(
        dtype, tuple(strides), (None,) * rank,
        alignment=ALIGNMENT if aligned else dtype.bytes,
        stride_divisibility=tuple(1 if stride == 1 else known for stride in strides),
        extent_divisibility=(known,) * rank,
        mappable=(2 <= rank <= MAX_RANK and aligned and 1 in strides
                  and known * dtype.bytes % ALIGNMENT == 0))


@without_our_frames
def compile(kernel: Kernel, signature: object, constants: Mapping[str, object] | None = None, *,
            target: str | Target | None = None, **options: object) -> Compiled:
    """The code of a kernel for arguments of given types.

    signature: types of the parameters that are not constants, as a tuple, a dict by name or one
        string: "f32[:,::1], f32[:], i32" (Numba) or "*fp32:16, i32" (Triton); "int" and "float"
        are Python's numbers, which take the dtype of the other operand.  It may also have an entry
        for every parameter, those of constants being values: "f32[:], int, 1024".  An argument
        that is a tuple or a record is a tuple or a record of types; those of `*arrays` come last.
    constants: values of the constexprs; also None for an argument that is left out.
    target: "sm_90a" and the like; without it, what a launch would use.
    options: compile options, as for @bn.jit.
    The code is for arrays that share no memory, as most launches are.
    Errors: BlockTypeError for constants or types that do not fit the kernel.

    Example:
    >>> @bn.jit
    ... def double(x, BLOCK: bn.constexpr):
    ...     r = bn.block(0, BLOCK)
    ...     x[r] = x[r] * 2
    >>> compiled = bn.compile(double, "f32[::1]:16", {"BLOCK": 1024}, target="sm_90a")
    >>> "ld.global.v4" in compiled.asm["ptx"]
    True
    """
    require(isinstance(kernel, Kernel), "compile: given {!r}, accepted a @bn.jit kernel", kernel)
    kernel, signature, constants = _taken_apart(kernel, signature, constants)
    return kernel.compile(*specialized(kernel, signature, constants, target, options))


def _taken_apart(kernel: Kernel, signature: object, constants: Mapping[str, object] | None,
                 ) -> tuple[Kernel, object, Mapping[str, object] | None]:
    """The kernel, types and constants of the parts, where an entry is a tuple or a record of types.

    Errors: BlockTypeError for entries that do not fit the kernel's parameters.
    """
    entries, formals = split_types(signature), kernel.signature.formals
    rest = kernel.signature.rest
    listed = list(entries.values() if isinstance(entries, Mapping) else entries)
    if rest is None and not any(map(is_structured, listed)):
        return kernel, signature, constants
    given = dict(constants or {})
    free = [formal for formal in formals if formal.name not in given and not formal.is_constant]
    if isinstance(entries, Mapping):
        types = dict(entries)
    else:
        positional = [formal.name for formal in free if not formal.is_rest]
        require(len(listed) == len(positional) or rest is not None and len(listed) > len(
            positional), "{}: given {} types, accepted {} ({})", kernel.signature.kernel,
            len(listed), len(positional), ", ".join(positional))
        types = dict(zip(positional, listed))
        if rest is not None:
            types[rest] = tuple(listed[len(positional):])
    given = _all_constants(kernel, given)
    missing = [formal.name for formal in free if formal.name not in types]
    require(not missing, "{}: missing the type of {}", kernel.signature.kernel, ", ".join(missing))
    flat, parts = kernel.nested.taken_apart(
        {formal.name: given.get(formal.name, types.get(formal.name)) for formal in formals},
        are_types=True)
    fixed = {formal.name for formal in flat.signature.formals
             if formal.is_constant or formal.name in given or parts[formal.name] is None}
    return flat, {name: part for name, part in parts.items() if name not in fixed}, {
        name: part for name, part in parts.items() if name in fixed}


def specialized(kernel: Kernel, signature: object, constants: Mapping[str, object] | None,
                target: str | Target | None, options: Mapping[str, object],
                ) -> tuple[Specialization, Mapping[str, object]]:
    """The specialization for arguments of given types, and the values of its constants.

    The parameters and errors are those of compile.
    """
    name = kernel.signature.kernel
    require_options(name, options)
    signature, constants = _values_taken_out(kernel, signature, dict(constants or {}))
    constants = _all_constants(kernel, constants)
    names = [formal.name for formal in kernel.signature.formals if formal.name not in constants]
    chosen = (target if isinstance(target, Target)
              else Target.parse(target) if target else default_target())
    specialization, _ = kernel.specialize(parse_types(signature, names, name,
                                                      kernel.signature.called), constants,
                                          kernel.options.override(options), chosen,
                                          disjoint=True)
    return specialization, constants


def _values_taken_out(kernel: Kernel, signature: object, constants: dict[str, object],
                      ) -> tuple[object, dict[str, object]]:
    """The signature of what is not constant, and all constants that were given.

    Errors: BlockTypeError for an entry of a constant that is not a value.
    """
    name, formals = kernel.signature.kernel, kernel.signature.formals
    entries = split_types(signature)
    if isinstance(entries, Mapping):
        return signature, constants
    fixed = [formal.name for formal in formals if formal.is_constant or formal.name in constants]
    free = [formal.name for formal in formals if formal.name not in fixed]
    if fixed and len(entries) == len(free):
        return signature, constants
    require(len(entries) == len(formals), "{}: given {} types, accepted {} ({}){}", name,
            len(entries), len(free), ", ".join(free),
            f", or {len(formals)} with the values of {', '.join(fixed)}" if fixed else "")
    types = []
    for formal, entry in zip(formals, entries):
        if not formal.is_constant and formal.name not in constants:
            types.append(entry)
            continue
        require(formal.name not in constants, "{}: given the constant {} twice", name, formal.name)
        try:
            constants[formal.name] = literal(entry)
        except ValueError:
            raise BlockTypeError(f"{name}: argument {formal.name}: given {shown(entry)}, "
                                 "accepted the value of a constant") from None
    return types, constants


def _all_constants(kernel: Kernel, given: Mapping[str, object]) -> dict[str, object]:
    """The constants in the order of the signature, defaults filled in."""
    name, formals = kernel.signature.kernel, kernel.signature.formals
    require_known(f"{name}: given the constants", given, kernel.signature.names)
    constants = {}
    for formal in formals:
        if formal.name in given:
            constants[formal.name] = given[formal.name]
        elif formal.is_constant:
            require(formal.has_default, "{}: missing the constant {}", name, formal.name)
            constants[formal.name] = formal.default
    return constants
