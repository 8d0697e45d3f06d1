"""Values, ops, regions and functions: typed SSA with structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from blocknumba.errors import UNKNOWN, Loc
from blocknumba.tile_ir.ir.remarks import Remark
from blocknumba.tile_ir.ir.tensor_map import TensorMap
from blocknumba.tile_ir.ir.types import TileType

Attr = bool | int | float | str | None | tuple
Traits = frozenset[str]
Types = TileType | tuple[TileType, ...] | None
Fold = Callable[..., object]


@dataclass(eq=False, slots=True)
class Value:
    """A result of an op, or an argument of a region; compared by identity.

    owner: the op that makes it; None for an argument of a region.
    hint: the user's name for it, for printing.
    """

    type: TileType
    owner: Op | None = None
    hint: str = ""


@dataclass(eq=False, slots=True)
class Op:
    """One operation.  All ops are of this class; what an op means is in its opdef.

    Operands are read by the names that the opdef gives them: `load.mask`, `loop.start`; one that
    is left out reads as None, a variadic one as a tuple.
    A pass never changes an op: it emits new ones (see builder and rebuild).
    name: of its opdef; a field, as it is read more often than ops are made.
    """

    opdef: OpDef
    operands: tuple[Value, ...]
    attrs: Mapping[str, Attr]
    results: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()
    loc: Loc = UNKNOWN
    name: str = field(init=False)

    def __post_init__(self):
        self.name = self.opdef.name

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(eq=False)
class OpDef:
    """Definition of an op: its name, its operands, and semantics independent of hardware.

    operands: names of the positional operands; those after `required` may be left out (from the
        right), and `variadic` ones may repeat: then the last name stands for any number.
    attributes: names of the compile-time attributes; defaults holds those that may be left out,
        attribute_names the same names as a set.
    index: operand name -> its index; a slice for a variadic one.
    infer: operand types and attributes -> result types; raises BlockTypeError.
    evaluate: a pure op on NumPy arrays of shape (programs, *tile shape); the leading axis has
        length 1 where all programs agree.
    execute: an op that needs the interpreter (memory, control, program ids).
    folds: local simplifications, (builder, op) -> Value, or tuple of Values, or None.
    doc: shapes, dtypes, errors, source.
    """

    name: str
    operands: tuple[str, ...]
    required: int
    variadic: bool
    attributes: tuple[str, ...]
    defaults: dict[str, object]
    traits: Traits
    doc: str
    infer: Callable[..., Types]
    evaluate: Callable | None = None
    execute: Callable | None = None
    folds: list[Fold] = field(default_factory=list)
    attribute_names: frozenset[str] = field(init=False)
    index: dict[str, int | slice] = field(init=False)

    def __post_init__(self):
        self.attribute_names = frozenset(self.attributes)
        self.index = {name: index for index, name in enumerate(self.operands)}
        if self.variadic:
            self.index[self.operands[-1]] = slice(len(self.operands) - 1, None)
        for name in self.operands:
            _name_operand(name)

    def has(self, traits: Traits) -> bool:
        """Whether the op has any of these traits."""
        return not self.traits.isdisjoint(traits)

    def numpy(self, function: Callable) -> Callable:
        """Decorator: the NumPy numerics of a pure op."""
        self.evaluate = function
        return function

    def interpreted(self, function: Callable) -> Callable:
        """Decorator: execution of an op that needs the interpreter: (machine, op, *arrays)."""
        self.execute = function
        return function

    def fold(self, function: Fold) -> Fold:
        """Decorator: one more local simplification."""
        self.folds.append(function)
        return function

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _name_operand(name: str) -> None:
    """Define the accessor of an operand by its name: `load.mask`.

    One class serves all ops, since reading attributes of many classes is slow in CPython.
    """

    def read(op: Op) -> Value | tuple[Value, ...] | None:
        try:
            return op.operands[op.opdef.index[name]]
        except IndexError:  # left out
            return None
        except KeyError:
            raise AttributeError(f"{op.name} has no operand named {name}") from None

    assert name not in Op.__slots__ and name not in ("name", "result"), f"an operand {name}"
    setattr(Op, name, property(read, doc="The operand of this name; None where it is left out."))


@dataclass(eq=False, slots=True)
class Region:
    """A straight run of ops that ends in a terminator, with the values it is entered with."""

    args: tuple[Value, ...]
    ops: tuple[Op, ...]

    @property
    def terminator(self) -> Op:
        return self.ops[-1]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Origin of a kernel parameter, and its attributes known at compile time.

    kind: "pointer" (first element of an array), "extent" (of an axis, elements), "stride" (of
        an axis, elements), "value" (a scalar argument) or "tensor_map" (128 bytes that describe
        an array to TMA; the type of its value is a pointer to the elements).
    argument: name of the Python argument.
    axis: for extents and strides.
    divisibility: the value is a multiple of this; of a pointer, its address in bytes.
    minimum: the value is at least this; None when nothing is known.
    mappable: of a pointer: as of an ArrayArgument.
    tensor_map: of a tensor map: the box.
    """

    kind: str
    argument: str
    axis: int | None = None
    divisibility: int = 1
    minimum: int | None = None
    mappable: bool = False
    tensor_map: TensorMap | None = None

    @property
    def is_pointer(self) -> bool:
        """Whether its value is a pointer."""
        return self.kind in ("pointer", "tensor_map")


@dataclass(eq=False, slots=True)
class Function:
    """A kernel: parameters[i] describes body.args[i].

    attrs: decisions of passes for the kernel as a whole.  A name is written by the pass that
        decides it and kept by all others: cluster (blocks of a program), dot_registers (registers
        of a thread that overlapping dots need), resident_programs (that share a multiprocessor),
        shared_bytes (of a block), strides_are_given (typing, of Triton's dialect: steps of run time
        are strides of arrays, whose rows do not overlap).
    remarks: of the decisions of passes, in the order of the passes.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Region
    loc: Loc = UNKNOWN
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def with_body(self, body: Region, parameters: tuple[Parameter, ...] | None = None,
                  **decided: Attr) -> Function:
        """The function with another body.  decided: attributes to add; None takes one away."""
        attrs = {name: value for name, value in {**self.attrs, **decided}.items()
                 if value is not None}
        return Function(self.name, self.parameters if parameters is None else parameters, body,
                        self.loc, attrs, self.remarks)

    def remarked(self, remarks: Iterable[Remark]) -> Function:
        """The function with more remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))


def walk(region: Region) -> Iterator[Op]:
    """Every op of a region, regions within included, each op before its regions."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)
