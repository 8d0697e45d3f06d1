"""Products of matrices on several GPUs: torch.distributed moves tensors, blocknumba multiplies.

x is split by rows, a share for each process:

    x @ w        each process multiplies its rows, and needs nothing of the others
    x.T @ y      each process has a part of every sum, and an all-reduce adds the parts

One process a GPU, over NCCL; without two GPUs two processes on the CPU, over Gloo.

    python examples/two_gpus.py
"""

import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import blocknumba as bn

RUNS = 10


@bn.jit
def product(x, w, out, BM: bn.constexpr = bn.auto, BN: bn.constexpr = bn.auto,
            BK: bn.constexpr = bn.auto):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


def multiply(x, w, out):
    """out = x @ w on the device of the tensors: (M, K), (K, N), (M, N)."""
    M, N = out.shape
    product[lambda chosen: (bn.cdiv(M, chosen["BM"]), bn.cdiv(N, chosen["BN"]))](x, w, out)


def rows_of(x, rank: int, count: int):
    """The share of a process of the rows of a tensor, as equal as can be."""
    return torch.tensor_split(x, count)[rank].contiguous()


def worker(rank: int, count: int, sizes: tuple[int, int, int], times) -> None:
    """One process: both products of its share, checked; and the times of both together."""
    on_gpus = torch.cuda.device_count() >= count
    device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    dist.init_process_group("nccl" if on_gpus else "gloo", rank=rank, world_size=count)
    try:
        M, K, N = sizes
        generator = torch.Generator().manual_seed(int(os.environ["SEED"]))
        dtype = torch.float16 if on_gpus else torch.float32
        x, w = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((M, K), (K, N)))
        own, w = rows_of(x, rank, count).to(device), w.to(device)
        y = torch.full((own.shape[0], N), torch.nan, dtype=dtype, device=device)
        slope = torch.full((K, N), torch.nan, dtype=torch.float32, device=device)

        def both() -> None:
            multiply(own, w, y)
            multiply(own.T, y, slope)
            dist.all_reduce(slope)

        both()
        check(y, own.double() @ w.double(), own.double().abs() @ w.double().abs(), K)
        exact, sizes_of_terms = own.double().T @ y.double(), own.double().abs().T @ y.double().abs()
        for sums in (exact, sizes_of_terms):
            dist.all_reduce(sums)
        check(slope, exact, sizes_of_terms, M)
        times[rank] = seconds(both, on_gpus)
    finally:
        dist.destroy_process_group()


def check(found, exact, terms, depth: int) -> None:
    """found is exact, up to the roundings of its sums of depth terms and of the result.

    terms: the sums of the terms' sizes.
    """
    bound = depth * 2.0**-23 * terms + torch.finfo(found.dtype).eps * exact.abs()
    off = (found.double() - exact).abs()
    assert bool((off <= bound).all()), f"off by {(off / bound).max():.3g} of what is allowed"


def seconds(run, on_gpus: bool) -> float:
    """Median time of runs that all processes begin together."""
    found = []
    for _ in range(RUNS):
        dist.barrier()
        start = time.perf_counter()
        run()
        if on_gpus:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def slowest(count: int, sizes: tuple[int, int, int]) -> float:
    """The time of the slowest of some processes."""
    manager = mp.Manager()
    times = manager.dict()
    os.environ["MASTER_PORT"] = str(20000 + os.getpid() % 20000 + count)
    mp.spawn(worker, (count, sizes, times), nprocs=count)
    return max(times.values())


def main() -> None:
    """Check and time one process, and two."""
    on_gpus = torch.cuda.device_count() > 1
    os.environ["SEED"] = str(torch.seed() % 2**31)
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # on the CPU, each process has one thread
    sizes = (8192, 4096, 4096) if on_gpus else (512, 300, 200)
    if len(sys.argv) > 1:
        sizes = tuple(map(int, sys.argv[1].split("x")))
    one, two = slowest(1, sizes), slowest(2, sizes)
    print(f"two_gpus: {'two GPUs' if on_gpus else 'two processes on the CPU'}: equal to PyTorch's")
    print(f"{'x'.join(map(str, sizes))}: one {one * 1e3:.2f} ms, two {two * 1e3:.2f} ms, "
          f"{one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
