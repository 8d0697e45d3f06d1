"""Triton's host on a GPU: the driver, launches of Torch's tensors, tuners, descriptors, errors."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.triton.tools.tensor_descriptor import TensorDescriptor

torch = pytest.importorskip("torch")

needs_gpu = pytest.mark.gpu(not_emulated="the host is what is tested: drivers, tuners, launches")
N = 100_003


@triton.jit
def scaled(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def product(a, b, c, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, depth, K):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(tl.float16))


@triton.jit
def square(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    x = tl.load(a + at)
    tl.store(out + at, tl.dot(x, tl.trans(x)))


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def vectors():
    x = torch.randn(N, device="cuda")
    return x, torch.full_like(x, float("nan"))


@needs_gpu
def test_the_driver_says_what_torch_says():
    active, real = triton.runtime.driver.active, torch.cuda.get_device_properties(0)

    found = active.utils.get_device_properties(active.get_current_device())

    assert found["multiprocessor_count"] == real.multi_processor_count
    assert found["max_shared_mem"] == real.shared_memory_per_block_optin
    assert found["warpSize"] == 32
    assert active.get_current_target().arch == 10 * real.major + real.minor
    assert active.get_active_torch_device() == torch.device("cuda", 0)
    assert triton.testing.get_dram_gbps() > 100
    with torch.cuda.stream(torch.cuda.Stream()):
        assert active.get_current_stream(0) == torch.cuda.current_stream().cuda_stream


@needs_gpu
def test_kernels_and_compiled_code_are_launched():
    x, out = vectors()

    compiled = scaled[grid](x, out, N, 2.0, BLOCK=1024, num_warps=8)

    assert torch.equal(out, x * 2)
    assert compiled.n_regs > 0 and compiled.metadata.num_warps == 8
    out.fill_(float("nan"))
    compiled[(triton.cdiv(N, 1024), 1, 1)](x, out, N, 3.0, 1024)
    assert torch.equal(out, x * 3)


@needs_gpu
@pytest.mark.parametrize("use_cuda_graph", [False, True])
def test_tuners_measure(use_cuda_graph):
    x, out = vectors()
    tuned = triton.autotune(
        [triton.Config({"BLOCK": block}, num_warps=warps) for block in (256, 2048)
         for warps in (4, 8)], key=["n"], use_cuda_graph=use_cuda_graph)(scaled)

    tuned[grid](x, out, N, 2.0)

    assert torch.equal(out, x * 2)
    assert len(tuned.configs_timings) == 4
    assert all(0 < times[0] < float("inf") for times in tuned.configs_timings.values())


@needs_gpu
def test_what_does_not_fit_is_out_of_resources():
    a, out = torch.randn(512, 512, device="cuda").half(), torch.empty(512, 512, device="cuda")

    with pytest.raises(triton.OutOfResources) as caught:
        square[(1,)](a, out, B=512)

    assert caught.value.required > caught.value.limit > 0


@needs_gpu
def test_descriptors_are_arguments():
    a, b = torch.randn(1000, 1024).half().cuda(), torch.randn(1024, 1008).half().cuda()
    c = torch.full((1000, 1008), float("nan"), device="cuda").half()

    product[(8, 8)](TensorDescriptor.from_tensor(a, [128, 64]),
                    TensorDescriptor.from_tensor(b, [64, 128]),
                    TensorDescriptor.from_tensor(c, [128, 128]), 1024, 128, 128, 64, num_warps=8)

    wanted = (a.double() @ b.double()).cpu().numpy()
    np.testing.assert_allclose(c.double().cpu().numpy(), wanted, rtol=2**-10, atol=0.02)


@needs_gpu
def test_bits_are_read_as_another_dtype():
    x = torch.randn(N, device="cuda")
    out = torch.zeros(N, device="cuda", dtype=torch.int32)

    scaled[grid](triton.reinterpret(x, tl.int32), out, N, 1, BLOCK=1024)

    assert torch.equal(out, x.view(torch.int32))


@needs_gpu
def test_times_are_measured_in_graphs_too():
    x, out = vectors()

    def launch():
        scaled[grid](x, out, N, 2.0, BLOCK=1024)

    launch()

    assert 0 < triton.testing.do_bench_cudagraph(launch) < 10
    assert 0 < triton.testing.do_bench(launch, warmup=5, rep=20) < 10
