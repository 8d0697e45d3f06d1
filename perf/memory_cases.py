"""Memory-bound work, done by blocknumba and its peers on the same Torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import cupy
import numba_cuda_kernels
import torch
import triton
import triton_kernels
from example_kernels import layernorm, softmax, vector_add
from measure import Run, fastest, gpu_timer
from numba import cuda

import blocknumba as bn

SUBJECT = "blocknumba"
MATRIX_BYTES = 2**29  # ten times the L2 cache, and long enough for a steady state
SEED = 0


@dataclass(frozen=True)
class Case:
    """One piece of work.

    bytes_moved: read and written at least.
    runs: who -> a function that does the work and returns the tensor it is in.
    expected: what each should return.
    tolerance: absolute and relative.
    """

    bytes_moved: int
    runs: Mapping[str, Run]
    expected: torch.Tensor
    tolerance: float

    def check(self) -> None:
        """Run everybody once.  Errors: AssertionError for whoever is wrong."""
        for name, run in self.runs.items():
            torch.testing.assert_close(
                run(), self.expected, rtol=self.tolerance, atol=self.tolerance,
                msg=lambda text, name=name: f"{name} is wrong: {text}")


def add_case(size: int) -> Case:
    """out = x + y of float32 vectors."""
    x, y = _random(size), _random(size)
    out = torch.empty_like(x)
    xs, ys, outs = map(cupy.from_dlpack, (x, y, out))
    xn, yn, outn = map(cuda.as_cuda_array, (x, y, out))
    programs = bn.cdiv(size, vector_add.BLOCK)
    theirs = numba_cuda_kernels.add[bn.cdiv(size, 256), 256]

    def in_triton(block: int, warps: int) -> torch.Tensor:
        triton_kernels.add[(triton.cdiv(size, block),)](x, y, out, size, BLOCK=block,
                                                        num_warps=warps)
        return out

    return Case(3 * size * 4, {
        SUBJECT: _giving(out, lambda: vector_add.add[programs](x, y, out, BLOCK=vector_add.BLOCK)),
        "Triton": _best(in_triton, triton_kernels.ADD_CONFIGURATIONS),
        "Torch": lambda: torch.add(x, y, out=out),
        "CuPy": _giving(out, lambda: cupy.add(xs, ys, out=outs)),
        "numba-cuda": _giving(out, lambda: theirs(xn, yn, outn)),
    }, x + y, 0.0)


def softmax_case(dtype: torch.dtype, columns: int) -> Case:
    """Softmax of the rows of a matrix of MATRIX_BYTES."""
    rows = MATRIX_BYTES // dtype.itemsize // columns
    x = _random(rows, columns).to(dtype)
    y = torch.empty_like(x)
    xs = cupy.from_dlpack(x)
    xn, yn = map(cuda.as_cuda_array, (x, y))
    block = bn.next_power_of_2(columns)
    theirs = numba_cuda_kernels.softmax[rows, numba_cuda_kernels.THREADS]

    def in_triton(warps: int) -> torch.Tensor:
        triton_kernels.softmax[(rows,)](x, y, columns, BLOCK=block, num_warps=warps)
        return y

    def in_cupy() -> torch.Tensor:
        powers = cupy.exp(xs - xs.max(axis=1, keepdims=True))
        return torch.from_dlpack(powers / powers.sum(axis=1, keepdims=True))

    return Case(2 * x.nbytes, {
        SUBJECT: _giving(y, lambda: softmax.softmax[rows](x, y, BLOCK=block)),
        "Triton": _best(in_triton, ((warps,) for warps in triton_kernels.ROW_WARPS)),
        "Torch": lambda: torch.softmax(x, dim=1),
        "CuPy": in_cupy,
        "numba-cuda": _giving(y, lambda: theirs(xn, yn)),
    }, torch.softmax(x.float(), dim=1).to(dtype), 1e-2 if dtype is torch.float16 else 1e-5)


def layernorm_case(columns: int) -> Case:
    """Layer normalisation of the rows of a float16 matrix of MATRIX_BYTES."""
    rows = MATRIX_BYTES // torch.float16.itemsize // columns
    x = _random(rows, columns).half()
    weight, bias = _random(columns).half(), _random(columns).half()
    y = torch.empty_like(x)
    mean, rstd = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")
    xs, weights, biases = map(cupy.from_dlpack, (x, weight, bias))
    numba_arguments = tuple(map(cuda.as_cuda_array, (x, weight, bias, y)))
    theirs = numba_cuda_kernels.layernorm[rows, numba_cuda_kernels.THREADS]
    epsilon = layernorm.EPSILON

    def in_triton(warps: int) -> torch.Tensor:
        triton_kernels.layernorm[(rows,)](
            x, weight, bias, y, mean, rstd, columns, epsilon,
            BLOCK=bn.next_power_of_2(columns), num_warps=warps)
        return y

    def in_cupy() -> torch.Tensor:
        wide = xs.astype(cupy.float32)
        scale = 1 / cupy.sqrt(wide.var(axis=1, keepdims=True) + epsilon)
        normal = (wide - wide.mean(axis=1, keepdims=True)) * scale * weights + biases
        return torch.from_dlpack(normal.astype(cupy.float16))

    in_torch = partial(torch.nn.functional.layer_norm, x, (columns,), weight, bias, epsilon)
    expected = torch.nn.functional.layer_norm(x.float(), (columns,), weight.float(), bias.float(),
                                              epsilon)
    return Case(2 * x.nbytes, {
        SUBJECT: _giving(y, lambda: layernorm.launch(x, weight, bias, y, mean, rstd)),
        "Triton": _best(in_triton, ((warps,) for warps in triton_kernels.ROW_WARPS)),
        "Torch": in_torch,
        "CuPy": in_cupy,
        "numba-cuda": _giving(y, lambda: theirs(*numba_arguments, epsilon)),
    }, expected.half(), 1e-2)


def _random(*shape: int) -> torch.Tensor:
    """Standard normal float32 on the GPU, the same at every call."""
    generator = torch.Generator("cuda").manual_seed(SEED)
    return torch.randn(*shape, device="cuda", generator=generator)


def _giving(result: torch.Tensor, run: Run) -> Run:
    """run, returning result."""
    def run_and_give() -> torch.Tensor:
        run()
        return result
    return run_and_give


def _best(run: Callable[..., torch.Tensor], configurations) -> Run:
    """run with the configuration that is fastest on this machine."""
    return fastest([partial(run, *configuration) for configuration in configurations],
                   gpu_timer())


SOFTMAX_COLUMNS = (1000, 1024, 4096, 8192, 16384)
LAYERNORM_COLUMNS = (1024, 4096, 8192)
CASES: dict[str, Callable[[], Case]] = {
    "add f32 2^28": partial(add_case, 2**28),
    **{f"softmax {name} {columns}": partial(softmax_case, dtype, columns)
       for name, dtype in (("f32", torch.float32), ("f16", torch.float16))
       for columns in SOFTMAX_COLUMNS},
    **{f"layernorm f16 {columns}": partial(layernorm_case, columns)
       for columns in LAYERNORM_COLUMNS},
}
