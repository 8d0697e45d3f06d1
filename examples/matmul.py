"""Matrix multiplication, also with bias, activation or scales in the same kernel."""

import math

import ml_dtypes
import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run, strides

GROUP = 8  # rows of tiles in a group: programs that run at the same time share operands
WGMMA_ROWS = 64  # of one instruction, whose columns may be as few as 8


@bn.jit
def matmul(x, w, out, BM: bn.constexpr = bn.auto, BN: bn.constexpr = bn.auto,
           BK: bn.constexpr = bn.auto, SUM: bn.constexpr = bn.float32):
    """out = x @ w; x: (M, K), w: (K, N); any number of programs.

    SUM: dtype of the accumulator.  The compiler chooses the extents of tiles that are not given.
    """
    for m, n in bn.persistent(out.shape, (BM, BN), group=GROUP):
        sums = bn.zeros((BM, BN), SUM)
        for k in bn.spans(x.shape[1], BK):
            sums += x[m, k] @ w[k, n]
        out[m, n] = sums


@bn.jit
def matmul_small_m(x, w, out, BM: bn.constexpr = bn.auto, BN: bn.constexpr = bn.auto,
                   BK: bn.constexpr = bn.auto, SUM: bn.constexpr = bn.float32):
    """For small M: out.T = w.T @ x.T, as wgmma takes at least 64 rows, but few columns."""
    for n, m in bn.persistent(out.T.shape, (BM, BN)):
        sums = bn.zeros((BM, BN), SUM)
        for k in bn.spans(x.shape[1], BK):
            sums += w.T[n, k] @ x.T[k, m]
        out.T[n, m] = sums


@bn.jit
def matmul_pointers(x, w, out, M, N, K, stride_xm, stride_xk, stride_wk, stride_wn, stride_om,
                    stride_on, BM: tl.constexpr = bn.auto, BN: tl.constexpr = bn.auto,
                    BK: tl.constexpr = bn.auto, GROUP: tl.constexpr = GROUP):
    """The same in Triton's dialect, of float arrays; one program a tile."""
    pid = tl.program_id(axis=0)
    num_pid_m, num_pid_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    num_pid_in_group = GROUP * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + pid % num_pid_in_group % group_size_m
    pid_n = pid % num_pid_in_group // group_size_m
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    x_ptrs = x + (offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk)
    w_ptrs = w + (offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn)
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        inside = offs_k < K - k * BK
        a = tl.load(x_ptrs, mask=(offs_m < M)[:, None] & inside[None, :], other=0.0)
        b = tl.load(w_ptrs, mask=inside[:, None] & (offs_n < N)[None, :], other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        x_ptrs += BK * stride_xk
        w_ptrs += BK * stride_wk
    out_ptrs = out + (offs_m[:, None] * stride_om + offs_n[None, :] * stride_on)
    tl.store(out_ptrs, accumulator, mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


@bn.jit
def matmul_float32(x, w, out, PRECISION: bn.constexpr, BM: bn.constexpr = bn.auto,
                   BN: bn.constexpr = bn.auto, BK: bn.constexpr = bn.auto):
    """The same of float32 on tensor cores.  PRECISION: "tf32", or "tf32x3", which is exacter."""
    for m, n in bn.persistent(out.shape, (BM, BN), group=GROUP):
        sums = bn.zeros((BM, BN))
        for k in bn.spans(x.shape[1], BK):
            sums = bn.dot(x[m, k], w[k, n], sums, precision=PRECISION)
        out[m, n] = sums


@bn.jit
def matmul_bias(x, w, bias, out, ACTIVATION: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr,
                BK: bn.constexpr):
    """out = ACTIVATION(x @ w + bias); bias: (N,); ACTIVATION: a function of tiles."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = ACTIVATION(sums + bias[n])


def relu(x):
    return bn.maximum(x, 0)


def gelu(x):
    """The exact one: x times the probability that a normal variable is less than x."""
    return 0.5 * x * (1 + bn.erf(x * 2.0**-0.5))


@bn.jit
def matmul_batched(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """out[i] = x[i] @ w[i]; the batch is the third axis of the grid."""
    i, m, n = bn.program_id(2), bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[i, m, k] @ w[i, k, n]
    out[i, m, n] = sums


@bn.jit
def matmul_split(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr,
                 SPLIT: bn.constexpr):
    """out += x @ w with SPLIT programs a tile, for small M and N and large K.

    out is float32 and all zeros: the programs of a tile add their sums to it, in any order.
    """
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK, start=bn.program_id(2) * BK, step=SPLIT * BK):
        sums += x[m, k] @ w[k, n]
    bn.atomic_add(out.at[m, n], sums)


@bn.jit
def matmul_float8(x, w, x_scale, w_scale, out, FORMAT: bn.constexpr, BM: bn.constexpr,
                  BN: bn.constexpr, BK: bn.constexpr):
    """out = (x * x_scale[:, None]) @ (w * w_scale): 8-bit floats with a scale per row and column.

    x, w: of FORMAT, or of uint8, its codes.
    """
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k].view(FORMAT) @ w[k, n].view(FORMAT)
    out[m, n] = sums * x_scale[m][:, None] * w_scale[n]


@bn.jit
def matmul_mx(x, x_scale, w, w_scale, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """out = x @ w of the OCP formats MXFP8 (x) and MXFP4 (w), with a scale for 32 elements of K.

    x: (M, K), float8_e4m3fn or its codes; w: (K / 2, N), two elements a byte;
    x_scale: (M, K / 32), w_scale: (N, K / 32), exponents of 2 plus 127.
    """
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        pairs, groups = bn.span(k.start // 2, BK // 2), bn.span(k.start // 32, BK // 32)
        sums = bn.dot_scaled(x[m, k], x_scale[m, groups], "e4m3",
                             w[pairs, n], w_scale[n, groups], "e2m1", sums)
    out[m, n] = sums


# launches -------------------------------------------------------------------------------------

def tiles_of(*shape: int):
    """A grid of one program for each tile of BM x BN of arrays (M, N)."""
    M, N = shape
    return lambda tile: (bn.cdiv(M, tile["BM"]), bn.cdiv(N, tile["BN"]))


def programs_of(*shape: int):
    """A grid of programs for any number of tiles: one a multiprocessor, if there are as many tiles
    and TMA fetches the next one's operands while a program stores the last one's sums."""
    device = bn.current_device()
    most = device.multiprocessors if device.has("tma") else math.prod(shape)
    return lambda tile: min(math.prod(tiles_of(*shape)(tile)), most)


def launch(x, w, out, precision: str = "ieee", **constants) -> None:
    """out = x @ w in the array dialect.  constants: SUM."""
    (M, N), device = out.shape, bn.current_device()
    if precision != "ieee":
        matmul_float32[programs_of(M, N)](x, w, out, precision)
    elif device.has("wgmma") and x.dtype.itemsize < 4 and 2 * M <= WGMMA_ROWS <= N:
        matmul_small_m[programs_of(N, M)](x, w, out, **constants)
    else:
        matmul[programs_of(M, N)](x, w, out, **constants)


def launch_pointers(x, w, out) -> None:
    """The same in Triton's dialect."""
    (M, K), N = x.shape, out.shape[1]
    matmul_pointers[lambda tile: math.prod(tiles_of(M, N)(tile))](
        x, w, out, M, N, K, *strides(x), *strides(w), *strides(out))


def launch_split(x, w, out) -> None:
    """The same with four programs a tile; out is all zeros."""
    tile = {"BM": 16, "BN": 64, "BK": 32}
    matmul_split[(*tiles_of(*out.shape)(tile), 4)](x, w, out, **tile, SPLIT=4)


# checks ---------------------------------------------------------------------------------------

SMALL = {"BM": 64, "BN": 64, "BK": 32}


def assert_product(found: np.ndarray, x: np.ndarray, w: np.ndarray, lost: float = 0) -> None:
    """found is x @ w, up to the rounding of sums in float32 and of the result.

    lost: relative error of products.
    """
    x, w = x.astype(np.float64), w.astype(np.float64)
    sums = (x.shape[-1] * 2.0**-23 + lost) * (np.abs(x) @ np.abs(w))
    exact = x @ w
    result = float(ml_dtypes.finfo(found.dtype).eps) * np.abs(exact)
    assert (np.abs(found.astype(np.float64) - exact) <= sums + result).all()


# M, N, K: rows of 16-bit elements that TMA can address, and rows that it cannot
EVEN, ODD = (88, 80, 136), (93, 77, 130)
SMALL_M = (24, 208, 136)


def check_product(library: ArrayLibrary, start, dtype: type, shape: tuple[int, int, int],
                  turned: bool = False) -> None:
    """One product.  turned: both operands are transposed in memory."""
    generator = np.random.default_rng(0)
    M, N, K = shape
    x = generator.standard_normal((M, K)).astype(dtype)
    w = generator.standard_normal((K, N)).astype(dtype)
    given = [library.array(np.ascontiguousarray(a.T)).T if turned else library.array(a)
             for a in (x, w)]
    out = library.array(np.zeros((M, N), dtype))
    start(*given, out)
    assert_product(library.numpy(out), x, w)


def check_products(library: ArrayLibrary) -> None:
    """Both dialects, in float32 and float16."""
    for dtype in (np.float32, np.float16):
        for start in (launch, launch_pointers):
            check_product(library, start, dtype, EVEN)
            check_product(library, start, dtype, SMALL_M)
            check_product(library, start, dtype, ODD, turned=True)


def check_float32(library: ArrayLibrary) -> None:
    """float32 on tensor cores: 11 bits of operands, or about 21."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((70, 100)).astype(np.float32)
    w = generator.standard_normal((100, 90)).astype(np.float32)
    for precision, lost in (("tf32", 2.0**-10), ("tf32x3", 2.0**-20)):
        out = library.array(np.zeros((70, 90), np.float32))
        launch(library.array(x), library.array(w), out, precision)
        assert_product(library.numpy(out), x, w, lost)


def check_integers(library: ArrayLibrary) -> None:
    """int8 is added up in int32, exactly."""
    generator = np.random.default_rng(1)
    x = generator.integers(-128, 128, (64, 96)).astype(np.int8)
    w = generator.integers(-128, 128, (96, 80)).astype(np.int8)
    out = library.array(np.zeros((64, 80), np.int32))
    launch(library.array(x), library.array(w), out, SUM=bn.int32)
    np.testing.assert_array_equal(library.numpy(out), x.astype(np.int32) @ w.astype(np.int32))


def check_fused(library: ArrayLibrary) -> None:
    """Bias and activation while the tile is in registers."""
    generator = np.random.default_rng(2)
    x = generator.standard_normal((70, 48)).astype(np.float16)
    w = (generator.standard_normal((48, 90)) / 7).astype(np.float16)
    bias = generator.standard_normal(90).astype(np.float16)
    exact = x.astype(np.float64) @ w + bias
    for activation, expected in ((relu, np.maximum(exact, 0)), (gelu, _gelu(exact))):
        out = library.array(np.zeros((70, 90), np.float16))
        arrays = (library.array(array) for array in (x, w, bias))
        matmul_bias[tiles_of(70, 90)(SMALL)](*arrays, out, activation, **SMALL)
        np.testing.assert_allclose(library.numpy(out), expected, rtol=1e-3, atol=1e-3)


def _gelu(x: np.ndarray) -> np.ndarray:
    """gelu by integrating the density of the normal distribution from 0."""
    nodes, weights = np.polynomial.legendre.leggauss(50)
    density = np.exp(-((x[..., None] * (nodes + 1) / 2) ** 2) / 2) / np.sqrt(2 * np.pi)
    return x * (0.5 + density @ weights * x / 2)


def check_batched(library: ArrayLibrary) -> None:
    """Three products in one launch."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((3, 40, 33)).astype(np.float16)
    w = generator.standard_normal((3, 33, 65)).astype(np.float16)
    out = library.array(np.zeros((3, 40, 65), np.float32))
    matmul_batched[(*tiles_of(40, 65)(SMALL), 3)](library.array(x), library.array(w), out,
                                              **SMALL)
    assert_product(library.numpy(out), x, w)


def check_split(library: ArrayLibrary) -> None:
    """Small M, large K."""
    generator = np.random.default_rng(4)
    x = generator.standard_normal((3, 1000)).astype(np.float16)
    w = generator.standard_normal((1000, 70)).astype(np.float16)
    out = library.array(np.zeros((3, 70), np.float32))
    launch_split(library.array(x), library.array(w), out)
    assert_product(library.numpy(out), x, w)


def quantised(x: np.ndarray, axis: int, kind: type) -> tuple[np.ndarray, np.ndarray]:
    """x as 8-bit floats, with the scales along an axis that use their whole range."""
    scale = np.abs(x).max(axis=axis, keepdims=True) / float(ml_dtypes.finfo(kind).max)
    return (x / scale).astype(kind), scale.ravel().astype(np.float32)


def check_float8(library: ArrayLibrary) -> None:
    """Codes with scales multiply as the numbers that they stand for."""
    generator = np.random.default_rng(5)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        x, x_scale = quantised(generator.standard_normal((70, 96)), 1, kind)
        w, w_scale = quantised(generator.standard_normal((96, 50)), 0, kind)
        out = library.array(np.zeros((70, 50), np.float32))
        codes = (x, w) if library.is_narrow else (x.view(np.uint8), w.view(np.uint8))
        matmul_float8[tiles_of(70, 50)(SMALL)](*map(library.array, (*codes, x_scale, w_scale)), out,
                                           np.dtype(kind), **SMALL)
        exact = x.astype(np.float64) @ w.astype(np.float64)
        # of their sums tensor cores keep 14 bits
        bound = 96 * 2.0**-13 * (np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)))
        scales = x_scale[:, None] * w_scale
        assert (np.abs(library.numpy(out) - exact * scales) <= bound * scales).all()


def check_mx(library: ArrayLibrary) -> None:
    """Every code of 4 bits, and scales from 2**-5 to 2**5."""
    generator = np.random.default_rng(6)
    x = generator.standard_normal((40, 160)).astype(ml_dtypes.float8_e4m3fn)
    codes = generator.integers(0, 16, (160, 70), np.uint8)
    x_scale, w_scale = (generator.integers(122, 133, (rows, 5), np.uint8) for rows in (40, 70))
    out = library.array(np.zeros((40, 70), np.float32))
    given = x if library.is_narrow else x.view(np.uint8), x_scale, codes[::2] | codes[1::2] << 4
    matmul_mx[tiles_of(40, 70)(SMALL)](*map(library.array, (*given, w_scale)), out,
                                       **SMALL | {"BK": 64})
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7] * np.where(codes & 8, -1, 1)
    x_factor, w_factor = (np.repeat(2.0 ** (scale.astype(int) - 127), 32, axis=1)
                          for scale in (x_scale, w_scale))
    assert_product(library.numpy(out), x.astype(np.float64) * x_factor, numbers * w_factor.T)


CHECKS = (check_products, check_float32, check_integers, check_fused, check_batched, check_split,
          check_float8, check_mx)


def check(library: ArrayLibrary) -> None:
    """Every kernel agrees with NumPy in float64."""
    for one in CHECKS:
        one(library)


if __name__ == "__main__":
    run(check)
