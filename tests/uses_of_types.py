"""Launches as type checkers see them: an ignored line is a mistake that they must report."""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import numpy as np

import blocknumba as bn
import blocknumba.language as tl


@bn.jit
def halve(x):
    return bn.libdevice.fabs(x) / 2


@bn.jit
def scale(x, out, factor=1.0, BLOCK: bn.constexpr = bn.auto):
    r = bn.block(0, BLOCK)
    for _ in bn.static_range(2):
        out[r] = halve(x[r]) * factor + tl.exp(x[r])


@bn.jit(num_warps=4, do_not_specialize=["factor"])
def fill(out, value, SIZE: tl.constexpr):
    out[bn.span(0, SIZE)] = value


@bn.heuristics({"SIZE": lambda arguments: 8})
@bn.autotune([bn.Config({}, num_warps=4)])
@bn.jit
def chosen(out, SIZE: bn.constexpr):
    out[bn.span(0, SIZE)] = bn.constexpr(3) + bn.max(out[bn.span(0, SIZE)], axis=0)


bn.jit(num_warps="4")  # type: ignore
bn.jit(warps=4)  # type: ignore

x, out = np.ones(8), np.empty(8)
scale[1](x, out, BLOCK=8)
scale[bn.cdiv(8, 4), None](x, out, 2.0, 4)
scale[lambda arguments: (1, 2)](x, out=out)
scale[(2, 1)](x, out, num_warps=8, stream=None).asm["tile"]
scale[1](x)  # type: ignore
scale[1](x, out, 2.0, 4, 5)  # type: ignore
scale[1](x, out, BLOK=8)  # type: ignore
scale[1](x, out, num_warps="8")  # type: ignore
scale["1"](x, out)  # type: ignore
fill[1](out, 3, SIZE=8)
fill[1](out, SIZE=8)  # type: ignore
chosen[lambda arguments: arguments["SIZE"]](out)
bn.compile(scale, "f64[:],f64[:]").stats
bn.evaluate(bn.sum, x, axis=0)
bn.sum(x, axes=0)  # type: ignore
bn.summ(x)  # type: ignore
kernel: bn.Kernel = fill
kernel[1](out, 3, 8).asm
