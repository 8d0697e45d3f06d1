"""The emitter: writes the ops of a kernel as NVVM IR, with source lines as metadata."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from blocknumba.errors import UNKNOWN, Loc, ResourceError
from blocknumba.gpu_layout.async_copies.ops import shared_slice
from blocknumba.gpu_layout.layouts.registers import register_count
from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.llvm import I8, SHARED, Body, Module, pointer
from blocknumba.nvvm_lower.ptx import warp as ptx
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.services.address import GRID_AXES, Threads, special_register
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS, raises
from blocknumba.tile_ir.analysis.awaited_loads import loads_to_await
from blocknumba.tile_ir.analysis.axis_info import axis_info
from blocknumba.tile_ir.analysis.provenance import Origins, origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import TERMINATOR, OpTable
from blocknumba.tile_ir.ir.remarks import Remark
from blocknumba.tile_ir.ir.types import DType, TileType


@dataclass(frozen=True, slots=True)
class Rounded:
    """A float that was rounded to a narrow one.   saturates: as the op `cast` may."""

    value: str
    saturates: bool


class DebugInfo:
    """The debug metadata of one kernel: lines only, no variables.

    Source: NVVM IR Specification, "Source Level Debugging Support"; DebugDirectivesOnly is what
    makes `.loc` lines without a debugger's sections.
    """

    def __init__(self, module: Module, kernel: str, loc: Loc):
        self._module = module
        self._unit = module.node(
            "!DICompileUnit(language: DW_LANG_C_plus_plus, "
            f'file: {self._file(loc.file)}, producer: "blocknumba", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: DebugDirectivesOnly)", distinct=True)
        module.name_node("llvm.dbg.cu", self._unit)
        module.name_node("llvm.module.flags", module.node('!{i32 2, !"Debug Info Version", i32 3}'))
        self._signature = module.node(f"!DISubroutineType(types: {module.node('!{null}')})")
        self._known: dict[Loc, str] = {}
        self._functions: dict[tuple[str, str], str] = {}
        self._kernel = kernel
        self.subprogram = self._function(loc)
        self._outermost = self.node(loc) or self._module.node(
            f"!DILocation(line: 0, column: 0, scope: {self.subprogram})")

    def location(self, loc: Loc) -> str:
        """The suffix of the instructions of a source location."""
        if loc is UNKNOWN:
            return f", !dbg {self._outermost}"
        if loc not in self._known:
            self._known[loc] = f", !dbg {self.node(loc)}"
        return self._known[loc]

    def node(self, loc: Loc) -> str:
        """The metadata node of a source location; of an inlined function, with the call's."""
        if loc is UNKNOWN:
            return ""
        if loc.caller is None:
            scope, called_at = self.subprogram, ""
        else:
            scope = self._function(loc)
            called_at = f", inlinedAt: {self.node(loc.caller)}"
        return self._module.node(f"!DILocation(line: {loc.line}, column: {max(loc.column, 0) + 1}, "
                                 f"scope: {scope}{called_at})", distinct=loc.caller is not None)

    def _file(self, path: str) -> str:
        folder, name = os.path.split(path)
        return self._module.node(f'!DIFile(filename: "{_quoted(name or "unknown")}", '
                                 f'directory: "{_quoted(folder)}")')

    def _function(self, loc: Loc) -> str:
        key = loc.file, loc.function
        if key not in self._functions:
            name = _quoted(loc.function or self._kernel)
            file = self._file(loc.file)
            self._functions[key] = self._module.node(
                f'!DISubprogram(name: "{name}", linkageName: "{name}", scope: {file}, '
                f"file: {file}, line: {loc.line}, type: {self._signature}, isLocal: false, "
                f"isDefinition: true, scopeLine: {loc.line}, isOptimized: true, "
                f"unit: {self._unit})", distinct=True)
        return self._functions[key]


def _quoted(text: str) -> str:
    """text as the inside of an LLVM string."""
    return "".join(c if c.isprintable() and c not in '"\\' and c.isascii()
                   else "".join(f"\\{byte:02X}" for byte in c.encode()) for c in text)


Registers = list[str]
Code = Callable[..., Registers | tuple[Registers, ...] | None]

# (emitter, op, registers of each operand) -> the registers of the only result, a tuple with those
# of each, or None if there are no results
code = CODE = OpTable[Code]("code for GPUs")
SHARED_START = "%shared"  # register of a callee
SHARED_ALIGNMENT = 1024  # what TMA's 128-byte swizzle needs.  Source: PTX ISA, "Swizzling Modes"


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """Options of code generation.

    num_warps: warps per program.
    fastmath: approximate division, square root and transcendentals; contraction.
    maxnreg: maximum of registers per thread; None leaves it to the assembler.
    min_blocks: programs that must fit a multiprocessor at once, which limits registers too.
    lineinfo: keep source lines in the machine code.
    debug: keep checks of accesses and asserts.
    dependent: the kernel may begin before the previous one in the stream has ended, and first
        waits for its end; ignored on targets without programmatic dependent launch.
    """

    num_warps: int = 4
    fastmath: bool = False
    maxnreg: int | None = None
    min_blocks: int = 1
    lineinfo: bool = False
    debug: bool = False
    dependent: bool = False


@dataclass(frozen=True, slots=True)
class Callee:
    """The surroundings of a kernel that is lowered to a function, which other kernels call.

    program_ids: registers along the axes of the grid.
    space: the state space of arrays, "global" or "generic" (any).
    shared_memory: the name of its array of static shared memory.   shared_bytes: its size; None
        where it has dynamic shared memory, from the byte in SHARED_START on.
    """

    program_ids: tuple[str, str, str]
    space: str
    shared_memory: str
    shared_bytes: int | None


class Emitter:
    """Writes the ops of one kernel into a body.

    A tile is a list of LLVM values, one per register of its layout; a scalar is a list of one,
    which is the same in all threads.
    axis_infos: the axis info of each value.
    used: the values that some op reads.
    rounded: (dtype, value) -> the float that was rounded to it.
    limited: (dtype, value) -> the i32 that was limited to it.
    low_bytes: an 8-bit integer -> the 16-bit one whose low byte it is.
    packed: narrow elements that were taken out of a word -> the word.
    parts: a narrow element that was taken out of an i32 -> the i32, and its index from the low end.
    parameters: argument of the kernel -> its Parameter, with known attributes.
    blocks: of the cluster that a program is partitioned over; 1 without a cluster.
    program_barrier: the barrier of all threads of the program.
    callee: set where the kernel becomes a function that other kernels call.
    space: the state space of arrays, "global" or "generic".
    """

    def __init__(self, body: Body, target: Target, options: CodeOptions, fn: Function,
                 debug_info: DebugInfo | None, callee: Callee | None = None):
        self.body, self.target, self.options = body, target, options
        reads_ahead = any(op.opdef is shared_slice for op in walk(fn.body))
        self.threads = Threads(body, options.num_warps, holds=reads_ahead)
        self.axis_infos = axis_info(fn)
        self.used = frozenset(value for op in walk(fn.body) for value in op.operands)
        self.values: dict[Value, Registers] = {}
        self.rounded: dict[tuple[DType, str], Rounded] = {}
        self.limited: dict[tuple[DType, str], str] = {}
        self.low_bytes: dict[str, str] = {}
        self.packed: dict[tuple[str, ...], str] = {}
        self.parts: dict[str, tuple[str, int]] = {}
        self.blocks = fn.attrs.get("cluster", 1)
        self.remarks: list[Remark] = []
        self._fn = fn
        self.parameters = dict(zip(fn.body.args, fn.parameters, strict=True))
        # a program of one warp has a cheaper barrier
        self.program_barrier = ptx.BARRIER if options.num_warps > 1 else ptx.WARP_BARRIER
        self.callee = callee
        self.space = "global" if callee is None else callee.space
        self._debug_info = debug_info

    @cached_property
    def _origins(self) -> dict[Value, Origins]:
        return origins(self._fn)

    @cached_property
    def awaited(self) -> dict[Op, Op]:
        """Loads that stores wait for, by the store."""
        return loads_to_await(self._fn.body)

    def arrays_of(self, pointer: Value) -> str:
        """The array arguments that a pointer may point into, for remarks."""
        return " or ".join(sorted(self._origins.get(pointer, ())))

    def run(self, region: Region) -> list[Registers]:
        """Write the ops of a region; the registers of its terminator's operands."""
        for op in region.ops:
            if op.opdef.has(TERMINATOR):
                return [self.values[value] for value in op.operands]
            self.write(op)
        raise AssertionError("a region without terminator")

    def write(self, op: Op) -> None:
        """Write one op."""
        if self._debug_info is not None:
            self.body.location = self._debug_info.location(op.loc)
        function = CODE.get(op.name)
        assert function, f"{op.name} has no code"
        made = function(self, op, *[self.values[value] for value in op.operands])
        if not isinstance(made, tuple):
            made = () if made is None else (made,)
        for value, registers in zip(op.results, made, strict=True):
            assert len(registers) == count(value.type), f"{op.name}: {len(registers)} registers"
            self.values[value] = registers
        _require_few_instructions(self.body.length, op)

    @property
    def shared_memory(self) -> str:
        """The program's shared memory as an array of bytes: dynamic, in most callees static."""
        if self.callee is not None and self.callee.shared_bytes is not None:
            name, array = self.callee.shared_memory, f"[{self.callee.shared_bytes} x i8]"
            self.body.module.global_variable(
                name, f"internal addrspace({SHARED}) global {array} undef, "
                      f"align {SHARED_ALIGNMENT}")
            return f"bitcast ({pointer(array, SHARED)} @{name} to {pointer('[0 x i8]', SHARED)})"
        whole = self.body.module.global_variable(
            "shared_memory", f"external addrspace({SHARED}) global [0 x i8], "
                             f"align {SHARED_ALIGNMENT}")
        if self.callee is None:
            return whole
        array = pointer("[0 x i8]", SHARED)
        start = self.body.pure(f"getelementptr [0 x i8], {array} {whole}, i32 0, "
                               f"i32 {SHARED_START}")
        return self.body.convert("bitcast", pointer(I8, SHARED), start, array)

    def block_id(self, axis: int) -> str:
        """The index of this block along an axis of the grid; in a callee, the given program id."""
        if self.callee is not None:
            return self.callee.program_ids[axis]
        return special_register(self.body, f"ctaid.{GRID_AXES[axis]}")

    def barrier(self) -> None:
        """Synchronize all threads of the program."""
        self.assembly(self.program_barrier)

    def assembly(self, assembly: Assembly, *operands: str) -> tuple[str, ...]:
        """Inline PTX, checked against the target."""
        assert assembly.needs is None or self.target.has(assembly.needs), (
            f"{assembly.name} on {self.target}")
        return self.body.assembly(assembly, *operands)

    def flag(self, condition: str) -> str:
        """An i1 as the i32 that inline PTX takes for a predicate; "" (always) is 1."""
        return self.body.convert("zext", "i1", condition, "i32") if condition else "1"

    def both(self, first: str, second: str) -> str:
        """The conjunction of two i1, either of which may be "" (always)."""
        if not first or not second:
            return first or second
        return self.body.binary("and", "i1", first, second)


def count(type_: TileType) -> int:
    """Number of registers that hold a value of this type in each thread."""
    return 1 if type_.is_scalar else register_count(type_.layout)


def _require_few_instructions(count: int, op: Op) -> None:
    """Check the length of a kernel up to an op: the assembler takes minutes for very long ones."""
    limit = SETTINGS.limits.instructions
    if count > limit:
        raise ResourceError(
            f"the kernel has more than {limit} instructions up to this line", loc=op.loc,
            hint="use smaller tiles, more num_warps, or loops that are not unrolled; "
                 f"{raises('instructions')}", resource="instructions", required=count, limit=limit)


def llvm_type(value: Value) -> str:
    """The LLVM type of each register of a value."""
    return register_type(value.type.dtype)
