"""Kernels partitioned over the blocks of a cluster by hand: program_id(2) is the rank."""

from __future__ import annotations

from unittest import mock

import emulated_gpu

import blocknumba as bn

from blocknumba.dispatch.compile import pipeline
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.rebuild import rebuild
from blocknumba.tile_ir.ops.create import program_id
from blocknumba.tile_ir.passes.pipeline import optimise


@bn.jit
def row_blocks(a, b, c, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
               BK: bn.constexpr):
    """c = a @ b; the blocks of a program have BM rows each, and the same columns."""
    r, n = bn.span((bn.program_id(0) * BLOCKS + bn.program_id(2)) * BM, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[r, k] @ b[k, n]
    c[r, n] = acc


@bn.jit
def column_blocks(a, b, c, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                  BK: bn.constexpr):
    """c = a @ b; the blocks of a program have BN columns each, and the same rows."""
    r, n = bn.block(1, BM), bn.span((bn.program_id(0) * BLOCKS + bn.program_id(2)) * BN, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[r, k] @ b[k, n]
    c[r, n] = acc


@bn.jit
def separate_blocks(a, b, c, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                    BK: bn.constexpr):
    """The tiles of c = a @ b on its diagonal; a block has rows and columns of its own."""
    i = bn.program_id(0) * BLOCKS + bn.program_id(2)
    r, n = bn.span(i * BM, BM), bn.span(i * BN, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[r, k] @ b[k, n]
    c[r, n] = acc


@bn.jit
def uneven_blocks(a, b, c, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                  BK: bn.constexpr):
    """What row_blocks does, but later blocks leave out the last columns of a."""
    r, n = bn.span((bn.program_id(0) * BLOCKS + bn.program_id(2)) * BM, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    half = a.shape[1] // 2
    for k in bn.spans(half, BK):
        acc += a[r, k] @ b[k, n]
    for k in bn.spans(a.shape[1] - bn.program_id(2) * BK, BK, start=half):
        acc += a[r, k] @ b[k, n]
    c[r, n] = acc


@bn.jit
def persistent_blocks(a, b, c, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                      BK: bn.constexpr):
    """c = a @ b, many tiles a program, of which each block has BM rows."""
    for r, n in bn.persistent(c.shape, (BM * BLOCKS, BN), group=2):
        rows = bn.span(r.start + bn.program_id(2) * BM, BM)
        acc = bn.zeros((BM, BN), bn.float32)
        for k in bn.spans(a.shape[1], BK):
            acc += a[rows, k] @ b[k, n]
        c[rows, n] = acc


@bn.jit
def attention_blocks(q, k, v, out, BLOCKS: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                     D: bn.constexpr):
    """out = maximum(q @ k.T, 0) @ v; the blocks of a program have BM rows of q each."""
    rows = bn.span((bn.program_id(0) * BLOCKS + bn.program_id(2)) * BM, BM)
    d = bn.span(0, D)
    queries = q[rows, d]
    sums = bn.zeros((BM, D))
    for n in bn.spans(k.shape[0], BN):
        sums += bn.maximum(queries @ k[n, d].T, 0).to(bn.float16) @ v[n, d]
    out[rows, d] = sums


def with_rank(fn: Function, blocks: int) -> Function:
    """A function in which program_id(2) is the rank of one of so many blocks."""
    def rewrite(rebuilder, op):
        if op.opdef is program_id and op.attrs["axis"] == 2:
            return (rebuilder.builder.emit(cta_rank, blocks=blocks),)
        return None

    ranked = rebuild(fn, rewrite, folding=False)
    return ranked.with_body(ranked.body, cluster=blocks)


def launch(kernel: Kernel, grid: object, arguments: tuple, keywords: dict[str, object],
           target: str = "sm_90a", seed: int | None = None) -> Compiled:
    """What emulated_gpu.launch does, with the rank of a block in the kernel.

    keywords: BLOCKS says how many a program has.
    """
    with mock.patch.object(pipeline, "optimise",
                           lambda fn, **options: with_rank(
                               optimise(fn, **options), keywords["BLOCKS"])):
        return emulated_gpu.launch(kernel, grid, arguments, keywords, target, seed)
