"""Compiled kernels, and tile IR functions as they are stored with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.compile.stats import Stats
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.dispatch.launch.forks import COMPILATIONS, Lock
from blocknumba.dispatch.launch.specialize import Specialization, constant_text
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo, sizes_in
from blocknumba.errors import UNKNOWN, BlockKeyError, BlockValueError, Loc, require
from blocknumba.nvvm_lower.toolchain import (
    AssembleOptions, compile_to_ptx, disassemble, what_is_missing,
)
from blocknumba.tables import html_table
from blocknumba.tile_ir.analysis.advice import NUMPY, TRITON, advice, advice_on_alignment
from blocknumba.tile_ir.analysis.provenance import Effects
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.text.printer import text
from blocknumba.tracebacks import without_our_frames
from blocknumba.typing.dialect import TRITON_NAME
from blocknumba.wording import did_you_mean


_NOWHERE = -1
_LOC_FIELDS = [str, int, int, int, str, int]  # the fields of a Loc


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function that can be read back; it is parsed only when somebody asks for it.

    text: as the printer writes it.
    locations: each distinct location once, as the fields of a Loc; the caller is the index of an
        earlier location.
    op_locations: index of each op's location, in the order of walk; the function's own first.
    """

    text: str
    locations: list[list]
    op_locations: list[int]

    @staticmethod
    def of(fn: Function) -> StoredFunction:
        """The stored form of a function."""
        locations, ops = numbered([fn.loc, *(op.loc for op in walk(fn.body))])
        return StoredFunction(text(fn), locations, ops)

    def check(self) -> None:
        """Errors: ValueError or TypeError when locations are not as `of` writes them."""
        for number, location in enumerate(self.locations):
            if [*map(type, location)] != _LOC_FIELDS or not _NOWHERE <= location[-1] < number:
                raise ValueError(location)
        numbers = set(self.op_locations)
        if not numbers <= set(range(_NOWHERE, len(self.locations))):
            raise ValueError(numbers)

    def read(self) -> Function:
        """The function."""
        with COMPILATIONS.running():
            # here and not above: import blocknumba must be fast, and few functions are read
            from blocknumba.tile_ir.text.parser import parse
        fn = parse(self.text)
        fn.loc, *rest = located(self.locations, self.op_locations)
        for op, loc in zip(walk(fn.body), rest, strict=True):
            op.loc = loc
        return fn


def numbered(locs: Iterable[Loc]) -> tuple[list[list], list[int]]:
    """A table of locations, each a list for JSON, and the number in it of each of some."""
    numbers: dict[Loc, int] = {}
    found = [_number(loc, numbers) for loc in locs]
    table = [[loc.file, loc.line, loc.column, loc.end_column, loc.function,
              _number(loc.caller or UNKNOWN, numbers)] for loc in numbers]
    return table, found


def located(table: Iterable[list], numbers: Iterable[int]) -> list[Loc]:
    """The locations with some numbers in the table that `numbered` made."""
    locs: list[Loc] = []
    for *fields, caller in table:
        locs.append(Loc(*fields, caller=None if caller == _NOWHERE else locs[caller]))
    return [UNKNOWN if number == _NOWHERE else locs[number] for number in numbers]


def _number(loc: Loc, numbers: dict[Loc, int]) -> int:
    """Index of a location in the table; a caller comes before its callee."""
    if loc == UNKNOWN:
        return _NOWHERE
    if loc not in numbers:
        _number(loc.caller or UNKNOWN, numbers)
        numbers[loc] = len(numbers)
    return numbers[loc]


if TYPE_CHECKING:
    from blocknumba.dispatch.compile.layouts import Layouts
    from blocknumba.dispatch.compile.native import NativeCode, NativeStats
    from blocknumba.tile_ir.interpreter import Interpreter


@dataclass(eq=False)
class Compiled:
    """One specialization of a kernel.

    name: of the kernel.
    source: optimised tile IR, perhaps as it came from the disk.
    effects: which arrays it reads and stores to.
    machine: the code for the target; None when it was compiled for the interpreter.
    times_ms: how long each stage took; only "cache" when it came from the disk.
    native: the code for the CPU; None when it is for a GPU or interpreted.
    interpreter, launcher: what runs it on the CPU, made by the first launch there.
    chosen: its tiles, and what came next, where a launch left them to the compiler.
    """

    name: str
    specialization: Specialization
    source: Function | StoredFunction
    effects: Effects
    machine: MachineCode | None
    times_ms: Mapping[str, float]
    native: NativeCode | None = None
    interpreter: Interpreter | None = None
    launcher: object | None = None
    chosen: str = ""
    _kernel: int | None = None
    _prepared: set[int] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def tile(self) -> Function:
        """Optimised tile IR."""
        stored = isinstance(self.source, StoredFunction)
        return self.source.read() if stored else self.source

    @property
    def device(self) -> str:
        """Its device in words: a GPU's target, a processor or the interpreter."""
        if self.native is not None:
            return self.specialization.processor
        return str(self.specialization.target or "the interpreter")

    @property
    def is_text(self) -> bool:
        """Whether text says all of it, as entries of the disk cache do.

        The interpreter calls scalar functions, which tile IR only names; code of some depends on
        more than what the kernel reads.
        """
        called = [op.attrs["function"].body for op in walk(self.tile.body) if op.name == "map"]
        if self.machine is None and self.native is None:
            return not called
        return all(body is None or body.is_known for body in called)

    def is_for(self, given: Mapping[str, ArgumentInfo]) -> bool:
        """Whether a launch's arguments describe arrays that the code's tensor maps can encode."""
        return self.machine is None or all(
            sizes_in(given, parameter) is not None for parameter in self.machine.parameters
            if parameter.kind == "tensor_map")

    @cached_property
    def ptx(self) -> str:
        """The PTX; of a kernel that was linked from LTO IR, of the same NVVM IR.

        Errors: BlockValueError when it was compiled for the CPU.
        """
        machine, options = self._require_machine("ptx"), self.specialization.options
        flags = AssembleOptions(fastmath=options.fastmath, lineinfo=options.lineinfo)
        return machine.assembled.ptx or compile_to_ptx(
            machine.nvvm, self.specialization.target, flags).decode()

    @property
    def asm(self) -> Mapping[str, str | bytes]:
        """The kernel at each level.

        For a GPU: "tile", "gpu", "nvvm", "ptx", "sass" (text) and "cubin".  For the CPU: "tile",
        "llvm", "native" (assembly language) and "object" (an object file).
        """
        return Assembly(self)

    @cached_property
    @without_our_frames
    def stats(self) -> Stats | NativeStats:
        """Registers, spills, shared memory, occupancy; what became of loads and products.

        Of native code: its versions and how it accesses memory.  Of both: what is slow as the
        kernel is written, and what to write instead.

        Errors: BlockValueError when it was compiled for the interpreter.
        """
        arguments = dict(self.specialization.arguments)
        is_triton = self.specialization.options.dialect == TRITON_NAME
        habits = partial(advice, self.tile, arguments, TRITON if is_triton else NUMPY)
        if self.native is not None:
            return replace(self.native.stats, advice=habits())
        machine = self._require_machine("stats")
        return Stats.of(self.name, self.specialization, machine, lambda: self.ptx,
                        lambda: self.chosen,
                        lambda: (*habits(), *advice_on_alignment(self.tile, arguments)))

    @cached_property
    @without_our_frames
    def layouts(self) -> Layouts:
        """The layouts of its tiles: which thread, or place in shared memory, holds which element.

        Errors: BlockValueError when it was not compiled for a GPU.
        """
        with COMPILATIONS.running():
            # here and not above: import blocknumba must be fast, and few layouts are looked at
            from blocknumba.dispatch.compile.layouts import Layouts
        return Layouts(self._require_machine("layouts").gpu)

    def tile_text(self) -> str:
        """The text of the tile IR, which need not be parsed for it."""
        stored = isinstance(self.source, StoredFunction)
        return self.source.text if stored else text(self.source)

    def handle(self, driver: Driver, device: int) -> int:
        """The kernel in the driver, ready to be launched on a device."""
        self._require_machine("launch")
        with self._lock:
            if device not in self._prepared:
                with driver.outside_capture(), driver.on_device(device):
                    self._prepare(driver, device)
                self._prepared.add(device)
        return self._kernel

    def _prepare(self, driver: Driver, device: int) -> None:
        """Load the code on a device, which is current."""
        machine, target = self.machine, self.specialization.target
        if self._kernel is None:
            self._kernel = driver.load_kernel(machine.assembled.cubin, machine.symbol)
        if machine.shared_bytes > target.static_shared_bytes:
            driver.allow_dynamic_shared(self._kernel, device, machine.shared_bytes)
        driver.load_in_context(self._kernel)

    def __repr__(self) -> str:
        return f"<{self.name} compiled for {self.device}>"

    def _repr_html_(self) -> str:
        """Tables for notebooks: arguments, constants, options, stages, and the stats."""
        interpreted = self.machine is None and self.native is None
        times = ", ".join(f"{stage} {time:.1f} ms" for stage, time in self.times_ms.items())
        return (html_table((), [("made for", self.made_for), ("times", times)], repr(self))
                + ("" if interpreted else self.stats._repr_html_()))

    @property
    def made_for(self) -> str:
        """The arguments, constants and options that it was compiled for."""
        given = self.specialization
        return ", ".join([
            *(f"{name}: {argument}" for name, argument in given.arguments),
            *(f"{name}={constant_text(value)}" for name, value in given.constants),
            *(f"{name}={value!r}" for name, value in given.options.changed().items())])

    def _require_machine(self, what: str) -> MachineCode:
        require(self.machine is not None,
                "{}: {} was compiled for {}, accepted kernels for a GPU", what,
                self.name, self.device, error=BlockValueError,
                hint="" if self.machine else _how_to_get_machine_code())
        return self.machine


def _how_to_get_machine_code() -> str:
    """The hint for who has a kernel of the interpreter and wants more."""
    missing = what_is_missing()
    return (f"{missing}, then " if missing else "") + 'use bn.compile(..., target="sm_90a")'


class Assembly(Mapping[str, str | bytes]):
    """The texts of a compiled kernel, each made when it is asked for."""

    def __init__(self, compiled: Compiled):
        machine = compiled.machine
        self._name, self._device = compiled.name, compiled.device
        self._makers: dict[str, Callable[[], str | bytes]] = {"tile": compiled.tile_text}
        if machine is not None:
            self._makers |= {
                "gpu": lambda: machine.gpu,
                "nvvm": lambda: machine.nvvm,
                "ptx": lambda: compiled.ptx,
                "sass": lambda: disassemble(machine.assembled.cubin),
                "cubin": lambda: machine.assembled.cubin,
            }
        native = compiled.native
        if native is not None:
            self._makers |= {"llvm": lambda: native.llvm_ir, "native": lambda: native.assembly,
                             "object": lambda: native.code}

    @without_our_frames
    def __getitem__(self, level: str) -> str | bytes:
        """Errors: BlockKeyError for a level that there is not."""
        if level in self._makers:
            return self._makers[level]()
        told = "" if "ptx" in self._makers else f", which was compiled for {self._device}"
        raise BlockKeyError(f"asm: given {level!r} of {self._name}{told}, accepted "
                            f"{', '.join(self._makers)}",
                            hint=_how_to_get_machine_code() if told
                            else did_you_mean(str(level), self._makers))

    def __contains__(self, level: object) -> bool:
        return level in self._makers  # without making the text

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
