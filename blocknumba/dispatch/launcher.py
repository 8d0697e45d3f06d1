"""Generated launchers: one Python function per form of call, for warm calls.

A form is which arguments are passed by position, which by name, and the class of each.  Its
launcher binds the arguments, checks that they have this form, reads pointers, makes a key of
what can change between calls, finds the plan for it, packs the arguments and calls the driver.
For `add[grid](x, y, n, B=1024)` with CuPy arrays:

    def _launch(_place, x=_missing, y=_missing, n=_missing, /, *_more, B=_missing,
                stream=None, **_others):
        if (_more or _others or _type(x) is not _class_x or ... or _type(B) is not _class_B):
            return _following(_place, x, y, n, *_more, B=B, stream=stream, **_others)
        _grid, _stream = _place
        ...
        _at_x = x.data.ptr
        _at_y = y.data.ptr
        _key = (x.dtype, x.shape, x.strides, _at_x & 15, y.dtype, ..., B)
        _forms = _plans.get(_key)
        if _forms:
            _low_0, _high_0, = _forms.limits
            _plan = _forms.overlapping if _low_0 < _at_y - _at_x < _high_0 else _forms.disjoint
        else:
            _plan = None
        if _plan is None or _hooks or not _plan.is_current():
            return _miss(...)
        ...
        _pack(_buffer.slots, 0, _at_x, _at_y, n & 0xFFFFFFFFFFFFFFFF)
        _status = _plan.submit(_plan.handle, ...)

Python binds the arguments once, and whatever it cannot bind like this, mistakes included,
reaches `_following` as it was given: what is passed by position is positional only here.

The key holds whole shapes, so that extents and strides need no packing; a call with new shapes
takes the slow way once.  Names that begin with an underscore are the launcher's own.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, NoneType

import numpy as np

from blocknumba.dispatch.arrays import Library, library_of
from blocknumba.dispatch.driver import Driver
from blocknumba.dispatch.grid import MAX_X, grid_of
from blocknumba.dispatch.plan import FormPlans
from blocknumba.dispatch.scalars import scalar_facts
from blocknumba.dispatch.signature import Formal, Signature
from blocknumba.dispatch.specialize import ALIGNMENT, freeze, integer_class
from blocknumba.dispatch.streams import (
    CURRENT_STREAM, cupy_stream_getter, stream_handle, torch_stream_getter,
)
from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.types import DTYPES, DType, dtype_of

MISSING = object()  # the default of every argument of a launcher: it is never passed on as one
MAX_PLANS = 1024  # per launcher; shapes that never come back must not fill the memory

_FORMATS = {"bool": "?7x", "int8": "b7x", "int16": "h6x", "int32": "i4x", "int64": "q",
            "uint8": "B7x", "uint16": "H6x", "uint32": "I4x", "uint64": "Q",
            "float16": "e6x", "float32": "f4x", "float64": "d"}
_PYTHON = {bool: DTYPES["bool"], float: DTYPES["float32"]}
# 0, 1, 2, 4 or 8 by the power of two that divides it, as specialize.DIVISIBILITY has it; 3 is 1
_INTEGER_KIND = ("((3 if {0} == 1 else {0} & -{0} & 15) "
                 "if -2147483648 <= {0} <= 2147483647 else _integer_class({0}))")
# constants of these classes are equal only when they mean the same
_EXACT = (int, bool, str, NoneType, type, FunctionType, BuiltinFunctionType, DType, np.dtype)


@dataclass(frozen=True, slots=True)
class _Access:
    """How a launcher reads one argument.

    key: expressions that go into the key.
    format: struct format of its slot, empty for a constant.
    value: expression that is packed.
    before: statement that comes first.
    """

    key: tuple[str, ...] = ()
    format: str = ""
    value: str = ""
    before: str = ""


def generate_launcher(driver: Driver, signature: Signature, given: Mapping[str, type],
                      options: Sequence[str], positional: int, miss: Callable,
                      following: Callable, hooks: list) -> Callable | None:
    """A launcher for one form of call; None when a class needs the slow way every time.

    given: class of every argument that is passed, in the order in which it is passed, keywords
        after the first `positional`.
    options: the keywords among them that are compile options.
    miss: (plans, key, grid, stream, arguments, options) -> Compiled, the slow way.
    following: what calls of any other form are passed on to, with arguments that may be MISSING.
    hooks: of launches; while there are any, every launch takes the slow way.
    """
    if any(name.startswith("_") for name in signature.names):
        return None
    accesses = _accesses(driver, signature, given)
    if accesses is None:
        return None
    libraries = {library.name for cls in given.values() if (library := library_of(cls))}
    if {"cupy", "torch"} <= libraries:
        return None  # two current streams: their order takes events
    if not libraries and driver.device_count > 1:
        return None  # the current device says where, and it may change
    source = _source(driver, signature.formals, given, options, positional, accesses, libraries)
    scope = _scope(driver, signature, given, accesses, libraries) | {
        "_miss": miss, "_hooks": hooks, "_following": following}
    exec(compile(source, f"<launcher of {signature.kernel}>", "exec"), scope)
    return scope["_launch"]


def _scope(driver: Driver, signature: Signature, given: Mapping[str, type],
           accesses: Mapping[str, _Access], libraries: set[str]) -> dict[str, object]:
    """The globals of a launcher."""
    formats = "".join(access.format for access in accesses.values())
    plans: dict[tuple, FormPlans] = {}
    scope = {
        "_plans": plans, "_kernel": signature.kernel, "_max_plans": MAX_PLANS,
        "_max_grid": MAX_X,
        "_pack": struct.Struct("<" + formats).pack_into, "_errors": (struct.error, OverflowError),
        "_grid_of": grid_of, "_integer_class": integer_class, "_freeze": freeze,
        "_stream_handle": stream_handle, "_bits": _converted_bits, "_dtypes": DTYPES,
        "_current_device": driver.current_device,
        "_pointer_device": driver.pointer_device, "_callable": callable, "_int": int, "_len": len,
        "_type": type, "_missing": MISSING,
        "_AttributeError": AttributeError,
        "_get_cupy_stream": cupy_stream_getter() if "cupy" in libraries else None,
        "_get_torch_stream": torch_stream_getter() if "torch" in libraries else None,
    }
    scope |= {f"_class_{name}": cls for name, cls in given.items()}
    return scope | {f"_default_{formal.name}": formal.default for formal in signature.formals
                    if formal.name not in given}


def _accesses(driver: Driver, signature: Signature,
              given: Mapping[str, type]) -> dict[str, _Access] | None:
    accesses = {}
    for formal in signature.formals:
        cls = given.get(formal.name, type(formal.default))
        access = (_constant_access(formal.name, cls) if formal.is_constant or cls is NoneType
                  else _run_time_access(driver, signature.kernel, formal, cls))
        if access is None:
            return None
        accesses[formal.name] = access
    return accesses


def _constant_access(name: str, cls: type) -> _Access:
    if issubclass(cls, _EXACT):
        return _Access((name,))
    return _Access((f"_freeze({name}, {name!r})",))


def _run_time_access(driver: Driver, kernel: str, formal: Formal, cls: type) -> _Access | None:
    name, library = formal.name, library_of(cls)
    if library is not None:
        return _array_access(driver, name, library, cls) if library.is_fast else None
    if cls is int and formal.dtype is None:
        return _Access((_INTEGER_KIND.format(name),), "Q", f"{name} & 0xFFFFFFFFFFFFFFFF")
    return _scalar_access(kernel, name, cls, formal.dtype)


def _array_access(driver: Driver, name: str, library: Library, cls: type) -> _Access:
    pointer = f"_at_{name}"
    strides = library.strides.format(name)
    if library.is_contiguous and hasattr(cls, library.is_contiguous):
        strides = f"{name}.{library.is_contiguous} or {strides}"
    key = [library.dtype.format(name), library.shape.format(name), strides,
           f"{pointer} & {ALIGNMENT - 1}"]
    if driver.device_count > 1:
        key.append(library.device.format(name) if library.device
                   else f"_pointer_device({pointer})")
    elif library.is_on_gpu:
        key.append(library.is_on_gpu.format(name))
    return _Access(tuple(key), "Q", pointer, f"{pointer} = {library.pointer.format(name)}")


def _scalar_access(kernel: str, name: str, cls: type, declared: DType | None) -> _Access | None:
    dtype = _PYTHON.get(cls)
    if dtype is None and issubclass(cls, np.generic):
        try:
            dtype = dtype_of(cls)
        except BlockTypeError:
            return None
    if dtype is None and cls is not int:
        return None
    wanted = declared or dtype
    # struct raises when a value does not fit, so Python numbers can go straight to it
    direct = dtype == wanted or (cls in (int, float) and wanted.is_float) or (
        cls is int and wanted.is_integer)
    if direct and wanted.name in _FORMATS:
        return _Access((), _FORMATS[wanted.name], name)
    where = f"{kernel}: argument {name}"
    return _Access((), "Q", f"_bits({name}, _dtypes[{wanted.name!r}], {where!r})")


def _converted_bits(value: object, dtype: DType, where: str) -> int:
    return scalar_facts(value, dtype, where).bits


def _source(driver: Driver, formals: Sequence[Formal], given: Mapping[str, type],
            options: Sequence[str], positional: int, accesses: Mapping[str, _Access],
            libraries: set[str]) -> str:
    bound = ", ".join(f"{formal.name!r}: {formal.name}" for formal in formals)
    chosen = ", ".join(f"{name!r}: {name}" for name in options)
    key = [expression for access in accesses.values() for expression in access.key] + [*options]
    lines = [_head(list(given), positional)]
    lines += [f"    {f.name} = _default_{f.name}" for f in formals if f.name not in given]
    lines += [f"    {access.before}" for access in accesses.values() if access.before]
    lines.append(_BODY.format(
        key="".join(f"{expression}, " for expression in key),
        miss=f"_miss(_plans, _key, _grid, _stream, {{{bound}}}, {{{chosen}}})", bound=bound,
        plan=_plan_choice([access.value for access in accesses.values() if access.before]),
        current_stream=_stream_expression(libraries),
        packed="".join(f", {access.value}" for access in accesses.values() if access.format)))
    return "\n".join(lines) + (_SWITCH if driver.device_count > 1 else "") + _LAUNCH


def _head(names: Sequence[str], positional: int) -> str:
    """The parameters, and the way out for calls of other forms."""
    by_position, by_name = names[:positional], names[positional:]
    parameters = ["_place", *(f"{name}=_missing" for name in by_position), "/", "*_more",
                  *(f"{name}=_missing" for name in by_name), "stream=None", "**_others"]
    passed = ["_place", *by_position, "*_more", *(f"{name}={name}" for name in by_name),
              "stream=stream", "**_others"]
    differs = ["_more", "_others", *(f"_type({name}) is not _class_{name}" for name in names)]
    return _HEAD.format(parameters=", ".join(parameters), passed=", ".join(passed),
                        differs=" or ".join(differs))


_HEAD = """\
def _launch({parameters}):
    if {differs}:
        return _following({passed})
    _grid, _stream = _place
    if stream is not None:
        _stream = stream"""
_BODY = """\
    _key = ({key})
    _forms = _plans.get(_key)
    if _forms:
        {plan}
    else:
        _plan = None
    if _plan is None or _hooks or not _plan.is_current():
        if _len(_plans) >= _max_plans:
            _plans.clear()
        return {miss}
    if _type(_grid) is _int and 0 < _grid <= _max_grid:
        _x_grid, _y_grid, _z_grid = _grid, 1, 1
    else:
        if _callable(_grid):
            _grid = _grid({{**_plan.meta, {bound}}})
        _x_grid, _y_grid, _z_grid = _grid_of(_grid, _kernel)
        if not (_x_grid and _y_grid and _z_grid):
            return _plan.compiled
    if _stream is None:
        _stream = {current_stream}
    elif _stream.__class__ is not _int:
        _stream = _stream_handle(_stream, _kernel)
    try:
        _buffer = _plan.local.buffer
    except _AttributeError:
        _buffer = _plan.buffer()
    try:
        _pack(_buffer.slots, 0{packed})
    except _errors:
        return {miss}
    if _plan.maps:
        _plan.place_maps(_buffer)
"""
_SWITCH = """\
    if _current_device() != _plan.device:
        _plan.run((_x_grid, _y_grid, _z_grid), _stream, _buffer)
        return _plan.compiled
"""
_LAUNCH = """\
    _status = _plan.submit(_plan.handle, _x_grid, _y_grid, _z_grid, _plan.threads, 1, 1,
                           _plan.shared_bytes, _stream, _buffer.parameters, 0)[0]
    if _status:
        _plan.recover(_status, (_x_grid, _y_grid, _z_grid), _stream, _buffer)
    return _plan.compiled
"""


def _plan_choice(pointers: Sequence[str]) -> str:
    """Statements that choose the plan for arrays at these pointers, of those for a key."""
    pairs = list(enumerate(itertools.combinations(pointers, 2)))
    if not pairs:
        return "_plan = _forms.disjoint"
    limits = "".join(f"_low_{number}, _high_{number}, " for number, _ in pairs)
    shared = " or ".join(f"_low_{number} < {second} - {first} < _high_{number}"
                         for number, (first, second) in pairs)
    return (f"{limits}= _forms.limits\n"
            f"        _plan = _forms.overlapping if {shared} else _forms.disjoint")


def _stream_expression(libraries: set[str]) -> str:
    """The current stream of the arrays' library."""
    for name in ("torch", "cupy"):
        if name in libraries:
            return CURRENT_STREAM[name]
    return CURRENT_STREAM["numba"]
