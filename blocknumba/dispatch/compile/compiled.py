"""A compiled kernel: its text at every level, what it uses, and its handle in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.effects import Effects
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.compile.stats import Stats
from blocknumba.dispatch.compile.stored_function import StoredFunction
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo, sizes_in
from blocknumba.errors import BlockKeyError, BlockValueError, require
from blocknumba.nvvm_lower.toolchain import (
    AssembleOptions, compile_to_ptx, disassemble, what_is_missing,
)
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.text.printer import text
from blocknumba.tracebacks import without_our_frames
from blocknumba.wording import did_you_mean

if TYPE_CHECKING:
    from blocknumba.tile_ir.interpreter import Interpreter


@dataclass(eq=False)
class Compiled:
    """One specialization of a kernel.

    name: of the kernel.
    source: optimised tile IR, perhaps as it came from the disk.
    effects: which arrays it reads and stores to.
    machine: the code for the target; None when it was compiled for the interpreter.
    times_ms: how long each stage took; only "cache" when it came from the disk.
    interpreter: what runs it on the CPU, made by the first launch there.
    """

    name: str
    specialization: Specialization
    source: Function | StoredFunction
    effects: Effects
    machine: MachineCode | None
    times_ms: Mapping[str, float]
    interpreter: Interpreter | None = None
    _kernel: int | None = None
    _prepared: set[int] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def tile(self) -> Function:
        """Optimised tile IR."""
        stored = isinstance(self.source, StoredFunction)
        return self.source.read() if stored else self.source

    def is_for(self, given: Mapping[str, ArgumentInfo]) -> bool:
        """Whether a launch's arguments describe arrays that the code's tensor maps can encode."""
        return self.machine is None or all(
            sizes_in(given, parameter) is not None for parameter in self.machine.parameters
            if parameter.kind == "tensor_map")

    @cached_property
    def ptx(self) -> str:
        """The PTX; of a kernel that was linked from LTO IR, of the same NVVM IR.

        Errors: BlockValueError when it was compiled for the interpreter.
        """
        machine, options = self._require_machine("ptx"), self.specialization.options
        flags = AssembleOptions(fastmath=options.fastmath, lineinfo=options.lineinfo)
        return machine.assembled.ptx or compile_to_ptx(
            machine.nvvm, self.specialization.target, flags).decode()

    @property
    def asm(self) -> Mapping[str, str | bytes]:
        """The kernel at each level: "tile", "gpu", "nvvm", "ptx", "sass" (text), "cubin"."""
        return Assembly(self)

    @cached_property
    @without_our_frames
    def stats(self) -> Stats:
        """Registers, spills, shared memory, occupancy; what became of loads and products.

        Errors: BlockValueError when it was compiled for the interpreter.
        """
        machine = self._require_machine("stats")
        return Stats.of(self.name, self.specialization, machine, lambda: self.ptx)

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
        return f"<{self.name} compiled for {self.specialization.target or 'the interpreter'}>"

    def _require_machine(self, what: str) -> MachineCode:
        require(self.machine is not None,
                "{}: {} was compiled for the interpreter, which has no machine code", what,
                self.name, error=BlockValueError,
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
        self._name = compiled.name
        self._makers: dict[str, Callable[[], str | bytes]] = {"tile": compiled.tile_text}
        if machine is not None:
            self._makers |= {
                "gpu": lambda: machine.gpu,
                "nvvm": lambda: machine.nvvm,
                "ptx": lambda: compiled.ptx,
                "sass": lambda: disassemble(machine.assembled.cubin),
                "cubin": lambda: machine.assembled.cubin,
            }

    @without_our_frames
    def __getitem__(self, level: str) -> str | bytes:
        """Errors: BlockKeyError for a level that there is not."""
        if level in self._makers:
            return self._makers[level]()
        told = "" if "ptx" in self._makers else ", which was compiled for the interpreter"
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
