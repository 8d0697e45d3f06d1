"""The writer of NVVM IR: a module of text, one line per instruction.

The dialect is LLVM 7 with typed pointers, which libNVVM takes for every target (Source: NVVM IR
Specification).  Types and values are plain strings, "float" and "%v12" or a literal: the writer
neither checks nor remembers the type of a value, which is what makes it fast.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blocknumba.nvvm_lower.ptx.assembly import Assembly

TRIPLE = "nvptx64-nvidia-cuda"
DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64")
IR_VERSION = "!{i32 2, i32 0, i32 3, i32 2}"  # NVVM IR 2.0, debug metadata 3.2

MODULE_END = "\n; ---- the next module ----\n"  # in a text of several modules

VOID, I1, I8, I16, I32, I64 = "void", "i1", "i8", "i16", "i32", "i64"
HALF, FLOAT, DOUBLE = "half", "float", "double"
GENERIC, GLOBAL, SHARED = 0, 1, 3  # address spaces
UNDEF = "undef"


def pointer(pointee: str, space: int) -> str:
    """The type of a pointer to pointee in an address space."""
    return f"{pointee} addrspace({space})*" if space else f"{pointee}*"


def vector(element: str, count: int) -> str:
    """The type of count elements in one register group."""
    return f"<{count} x {element}>"


def integer(value: int, bits: int) -> str:
    """The literal of an integer modulo 2**bits, as a signed number."""
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> bits - 1 and bits > 1 else value)


def floating(value: float) -> str:
    """The literal of a double, or of a float that this double represents exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Module:
    """One translation unit: globals, declarations, function texts and metadata."""

    def __init__(self):
        self._types: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._declarations: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._named: dict[str, list[str]] = {}
        self._linked: dict[str, None] = {}

    def link(self, texts: Sequence[str]) -> None:
        """Append the texts of other modules, each once."""
        self._linked |= dict.fromkeys(texts)

    def declare(self, name: str, result: str, parameters: Sequence[str],
                attributes: str = "") -> None:
        """Declare an external function or an intrinsic, once."""
        if name not in self._declarations:
            self._declarations[name] = (
                f"declare {result} @{name}({', '.join(parameters)}) {attributes}")

    def named_type(self, name: str, definition: str) -> str:
        """Define a type, once; its name as a type."""
        self._types[name] = f"%{name} = type {definition}"
        return f"%{name}"

    def global_variable(self, name: str, definition: str) -> str:
        """Define a global, once; its name as a value."""
        self._globals[name] = f"@{name} = {definition}"
        return f"@{name}"

    def constant_bytes(self, data: bytes) -> str:
        """The name of a constant in global memory that holds data."""
        plain = set(range(32, 127)) - set(b'"\\')
        text = "".join(chr(byte) if byte in plain else f"\\{byte:02X}" for byte in data)
        name = f"text{len(self._globals)}"
        definition = (f'private unnamed_addr addrspace({GLOBAL}) constant [{len(data)} x i8] '
                      f'c"{text}", align 1')
        for known, line in self._globals.items():
            if line.endswith(definition):
                return f"@{known}"
        return self.global_variable(name, definition)

    def node(self, content: str, distinct: bool = False) -> str:
        """The name of a metadata node; equal contents are one node."""
        if content not in self._nodes:
            prefix = "distinct " if distinct else ""
            self._nodes[content] = f"!{len(self._nodes)} = {prefix}{content}"
        return self._nodes[content].split(" ", 1)[0]

    def unrolling(self, iterations: int) -> str:
        """The name of a loop's metadata node.  iterations: per jump; 1 keeps the loop as written.

        Source: LLVM Language Reference Manual, "llvm.loop.unroll".
        """
        option = self.node('!{!"llvm.loop.unroll.disable"}' if iterations == 1 else
                           f'!{{!"llvm.loop.unroll.count", i32 {iterations}}}')
        itself = f"!{len(self._nodes)}"
        return self.node(f"!{{{itself}, {option}}}", distinct=True)

    def name_node(self, name: str, node: str) -> None:
        """Append a node to a named list, such as nvvm.annotations."""
        self._named.setdefault(name, []).append(node)

    def add_function(self, name: str, text: str) -> None:
        """Append the definition of a function."""
        self._functions[name] = text

    def defines(self, name: str) -> bool:
        """Whether a function of that name was added."""
        return name in self._functions

    def annotate(self, function: str, signature: str, properties: dict[str, int | str]) -> None:
        """Attach properties ("kernel", "maxntidx", ...) to a function.

        A property is a number or the name of a node.
        Source: NVVM IR Specification, "Global Property Annotation".
        """
        for name, value in properties.items():
            written = value if isinstance(value, str) else f"i32 {value}"
            self.name_node("nvvm.annotations",
                           self.node(f'!{{{signature}* @{function}, !"{name}", {written}}}'))

    def keep(self, function: str, signature: str) -> None:
        """Mark a function as used, so that the linker keeps it."""
        self.global_variable("llvm.used", "appending global [1 x i8*] [i8* bitcast "
                             f"({signature}* @{function} to i8*)], section \"llvm.metadata\"")

    def text(self) -> str:
        """The whole module, then the others, each after a line MODULE_END."""
        self.name_node("nvvmir.version", self.node(IR_VERSION))
        lines = [f'target triple = "{TRIPLE}"', f'target datalayout = "{DATA_LAYOUT}"']
        lines += self._types.values()
        lines += self._globals.values()
        lines += self._functions.values()
        lines += self._declarations.values()
        lines += (f"!{name} = !{{{', '.join(nodes)}}}" for name, nodes in self._named.items())
        lines += self._nodes.values()
        own = "\n".join(lines) + "\n"
        return MODULE_END.join((own, *self._linked))


class Phi:
    """A phi whose incoming values become known while the blocks before it are written."""

    __slots__ = ("name", "type", "incoming")

    def __init__(self, name: str, type_: str):
        self.name, self.type = name, type_
        self.incoming: list[str] = []

    def add(self, value: str, block: str) -> None:
        """Add the incoming value from the block labelled block."""
        self.incoming.append(f"[ {value}, %{block} ]")

    def __str__(self) -> str:
        return f"  {self.name} = phi {self.type} {', '.join(self.incoming)}"


class Body:
    """The instructions of one function, in order.

    Each method that writes an instruction returns the name of its result.
    block: label of the block that is being written.
    location: metadata suffix of every instruction, ", !dbg !7" or empty.
    """

    def __init__(self, module: Module):
        self.module = module
        self.block = "entry"
        self.location = ""
        self._lines: list[str | Phi] = []
        self._first: list[str] = []
        self._at_entry: dict[str, str] = {}
        self._count = 0
        self._known: dict[object, object] = {}

    @property
    def length(self) -> int:
        """Number of lines that were written."""
        return len(self._lines)

    # instructions -----------------------------------------------------------------------------
    def name(self) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"%v{self._count}"

    def assign(self, instruction: str) -> str:
        """Append an instruction that has a result."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {instruction}{self.location}")
        return name

    def pure(self, instruction: str) -> str:
        """Append an instruction without effects, unless the same one was written before."""
        name = self._known.get(instruction)
        if name is None:
            name = self._known[instruction] = self.assign(instruction)
        return name

    def once(self, key: object, write: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Values that several instructions make, unless they were written before.

        key: what they are, and of what.
        """
        if key not in self._known:
            self._known[key] = write()
        return self._known[key]

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {instruction}{self.location}")

    def binary(self, opcode: str, type_: str, x: str, y: str) -> str:
        """x opcode y, both of one type."""
        return self.pure(f"{opcode} {type_} {x}, {y}")

    def convert(self, opcode: str, source: str, x: str, result: str) -> str:
        """x of type source as type result, by a conversion opcode; x itself if they are equal."""
        return x if source == result else self.pure(f"{opcode} {source} {x} to {result}")

    def compare(self, opcode: str, type_: str, x: str, y: str) -> str:
        """An i1; opcode is "icmp slt", "fcmp oeq" and its like."""
        return self.pure(f"{opcode} {type_} {x}, {y}")

    def select(self, condition: str, type_: str, x: str, y: str) -> str:
        """x where condition, else y."""
        return x if x == y else self.pure(f"select i1 {condition}, {type_} {x}, {type_} {y}")

    def call(self, result: str, function: str, *arguments: str, attributes: str = "") -> str:
        """Call a function, declaring it; arguments are typed, "float %v1"."""
        types = [argument.rsplit(" ", 1)[0] for argument in arguments]
        self.module.declare(function, result, types, attributes)
        call = f"call {result} @{function}({', '.join(arguments)})"
        if result == VOID:
            self.do(call)
            return ""
        return self.assign(call) if not attributes else self.pure(call)

    def assembly(self, assembly: Assembly, *operands: str) -> tuple[str, ...]:
        """Inline PTX; one name per result."""
        call = assembly.call(operands)
        if not assembly.results:
            self.do(call)
            return ()
        value = self.assign(call) if assembly.has_effect else self.pure(call)
        if len(assembly.results) == 1:
            return (value,)
        return tuple(self.pure(f"extractvalue {assembly.result_type} {value}, {i}")
                     for i in range(len(assembly.results)))

    # control flow -----------------------------------------------------------------------------
    def new_label(self, hint: str) -> str:
        """A label that no other block has."""
        self._count += 1
        return f"{hint}{self._count}"

    def begin_block(self, label: str) -> None:
        """Begin the block with this label: the insertion point of what follows."""
        self._lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str, loop: str = "") -> None:
        """Go to a block; loop is the metadata node of the loop that this closes."""
        self.do(f"br label %{label}" + (f", !llvm.loop {loop}" if loop else ""))

    def branch_if(self, condition: str, then: str, otherwise: str, loop: str = "") -> None:
        """Go to one of two blocks."""
        suffix = f", !llvm.loop {loop}" if loop else ""
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}{suffix}")

    def stack_variable(self, type_: str, alignment: int) -> str:
        """The address of a variable of this thread; it lives as long as the function runs."""
        name = self.name()
        self._first.append(f"  {name} = alloca {type_}, align {alignment}")
        return name

    def at_entry(self, instruction: str) -> str:
        """The result of an instruction in the entry block, written once."""
        name = self._at_entry.get(instruction)
        if name is None:
            name = self._at_entry[instruction] = self.name()
            self._first.append(f"  {name} = {instruction}")
        return name

    def phi(self, type_: str) -> Phi:
        """Append a phi to the block that was just begun."""
        phi = Phi(self.name(), type_)
        self._lines.append(phi)
        return phi

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Context in which pure instructions may be reused; they are forgotten after it.

        Every conditional block needs one: its instructions do not dominate what follows.
        """
        outer, self._known = self._known, dict(self._known)
        try:
            yield
        finally:
            self._known = outer

    def define(self, name: str, parameters: Sequence[str], result: str = VOID,
               linkage: str = "", suffix: str = "") -> None:
        """Add this body to the module as a function; suffix is its metadata."""
        lines = "\n".join(map(str, self._first + self._lines))
        head = " ".join(filter(None, ("define", linkage, result)))
        self.module.add_function(
            name, f"{head} @{name}({', '.join(parameters)}) {suffix}{{\nentry:\n{lines}\n}}")
