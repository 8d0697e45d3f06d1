"""A kernel at every stage of its compilation, as rows of text that know their source lines.

    Python  ->  tile IR  ->  tile IR, optimised  ->  GPU-layout IR  ->  PTX  ->  SASS
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.pipeline import layout_options, typing_options
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.errors import BlockValueError, Loc
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.pipeline import lay_out, layout_passes
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE
from blocknumba.tile_ir.ir.types import ViewType
from blocknumba.tile_ir.passes.contract import Pass
from blocknumba.tile_ir.passes.pipeline import optimise
from blocknumba.tile_ir.text.printer import attribute_text, attributes_text, text
from blocknumba.typing.frontend import build

# The first words of PTX instructions that say how a kernel was compiled; the rest is arithmetic.
_TELLING = frozenset("atom bar barrier cp ex2 fence ld ldmatrix lg2 mbarrier mma rcp red rsqrt "
                     "shfl sqrt st stmatrix wgmma".split())
_INSTRUCTION = re.compile(r"(?:@!?%?\w+\s+)?([a-z]\w*(?:[.:]+\w+)*)(?=\s|$)")
_LINE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(.*?)"')
_SASS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w+)")

# Kinds of machine instructions, by how their names begin; the first that fits counts.
SASS_KINDS = (
    ("tensor cores", ("HGMMA", "HMMA", "IGMMA", "IMMA", "QGMMA", "QMMA", "DMMA", "BMMA", "UTCMMA",
                      "UTCHMMA", "UTCQMMA")),
    ("TMA", ("UTMA", "UBLKCP")),
    ("global memory", ("LDG", "STG", "ATOMG", "RED", "LD.", "ST.")),
    ("shared memory", ("LDS", "STS", "STSM", "ATOMS", "STAS")),
    ("local memory", ("LDL", "STL")),
    ("shuffles", ("SHFL",)),
    ("barriers and fences", ("BAR", "SYNCS", "DEPBAR", "LDGDEPBAR", "WARPSYNC", "WARPGROUP",
                             "FENCE", "MEMBAR", "UCGABAR", "NANOSLEEP")),
    ("special functions", ("MUFU",)),
    ("floating point", ("FADD", "FMUL", "FFMA", "FMNMX", "FSET", "FSEL", "FCHK", "FSWZADD", "F2",
                        "HADD", "HMUL", "HFMA", "HMNMX", "HSET", "DADD", "DMUL", "DFMA", "DSET",
                        "FRND")),
    ("control flow", ("BRA", "BRX", "EXIT", "BSSY", "BSYNC", "RET", "CALL", "JMP", "BREAK")),
    ("padding", ("NOP",)),
    ("integers, moves, predicates", ("",)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a listing of IR.

    text: with names instead of constants.  type: of what it makes.  depth: regions around it.
    layout: of its tile, if it has one.  line: of the kernel's source, 0 where there is none.
    ops: those that the row stands for.
    """

    text: str
    type: str = ""
    depth: int = 0
    layout: LinearLayout | None = None
    line: int = 0
    ops: tuple[Op, ...] = ()


@dataclass(frozen=True, slots=True)
class PassRun:
    """Effect of one pass on a kernel.

    changed: whether it did anything.  gone, made: names of ops of which there are fewer or more
    than before, with the difference.
    """

    name: str
    summary: str
    changed: bool
    gone: tuple[tuple[str, int], ...]
    made: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Stages:
    """A kernel at every stage.

    source: lines of the Python function, by number.
    typed, optimised, laid_out: the function as typing built it, after the tile passes, and after
        the layout passes.
    passes: in order.
    """

    compiled: Compiled
    file: str
    source: Mapping[int, str]
    typed: Function
    optimised: Function
    laid_out: Function
    passes: tuple[PassRun, ...]

    @staticmethod
    def of(kernel: Kernel, specialization: Specialization,
           constants: Mapping[str, object]) -> Stages:
        """Compile a kernel, and keep what each stage makes of it.

        constants: the values whose keys are in the specialization.
        Errors: those of the kernel; BlockValueError when its source is nowhere.
        """
        function = kernel.python_function
        source = _source(function)
        compiled = kernel.compile(specialization, constants)
        typed = build(function, dict(specialization.arguments), constants,
                      typing_options(specialization))
        seen = _Observed(typed)
        optimised = optimise(typed, keep_views=True, observer=seen)
        machine, target = compiled.machine, specialization.target
        warps = machine.threads // target.warp_size - compiled.stats.producers
        tile_passes, seen.runs = seen.runs, []
        laid_out = lay_out(optimised, layout_options(specialization, warps), observer=seen)
        assert text(laid_out) == machine.gpu, "the drawing is not of the code"
        # passes run again when shared memory does not suffice
        return Stages(compiled, function.__code__.co_filename, source, typed, optimised, laid_out,
                      (*tile_passes, *seen.runs[-len(layout_passes()):]))

    def rows(self, fn: Function) -> list[Row]:
        """The rows of a function at one of the stages."""
        return _Listing(self.line).function(fn)

    def line(self, loc: Loc) -> int:
        """The line of the kernel's source that a location is in or was called from; else 0."""
        found: Loc | None = loc
        while found is not None:
            if found.file == self.file and found.line in self.source:
                return found.line
            found = found.caller
        return 0

    @cached_property
    def ptx_by_line(self) -> dict[int, Counter[str]]:
        """The instructions of the PTX that tell something, by line of the source."""
        text_ = self.compiled.ptx
        files = {number for number, name in _FILE.findall(text_) if name == self.file}
        found: dict[int, Counter[str]] = {}
        line = 0
        for written in text_.splitlines():
            location = _LINE.match(written)
            if location:
                line = int(location[2]) if location[1] in files else line
            elif line in self.source:
                found.setdefault(line, Counter()).update(_telling(written))
        return {line: found[line] for line in sorted(found) if found[line]}

    @cached_property
    def sass_by_kind(self) -> dict[str, Counter[str]]:
        """The instructions of the machine code: their names and numbers, by SASS_KINDS."""
        found: dict[str, Counter[str]] = {kind: Counter() for kind, _ in SASS_KINDS}
        for name in _SASS.findall(self.compiled.asm["sass"]):
            kind = next(kind for kind, starts in SASS_KINDS if name.startswith(starts))
            found[kind][name] += 1
        return {kind: counts for kind, counts in found.items() if counts}


def _source(function: FunctionType) -> dict[int, str]:
    """The lines of a function, by number.  Errors: BlockValueError when no file has them."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        raise BlockValueError(f"draw: the source of {function.__name__} is in no file") from None
    return dict(enumerate((line.rstrip("\n") for line in lines), first))


def _telling(line: str) -> Iterator[str]:
    """The instructions in a line of PTX that say how a kernel was compiled."""
    for statement in re.split(r"[;{}]", line):
        found = _INSTRUCTION.match(statement.strip())
        if found and found[1].partition(".")[0] in _TELLING and not found[1].startswith("ld.param"):
            yield found[1]


class _Observed:
    """Observer of passes: what each of them changes."""

    def __init__(self, fn: Function):
        self.runs: list[PassRun] = []
        self._before = fn

    def __call__(self, pass_: Pass, after: Function, _seconds: float) -> None:
        before, self._before = self._before, after
        was, is_ = _counts(before), _counts(after)
        self.runs.append(PassRun(pass_.name, pass_.summary, text(before) != text(after),
                                 _sorted(was - is_), _sorted(is_ - was)))


def _counts(fn: Function) -> Counter[str]:
    return Counter(op.name for op in walk(fn.body))


def _sorted(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class _Listing:
    """Rows of a function.

    Constants stand where they are used, and runs of scalar arithmetic are one row: tiles are what
    a kernel is about.
    """

    def __init__(self, line_of: Callable[[Loc], int]):
        self._line_of = line_of
        self._rows: list[Row] = []
        self._names: dict[Value, str] = {}
        self._uses: Counter[str] = Counter()
        self._hidden: list[Op] = []

    def function(self, fn: Function) -> list[Row]:
        """All rows; the first ones are the parameters, one for each argument."""
        origins: dict[str, list[str]] = {}
        for parameter, value in zip(fn.parameters, fn.body.args, strict=True):
            self._define(value)
            axis = "" if parameter.axis is None else f" {parameter.axis}"
            box = parameter.tensor_map
            shown = "" if box is None else f" of {'x'.join(map(str, reversed(box.box)))} boxes"
            origins.setdefault(parameter.argument, []).append(
                f"{parameter.kind.replace('_', ' ')}{axis}{shown}")
        self._rows += [Row(f"{name}: {', '.join(known)}") for name, known in origins.items()]
        self._region(fn.body, 0)
        return self._rows

    def _region(self, region: Region, depth: int) -> None:
        for op in region.ops:
            if op.name == "constant":
                self._names[op.result] = attribute_text(op.attrs["value"])
                continue
            if _is_scalar_arithmetic(op):
                self._hidden.append(op)
                for result in op.results:
                    self._define(result)
                continue
            self._flush(depth)
            self._op(op, depth)
        self._flush(depth)

    def _flush(self, depth: int) -> None:
        """The row of the scalar arithmetic since the last one; a single op is shown."""
        hidden, self._hidden = self._hidden, []
        if len(hidden) == 1:
            self._op(hidden[0], depth)
        elif hidden:
            self._rows.append(Row(f"… {len(hidden)} scalar ops", "", depth, None,
                                  self._line_of(hidden[0].loc), tuple(hidden)))

    def _op(self, op: Op, depth: int) -> None:
        fields = [op.name, ", ".join(self._names[value] for value in op.operands),
                  attributes_text(op)]
        if op.results:
            fields.insert(0, ", ".join(self._names.get(value) or self._define(value)
                                       for value in op.results) + " =")
        tiles = [value.type for value in op.results if not value.type.is_scalar]
        of = tiles or [value.type for value in op.results]
        layout = next((tile.layout for tile in tiles if tile.size > 1), None)
        row = Row(" ".join(filter(None, fields)), ", ".join(tile.spelling for tile in of), depth,
                  layout, self._line_of(op.loc), (op,))
        if not op.regions:
            self._rows.append(row)
            return
        for number, region in enumerate(op.regions):
            args = ", ".join(map(self._define, region.args))
            opening = f"{row.text} " if number == 0 else "} else "
            self._rows.append(Row(f"{opening}({args}) {{" if args else f"{opening}{{",
                                  row.type if number == 0 else "", depth,
                                  layout if number == 0 else None, row.line,
                                  (op,) if number == 0 else ()))
            self._region(region, depth + 1)
        self._rows.append(Row("}", "", depth, None, row.line))

    def _define(self, value: Value) -> str:
        """Give a value its name: the user's, or a number."""
        stem = value.hint or str(len(self._names))
        count = self._uses[stem]
        self._uses[stem] += 1
        self._names[value] = f"%{stem}.{count}" if count else f"%{stem}"
        return self._names[value]


def _is_scalar_arithmetic(op: Op) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    return (op.opdef.has(PURE) and not op.regions
            and not any(type_.shape or isinstance(type_.dtype, ViewType) for type_ in types))


def layouts_of(rows: Iterable[Row]) -> list[LinearLayout]:
    """The layouts of rows, each once, in the order in which they appear."""
    return list(dict.fromkeys(row.layout for row in rows if row.layout is not None))
