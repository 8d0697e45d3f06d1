"""Compile options: what a user may choose about a kernel besides its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from blocknumba.errors import BlockTypeError, BlockValueError, require, require_known
from blocknumba.gpu_layout.layouts.registers import MAX_WARPS
from blocknumba.typing.dialect import NUMPY_NAME, TRITON_NAME

MAX_STAGES = 16  # of a loop: more tiles than any machine holds
MAX_CTAS = 16  # non-portable cluster size.  Source: CUDA Programming Guide, compute capabilities
MAX_REGISTERS = 255  # per thread.  Source: CUDA Programming Guide, compute capabilities
MIN_REGISTERS = 16  # fewer than this ptxas rounds up


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one compilation; equal options may share code.

    num_warps: warps per program, a power of two; None leaves it to the compiler, which goes by
        the largest tile.
    num_stages: buffers of a pipelined loop; 1 turns pipelining off; None leaves it to the
        compiler, which goes by the shared memory there is.
    num_ctas: the most thread blocks that a program may be spread over, a power of two.  Each
        computes some rows of the program's products, and they fetch together what all of them
        need; an element that a program writes twice must be of the same rows of its tile.  It
        changes nothing, as `compiled.stats` says, before Hopper and of programs without products.
    fastmath: allow approximate division, square root and transcendentals, and reassociation.
    debug: check every access and every assert.
    maxnreg: the most registers a thread may use; None leaves it to the assembler.
    lineinfo: keep source lines in the machine code, for profilers.
    launch_cooperative_grid: run all programs at the same time, so that they may wait for each
        other; a grid that does not fit the GPU is an error.
    launch_pdl: let programs begin while the last ones of the kernel before it in the stream still
        run; they wait for its results before they do anything.  Before Hopper it changes nothing.
        Source: CUDA Programming Guide, "Programmatic Dependent Launch".
    device: "cpu" runs natively on the CPU even where there is a GPU; None: on the GPU, if any.
    interpret: run in the interpreter, on the CPU, even where there is a GPU.
    dialect: name of the dialect that the kernel's function is in; its decorator's choice.
    contract: in Triton's dialect, round a product and the sum that it goes into once.
    """

    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int = 1
    fastmath: bool = False
    debug: bool = False
    maxnreg: int | None = None
    lineinfo: bool = False
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    device: str | None = None
    interpret: bool = False
    dialect: str = NUMPY_NAME
    contract: bool = True

    def __post_init__(self):
        if self.num_warps is not None:
            _require_power_of_two("num_warps", self.num_warps, MAX_WARPS)
        _require_power_of_two("num_ctas", self.num_ctas, MAX_CTAS)
        if self.num_stages is not None:
            # Triton's 0 is its 1
            _require_integer("num_stages", self.num_stages, int(self.dialect != TRITON_NAME),
                             MAX_STAGES)
        if self.maxnreg is not None:
            _require_integer("maxnreg", self.maxnreg, MIN_REGISTERS, MAX_REGISTERS)
        for name in ("fastmath", "debug", "lineinfo", "launch_cooperative_grid", "launch_pdl",
                     "interpret"):
            value = getattr(self, name)
            require(isinstance(value, bool), "{}: given {!r}, accepted True or False", name, value)
        require(self.device in (None, "cpu"), "device: given {!r}, accepted \"cpu\" or None",
                self.device)

    def named(self) -> dict[str, object]:
        """The options by name, as a grid that is a function sees them."""
        return {name: getattr(self, name) for name in OPTION_NAMES}

    def changed(self) -> dict[str, object]:
        """The options by name that are not what they are where nobody gives any."""
        return {field.name: getattr(self, field.name) for field in fields(self)
                if field.name in OPTION_NAMES and getattr(self, field.name) != field.default}

    def override(self, changes: Mapping[str, object]) -> Options:
        """These options with some of them changed."""
        return replace(self, **changes) if changes else self


OPTION_NAMES = frozenset(field.name for field in fields(Options)) - {"dialect", "contract"}


def require_options(what: str, given: Iterable[str]) -> None:
    """Raise unless all names are of options; what: the function or kernel that got them."""
    require_known(f"{what}: given the options", given, sorted(OPTION_NAMES))


def _require_integer(name: str, value: object, minimum: int, maximum: int) -> None:
    require(isinstance(value, int) and not isinstance(value, bool),
            "{}: given {!r}, accepted an int", name, value, error=BlockTypeError)
    require(minimum <= value <= maximum, "{}: given {}, accepted {} to {}", name, value, minimum,
            maximum, error=BlockValueError)


def _require_power_of_two(name: str, value: object, maximum: int) -> None:
    _require_integer(name, value, 1, maximum)
    require(value & value - 1 == 0, "{}: given {}, accepted a power of two up to {}", name, value,
            maximum, error=BlockValueError)
