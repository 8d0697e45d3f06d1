"""Warm launches with real arrays of CuPy, Torch and Numba: each gets what it was given."""

import itertools

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.launch import recent


@bn.jit
def scale(x, out, factor, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * factor


def make_cupy(values):
    return pytest.importorskip("cupy").asarray(values)


def make_torch(values):
    return pytest.importorskip("torch").as_tensor(values, device="cuda")


def make_numba(values):
    return pytest.importorskip("numba.cuda").to_device(values)


def on_host(array) -> np.ndarray:
    for name in ("get", "copy_to_host"):
        if hasattr(array, name):
            return getattr(array, name)()
    return array.cpu().numpy()


MAKERS = [make_cupy, make_torch, make_numba]
VIEWS = {"whole": lambda x: x, "half": lambda x: x[:500], "odd": lambda x: x[1:], "steps":
         lambda x: x[::3]}


@pytest.mark.gpu(emulated="test_the_launched_kernel_runs_on_an_emulated_gpu")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kind", ["no check", "check"])
def test_launches_of_all_shapes_take_turns(make, kind, monkeypatch):
    if kind == "no check":
        monkeypatch.setattr(recent, "_is_exact", lambda: False)
    kernel = bn.jit(scale.python_function)
    values = {dtype: np.arange(1000).astype(dtype) for dtype in (np.float32, np.int32)}
    cases = []
    for (dtype, numbers), view in itertools.product(values.items(), VIEWS.values()):
        x = view(make(numbers))
        cases.append((x, make(np.zeros(1000, dtype)), view(numbers)))

    for factor, (x, out, expected) in itertools.product((2, 3, 3), cases):
        kernel[8](x, out, factor, B=128)

        assert (on_host(out)[:expected.size] == expected * factor).all()


@pytest.mark.gpu(emulated="test_the_launched_kernel_runs_on_an_emulated_gpu")
def test_an_array_whose_shape_or_memory_changes_in_place_is_seen():
    torch = pytest.importorskip("torch")
    kernel = bn.jit(scale.python_function)
    x, out = torch.arange(100.0, device="cuda"), torch.zeros(400, device="cuda")
    kernel[4](x, out, 2, B=128)
    kernel[4](x, out, 2, B=128)

    x.resize_(400)
    x.copy_(torch.arange(400.0))
    kernel[4](x, out, 3, B=128)

    assert (out.cpu().numpy() == 3 * np.arange(400)).all()


@pytest.mark.gpu(emulated="test_the_launched_kernel_runs_on_an_emulated_gpu")
def test_launches_in_every_autograd_mode_are_the_same():
    torch = pytest.importorskip("torch")
    kernel = bn.jit(scale.python_function)
    x = torch.arange(100.0, device="cuda")

    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode) * 3:
        with mode():
            out = torch.zeros(100, device="cuda")
            kernel[1](x, out, 2, B=128)
            assert (out.cpu().numpy() == 2 * np.arange(100)).all()


@pytest.mark.gpu(emulated="test_the_launched_kernel_runs_on_an_emulated_gpu")
@pytest.mark.parametrize("options", [{"launch_pdl": True}, {"launch_cooperative_grid": True}],
                         ids=str)
def test_launches_with_attributes_run_one_after_the_other(options):
    cupy = pytest.importorskip("cupy")
    x = cupy.ones(1000, np.float32)

    for _ in range(10):
        scale[8](x, x, 2, B=128, **options)

    assert (x.get() == 1024).all()


def test_the_launched_kernel_runs_on_an_emulated_gpu():
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)

    emulated_gpu.launch(scale, 8, (x, out, 3), {"B": 128, "launch_pdl": True})

    assert (out == 3 * x).all()
