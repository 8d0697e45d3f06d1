"""Small PTX kernels, written around the few instructions that a test is about."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator import Module, Options

_HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
_REGISTERS = """
    .reg .pred %p<16>;
    .reg .b16 %h<32>;
    .reg .b32 %r<320>;
    .reg .b64 %rd<64>;
    .reg .f32 %f<160>;
    .reg .f64 %fd<32>;
"""


def module(body: str, parameters: int = 1, variables: str = "", directives: str = "") -> str:
    """A module with one kernel k.

    The body finds its pointer parameters in %rd1, %rd2, ... and its thread number in %r1.
    variables: declarations of the module.
    """
    declared = ",\n".join(f".param .u64 p{index}" for index in range(parameters))
    loads = "\n".join(f"ld.param.u64 %rd{index + 1}, [p{index}];" for index in range(parameters))
    return (f"{_HEAD}{variables}\n.visible .entry k({declared}) {directives}\n{{{_REGISTERS}"
            f"{loads}\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n")


def run(body: str, *arrays: np.ndarray, block: int = 32, grid: int = 1, shared_bytes: int = 0,
        variables: str = "", directives: str = "", cluster: int | None = None, **options: object):
    """Launch a module of the body on arrays, its pointer parameters; its report."""
    text = module(body, len(arrays), variables, directives)
    return Module.parse(text).launch("k", grid, block, arrays, shared_bytes, cluster=cluster,
                                     options=Options(**options))


def evaluate(instruction: str, result: np.dtype, *operands: np.ndarray) -> np.ndarray:
    """An instruction on vectors, one element to a thread, as evaluation has it."""
    output = np.zeros(len(operands[0]), result)
    Module.parse(evaluation(instruction, output.dtype, *operands)).launch(
        "k", 1, len(output), [output, *operands])
    return output


def evaluation(instruction: str, result: np.dtype, *operands: np.ndarray) -> str:
    """A module that applies an instruction to vectors, one element to a thread.

    instruction: $0 is the result and $1, $2, ... are the operands, in registers of their width.
    """
    loads, names = [], [_register(np.dtype(result), 0)]
    for index, operand in enumerate(operands, 1):
        name = _register(operand.dtype, index)
        names.append(name)
        loads.append(_address(index + 1, operand.itemsize)
                     + f"ld.global.b{8 * operand.itemsize} {name}, [%rd60];")
    for index in reversed(range(len(names))):
        instruction = instruction.replace(f"${index}", names[index])
    size = np.dtype(result).itemsize
    store = f"st.global.b{8 * size} [%rd60], {names[0]};"
    return module("\n".join([*loads, instruction, _address(1, size), store]), len(names))


def _register(dtype: np.dtype, index: int) -> str:
    if dtype.itemsize <= 2:
        return f"%h{10 + index}"
    if dtype.itemsize == 4:
        return f"%f{100 + index}" if dtype.kind == "f" else f"%r{300 + index}"
    return f"%fd{10 + index}" if dtype.kind == "f" else f"%rd{40 + index}"


def _address(parameter: int, size: int) -> str:
    return f"mad.wide.u32 %rd60, %r1, {size}, %rd{parameter};\n"
