"""A C header that holds a compiled kernel and functions that load and launch it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blocknumba.dispatch.compiled import Compiled
from blocknumba.errors import BlockValueError, require
from blocknumba.nvvm_lower.kernel import symbol
from blocknumba.tile_ir.arguments import ArrayArgument
from blocknumba.tile_ir.ir import Parameter
from blocknumba.tile_ir.types import DType

_BYTES_IN_A_LINE = 20
# floats that C has no type for are passed as their bits
_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double", "float16": "uint16_t",
            "bfloat16": "uint16_t", "float8_e4m3fn": "uint8_t", "float8_e5m2": "uint8_t"}
# C's words that are names in Python, and the launcher's own names
_TAKEN = frozenset("""
    auto case char const default do double enum extern float goto inline int long register restrict
    short signed sizeof static struct switch typedef union unsigned void volatile kernel parameters
    x_programs y_programs z_programs""".split())


@dataclass(frozen=True, slots=True)
class _Formal:
    """One parameter of the launcher.

    holds: what it is, for the reader.
    divisibility: what it must be a multiple of.
    """

    name: str
    type: str
    holds: str
    divisibility: int


def c_header(compiled: Compiled) -> str:
    """The header of a kernel that was compiled for a GPU.

    NAME_load gives the kernel in the current context, NAME_launch launches it.  It needs the
    driver API only: cuda.h and -lcuda.
    Errors: BlockValueError for the interpreter's code.
    """
    machine = compiled.machine
    require(machine is not None, "header: {} was compiled for the interpreter", compiled.name,
            error=BlockValueError, hint="name a target")
    formals = [_formal(compiled, parameter) for parameter in machine.parameters]
    limit = compiled.specialization.target.static_shared_bytes
    return _HEADER.format(
        name=machine.symbol, guard=f"BLOCKNUMBA_{machine.symbol.upper()}_H",
        target=compiled.specialization.target, threads=machine.threads,
        shared=machine.shared_bytes, cubin="\n".join(_rows(machine.assembled.cubin)),
        opted=_OPT_IN.format(name=machine.symbol) if machine.shared_bytes > limit else "",
        promises="".join(f" * {line}\n" for line in _promises(compiled, formals)),
        formals="".join(f",\n    {formal.type} {formal.name}" for formal in formals),
        checks="".join(_CHECK.format(name=formal.name, divisor=formal.divisibility)
                       for formal in formals if formal.divisibility > 1),
        addresses=", ".join(f"&{formal.name}" for formal in formals) or "0")


def _formal(compiled: Compiled, parameter: Parameter) -> _Formal:
    argument = dict(compiled.specialization.arguments)[parameter.argument]
    name = symbol(parameter.argument)
    name = f"{name}_" if name in _TAKEN else name
    if parameter.kind == "pointer":
        return _Formal(name, "CUdeviceptr", f"first element, {argument.dtype}",
                       parameter.divisibility)
    if parameter.kind == "value":
        return _Formal(name, c_type(argument.dtype), str(argument.dtype), parameter.divisibility)
    return _Formal(f"{name}_{parameter.kind}_{parameter.axis}", "int64_t",
                   f"{parameter.kind} of axis {parameter.axis}, in elements",
                   parameter.divisibility)


def c_type(dtype: DType) -> str:
    """The C type that a number is passed in."""
    return _C_TYPES.get(dtype.name, f"{dtype.name}_t")


def _promises(compiled: Compiled, formals: list[_Formal]) -> Iterator[str]:
    """What the caller must keep to: the code relies on it."""
    for formal in formals:
        multiple = (f", a multiple of {formal.divisibility}" if formal.divisibility > 1 else "")
        yield f"{formal.name}: {formal.holds}{multiple}"
    for name, argument in compiled.specialization.arguments:
        if not isinstance(argument, ArrayArgument):
            if argument.value is not None:
                yield f"{name} is {argument.value}"
            continue
        units = [str(axis) for axis, stride in enumerate(argument.strides) if stride == 1]
        if units:
            yield f"{name}: elements are next to each other along axis {', '.join(units)}"
        if not argument.wide:
            yield f"{name}: fewer than 2**31 elements from the first to the last"
    if compiled.specialization.disjoint:
        yield "No two arrays share memory."


def _rows(content: bytes) -> Iterator[str]:
    for start in range(0, len(content), _BYTES_IN_A_LINE):
        yield "    " + "".join(f"{byte}," for byte in content[start:start + _BYTES_IN_A_LINE])


_OPT_IN = """
    if (!status)
        status = cuFuncSetAttribute(*kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    {name}_shared_bytes);"""
_CHECK = """\
    if ((uint64_t){name} % {divisor})
        return CUDA_ERROR_INVALID_VALUE;
"""
_HEADER = """\
/* {name}, compiled by blocknumba for {target}. */
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdint.h>

enum {{ {name}_threads = {threads}, {name}_shared_bytes = {shared} }};

static const unsigned char {name}_cubin[] = {{
{cubin}
}};

/* The kernel, in the context that is current; it is never unloaded. */
static inline CUresult {name}_load(CUfunction *kernel)
{{
    CUmodule module;
    CUresult status = cuModuleLoadData(&module, {name}_cubin);
    if (!status)
        status = cuModuleGetFunction(kernel, module, "{name}");{opted}
    return status;
}}

/* Launch x * y * z programs, without waiting for them.
 *
{promises} */
static inline CUresult {name}_launch(
    CUfunction kernel, CUstream stream, unsigned x_programs, unsigned y_programs,
    unsigned z_programs{formals})
{{
    void *parameters[] = {{ {addresses} }};
{checks}    return cuLaunchKernel(kernel, x_programs, y_programs, z_programs, {name}_threads, 1, 1,
                          {name}_shared_bytes, stream, parameters, 0);
}}

#endif
"""
