"""PTX text into the structures of syntax.py, with every name resolved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from blocknumba.emulator.errors import PtxSyntaxError
from blocknumba.emulator.lexer import Token, tokenize
from blocknumba.emulator.scopes import Scope
from blocknumba.emulator.syntax import (
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Inverted,
    Label,
    Operand,
    Pair,
    Program,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
)
from blocknumba.emulator.values import DTYPES
from blocknumba.errors import UNKNOWN, Loc

MAX_REGISTERS, MAX_VARIABLE_BYTES = 1 << 20, 1 << 30  # of one declaration
_END = Token("end", "the end of the text", 0)
_LINKING = frozenset((".visible", ".extern", ".weak", ".common", ".noreturn"))
_SPACES = {".global": "global", ".const": "const", ".shared": "shared", ".local": "local",
           ".param": "param"}


def parse(text: str) -> Program:
    """The program that a PTX module describes.

    Errors: PtxSyntaxError for text that is not PTX, with its line.
    """
    return _Parser(text).module()


class _Parser:
    """One pass over the tokens of a module."""

    def __init__(self, text: str):
        self.tokens = list(tokenize(text))
        self.position = 0
        # Slot 0 is the condition code of add.cc.
        self.program = Program("", "", {}, {}, ["b32"], text.splitlines())
        self.files = self._file_names()
        self.scope = Scope(None, self.program.register_types)
        self.loc = UNKNOWN
        self.function: Function | None = None
        self.references: list[tuple[Label, Scope]] = []
        self.directives: dict[str, Callable[[], None]] = {
            ".version": self._version, ".target": self._target, ".address_size": self._skip_line,
            ".file": self._skip_line, ".loc": self._loc, ".section": self._section,
            ".pragma": self._skip_statement, ".entry": self._function, ".func": self._function,
            ".alias": self._skip_statement, ".reg": self._registers,
            ".callprototype": self._skip_statement,
            **dict.fromkeys(_SPACES, self._variable),
        }

    # ---- tokens

    def peek(self, ahead: int = 0) -> Token:
        """The token that many tokens ahead."""
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def next(self) -> Token:
        """The next token, consumed; the text may end once, where somebody sees it."""
        token = self.peek()
        if self.position > len(self.tokens):
            self.fail(token, "more")
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        """Consume the next token if it is this one."""
        if self.peek().text != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> Token:
        """Consume the next token, which must be this one."""
        token = self.next()
        if token.text != text:
            self.fail(token, text)
        return token

    def fail(self, token: Token, accepted: str) -> None:
        """Refuse a token."""
        raise PtxSyntaxError(f"PTX: given {token.text!r}, accepted {accepted}",
                             ptx_line=token.line or len(self.program.lines))

    def number(self) -> int:
        """An integer literal, consumed."""
        negative = self.accept("-")
        token = self.next()
        if token.kind != "number":
            self.fail(token, "a number")
        value = _immediate(token.text).value
        return -int(value) if negative else int(value)

    # ---- module

    def module(self) -> Program:
        """The whole module."""
        while self.peek() is not _END:
            self._directive()
        return self.program

    def _directive(self) -> None:
        while self.peek().text in _LINKING:
            self.next()
        token = self.peek()
        handler = self.directives.get(token.text)
        if handler is None:
            self.fail(token, "a directive")
        handler()

    def _version(self) -> None:
        self.next()
        self.program.version = self.next().text

    def _target(self) -> None:
        line = self.next().line
        self.program.target = self.next().text
        self._skip_line(line)

    def _skip_line(self, line: int = 0) -> None:
        line = line or self.peek().line
        while self.peek() is not _END and self.peek().line == line:
            self.next()

    def _skip_statement(self) -> None:
        while not self.accept(";"):
            if self.next() is _END:
                self.fail(_END, ";")

    def _section(self) -> None:
        while self.next().text != "}":
            if self.peek() is _END:
                self.fail(_END, "}")

    def _file_names(self) -> dict[str, str]:
        """The files of all .file directives: they may come behind the lines that use them."""
        return {self.tokens[index + 1].text: self.tokens[index + 2].text.strip('"')
                for index, token in enumerate(self.tokens[:-2]) if token.text == ".file"}

    def _loc(self) -> None:
        line = self.next().line
        caller = None
        loc = self._location()
        while self.peek().line == line:
            if self.next().text == "inlined_at":
                caller = self._location()
        self.loc = replace(loc, caller=caller)

    def _location(self) -> Loc:
        file, row, column = self.next().text, self.number(), self.number()
        return Loc(self.files.get(file, ""), row, column - 1 if column else -1)

    # ---- functions

    def _function(self) -> None:
        is_kernel = self.next().text == ".entry"
        self.scope = Scope(None, self.program.register_types, self.program.variables)
        self.loc = UNKNOWN
        results = self._parameters() if self.peek().text == "(" else ()
        name = self.next().text
        parameters = self._parameters() if self.peek().text == "(" else ()
        function = Function(name, is_kernel, parameters, results)
        for variable in parameters:
            variable.is_kernel_parameter = is_kernel
        self.function = function
        self._limits(function)
        if not self.accept(";"):
            self.program.functions[name] = function
            self._block()
            self._resolve_labels()
        self.function = None
        self.scope = Scope(None, self.program.register_types)

    def _limits(self, function: Function) -> None:
        while self.peek().text not in ("{", ";"):
            token = self.next()
            numbers = []
            while self.peek().kind == "number":
                numbers.append(self.number())
                self.accept(",")
            if token.text == ".pragma":
                self._skip_statement()
            function.limits[token.text.lstrip(".")] = tuple(numbers)

    def _parameters(self) -> tuple[Variable, ...]:
        self.expect("(")
        found = []
        while not self.accept(")"):
            if self.peek().text == ".reg":
                self.fail(self.peek(), ".param")
            found.append(self._declarator("param", self.next()))
            self.accept(",")
        return tuple(found)

    def _block(self) -> None:
        self.expect("{")
        self.scope = Scope(self.scope, self.program.register_types)
        while not self.accept("}"):
            self._statement()
        self.scope = self.scope.outer

    def _statement(self) -> None:
        token = self.peek()
        if token.text == "{":
            self._block()
        elif token.text in self.directives:
            self.directives[token.text]()
        elif token.kind == "identifier" and self.peek(1).text == ":":
            self.position += 2
            label = Label(token.text, len(self.function.body))
            self.scope.labels[token.text] = label
            if self.accept(".branchtargets"):
                label.targets = self._branch_targets()
        elif not self.accept(";"):
            self._instruction()

    def _resolve_labels(self) -> None:
        for label, scope in self.references:
            found = scope.find_label(label.name)
            if found is not None:
                label.index, label.targets = found.index, found.targets
        self.references.clear()

    def _branch_targets(self) -> tuple[Label, ...]:
        targets = []
        while not self.accept(";"):
            targets.append(self._reference(self.next().text))
            self.accept(",")
        return tuple(targets)

    def _reference(self, name: str) -> Label:
        """A label that may be defined later."""
        label = Label(name)
        self.references.append((label, self.scope))
        return label

    # ---- declarations

    def _registers(self) -> None:
        self.expect(".reg")
        type_ = self.next().text.lstrip(".")
        if type_ not in DTYPES:
            self.fail(self.peek(-1), "a register type")
        while True:
            name = self.next().text
            if self.accept("<"):
                count = self.number()
                if not 0 <= count <= MAX_REGISTERS:
                    self.fail(self.peek(-1), f"0 to {MAX_REGISTERS} registers")
                self.scope.declare_range(name, type_, count)
                self.expect(">")
            else:
                self.scope.declare(name, type_)
            if self.accept(";"):
                return
            self.expect(",")

    def _variable(self) -> None:
        token = self.next()
        space = _SPACES[token.text]
        while True:
            variable = self._declarator(space, token)
            owner = self.program.variables if self.function is None else None
            if owner is not None:
                owner[variable.name] = variable
            else:
                self.function.variables.append(variable)
            if self.accept(";"):
                return
            self.expect(",")

    def _declarator(self, space: str, token: Token) -> Variable:
        align, type_, is_pointer = 0, "", False
        while self.peek().text.startswith("."):
            modifier = self.next().text
            if modifier == ".align":
                number = self.number()
                # behind .ptr it is that of what the parameter points to
                align = align if is_pointer else number
            elif modifier == ".ptr":
                is_pointer = True
            elif modifier.lstrip(".") in DTYPES:
                type_ = modifier.lstrip(".")
        name = self.next().text
        item = DTYPES[type_].itemsize if type_ else self.fail(token, "a type")
        count = 1
        while self.accept("["):
            count *= 0 if self.peek().text == "]" else self.number()
            self.expect("]")
        initial, pointers = self._initial(type_) if self.accept("=") else (None, ())
        size = item * count or len(initial or b"")
        if not 0 <= size <= MAX_VARIABLE_BYTES or align < 0 or align & align - 1:
            self.fail(token, f"a variable of at most {MAX_VARIABLE_BYTES} bytes, aligned to a "
                             "power of two")
        if initial is not None:
            initial = initial.ljust(size, b"\0")
        variable = Variable(name, space, type_, align or item, size, initial, pointers)
        self.scope.names[name] = variable
        return variable

    def _initial(self, type_: str) -> tuple[bytes, tuple[tuple[int, str], ...]]:
        item, out, pointers, depth = DTYPES[type_].itemsize, bytearray(), [], 0
        while True:
            token = self.next()
            if token.text == "{":
                depth += 1
            elif token.text == "}":
                depth -= 1
            elif token.kind == "identifier":
                pointers.append((len(out), token.text))
                out += bytes(8)
            elif token.text != ",":
                self.position -= 1
                out += (self.number() & ((1 << 8 * item) - 1)).to_bytes(item, "little")
            if depth == 0 and self.peek().text != "(":
                return bytes(out), tuple(pointers)

    # ---- instructions

    def _instruction(self) -> None:
        guard, inverted = None, False
        if self.accept("@"):
            inverted = self.accept("!")
            guard = self.scope.find(self.next().text)
            if not isinstance(guard, Register):
                self.fail(self.peek(-1), "a register that is declared")
        token = self.next()
        if token.kind != "identifier":
            self.fail(token, "an instruction")
        operands = []
        while not self.accept(";"):
            operands.append(self._operand())
            if not self.accept(","):
                self.expect(";")
                break
        self.function.body.append(Instruction(tuple(token.text.split(".")), tuple(operands),
                                              guard, inverted, token.line, self.loc))

    def _operand(self) -> Operand:
        first = self._simple_operand()
        if self.accept("|"):
            return Pair(first, self._simple_operand())
        return first

    def _simple_operand(self) -> Operand:
        token = self.next()
        if token.text in ("{", "("):
            return Group(self._list("}" if token.text == "{" else ")"))
        if token.text == "[":
            return self._address()
        if token.text == "!":
            return Inverted(self._simple_operand())
        if token.text == "-":
            operand = self._simple_operand()
            if isinstance(operand, Immediate):
                return Immediate(-operand.value, operand.bits)
            return Inverted(operand)
        if token.kind == "number":
            return _immediate(token.text)
        if token.text == "_":
            return Sink()
        if token.kind != "identifier":
            self.fail(token, "an operand")
        operand = self._named(token)
        has_offset = self.peek().text in "+-" and self.peek(1).kind == "number"
        if isinstance(operand, Symbol) and has_offset:
            return Address(operand, self._offset())
        return operand

    def _named(self, token: Token) -> Operand:
        if token.text == "WARP_SZ":
            return Immediate(32)
        found = self.scope.find(token.text)
        if isinstance(found, Register):
            return found
        if found is not None:
            return Symbol(token.text, found)
        if token.text.startswith("%"):
            return Special(token.text)
        return Symbol(token.text, self._reference(token.text))

    def _list(self, end: str) -> tuple[Operand, ...]:
        items = []
        while not self.accept(end):
            items.append(self._operand())
            self.accept(",")
        return tuple(items)

    def _address(self) -> Address:
        base = self._simple_operand()
        offset = 0
        if isinstance(base, Address):
            base, offset = base.base, base.offset
        elif self.peek().text in "+-":
            offset = self._offset()
        coordinates: tuple[Operand, ...] = ()
        more = []
        while self.accept(","):
            operand = self._operand()
            if isinstance(operand, Group) and not coordinates:
                coordinates = operand.items
            else:
                more.append(operand)
        self.expect("]")
        return Address(base, offset, coordinates, tuple(more))

    def _offset(self) -> int:
        negative = self.next().text == "-"
        value = self.number()
        return -value if negative else value


def _immediate(text: str) -> Immediate:
    head = text[:2].lower()
    if head in ("0f", "0d"):
        return Immediate(int(text[2:], 16), 32 if head == "0f" else 64)
    if "." in text:
        return Immediate(float(text))
    text = text.rstrip("U")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return Immediate(int(text, 8))
    return Immediate(int(text, 0))
