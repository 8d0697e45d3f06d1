"""Generated launchers: one Python function for each call signature, for warm calls.

A call signature is the class of each argument and the names of the compile options passed.  A
launcher does four things: it binds the arguments and checks the call signature; it compares
arrays and constants with those of the thread's last launch; it packs addresses and numbers if
they have changed; it calls the driver.  For `add[grid](x, y, n, B=1024)` with CuPy arrays:

    def _launch(_grid, x=_missing, y=_missing, n=_missing, B=_missing, *_more,
                stream=None, **_others):
        if _more or _others or _type(x) is not _class_x or ... or _type(B) is not _class_B:
            return _link.following()(_grid, x, y, n, B, *_more, stream=stream, **_others)
        _at_x = x.data.ptr
        _at_y = y.data.ptr
        _recent = _state.recent
        _x_0, _x_1, _x_2, _y_0, _y_1, _y_2, = _recent.arrays
        _constant_0, = _recent.constants
        if (x.dtype is not _x_0 or ... or B != _constant_0
                or _hooks or not _recent.is_current()):
            _recent = None if _hooks else _state.find(_plans, (...), ())
            if _recent is None:
                return _miss(...)
        ...
        _now = (_at_x, _at_y, n, _grid, stream, )
        while _now != _recent.now:
            if (_at_x & 15, _at_y & 15, ..., ) != _recent.numbers:
                _recent = _state.find(...)
            _low_0, _high_0, = _recent.limits
            _shares = _low_0 < _at_y - _at_x < _high_0
            _ready = _recent.choose(_shares)
            ...
            _pack(_ready.slots, 0, _at_x, _at_y, n & 0xFFFFFFFFFFFFFFFF)
            if _grid != _ready.grid or stream != _ready.stream:
                _ready.aim(_grid, stream)
            if _recent.loading is _now:
                _recent.ready, _recent.now = _ready, _now
                break
        else:
            _ready = _recent.ready
        _status = _ready.submit()
        ...

Between the last comparison with `_recent.now` and `submit` no function is called, so no finalizer
or signal handler can launch the same kernel in between.  If one does so earlier, the comparison
fails and the loop packs again.  A `try` around the whole body removes our frames from tracebacks.
The key holds whole shapes, so extents and strides need no packing; the first call with new shapes
is a miss.  Names that begin with an underscore are the launcher's own.
"""

from __future__ import annotations

import enum
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.dispatch.launch.arrays import HOST_NUMPY, Library, library_of
from blocknumba.dispatch.launch.launchers import Launch, Link
from blocknumba.dispatch.launch.driver import Driver, status_of
from blocknumba.dispatch.launch.grid import are_ints, grid_and_stream, grid_of
from blocknumba.dispatch.launch.launcher_source import (
    Access, CallSignature, Parameter, launcher_source,
)
from blocknumba.dispatch.launch.plan import KeyPlans
from blocknumba.dispatch.launch.recent import Key, ThreadState
from blocknumba.dispatch.launch.signature import MISSING, Formal, Signature, scalar_info
from blocknumba.dispatch.launch.specialize import ALIGNMENT, identify, integer_class, is_identified
from blocknumba.dispatch.launch.streams import (
    CURRENT_STREAM, cupy_stream_getter, device_getter, stream_handle, torch_stream_getter,
)
from blocknumba.dispatch.torch.tensors import is_fake, touch
from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import DTYPES, DType, dtype_of
from blocknumba.tracebacks import GENERATED, leave_out_our_frames

if TYPE_CHECKING:
    from blocknumba.dispatch.launch.native import NativeDriver

MAX_PLANS = 1024  # per launcher; shapes that never come back must not fill the memory

_FORMATS = {"bool": "?7x", "int8": "b7x", "int16": "h6x", "int32": "i4x", "int64": "q",
            "uint8": "B7x", "uint16": "H6x", "uint32": "I4x", "uint64": "Q",
            "float16": "e6x", "float32": "f4x", "float64": "d"}
_PYTHON = {bool: DTYPES["bool"], float: DTYPES["float64"]}
# 0, 1, 2, 4 or 8 by the power of two that divides it, as specialize.DIVISIBILITY has it; 3 is 1
_INTEGER_KIND = ("((3 if {0} == 1 else {0} & -{0} & 15) "
                 "if -2147483648 <= {0} <= 2147483647 else _integer_class({0}))")
# the same of a number that remainders are taken by: up to 128, if it is positive
_DIVISOR_KIND = ("((3 if {0} == 1 else {0} & -{0} & 255 if {0} > 0 else ~({0} & -{0} & 15)) "
                 "if -2147483648 <= {0} <= 2147483647 else 1024 + _integer_class({0}))")
# 0.0 and -0.0 are equal, and so are their numbers of any type
_BITS_OF_NUMBER = "{0} or _repr({0})"
# constants of these classes are equal only when they mean the same
_EXACT = (int, bool, str, NoneType, FunctionType, BuiltinFunctionType, DType)


def generate_launcher(driver: Driver | NativeDriver, signature: Signature,
                      given: Mapping[str, type], options: Sequence[str], miss: Callable, link: Link,
                      hooks: list) -> Launch | None:
    """A launcher for one call signature; None if some argument must be read anew at each call.

    given: class of every argument that is passed, options included.
    options: the compile options, which are passed by name.
    miss: (plans, key, grid, stream, arguments, options) -> Compiled, for calls without a plan.
    link: the next launcher, for calls of other signatures; arguments may be MISSING.
    hooks: launch hooks; while there are any, every launch is a miss.
    """
    if any(name.startswith("_") for name in signature.names) or any(map(is_fake, given.values())):
        return None
    accesses = _accesses(driver, signature, given)
    if accesses is None:
        return None
    libraries = {name: library.name for name, cls in given.items() if (library := library_of(cls))}
    kinds = set(libraries.values())
    if driver.is_host and kinds - {"numpy"}:
        return None  # it may be on a device
    if {"cupy", "torch"} <= kinds:
        return None  # two current streams: their order takes events
    if not kinds and driver.device_count > 1:
        return None  # the current device says where, and it may change
    call = CallSignature(
        _parameters(signature, given, options), accesses,
        [access.constant for access in accesses.values() if access.constant] + [*options],
        [name for name in libraries if name in accesses and accesses[name].key
         ] if kinds == {"torch"} else [],
        ", ".join(f"{name!r}: {name}" for name in signature.names),
        ", ".join(f"{name!r}: {name}" for name in options),
        "0" if driver.is_host else _stream_expression(kinds), driver.device_count > 1,
        "torch" in kinds)
    scope = _scope(driver, signature, given, call, kinds) | {
        "_miss": miss, "_hooks": hooks, "_link": link}
    file = f"{GENERATED}launcher of {signature.kernel}>"
    exec(compile(launcher_source(call), file, "exec"), scope)
    launch = scope["_launch"]
    launch.__name__ = launch.__qualname__ = signature.kernel  # Python's own errors say it
    return launch


def _scope(driver: Driver, signature: Signature, given: Mapping[str, type], call: CallSignature,
           libraries: set[str]) -> dict[str, object]:
    """The globals of a launcher."""
    formats = "".join(access.format for access in call.accesses.values())
    plans: dict[Key, KeyPlans] = {}
    readers = [_library(driver, given[name]) for name in call.arrays]
    scope = {
        "_plans": plans, "_state": ThreadState(readers, len(call.constants)),
        "_kernel": signature.kernel, "_missing": MISSING,
        "_pack": struct.Struct("<" + formats).pack_into, "_errors": (struct.error, OverflowError),
        "_are_ints": are_ints, "_grid_of": grid_of, "_grid_and_stream": grid_and_stream,
        "_stream_handle": stream_handle,
        "_integer_class": integer_class, "_identify": identify, "_bits": _converted_bits,
        "_dtypes": DTYPES,
        "_current_device": device_getter(libraries, driver),
        "_pointer_device": driver.pointer_device,
        "_status_of": status_of, "_Exception": Exception,
        "_leave_out_our_frames": leave_out_our_frames,
        "_callable": callable, "_id": id, "_int": int, "_len": len, "_repr": repr, "_tuple": tuple,
        "_type": type,
        "_get_cupy_stream": cupy_stream_getter() if "cupy" in libraries else None,
        "_get_torch_stream": torch_stream_getter() if "torch" in libraries else None,
        "_touch": touch,
        "_is_grad_enabled": "torch" in libraries and sys.modules["torch"].is_grad_enabled,
    }
    scope |= {f"_class_{name}": cls for name, cls in given.items()}
    return scope | {f"_default_{formal.name}": formal.default for formal in signature.formals
                    if formal.name not in given}


def _parameters(signature: Signature, given: Mapping[str, type],
                options: Sequence[str]) -> list[Parameter]:
    """The launcher's parameters.

    A parameter that has the name of an option is one only when it is passed by name.
    """
    parameters, names_only = [], False
    for formal in signature.formals:
        names_only |= formal.keyword_only or formal.name in options
        parameters.append(Parameter(
            formal.name, formal.name in given, names_only,
            formal.name in signature.options and not names_only))
    return parameters + [Parameter(name, True, by_name=True) for name in options
                         if name not in signature.names]


def _accesses(driver: Driver, signature: Signature,
              given: Mapping[str, type]) -> dict[str, Access] | None:
    accesses = {}
    for formal in signature.formals:
        cls = given.get(formal.name, type(formal.default))
        kernel = signature.kernel
        access = (_constant_access(kernel, formal, cls)
                  if formal.is_constant or cls is NoneType
                  else _run_time_access(driver, kernel, formal, cls))
        if access is None:
            return None
        accesses[formal.name] = access
    return accesses


def _constant_access(kernel: str, formal: Formal, cls: type) -> Access:
    name = formal.name
    if cls in _EXACT or issubclass(cls, (type, enum.Enum, np.dtype)):
        return Access(constant=name)
    if is_identified(cls):
        return Access(constant=f"_id({name})")  # which KeyPlans keeps alive
    return Access(constant=f"_identify({name}, {f'{kernel}: argument {formal.called}'!r})")


def _run_time_access(driver: Driver, kernel: str, formal: Formal, cls: type) -> Access | None:
    name, library = formal.name, _library(driver, cls)
    if library is not None:
        return _array_access(driver, name, library) if library.is_fast else None
    if cls is int and formal.dtype is None:
        kind = _DIVISOR_KIND if formal.is_divisor else _INTEGER_KIND
        return Access(numbers=(kind.format(name),), now=name, format="Q",
                      packed=f"{name} & 0xFFFFFFFFFFFFFFFF")
    return _scalar_access(kernel, name, cls, formal.dtype)


def _library(driver: Driver | NativeDriver, cls: type) -> Library | None:
    """The library whose arrays are of a class; NumPy's are read at once where they stay."""
    library = library_of(cls)
    return HOST_NUMPY if driver.is_host and library is not None else library


def _array_access(driver: Driver, name: str, library: Library) -> Access:
    pointer = f"_at_{name}"
    numbers = [f"{pointer} & {ALIGNMENT - 1}"]
    if driver.device_count > 1:
        numbers.append(library.device.format(name) if library.device
                       else f"_pointer_device({pointer})")
    return Access(f"{pointer} = {library.pointer.format(name)}",
                  library.key.format(name), library.differs,
                  numbers=tuple(numbers), now=pointer, format="Q", packed=pointer)


def _scalar_access(kernel: str, name: str, cls: type, declared: DType | None) -> Access | None:
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
        return Access(now=_BITS_OF_NUMBER.format(name), format=_FORMATS[wanted.name], packed=name)
    bits, where = f"_bits_{name}", f"{kernel}: argument {name}"
    return Access(f"{bits} = _bits({name}, _dtypes[{wanted.name!r}], {where!r})", now=bits,
                  format="Q", packed=bits)


def _converted_bits(value: object, dtype: DType, where: str) -> int:
    return scalar_info(value, dtype, where).bits


def _stream_expression(libraries: set[str]) -> str:
    """The current stream of the arrays' library."""
    for name in ("torch", "cupy"):
        if name in libraries:
            return CURRENT_STREAM[name]
    return CURRENT_STREAM["numba"]
