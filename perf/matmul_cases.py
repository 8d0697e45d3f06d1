"""Products of matrices, by the examples' kernels and their peers: cuBLAS, Triton."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from unittest import mock

import torch
import triton_matmul
from example_kernels import matmul
from measure import gpu_timer
from product_cases import SUBJECT, Case, giving, poisoned, random_generator
from product_rounding import ROUNDINGS, Rounding
from triton_launch import fastest_launch

import blocknumba as bn

from blocknumba.dispatch.launch import kernel as kernel_module
from blocknumba.nvvm_lower.target import Target

CUBLAS, TRITON, POINTERS, AMPERE = "cuBLAS", "Triton", "pointers", "as for sm_80"
PEERS = (CUBLAS, TRITON, POINTERS, AMPERE)
AMPERE_TILE = {"BM": 256, "BN": 128, "BK": 64}  # the fastest there
INT8_ALL_127 = 2052  # terms: their sum is beyond 2**24


@dataclass(frozen=True)
class Kind:
    """Dtypes of a product.

    operand, result: of arrays.  rounding: as of a Case.  precision: of float32.  sums: as the
    kernel adds up.
    """

    operand: torch.dtype
    result: torch.dtype
    rounding: Rounding
    precision: str = "ieee"
    sums: object = bn.float32


KINDS = {
    "f16": Kind(torch.float16, torch.float16, ROUNDINGS["f16"]),
    "bf16": Kind(torch.bfloat16, torch.bfloat16, ROUNDINGS["bf16"]),
    "fp8": Kind(torch.float8_e4m3fn, torch.bfloat16, ROUNDINGS["fp8"]),
    "tf32": Kind(torch.float32, torch.float32, ROUNDINGS["tf32"], "tf32"),
    "tf32x3": Kind(torch.float32, torch.float32, ROUNDINGS["tf32x3"], "tf32x3"),
    "f32": Kind(torch.float32, torch.float32, ROUNDINGS["f32"]),
    "int8": Kind(torch.int8, torch.int32, ROUNDINGS["int8"], sums=bn.int32),
    "f64": Kind(torch.float64, torch.float64, ROUNDINGS["f64"], sums=bn.float64),
}


def matmul_case(name: str, M: int, N: int, K: int, turned: bool = False,
                peers: tuple[str, ...] = (CUBLAS,)) -> Case:
    """(M, K) @ (K, N) of a kind; turned: the second operand is contiguous along K."""
    kind = KINDS[name]
    a = _random(kind, M, K)
    b = _random(kind, N, K).T if turned else _random(kind, K, N)
    return _case(kind, a, b, peers)


def greatest_int8_case() -> Case:
    """Sums of INT8_ALL_127 products of 127 by 127, of two columns of which one is negative."""
    a = torch.full((256, INT8_ALL_127), 127, device="cuda", dtype=torch.int8)
    b = torch.full((INT8_ALL_127, 256), 127, device="cuda", dtype=torch.int8)
    b[:, 1::2] = -127
    return _case(KINDS["int8"], a, b, ())


def integers_in_fp8_case(size: int) -> Case:
    """A product of integers from -2 to 2 in 8-bit floats, of which no sum is rounded."""
    generator = random_generator()
    a, b = (torch.randint(-2, 3, (size, size), device="cuda", generator=generator).float()
            .to(torch.float8_e4m3fn) for _ in range(2))
    return _case(replace(KINDS["fp8"], rounding=ROUNDINGS["fp8 of integers"]), a, b.T, (CUBLAS,))


def _case(kind: Kind, a: torch.Tensor, b: torch.Tensor, peers: tuple[str, ...]) -> Case:
    (M, K), N = a.shape, b.shape[1]
    result = partial(poisoned, M, N, dtype=kind.result)
    makers = {
        SUBJECT: lambda: _ours(kind, a, b, result()),
        CUBLAS: lambda: _cublas(kind, a, b, result()),
        TRITON: lambda: _triton(a, b, result()),
        POINTERS: lambda: _pointers(a, b, result()),
        AMPERE: lambda: _as_for_ampere(a, b, result()),
    }

    def reference() -> tuple[torch.Tensor, torch.Tensor]:
        wide_a, wide_b = a.double(), b.double()
        return wide_a @ wide_b, wide_a.abs() @ wide_b.abs()

    runs = {who: makers[who]() for who in (SUBJECT, *peers)}
    return Case(2 * M * N * K, runs, reference, kind.rounding, K)


def _random(kind: Kind, *shape: int) -> torch.Tensor:
    """Standard normal numbers, or any integers."""
    generator = random_generator()
    if kind.operand is torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8,
                             generator=generator)
    return torch.randn(shape, device="cuda", generator=generator).to(kind.operand)


def _ours(kind: Kind, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    """The example, with tiles that the compiler chooses."""
    return giving(c, lambda: matmul.launch(a, b, c, kind.precision, **_sums(kind)))


def _sums(kind: Kind) -> dict[str, object]:
    return {} if kind.sums is bn.float32 else {"SUM": kind.sums}


def _cublas(kind: Kind, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    """The product by way of Torch."""
    if kind.operand is torch.float8_e4m3fn:
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=kind.result,
                                        use_fast_accum=True)
    if kind.operand is torch.int8:
        return lambda: torch._int_mm(a, b)

    def run() -> None:
        torch.backends.cuda.matmul.allow_tf32 = kind.precision == "tf32"
        torch.matmul(a, b, out=c)

    return giving(c, run)


def _triton(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    """Its persistent kernel with tensor descriptors, in its best configuration."""
    return giving(c, fastest_launch(triton_matmul.launches(a, b, c), gpu_timer()))


def _pointers(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    """The example in Triton's dialect."""
    return giving(c, lambda: matmul.launch_pointers(a, b, c))


def _as_for_ampere(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    """The example's kernel with nothing but what Ampere can do, in machine code of this GPU."""
    ampere = Target.parse("sm_80")
    target = replace(Target.parse("sm_90"), capabilities=ampere.capabilities,
                     shared_bytes_per_block=ampere.shared_bytes_per_block)
    kernel = bn.jit(matmul.matmul.python_function)
    programs = math.prod(matmul.tiles_of(*c.shape)(AMPERE_TILE))

    def run() -> None:
        with _compiled_for(target):
            kernel[programs](a, b, c, **AMPERE_TILE)

    return giving(c, run)


@contextmanager
def _compiled_for(target: Target):
    """Kernels that are launched for the first time are compiled for a target."""
    with mock.patch.object(kernel_module, "target_of", lambda *_: target):
        yield


EVERYBODY = (CUBLAS, TRITON, POINTERS, AMPERE)
LARGE = (CUBLAS, TRITON)
CASES: dict[str, Callable[[], Case]] = {
    **{f"{kind} {size}^3, B by {'columns' if turned else 'rows'}":
       partial(matmul_case, kind, size, size, size, turned,
               EVERYBODY if (kind, size) == ("f16", 4096) else LARGE)
       for kind in ("f16", "bf16") for size in (4096, 8192) for turned in (False, True)},
    "f16 8192 x 8192 x 1024, B by columns": partial(matmul_case, "f16", 8192, 8192, 1024, True,
                                                    LARGE),
    "f16 2048^3, B by columns": partial(matmul_case, "f16", 2048, 2048, 2048, True, LARGE),
    "f16 1024^3, B by columns": partial(matmul_case, "f16", 1024, 1024, 1024, True, LARGE),
    **{f"f16 {rows} x 8192 x 8192, B by columns":
       partial(matmul_case, "f16", rows, 8192, 8192, True) for rows in (16, 32, 64)},
    "fp8 8192^3, B by columns": partial(matmul_case, "fp8", 8192, 8192, 8192, True),
    "tf32 4096^3, B by columns": partial(matmul_case, "tf32", 4096, 4096, 4096, True),
    "f32 4096^3, B by rows": partial(matmul_case, "f32", 4096, 4096, 4096),
    "int8 8192^3, B by columns": partial(matmul_case, "int8", 8192, 8192, 8192, True),
}
# Whose errors are of interest, not their times
EXACT_CASES: dict[str, Callable[[], Case]] = {
    "tf32x3 2048^3": partial(matmul_case, "tf32x3", 2048, 2048, 2048, peers=()),
    "f64 1024^3": partial(matmul_case, "f64", 1024, 1024, 1024, peers=()),
    "fp8 8192^3 of integers from -2 to 2": partial(integers_in_fp8_case, 8192),
    f"int8 256 x 256 x {INT8_ALL_127}, all 127": greatest_int8_case,
}
