"""Kernels with dots, in the array dialect, and their tile IR."""

import blocknumba as bn

from blocknumba.dispatch.compile.ahead import parse_types
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.passes.pipeline import optimise
from blocknumba.typing.context import Options
from blocknumba.typing.frontend import build


@bn.jit
def matmul(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr,
           SUM: bn.constexpr = bn.float32, PRECISION: bn.constexpr = "ieee"):
    """c = a @ b, one tile a program."""
    r, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), SUM)
    for k in bn.spans(a.shape[1], BK):
        acc = bn.dot(a[r, k], b[k, n], acc, precision=PRECISION)
    c[r, n] = acc


@bn.jit
def persistent_matmul(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """c = a @ b, many tiles a program."""
    for r, n in bn.persistent(c.shape, (BM, BN), group=8):
        acc = bn.zeros((BM, BN), bn.float32)
        for k in bn.spans(a.shape[1], BK):
            acc += a[r, k] @ b[k, n]
        c[r, n] = acc


@bn.jit
def late_use(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """A dot whose accumulator is scaled in every iteration."""
    r, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc = acc * 0.5 + a[r, k] @ b[k, n]
    c[r, n] = acc


@bn.jit
def attention_like(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """Two chained dots in a loop, and a tile that is fetched once."""
    r, d = bn.block(0, BM), bn.span(0, BK)
    first = a[r, d]
    acc = bn.zeros((BM, BK), bn.float32)
    for k in bn.spans(b.shape[0], BK):
        scores = first @ b[k, d].T
        acc += scores.to(bn.float16) @ b[k, d]
    c[r, d] = acc


@bn.jit
def softmax_products(q, k, v, out, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr):
    """out = softmax(q @ k.T) @ v, in one pass over k and v."""
    rows, d = bn.block(0, BM), bn.span(0, D)
    queries = q[rows, d]
    sums, total = bn.zeros((BM, D)), bn.zeros((BM,))
    greatest = bn.full((BM,), float("-inf"))
    for n in bn.spans(k.shape[0] // BN * BN, BN):
        scores = queries @ k[n, d].T
        top = bn.maximum(greatest, bn.max(scores, axis=1))
        weights = bn.exp2(scores - top[:, None])
        fading = bn.exp2(greatest - top)
        total = total * fading + bn.sum(weights, axis=1)
        sums = sums * fading[:, None] + weights.to(bn.float16) @ v[n, d]
        greatest = top
    out[rows, d] = sums / total[:, None]


def tile_of(kernel, types: tuple[str, ...], constants: dict[str, object]) -> Function:
    """The optimised tile IR of a kernel."""
    constants = {f.name: f.default for f in kernel.signature.formals if f.is_constant} | constants
    names = [name for name in kernel.signature.names if name not in constants]
    arguments = parse_types(types, names, kernel.signature.kernel)
    specialization, _ = kernel.specialize(arguments, constants, kernel.options, TARGETS["sm_90a"],
                                          disjoint=True)
    tile = build(kernel.python_function, dict(specialization.arguments), constants, Options())
    return optimise(tile, keep_views=True)
