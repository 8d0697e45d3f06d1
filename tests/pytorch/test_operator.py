"""Operators made of kernels, under everything that PyTorch does with operators."""

from __future__ import annotations

import doctest
import io
import sys
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError, BlockValueError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import blocknumba.torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import torch_modules as modules  # noqa: E402

F = torch.nn.functional
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
BACKENDS = ["aot_eager", "inductor"]


@bn.jit
def spread(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] * 2


@bn.jit
def clear_input(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] * 2
    x[r] = 0


@blocknumba.torch.op("blocknumba_tests::careless")
def careless(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    clear_input[1](x, out, BLOCK=16)
    return out


@blocknumba.torch.op("blocknumba_tests::careful", mutates_args=("x",))
def careful(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    clear_input[1](x, out, BLOCK=16)
    return out


@blocknumba.torch.op("blocknumba_tests::twice")
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    spread[bn.cdiv(x.numel(), 16)](x, out, BLOCK=16)
    return out


def inputs(dtype=torch.float64, rows: int = 11, columns: int = 6, device: str = "cpu"):
    return [torch.randn(*shape, dtype=dtype, device=device).requires_grad_()
            for shape in ((rows, columns), (columns,), (columns,))]


def norm(x, weight, bias):
    out, _, _ = modules.layer_norm(x, weight, bias, 1e-5)
    return out


def entropy(logits, labels):
    loss, _ = modules.cross_entropy(logits, labels)
    return loss


def model(x, weight, bias, labels):
    return entropy(torch.relu(norm(x * 2, weight, bias)) + 1, labels).mean()


def plain(x, weight, bias, labels):
    normal = F.layer_norm(x * 2, (x.shape[1],), weight, bias)
    return F.cross_entropy(torch.relu(normal) + 1, labels)


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_torch_s(device):
    x, weight, bias = inputs(torch.float32, 37, 20, device)
    labels = torch.randint(0, 20, (37,), device=device)
    torch.testing.assert_close(norm(x, weight, bias), F.layer_norm(x, (20,), weight, bias))
    torch.testing.assert_close(entropy(x, labels),
                               F.cross_entropy(x, labels, reduction="none"))


def test_gradients():
    given = inputs()
    labels = torch.randint(0, 6, (11,))
    assert torch.autograd.gradcheck(norm, given)
    assert torch.autograd.gradcheck(lambda x: entropy(x, labels), given[:1])


def test_torch_s_own_check_of_operators():
    x, weight, bias = inputs()
    labels = torch.randint(0, 6, (11,))
    torch.library.opcheck(modules.layer_norm, (x, weight, bias, 1e-5))
    torch.library.opcheck(modules.cross_entropy, (x, labels))
    torch.library.opcheck(careful, (torch.randn(10),))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_without_a_break(backend, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=dynamic)
    for rows, columns in ((37, 20), (21, 20), (21, 33)):
        given = inputs(torch.float32, rows, columns)
        labels = torch.randint(0, columns, (rows,))
        found = torch.autograd.grad(compiled(*given, labels), given)
        expected = torch.autograd.grad(plain(*given, labels), given)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_widths_share_a_graph():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda x, labels: entropy(x * 1, labels), backend="aot_eager",
                             fullgraph=True, dynamic=True)
    for columns in (20, 33, 70, 500):
        compiled(torch.randn(8, columns), torch.zeros(8, dtype=torch.int64))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_export_with_any_number_of_rows():
    module = modules.LayerNorm(20)
    program = torch.export.export(module, (torch.randn(8, 20),), dynamic_shapes={
        "x": {0: torch.export.Dim("rows", min=2)}})
    kept = io.BytesIO()
    torch.export.save(program, kept)
    kept.seek(0)
    x = torch.randn(11, 20)
    torch.testing.assert_close(torch.export.load(kept).module()(x), module(x))


def test_vmap_by_a_rule():
    @blocknumba.torch.op("blocknumba_tests::twice_of_many")
    def twice_of_many(x: torch.Tensor) -> torch.Tensor:
        return twice(x)

    def rule(info, in_dims, x):  # all at once: a row more is as good as any
        return twice(x.reshape(-1)).view_as(x), in_dims[0]

    twice_of_many.register_vmap(rule)
    x = torch.randn(3, 40)
    torch.testing.assert_close(torch.vmap(twice_of_many)(x), x * 2)


def test_autocast():
    @blocknumba.torch.op("blocknumba_tests::twice_in_float32")
    def twice_in_float32(x: torch.Tensor) -> torch.Tensor:
        return twice(x)

    twice_in_float32.register_autocast("cpu", torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert twice_in_float32(torch.ones(4, dtype=torch.bfloat16)).dtype == torch.float32


def test_a_store_that_is_not_declared():
    message = ("blocknumba_tests::careless: kernel clear_input stores to argument x, which the "
               "operator does not say it mutates")
    with pytest.raises(BlockValueError, match=message):
        careless(torch.ones(10))
    torch._dynamo.reset()
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: careless(x) + 1, backend="aot_eager", fullgraph=True)(
            torch.ones(10))


def test_a_store_that_is_not_declared_by_a_launch_that_is_known():
    careful(torch.ones(10))  # the launch is known
    with pytest.raises(BlockValueError, match="does not say it mutates"):
        careless(torch.ones(10))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_store_that_is_declared(backend):
    torch._dynamo.reset()

    def function(x):
        x = x + 1
        return careful(x) + x

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(torch.ones(10)), torch.full((10,), 4.0))


def test_a_kernel_s_error_comes_while_it_is_traced():
    @bn.jit
    def wrong(x, out):
        out[bn.block(0, 16)] = x[bn.block(0, 16)] + "text"

    @blocknumba.torch.op("blocknumba_tests::wrong")
    def operator(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        wrong[1](x, out)
        return out

    torch._dynamo.reset()
    with pytest.raises(Exception, match="text"):
        torch.compile(operator, backend="aot_eager", fullgraph=True)(torch.ones(16))


def test_a_bare_launch_on_a_fake_tensor():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.empty(16)
        with pytest.raises(BlockTypeError, match=r"argument x: given a FakeTensor(.|\n)*"
                           r"blocknumba\.torch\.op"):
            spread[1](x, x, BLOCK=16)


def test_a_bare_launch_under_vmap():
    def function(x):
        spread[1](x, x, BLOCK=16)
        return x

    with pytest.raises(BlockTypeError, match="given a tensor without memory of its own"):
        torch.vmap(function)(torch.ones(2, 16))


def test_a_bare_launch_on_what_requires_gradients():
    x, out = torch.ones(16, requires_grad=True), torch.empty(16)
    with pytest.raises(BlockValueError, match="argument x requires gradients, which a launch does "
                       "not compute"):
        spread[1](x, out, BLOCK=16)
    with torch.no_grad():
        spread[1](x, out, BLOCK=16)
    with pytest.raises(BlockValueError, match="requires gradients"):
        spread[1](x, out, BLOCK=16)
    spread[1](x.detach(), out, BLOCK=16)
    assert (out == 2).all()


@pytest.mark.parametrize("device", DEVICES)
def test_autograd_notices_what_a_launch_overwrites(device):
    a = torch.ones(16, requires_grad=True, device=device)
    h = a * 1
    total = h.square().sum()
    for _ in range(3):  # the first launch, and those that it is known for
        spread[1](torch.ones(16, device=device), h.detach(), BLOCK=16)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        x = torch.ones(16)
        spread[1](x, x, BLOCK=16)
        assert (x == 2).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_hundred_steps_of_training(device):
    ours = modules.losses(modules.LayerNorm, modules.CrossEntropy(), device)
    expected = modules.losses(torch.nn.LayerNorm, torch.nn.CrossEntropyLoss(), device)
    np.testing.assert_allclose(ours, expected, rtol=1e-4)
    assert ours[-1] < ours[0] / 2


@pytest.mark.gpu(not_emulated="a CUDA graph is what is tested")
def test_an_operator_in_a_cuda_graph():
    x = torch.ones(100, device="cuda")
    twice(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = twice(x)
    x.fill_(5)
    graph.replay()
    assert (out == 10).all()


def test_the_page_s_program():
    page = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
    _, program, *_ = page.split("```py\n")
    scope: dict[str, object] = {"__name__": "page"}
    exec(program.partition("```")[0], scope)
    x = torch.arange(3.0, requires_grad=True)
    found = scope["double"](x)
    found.sum().backward()
    assert (found == 2 * x).all() and (x.grad == 2).all()


def test_examples_of_docstrings():
    from blocknumba.torch import operator
    failed, tried = doctest.testmod(operator, extraglobs={"bn": bn, "blocknumba": blocknumba})
    assert tried >= 5 and not failed
