"""A C header that holds a compiled kernel and functions that load and launch it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.entry import parameter_fields
from blocknumba.dispatch.launch.driver import map_element, map_swizzle
from blocknumba.errors import BlockValueError, require
from blocknumba.nvvm_lower.kernel import symbol
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.tensor_map import Number, Product
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, DType
from blocknumba.wording import quoted

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
    address: the expression of where it is.
    """

    name: str
    type: str
    holds: str
    divisibility: int
    address: str

    @property
    def declaration(self) -> str:
        """The parameter in C."""
        return f"{self.type} {self.name}".replace("* ", "*")


def c_header(compiled: Compiled) -> str:
    """The header of a kernel that was compiled for a GPU.

    NAME_load returns the kernel in the current context, NAME_launch launches it; a tensor map that
    it takes is encoded by NAME_encode_MAP.  It needs the driver API only: cuda.h and -lcuda.
    Errors: BlockValueError for the interpreter's code.
    """
    machine = compiled.machine
    require(machine is not None, "header: {} was compiled for the interpreter", compiled.name,
            error=BlockValueError, hint="name a target")
    names = _names(machine.parameters)
    formals = [_formal(compiled, *pair) for pair in names.items()]
    limit = compiled.specialization.target.static_shared_bytes
    return _HEADER.format(
        name=machine.symbol, guard=f"BLOCKNUMBA_{machine.symbol.upper()}_H",
        target=compiled.specialization.target, threads=machine.threads,
        shared=machine.shared_bytes, cubin="\n".join(_rows(machine.assembled.cubin)),
        # that they are clusters is said by the kernel itself
        blocks=f" * {machine.cluster}" if machine.cluster > 1 else "",
        opted=_OPT_IN.format(name=machine.symbol) if machine.shared_bytes > limit else "",
        assumptions="".join(f" * {line}\n" for line in _assumptions(compiled, formals)),
        formals="".join(f",\n    {formal.declaration}" for formal in formals),
        checks="".join(_CHECK.format(name=formal.name, divisor=formal.divisibility)
                       for formal in formals if formal.divisibility > 1),
        encoders="".join(_encoder(compiled, *pair) for pair in names.items()
                         if pair[0].kind == "tensor_map"),
        addresses=", ".join(formal.address for formal in formals) or "0")


def _formal(compiled: Compiled, parameter: Parameter, name: str) -> _Formal:
    dtype = _dtype(compiled, parameter)
    if parameter.kind == "tensor_map":
        return _Formal(name, "const CUtensorMap *", f"what {compiled.machine.symbol}_encode_{name} "
                       f"made of {parameter.argument}", 1, f"(void *){name}")
    if parameter.kind == "pointer":
        type_, holds = "CUdeviceptr", f"first element, {dtype}"
    elif parameter.kind == "value":
        type_, holds = c_type(dtype), str(dtype)
    else:
        type_, holds = "int64_t", f"{parameter.kind} of axis {parameter.axis}, in elements"
    return _Formal(name, type_, holds, parameter.divisibility, f"&{name}")


def _names(parameters: Iterable[Parameter]) -> dict[Parameter, str]:
    """The names of parameters in C."""
    names: dict[Parameter, str] = {}
    for parameter in parameters:
        name = _argument(parameter.argument)
        if parameter.kind == "tensor_map":
            box = "x".join(map(str, parameter.tensor_map.box))
            rounded = "_tf32" * parameter.tensor_map.as_tf32
            name = f"{name}_map_{box}_{parameter.tensor_map.swizzle_bytes}{rounded}"
        elif parameter.axis is not None:
            name = f"{name}_{parameter.kind}_{parameter.axis}"
        alike = sum(other.startswith(name) for other in names.values())  # boxes of other arrays
        names[parameter] = f"{name}_{alike + 1}" if name in names.values() else name
    return names


def _argument(name: str) -> str:
    """The name of a Python argument in C."""
    found = symbol(name)
    return f"{found}_" if found in _TAKEN else found


def _dtype(compiled: Compiled, parameter: Parameter) -> DType:
    return dict(compiled.specialization.arguments)[parameter.argument].dtype


def _encoder(compiled: Compiled, parameter: Parameter, name: str) -> str:
    """The function that encodes one tensor map."""
    box, dtype, own = parameter.tensor_map, _dtype(compiled, parameter), parameter.argument
    numbers = sorted(box.numbers, key=lambda number: (number.kind, number.argument != own,
                                                      number.argument, number.axis))
    return _ENCODER.format(
        kernel=compiled.machine.symbol, name=name, dtype=dtype, rank=len(box.box),
        formals="".join(f",\n    int64_t {_number(number, own)}" for number in numbers),
        extents=", ".join(_code_of(extent, own) for extent in box.extents),
        strides=", ".join(f"{_code_of(stride, own)} * {dtype.bytes}" for stride in box.strides
                          ) or "0",
        box=", ".join(map(str, box.box)), ones=", ".join("1" for _ in box.box),
        element=map_element(dtype, box.as_tf32), swizzle=map_swizzle(box.swizzle_bytes))


def _number(number: Number, own: str) -> str:
    """Name in C of a number that describes an array.  own: the array's name."""
    if number.kind == "value":
        return _argument(number.argument)
    size = f"{number.kind}_{number.axis}"
    return size if number.argument == own else f"{_argument(number.argument)}_{size}"


def _code_of(product: Product, own: str) -> str:
    """An extent or a stride in C."""
    factors = [str(product.factor)] if product.factor != 1 or not product.numbers else []
    factors += [_number(number, own) for number in product.numbers]
    return f"(cuuint64_t){' * '.join(factors)}"


def c_type(dtype: DType) -> str:
    """The C type that a number is passed in."""
    return _C_TYPES.get(dtype.name, f"{dtype.name}_t")


def _assumptions(compiled: Compiled, formals: list[_Formal]) -> Iterator[str]:
    """Assumptions of the code that the caller must keep."""
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
_ENCODER = """
/* The tensor map of an array of {dtype} that is not empty; extents and strides in elements, strides
   positive; numbers as they are given to the kernel. */
static inline CUresult {kernel}_encode_{name}(
    CUtensorMap *map, CUdeviceptr first_element{formals})
{{
    const cuuint64_t extents[] = {{ {extents} }};
    const cuuint64_t strides_bytes[] = {{ {strides} }};
    const cuuint32_t box[] = {{ {box} }};
    const cuuint32_t steps[] = {{ {ones} }};
    return cuTensorMapEncodeTiled(map, {element}, {rank},
                                  (void *)first_element, extents, strides_bytes, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, {swizzle},
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}}
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
{encoders}
/* Launch x * y * z programs, without waiting for them.
 *
{assumptions} */
static inline CUresult {name}_launch(
    CUfunction kernel, CUstream stream, unsigned x_programs, unsigned y_programs,
    unsigned z_programs{formals})
{{
    void *parameters[] = {{ {addresses} }};
{checks}    return cuLaunchKernel(kernel, x_programs{blocks}, y_programs, z_programs,
                          {name}_threads, 1, 1, {name}_shared_bytes, stream, parameters, 0);
}}

#endif
"""


_NAME = re.compile(r"\w[\w.+-]*")  # no separator of any system, and never ".."


def export(compiled: Compiled, folder: Path, name: str | None = None) -> list[Path]:
    """Write NAME.cubin, NAME.ptx, NAME.json and NAME.h; the files.

    name: of the files, without a folder; the kernel's symbol when it is not given.
    Errors: BlockValueError for the interpreter's code, for a name that is none of a file in the
    folder, and when they cannot be written.
    """
    require_name(name)
    header = c_header(compiled)  # first: it refuses the interpreter's code
    stem = compiled.machine.symbol if name is None else name
    contents = {"cubin": compiled.asm["cubin"], "ptx": compiled.asm["ptx"].encode(),
                "json": json.dumps(description(compiled), indent=2).encode() + b"\n",
                "h": header.encode()}
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ending, content in contents.items():
            files.append(folder / f"{stem}.{ending}")
            files[-1].write_bytes(content)
    except OSError as error:
        raise BlockValueError(f"compile: cannot write to {folder}: {error.strerror}") from error
    return files


def require_name(name: str | None) -> None:
    """Errors: BlockValueError for a name that would be of files elsewhere."""
    require(name is None or _NAME.fullmatch(name), "compile: given the name {}, accepted letters, "
            "digits, _, -, + and ., the first a letter, a digit or _", quoted(name or ""),
            error=BlockValueError, hint="the folder is another argument: -o DIR")


def description(compiled: Compiled) -> dict[str, object]:
    """All that a launcher must know of a kernel, as JSON."""
    machine, specialization, stats = compiled.machine, compiled.specialization, compiled.stats
    return {
        "kernel": compiled.name, "symbol": machine.symbol, "target": str(specialization.target),
        "threads": machine.threads, "shared_bytes": machine.shared_bytes,
        "cluster": machine.cluster,
        "parameters": [*map(parameter_fields, machine.parameters)],
        "arguments": {name: _described(argument) for name, argument in specialization.arguments},
        "constants": {name: _readable(value) for name, value in specialization.constants},
        "options": dict(sorted(specialization.options.named().items())),
        "arrays_are_disjoint": specialization.disjoint,
        "reads": sorted(compiled.effects.read), "stores": sorted(compiled.effects.stored),
        "registers": stats.registers, "spill_bytes": stats.spills,
        "occupancy": stats.occupancy,
    }


def _described(argument: Argument) -> dict[str, object]:
    return {**asdict(argument), "dtype": argument.dtype.name}


def _readable(frozen: object) -> str:
    """A frozen constant as a reader knows it: freeze puts its type in front."""
    pair = isinstance(frozen, tuple) and len(frozen) == 2 and isinstance(frozen[0], type)
    return repr(frozen[1]) if pair else str(frozen)
