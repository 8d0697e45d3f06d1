"""bn.auto: results are right, choices are kept, what is given is respected, mistakes are told."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.dispatch.tiles import chooser as chooser_module
from blocknumba.dispatch.tiles.chooser import Chooser
from blocknumba.dispatch.tune.autotune import TIMED_TILES
from blocknumba.errors import AutotuneError, BlockError, BlockTypeError, BlockValueError


@bn.jit
def matmul(x, w, out, BM: bn.constexpr = bn.auto, BN: bn.constexpr = bn.auto,
           BK: bn.constexpr = bn.auto):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@bn.jit
def double(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] * 2


def product(M: int, N: int, K: int) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng()
    return (generator.standard_normal((M, K)).astype(np.float32),
            generator.standard_normal((K, N)).astype(np.float32),
            np.full((M, N), np.nan, np.float32))


def grid_of(out: np.ndarray):
    return lambda a: (bn.cdiv(out.shape[0], a["BM"]), bn.cdiv(out.shape[1], a["BN"]))


def doubled(**given: object) -> dict[str, int]:
    """Launch `double` with BLOCK=bn.auto; returns what was chosen."""
    x = np.random.default_rng().standard_normal(3000).astype(np.float32)
    out = np.full_like(x, np.nan)
    double[lambda a: bn.cdiv(x.size, a["BLOCK"])](x, out, **{"BLOCK": bn.auto} | given)
    np.testing.assert_array_equal(out, x * 2)
    return double.tiles.latest.constants()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(70, 90, 33), (1, 1, 1), (300, 17, 520), (0, 5, 6), (5, 0, 6),
                                   (5, 6, 0)])
def test_result_is_right(shape):
    x, w, out = product(*shape)
    matmul[grid_of(out)](x, w, out)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(out, exact, rtol=0, atol=1e-5 * shape[2])


def test_choice_by_position_and_by_name():
    x, w, out = product(40, 50, 60)
    matmul[grid_of(out)](x, w, out, bn.auto, bn.auto, BK=bn.auto)
    np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-4)
    assert set(matmul.tiles.latest.constants()) == {"BM", "BN", "BK"}


def test_what_is_given_is_kept():
    x, w, out = product(40, 50, 60)
    seen = []
    matmul[lambda a: seen.append(dict(a)) or grid_of(out)(a)](x, w, out, BM=16)
    assert {a["BM"] for a in seen} == {16}
    assert set(matmul.tiles.latest.constants()) == {"BN", "BK"}
    np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-4)


def test_options_stay_the_launch_s():
    doubled(num_warps=2)


def test_warmup_and_bind_choose_too():
    x, w, out = product(40, 50, 60)
    assert matmul.warmup(x, w, out, grid=grid_of(out)).name == "matmul"
    matmul.bind(grid_of(out), x, w, out)()
    np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-4)


def test_a_choice_is_made_once(monkeypatch):
    first = doubled()
    monkeypatch.setattr(Chooser, "_ranked", lambda *_: pytest.fail("ranked again"))
    assert doubled() == first


def test_a_choice_is_kept_on_disk(monkeypatch, tmp_path):
    from blocknumba.dispatch.compile.cache import Cache
    cache = Cache(tmp_path, 1 << 20)
    monkeypatch.setattr(chooser_module, "user_cache", lambda: cache)
    x, out = np.ones(5000, np.float32), np.zeros(5000, np.float32)
    grid = lambda a: bn.cdiv(x.size, a["BLOCK"])  # noqa: E731
    double[grid](x, out, BLOCK=bn.auto)
    chosen = double.tiles.latest
    monkeypatch.setattr(Chooser, "_ranked", lambda *_: pytest.fail("ranked again"))
    another = Chooser(double)
    another.complete({"x": x, "out": out, "BLOCK": bn.auto}, {}, grid)
    assert another.latest == chosen


def test_code_that_depends_on_the_extents_is_typed_for_each():
    @bn.jit
    def total(x, out, BLOCK: bn.constexpr):
        sums = bn.zeros((BLOCK,))
        for r in bn.spans(x.shape[0], BLOCK):
            if BLOCK > 1000:
                sums += x[r] * 1
            else:
                sums += bn.abs(bn.abs(x[r]))
        out[0] = bn.sum(sums)

    x, out = np.random.default_rng().random(3000, np.float32), np.zeros(1, np.float32)
    total[1](x, out, BLOCK=bn.auto)
    np.testing.assert_allclose(out[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_the_choice_says_what_came_next():
    doubled()
    text = str(double.tiles.latest)
    assert text.startswith("BLOCK=") and " candidates; next: BLOCK=" in text


def test_it_is_one_object_also_when_pickled():
    assert pickle.loads(pickle.dumps(bn.auto)) is bn.auto and repr(bn.auto) == "bn.auto"


def test_auto_for_an_argument_at_run_time():
    @bn.jit
    def fill(x, n):
        x[bn.block(0, 16)] = n

    with pytest.raises(BlockTypeError, match=r"fill: given bn\.auto for n, accepted for constants"
                       r"(.|\n)*annotate it: n: bn\.constexpr"):
        fill[1](np.zeros(16, np.float32), bn.auto)


def test_too_many():
    @bn.jit
    def five(x, A: bn.constexpr, B: bn.constexpr, C: bn.constexpr, D: bn.constexpr,
             E: bn.constexpr):
        x[0] = A + B + C + D + E

    with pytest.raises(BlockValueError, match="accepted for at most 4 constants"):
        five[1](np.zeros(1, np.int32), *[bn.auto] * 5)


def test_a_kernel_that_is_wrong_shows_its_error():
    @bn.jit
    def wrong(x, BLOCK: bn.constexpr):
        r = bn.block(0, BLOCK)
        x[r] = x[r] + "text"

    with pytest.raises(BlockError, match="text") as caught:
        wrong[1](np.zeros(16, np.float32), BLOCK=bn.auto)
    assert not isinstance(caught.value, AutotuneError)


def test_no_choice_that_compiles():
    @bn.jit
    def narrow(x, BLOCK: bn.constexpr):
        bn.static_assert(BLOCK < 1, "no such extent")
        x[bn.block(0, BLOCK)] = 1

    with pytest.raises(BlockError, match="no such extent"):
        narrow[1](np.zeros(16, np.float32), BLOCK=bn.auto)


def test_code_for_no_launch_needs_the_extents():
    message = r"double: argument BLOCK: given bn\.auto, which only a launch from Python replaces"
    with pytest.raises(BlockValueError, match=message):
        bn.compile(double, "f32[::1], f32[::1]", constants={"BLOCK": bn.auto}, target="sm_90a")


def test_a_launch_in_njit_needs_the_extents():
    import numba

    @bn.jit
    def halve(x, BLOCK: bn.constexpr = bn.auto):
        r = bn.block(0, BLOCK)
        x[r] = x[r] / 2

    @numba.njit
    def run(x):
        halve[1](x)

    with pytest.raises(numba.TypingError, match=r"given bn\.auto, which only a launch from Python"):
        run(np.ones(16, np.float32))


def autotuned(times: list[float], configs=(), **options: object):
    """matmul or another kernel, tuned with times that are made up; and what was timed."""
    seen: list[object] = []

    def bench(fn, quantiles):
        fn()
        seen.append(fn)
        return times[(len(seen) - 1) % len(times)]

    kernel = options.pop("kernel", matmul)
    return bn.autotune(configs, do_bench=bench, cache_results=False, **options)(kernel), seen


def test_autotune_times_the_few_best_choices_once():
    kernel, seen = autotuned([3.0, 2.0, 1.0, 4.0])
    x, w, out = product(100, 70, 40)
    for _ in range(2):
        kernel[grid_of(out)](x, w, out)

    assert len(seen) == TIMED_TILES
    best = matmul.tiles.best({**dict(zip(("x", "w", "out"), (x, w, out))), "BM": bn.auto,
                              "BN": bn.auto, "BK": bn.auto}, {}, grid_of(out), 3)
    assert kernel.best_config.kwargs == best[2]
    np.testing.assert_allclose(out, x.astype(np.float64) @ w, rtol=1e-5, atol=1e-5)


def test_autotune_times_them_again_for_other_sizes_alone():
    kernel, seen = autotuned([1.0])
    for rows in (100, 101, 99, 400):  # the first three are of one bucket
        x, w, out = product(rows, 70, 40)
        kernel[grid_of(out)](x, w, out)
        np.testing.assert_allclose(out, x.astype(np.float64) @ w, rtol=1e-5, atol=1e-5)

    assert len(seen) == 2 * TIMED_TILES


def test_autotune_tries_the_tiles_of_a_configuration_with_its_options():
    configs = [bn.Config({"BLOCK": bn.auto}, num_warps=1), bn.Config({"BLOCK": 64}, num_warps=2)]
    kernel, seen = autotuned([2.0] * TIMED_TILES + [1.0], configs, kernel=double)
    x = np.random.default_rng().standard_normal(3000).astype(np.float32)
    out = np.full_like(x, np.nan)
    kernel[lambda a: bn.cdiv(x.size, a["BLOCK"])](x, out)

    np.testing.assert_array_equal(out, x * 2)
    assert str(kernel.best_config) == "BLOCK=64, num_warps=2"
    labels = [row.configuration for row in kernel.timings]
    assert len(labels) == len(seen) == TIMED_TILES + 1
    assert all(label.endswith("num_warps=1") for label in labels[1:])


def test_autotune_keeps_what_it_chooses_to_itself():
    kernel, _ = autotuned([1.0])
    x, w, out = product(10, 10, 10)
    with pytest.raises(BlockValueError, match="given BM, which autotune chooses"):
        kernel[grid_of(out)](x, w, out, BM=16)
