"""Small kernels as tile IR text, and the way from there to machine code."""

from functools import cache

from blocknumba.emulator import Module
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import assemble_kernel, lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ptx
from blocknumba.tile_ir.text.parser import parse


def laid_out(text, num_warps=4):
    """The GPU-layout IR of a kernel given as tile IR text."""
    return lay_out(parse(text), LayoutOptions(num_warps=num_warps), verify=True)


def lowered(text, target="sm_90a", num_warps=4, **options):
    """The NVVM IR of a kernel given as tile IR text, and the data of its launch."""
    return lower(laid_out(text, num_warps), Target.parse(target),
                 CodeOptions(num_warps=num_warps, **options))


@cache
def assembled(text, target="sm_90a", num_warps=4, **options):
    """The machine code of a kernel given as tile IR text."""
    kernel = lowered(text, target, num_warps, **options)
    return assemble_kernel(kernel, Target.parse(target),
                           CodeOptions(num_warps=num_warps, **options))


def kernel(parameters, body):
    """Tile IR text: parameters one a line, body one op a line."""
    return f"kernel k(\n{parameters.strip()}\n) {{\n{body.strip()}\nreturn\n}}"


def elementwise_kernel(body, *dtypes, result="float32", size=1024, mask=True, multiple=1):
    """A kernel that loads tiles %a, %b, ... of dtypes, and stores %result.

    multiple: the number of elements is assumed to be a multiple of it.
    """
    names = "abc"[:len(dtypes)]
    masked = ", %mask" if mask else ""
    lines = [f"%index = arange {{size={size}, start=0}} : tile<{size}xint32>",
             "%program = program_id {axis=0} : int32",
             f"%size = constant {{value={size}}} : int32",
             "%first = mul %program, %size : int32",
             f"%firsts = splat %first : tile<{size}xint32>",
             f"%where = add %firsts, %index : tile<{size}xint32>",
             f"%ns = splat %n : tile<{size}xint32>",
             f"%mask = lt %where, %ns : tile<{size}xbool>"]
    for name, dtype in zip(names, dtypes):
        lines += [f"%{name}s = splat %{name}p : tile<{size}xptr<{dtype}>>",
                  f"%{name}q = offset %{name}s, %where : tile<{size}xptr<{dtype}>>",
                  f"%{name} = load %{name}q{masked} : tile<{size}x{dtype}>"]
    lines += [body, f"%os = splat %op : tile<{size}xptr<{result}>>",
              f"%oq = offset %os, %where : tile<{size}xptr<{result}>>",
              f"store %oq, %result{masked}"]
    parameters = [f"%{name}p: ptr<{dtype}> = pointer({name}) {{divisibility=16}}"
                  for name, dtype in zip(names, dtypes)]
    parameters += [f"%op: ptr<{result}> = pointer(out) {{divisibility=16}}",
                   f"%n: int32 = extent(a, 0) {{divisibility={multiple}, minimum=0}}"]
    return kernel("\n".join(parameters), "\n".join(lines))


def emulated(text, grid, *parameters, num_warps=4, target="sm_90a", **options):
    """Run a kernel in the emulator; arrays among the parameters are written in place."""
    kernel_ = lowered(text, target, num_warps, **options)
    tools = AssembleOptions(verify=True, fastmath=options.get("fastmath", False))
    ptx = compile_to_ptx(kernel_.nvvm_ir, Target.parse(target), tools).decode()
    return Module.parse(ptx).launch(kernel_.name, grid, num_warps * 32, parameters,
                                    kernel_.shared_bytes)
