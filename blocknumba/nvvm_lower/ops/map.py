"""Code of scalar functions: calls into their modules, which libNVVM links and inlines."""

from __future__ import annotations

from blocknumba.errors import Loc
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1, I32, I8
from blocknumba.nvvm_lower.ops.debug import fail_unless
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType, bool_
from blocknumba.tile_ir.ops.map import DeviceCode, Raised, ScalarFunction, map_

_ALIGNMENT = 8  # bytes: of every dtype


@code(map_)
def _(emitter: Emitter, op: Op, masks: Registers, *operands: Registers) -> tuple[Registers, ...]:
    """One call for each register; its results stay in registers once it is inlined."""
    function: ScalarFunction = op.attrs["function"]
    made = function.require_body().device_code(emitter.target.name, emitter.options.lineinfo)
    emitter.body.module.link(made.modules)
    call = _Call(emitter, op, function, made)
    columns: list[Registers] = [[] for _ in function.results]
    for mask, *values in zip(masks, *operands, strict=True):
        for column, result in zip(columns, call.element(mask, values), strict=True):
            column.append(result)
    return tuple(columns)


class _Call:
    """Calls of one scalar function; storage: where it writes its results."""

    def __init__(self, emitter: Emitter, op: Op, function: ScalarFunction, made: DeviceCode):
        self._emitter, self._op, self._function, self._made = emitter, op, function, made
        self._storage_type = _storage_type(function.results)
        self._storage = emitter.body.stack_variable(self._storage_type, _ALIGNMENT)

    def element(self, mask: str, values: list[str]) -> list[str]:
        """The results for one element, zeros where mask, an i1, is false."""
        body = self._emitter.body
        body.do(f"store {self._storage_type} zeroinitializer, {self._storage_type}* "
                f"{self._storage}")
        if mask == "true":
            self._call(values)
        else:
            called, left_out = body.new_label("called"), body.new_label("left_out")
            body.branch_if(mask, called, left_out)
            body.begin_block(called)
            with body.scope():
                self._call(values)
                body.branch(left_out)
            body.begin_block(left_out)
        return self._results()

    def _call(self, values: list[str]) -> None:
        arguments = [_argument(self._emitter, dtype, value)
                     for dtype, value in zip(self._function.parameters, values, strict=True)]
        status = self._emitter.body.call(I32, f'"{self._made.symbol}"',
                                         f"{self._storage_type}* {self._storage}", *arguments)
        if self._emitter.options.debug:
            for raised in self._made.raises:
                self._fail_if(status, raised)

    def _fail_if(self, status: str, raised: Raised) -> None:
        """Stop the kernel with the message and the line of an exception."""
        body = self._emitter.body
        loc = Loc(raised.file, raised.line, function=raised.function)
        fail_unless(body, body.compare("icmp ne", I32, status, str(raised.code)),
                    f"map: {self._function.name} raises {raised.message}",
                    loc if raised.line else self._op.loc)

    def _results(self) -> list[str]:
        body, dtypes = self._emitter.body, self._function.results
        made = body.assign(f"load {self._storage_type}, {self._storage_type}* {self._storage}")
        parts = [made] if len(dtypes) == 1 else [
            body.pure(f"extractvalue {self._storage_type} {made}, {index}")
            for index in range(len(dtypes))]
        return [body.compare("icmp ne", I8, part, "0") if dtype == bool_ else part
                for dtype, part in zip(dtypes, parts, strict=True)]


def _storage_type(results: tuple[DType, ...]) -> str:
    """The type that Numba returns: the only result, an array of one type, or a structure."""
    types = [_passed_type(dtype) for dtype in results]
    if len(types) == 1:
        return types[0]
    same = len(set(types)) == 1
    return f"[{len(types)} x {types[0]}]" if same else f"{{ {', '.join(types)} }}"


def _passed_type(dtype: DType) -> str:
    return memory_type(dtype) if dtype == bool_ else register_type(dtype)


def _argument(emitter: Emitter, dtype: DType, value: str) -> str:
    """A typed argument; a bool is a byte."""
    if dtype == bool_:
        value = emitter.body.convert("zext", I1, value, I8)
    return f"{_passed_type(dtype)} {value}"
