"""Bound launches and launch hooks on the CPU."""

import numpy as np

import blocknumba as bn


@bn.jit
def scale(x, out, factor, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * factor


def test_a_bound_launch_runs_each_time_on_what_is_in_the_arrays():
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    bound = scale.bind(1, x, out, 3, B=8, interpret=True)
    assert out.tolist() == [0] * 8

    bound()
    assert out.tolist() == [3] * 8
    x[:] = 2
    compiled = bound()

    assert out.tolist() == [6] * 8
    assert compiled.name == "scale"


def test_a_hook_is_called_around_a_launch_on_the_cpu():
    out, seen = np.zeros(4, np.float32), []
    kernel = bn.jit(scale.python_function)
    kernel.add_launch_hook(lambda event: seen.append(out[0]) or (lambda: seen.append(out[0])))

    kernel[lambda meta: 1](np.ones(4, np.float32), out, 5, B=4, interpret=True)

    assert seen == [0, 5]
