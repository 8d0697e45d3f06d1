"""A PTX module as data: what the parser returns and the decoder reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from blocknumba.errors import UNKNOWN, Loc


@dataclass(frozen=True, slots=True)
class Register:
    """A register variable: its slot in the register file and its declared type."""

    slot: int
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal.

    value: an int, or a float for a decimal literal with a point.
    bits: the width of a literal that states its own bits (0f... is 32, 0d... is 64), else 0.
    """

    value: int | float
    bits: int = 0


@dataclass(eq=False, slots=True)
class Variable:
    """A variable in a state space.

    space: global, const, shared, local or param.
    size: in bytes; 0 for an extern array, whose size the launch decides.
    address: offset in its space, assigned when the module is laid out.
    initial: the bytes it starts with, or None.
    pointers: (offset, name) of the initial values that are addresses of other variables.
    """

    name: str
    space: str
    type: str
    align: int
    size: int
    initial: bytes | None = None
    pointers: tuple[tuple[int, str], ...] = ()
    address: int = 0
    is_kernel_parameter: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, a label or a function, by name."""

    name: str
    target: Variable | Label | None = None


@dataclass(eq=False, slots=True)
class Label:
    """A label of a function, or a table of labels.

    index: of the next instruction.   targets: of .branchtargets, in order.
    """

    name: str
    index: int = -1
    targets: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """[base + offset], or [base, {coordinates}] of a tensor copy."""

    base: Operand
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()
    more: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """{a, b, ...} or (a, b, ...)."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """d|p: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Inverted:
    """!p or -a: an operand negated where it is read."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """_: a result that is dropped."""


Operand = (Register | Special | Immediate | Symbol | Address | Group | Pair | Inverted | Sink)


@dataclass(slots=True)
class Instruction:
    """One instruction.

    opcode: with its modifiers, split at the dots.
    guard, inverted: the predicate that it runs under, and whether it is negated.
    """

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    inverted: bool
    line: int
    loc: Loc = UNKNOWN

    @property
    def name(self) -> str:
        """The opcode as written."""
        return ".".join(self.opcode)


@dataclass(eq=False, slots=True)
class Function:
    """A kernel or a device function.

    parameters, results: variables of param space.
    variables: what it declares in its body, scope by scope.
    limits: the performance directives (maxntid, reqnctapercluster, ...) with their numbers.
    """

    name: str
    is_kernel: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    body: list[Instruction] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Program:
    """A parsed module.

    target: as written, such as sm_90a.
    register_types: the declared type of each slot of the register file, over all functions.
    """

    version: str
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    register_types: list[str]
    lines: list[str]
