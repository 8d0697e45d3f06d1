"""The stub driver, and a compiler that makes kernels only the stub can run."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

import pytest
import stub_libraries

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.compile import kernel_code
from blocknumba.nvvm_lower.toolchain import Assembled
from blocknumba.tile_ir.analysis.provenance import Effects
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.types import ArrayArgument

# these tests need the stub, which test_on_stub.py starts them with
ON_STUB = "STUB_DEVICES" in os.environ
collect_ignore_glob = [] if ON_STUB else ["test_*.py"]
if ON_STUB:
    stub_libraries.install()


class Launch(ctypes.Structure):
    """`struct launch` of stub_driver.c."""

    _fields_ = [("kernel", ctypes.c_uint64), ("stream", ctypes.c_uint64),
                ("device", ctypes.c_uint64), ("grid", ctypes.c_uint64 * 3),
                ("block", ctypes.c_uint64 * 3), ("shared", ctypes.c_uint64),
                ("cluster", ctypes.c_uint64 * 3), ("cooperative", ctypes.c_uint64),
                ("dependent", ctypes.c_uint64),
                ("parameters", ctypes.c_uint64 * 64), ("addresses", ctypes.c_uint64 * 64)]


class Wait(ctypes.Structure):
    """`struct wait` of stub_driver.c."""

    _fields_ = [("stream", ctypes.c_uint64), ("after", ctypes.c_uint64)]


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch))


class Stub:
    """The stub driver, seen from a test: only what happened since the test began."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        self._library.stub_launch.restype = ctypes.POINTER(Launch)
        self._library.stub_wait.restype = ctypes.POINTER(Wait)
        self._first_launch = self._library.stub_launch_count()
        self._first_wait = self._library.stub_wait_count()
        self._first_load = self._library.stub_load_count()
        self._callback = _CALLBACK()

    @property
    def launches(self) -> list[Launch]:
        return [self._library.stub_launch(number)[0]
                for number in range(self._first_launch, self._library.stub_launch_count())]

    @property
    def waits(self) -> list[tuple[int, int]]:
        """(stream, the stream whose work it waits for)"""
        records = (self._library.stub_wait(number)[0]
                   for number in range(self._first_wait, self._library.stub_wait_count()))
        return [(record.stream, record.after) for record in records]

    @property
    def loads(self) -> int:
        return self._library.stub_load_count() - self._first_load

    @property
    def copies(self) -> int:
        return self._library.stub_copy_count()

    @property
    def allocations(self) -> int:
        return self._library.stub_allocation_count()

    @property
    def synchronizations(self) -> int:
        return self._library.stub_synchronize_count()

    @property
    def encoded_maps(self) -> int:
        return self._library.stub_map_count()

    @property
    def shared_limit(self) -> int:
        return self._library.stub_shared_limit()

    def expect_parameters(self, count: int) -> None:
        self._library.stub_parameters(count)

    def fail_next(self, status: int) -> None:
        self._library.stub_fail(status)

    def on_launch(self, function) -> None:
        """Call function(launch) in place of the kernel."""
        self._callback = _CALLBACK(lambda pointer: function(pointer[0]))
        self._library.stub_on_launch(self._callback)

    def close(self) -> None:
        self._library.stub_on_launch(_CALLBACK())
        self._library.stub_parameters(0)
        self._library.stub_fail(0)


@pytest.fixture
def stub():
    found = Stub()
    yield found
    found.close()


@dataclass
class Compiler:
    """In place of the real one: kernels that have every pointer, extent, stride and value as a
    parameter, in this order, argument by argument.

    stored: names of the arrays that kernels store to.
    shared_bytes: that kernels use.
    maps: parameters that are tensor maps, after all others; those of numbers only in code for
        numbers that describe arrays.
    cluster: blocks of a program.
    compilations: (kernel, specialization, constants) of each.
    """

    stub: Stub
    stored: tuple[str, ...] = ("out",)
    shared_bytes: int = 0
    maps: tuple[Parameter, ...] = ()
    cluster: int = 1
    compilations: list | None = None

    def __call__(self, function, specialization, constants) -> Compiled:
        self.compilations.append((function.__name__, specialization, dict(constants)))
        parameters = []
        for name, argument in specialization.arguments:
            if not isinstance(argument, ArrayArgument):
                parameters.append(Parameter("value", name))
                continue
            parameters.append(Parameter("pointer", name))
            for kind in ("extent", "stride"):
                parameters += [Parameter(kind, name, axis) for axis in range(argument.rank)]
        parameters += [parameter for parameter in self.maps
                       if specialization.numbers_describe or all(
                           number.kind != "value" for number in parameter.tensor_map.numbers)]
        self.stub.expect_parameters(len(parameters))
        names = {name for name, _ in specialization.arguments}
        assembled = Assembled("// of the stub", b"cubin", 32, 0, 0, 0)
        machine = MachineCode(None, "", assembled, function.__name__, tuple(parameters),
                              32 * (specialization.options.num_warps or 4), self.shared_bytes,
                              self.cluster)
        effects = Effects(frozenset(names), frozenset(self.stored) & names)
        return Compiled(function.__name__, specialization, None, effects, machine, {})


@pytest.fixture
def compiler(stub, monkeypatch) -> Compiler:
    made = Compiler(stub, compilations=[])
    monkeypatch.setattr(kernel_code, "load_or_compile", made)
    return made
