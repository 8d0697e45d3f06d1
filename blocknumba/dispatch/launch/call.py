"""One call of a kernel without a generated launcher: read the arguments, get the code, run it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.dispatch.compile.captures import Captures
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.arrays import ADDRESSES, ArrayInfo, array_info
from blocknumba.dispatch.launch.driver import Driver, find_driver
from blocknumba.dispatch.launch.forks import COMPILATIONS
from blocknumba.dispatch.launch.grid import Grid, grid_of
from blocknumba.dispatch.launch.plan import Plan, slot_bits
from blocknumba.dispatch.launch.signature import Formal, Signature, scalar_info, scalar_of_array
from blocknumba.dispatch.launch.staging import DeviceCopies
from blocknumba.dispatch.launch.streams import StreamOrder, stream_handle
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo
from blocknumba.dispatch.torch.tensors import (
    OPERATOR, example, fake_info, is_fake, touch,
)
from blocknumba.errors import BlockTypeError, BlockValueError, LaunchError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS
from blocknumba.tracebacks import called
from blocknumba.typing.dialect import NUMPY_NAME
from blocknumba.typing.static_values import constexpr
from blocknumba.wording import shown

if TYPE_CHECKING:
    from blocknumba.dispatch.launch.native import NativePlan


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, read.

    infos: information on each run-time argument, in the order of the signature.
    constants: the other arguments: constexprs, and those that are None.
    """

    infos: dict[str, ArgumentInfo]
    constants: dict[str, object]

    @property
    def arrays(self) -> dict[str, ArrayInfo]:
        """The arrays among them."""
        return {name: info for name, info in self.infos.items() if isinstance(info, ArrayInfo)}


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to run.

    driver, device: where it runs; driver is None for the interpreter.
    """

    signature: Signature
    arguments: Arguments
    captures: Captures
    compiled: Compiled
    driver: Driver | None
    device: int

    def run(self, grid: Grid, stream: object) -> Plan | NativePlan | None:
        """Run the call; return its plan if later calls with the same key can use it.

        Errors: BlockValueError for a read-only array that the kernel stores to; LaunchError.
        """
        stream = None if stream is None else stream_handle(stream, self.signature.kernel)
        running = OPERATOR.get()
        if running is not None:
            running.require_declared(self.signature.kernel, self.arguments.arrays,
                                     self.compiled.effects.stored)
            if running.is_traced:
                return None
        plan = self._run(grid, stream)
        touch(self.arguments.arrays[name].owner for name in self.touched)
        return plan

    @property
    def touched(self) -> Collection[str]:
        """Names of the arrays that get a new version; none in Triton's dialect, as under Triton."""
        compiled = self.compiled
        is_own = compiled.specialization.options.dialect == NUMPY_NAME
        return compiled.effects.stored if is_own else ()

    def _run(self, grid: Grid, stream: int | None) -> Plan | NativePlan | None:
        if self.driver is None:
            self.require_writable()
            if all(grid):
                _interpreter()(self.compiled, grid, self.arguments.infos, stream)
            return self._native_plan()
        try:
            return self._launch(self.driver, grid, stream)
        except LaunchError as error:
            name = self.signature.kernel
            if error.message.startswith(f"{name}: "):
                raise
            raise type(error)(f"{name}: {error.message}", hint=error.hint) from None

    @property
    def is_on_device(self) -> bool:
        """Whether it runs on a GPU and all its arrays are there."""
        return self.driver is not None and all(array.device is not None
                                               for array in self.arguments.arrays.values())

    def _native_plan(self) -> NativePlan | None:
        """The plan of native code for arrays on the host."""
        if self.compiled.native is None or any(
                array.device is not None or not array.is_aligned
                for array in self.arguments.arrays.values()):
            return None
        # here and not above: it imports llvmlite, which launches on a GPU do without
        from blocknumba.dispatch.launch.native import NativePlan
        return NativePlan(self.compiled, self.arguments.infos, self.captures)

    def plan(self) -> Plan:
        """The launch plan: everything but pointers and numbers.  Only for calls with a driver."""
        self.require_writable()
        self.driver.enter_thread(self.device)
        return Plan(self.driver, self.compiled, self.device, self.arguments.infos,
                    self.captures)

    def _launch(self, driver: Driver, grid: Grid, stream: int | None) -> Plan | None:
        infos, arrays = self.arguments.infos, self.arguments.arrays
        plan = self.plan()
        if all(grid):
            with (driver.on_device(self.device),
                  StreamOrder(driver, arrays.values(), self.device, stream) as handle,
                  DeviceCopies(driver, arrays, self.compiled.effects.stored, self.device,
                               handle) as copies):
                bits = [slot_bits(copies.get(name, info)) for name, info in infos.items()]
                plan.launch(grid, handle, bits)
        return plan if self.is_on_device else None

    def require_writable(self) -> None:
        """Raise for a read-only array that the kernel stores to."""
        for name in self.compiled.effects.stored:
            require(not self.arguments.infos[name].readonly,
                    "{}: argument {} is read-only, and the kernel stores to it",
                    self.signature.kernel, self.signature.called(name), error=BlockValueError,
                    hint="pass a copy")


@functools.cache
def _interpreter() -> Callable[..., None]:
    with COMPILATIONS.running():
        # here and not above: import blocknumba must be fast, on GPU machines too
        from blocknumba.dispatch.launch.interpret import interpret
    return interpret


def read_arguments(signature: Signature, bound: Mapping[str, object]) -> Arguments:
    """Read the arguments of a call.

    Errors: BlockTypeError for a value that a kernel cannot be given; those of the readers.
    """
    infos: dict[str, ArgumentInfo] = {}
    constants: dict[str, object] = {}
    for formal in signature.formals:
        value = example(bound[formal.name])
        if formal.is_constant or value is None:
            constants[formal.name] = value.value if isinstance(value, constexpr) else value
        else:
            infos[formal.name] = _info(formal, value, signature.kernel)
    return Arguments(infos, constants)


def require_ends(arrays: Mapping[str, ArrayInfo], kernel: str, on_gpu: bool, is_pointed: bool,
                 ) -> None:
    """Refuse pointers without a shape where an array's end matters.

    on_gpu: what host memory holds is copied to a GPU.  is_pointed: the kernel reads addresses, as
    in Triton's dialect, and asks for no shape.
    """
    for name, array in arrays.items():
        has_end = array.size * array.dtype.bytes < ADDRESSES
        require(has_end or is_pointed and not (on_gpu and array.device is None),
                "{}: argument {}: given {}, a pointer without a shape, accepted {}", kernel, name,
                shown(array.owner), "memory of a GPU" if is_pointed else "arrays",
                hint="give its class a shape")


def device_of(signature: Signature, arguments: Arguments,
             options: Options) -> tuple[Driver | None, int]:
    """Driver and device that a call runs on; the driver is None for the interpreter.

    Errors: BlockValueError for arrays of different devices.
    """
    first: dict[int, str] = {}
    for name, array in arguments.arrays.items():
        if array.device is not None and array.size:
            first.setdefault(array.device, name)
    if len(first) > 1:
        (one, x), (other, y), *_ = first.items()
        raise BlockValueError(f"{signature.kernel}: argument {x} is on device {one} and argument "
                              f"{y} on device {other}, accepted arrays of one device")
    driver = find_driver()
    if driver is None or options.interpret or options.device or SETTINGS.interpret:
        return None, 0
    return driver, next(iter(first), driver.current_device())


@functools.cache
def target_of(driver: Driver, device: int) -> Target:
    """Target of a device."""
    return Target.of_capability(driver.capability(device))


def default_target() -> Target | None:
    """The GPU that a launch without arrays goes to; None for the interpreter."""
    driver = find_driver()
    if driver is None or SETTINGS.interpret:
        return None
    return target_of(driver, driver.current_device())


def resolve_grid(given: object, signature: Signature, bound: Mapping[str, object],
                 options: Options) -> Grid:
    """The extents of a grid, which may be a function of the arguments and the options."""
    if isinstance(given, Callable):
        given = called(f"{signature.kernel}: the grid", given, options.named() | bound)
    if OPERATOR.get() is not None:  # symbolic extents, which must not be compared
        given = tuple(map(example, given)) if isinstance(given, tuple) else example(given)
    return grid_of(given, signature.kernel)


def _info(formal: Formal, value: object, kernel: str) -> ArgumentInfo:
    where = f"{kernel}: argument {formal.called}"
    if formal.dtype is not None and isinstance(value, np.ndarray) and value.ndim == 0:
        return scalar_of_array(value, formal.dtype, where, formal.is_weak)
    info = scalar_info(value, formal.dtype, where, formal.is_weak)
    if info is None:
        info = fake_info(value, where) if is_fake(type(value)) else array_info(value, where)
    if info is None:
        raise BlockTypeError(
            f"{where}: given {shown(value)}, accepted arrays, numbers, bools and None",
            hint=_advice(formal.called, value))
    return info


def _advice(name: str, value: object) -> str:
    if isinstance(value, list):
        return "pass a tuple" if any(hasattr(item, "shape") for item in value) else "use np.asarray"
    if isinstance(value, (str, tuple, type, np.dtype)) or callable(value):
        return f"to pass it as a constant, annotate the parameter: {name}: bn.constexpr"
    return "use np.asarray" if hasattr(type(value), "__array__") else ""
