"""Tuned kernels from the decorator to the result, on the CPU and on the GPU."""

import threading

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.tune import autotune as autotune_module
from blocknumba.errors import AutotuneError, BlockTypeError, BlockValueError

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
CONFIGS = [bn.Config({"B": size}) for size in SIZES]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Nothing is read from or written to the user's cache."""
    monkeypatch.setattr(autotune_module, "user_cache", lambda: Cache(tmp_path, 1 << 20))
    return tmp_path


class Bench:
    """A do_bench whose times are made up: it runs the kernel, and says the next of times."""

    def __init__(self, *times):
        self.times, self.calls = list(times), 0

    def __call__(self, fn, quantiles):
        fn()
        self.calls += 1
        return self.times[(self.calls - 1) % len(self.times)]


def increment(x, B: bn.constexpr):
    r = bn.block(0, B)
    x[r] += 1


def copy(x, out, n, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r]


def grid(meta):
    return bn.cdiv(300, meta["B"])


def tuned(function, configs=CONFIGS[:2], *, key=(), **options):
    options.setdefault("do_bench", Bench(*range(1, len(configs) + 1)))
    return bn.autotune(configs, key, **options)(bn.jit(function, interpret=True))


def test_a_kernel_in_place_is_tuned_on_copies():
    kernel = bn.autotune(CONFIGS, key=["x.shape"])(bn.jit(increment, interpret=True))
    x = np.arange(300, dtype=np.float32)

    kernel[grid](x)

    np.testing.assert_array_equal(x, np.arange(300) + 1)
    assert len(kernel.timings) == len(CONFIGS)


@pytest.mark.gpu(emulated="test_every_configuration_runs_on_an_emulated_gpu")
def test_a_kernel_in_place_is_tuned_on_copies_on_the_gpu():
    kernel = bn.autotune(CONFIGS, key=["x.shape"], warmup=1, rep=2)(bn.jit(increment))
    x = np.arange(300, dtype=np.float32)

    kernel[grid](x)

    np.testing.assert_array_equal(x, np.arange(300) + 1)
    assert all(row.timing.median_ms > 0 and not row.timing.reason for row in kernel.timings)


@pytest.mark.gpu(emulated="test_every_configuration_runs_on_an_emulated_gpu")
def test_a_device_array_is_tuned_on_copies_in_cuda_graphs():
    cuda = pytest.importorskip("numba.cuda")
    kernel = bn.autotune(CONFIGS, key=["x.shape"], rep=2, use_cuda_graph=True,
                         restore_value=["x"])(bn.jit(increment))
    x = cuda.to_device(np.arange(300, dtype=np.float32))

    kernel[grid](x)

    np.testing.assert_array_equal(x.copy_to_host(), np.arange(300) + 1)
    assert all(row.timing.median_ms > 0 and not row.timing.reason for row in kernel.timings)


@pytest.mark.parametrize("size", SIZES)
def test_every_configuration_runs_on_an_emulated_gpu(size):
    x = np.arange(300, dtype=np.float32)

    emulated_gpu.launch(bn.jit(increment), grid, (x,), {"B": size})

    np.testing.assert_array_equal(x, np.arange(300) + 1)


def test_aliasing_arrays_stay_as_they_are_while_tuning():
    kernel = tuned(copy, CONFIGS)
    memory = np.arange(601, dtype=np.float32)

    kernel[grid](memory[:300], memory[300:600], 300)

    np.testing.assert_array_equal(memory, [*range(300), *range(300), 600])


def test_the_fastest_configuration_runs():
    kernel = tuned(increment, CONFIGS[:3], do_bench=Bench(3.0, 1.0, 2.0))
    seen = []

    kernel[lambda meta: seen.append(meta["B"]) or 1](np.zeros(8, np.float32))

    assert str(kernel.best_config) == "B=16"
    assert sorted(seen) == [8, 16, 16, 32]  # once to measure each, once to run the best


def test_a_known_key_is_not_tuned_again():
    bench = Bench(1.0)
    kernel = tuned(copy, key=["n"], do_bench=bench)
    x, out = np.zeros((2, 300), np.float32)

    for n in (1, 1, 2, 1):
        kernel[grid](x, out, n)

    assert bench.calls == 2 * 2


PLAIN = np.float32, (300,), 0, 3, 1.5


@pytest.mark.parametrize("first, second, is_new", [
    (PLAIN, PLAIN, False), (PLAIN, (np.float32, (200,), 0, 3, 1.5), True),
    (PLAIN, (np.float64, (300,), 0, 3, 1.5), True), (PLAIN, (np.float32, (300,), 1, 3, 1.5), True),
    (PLAIN, (np.float32, (300,), 0, 4, 1.5), True), (PLAIN, (np.float32, (300,), 0, 3, 2.5), False),
    (PLAIN, (np.float32, (300,), 0, 3, 2), True), (PLAIN, (np.float32, (300,), 0, 3.0, 1.5), True),
    ((np.float32, (300,), 0, 3, 7), (np.float32, (300,), 0, 3, 8), False),
    ((np.float32, (300,), 0, 3, 7), (np.float32, (300,), 0, 3, 1 << 40), True),
    ((np.float32, (300,), 0, 3, np.float64(1)), (np.float32, (300,), 0, 3, np.float64(2)), False)])
def test_only_what_the_key_tells_apart_is_measured_anew(first, second, is_new):
    def use(x, n, scale, B: bn.constexpr):
        r = bn.block(0, B)
        x[r] = x[r] + n

    bench = Bench(1.0)
    kernel = tuned(use, key=["x.shape", "n"], do_bench=bench)

    for dtype, shape, offset, n, scale in (first, first, second, second, first):
        kernel[1](np.zeros(shape[0] + offset, dtype)[offset:], n, scale)

    assert bench.calls == (4 if is_new else 2)


def test_a_choice_that_is_known_needs_no_reading_of_arguments(monkeypatch):
    kernel = tuned(copy, key=["n", "x.size"])
    x, out = np.zeros((2, 300), np.float32)
    kernel[grid](x, out, 3)
    monkeypatch.setattr(autotune_module, "read_arguments", None)

    kernel[grid](x.copy(), out, 3)

    assert str(kernel.best_config) == "B=8"


def test_a_key_may_be_any_attribute_even_one_without_a_hash():
    class Marked(np.ndarray):
        mark = [1]

    bench = Bench(1.0)
    kernel = tuned(increment, key=["x.mark"], do_bench=bench)
    x = np.zeros(300, np.float32).view(Marked)

    for mark in ([1], [2], [1]):
        x.mark = mark
        kernel[grid](x)

    assert bench.calls == 2 * 2
    with pytest.raises(BlockTypeError, match="^increment: argument x has no mark, which is in"):
        kernel[grid](np.zeros(300, np.float32))


@pytest.mark.parametrize("change", [
    pytest.param(lambda x: x.astype(np.float64), id="dtype"),
    pytest.param(lambda x: np.zeros(2 * len(x), x.dtype)[::2], id="strides"),
    pytest.param(lambda x: np.zeros(len(x) + 1, x.dtype)[1:], id="alignment")])
def test_arrays_of_another_kind_are_tuned_for_anew(change):
    bench = Bench(1.0)
    kernel = tuned(increment, do_bench=bench)
    x = np.zeros(300, np.float32)

    kernel[grid](x)
    kernel[grid](change(x))

    assert bench.calls == 2 * 2


def test_keywords_in_another_order_are_the_same_key():
    bench = Bench(1.0)
    kernel = tuned(copy, key=["n", "x.shape"], do_bench=bench)
    x, out = np.zeros((2, 300), np.float32)

    kernel[grid](x, out, n=3)
    kernel[grid](n=3, out=out, x=x)

    assert bench.calls == 2


def test_a_failing_configuration_is_skipped_and_says_why():
    def strict(x, B: bn.constexpr):
        bn.static_assert(B > 16, "B is too small")
        r = bn.block(0, B)
        x[r] += 1

    kernel = tuned(strict, CONFIGS[:4], do_bench=Bench(2.0, 1.0))
    x = np.zeros(300, np.float32)

    kernel[grid](x)

    assert str(kernel.best_config) == "B=64"
    assert [row.timing.reason for row in kernel.timings] == [
        "", "", *["BlockAssertionError: static_assert: B is too small"] * 2]
    assert "B is too small" in str(kernel.timings)
    assert (x == 1).all()


def test_when_all_configurations_fail_the_error_lists_the_reasons():
    def wrong(x, B: bn.constexpr):
        bn.static_assert(B > 2000, "B is too small")

    kernel = tuned(wrong)
    with pytest.raises(AutotuneError) as raised:
        kernel[1](np.zeros(8, np.float32))

    line = wrong.__code__.co_firstlineno + 1
    assert str(raised.value) == (
        "wrong: all 2 configurations failed for x: float32[::1]:16 on CPU, interpreted:\n"
        "  B=8; B=16: BlockAssertionError: static_assert: B is too small\n"
        f"    test_autotune.py, line {line}, in wrong\n"
        "      bn.static_assert(B > 2000, \"B is too small\")\n"
        "      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^")


def test_arrays_are_reset_and_restored_before_each_run():
    def accumulate(x, total, B: bn.constexpr):
        r = bn.block(0, B)
        total[r] += x[r]
        x[r] += 1

    seen = []

    def bench(fn, quantiles):
        for _ in range(3):
            fn()
        return 1.0

    def look(nargs, exception):
        seen.append(exception)

    kernel = tuned(accumulate, reset_to_zero=["total"], restore_value=["x"], do_bench=bench,
                   post_hook=look)
    x, total = np.ones((2, 300), np.float32)

    kernel[grid](x, total)

    assert seen == [None] * 6
    assert (x == 2).all() and (total == 2).all()


def test_hooks_are_called_around_runs():
    calls = []
    config = bn.Config({"B": 8}, pre_hook=lambda nargs: calls.append(f"config {nargs['B']}"))

    def pre_hook(nargs, reset_only=False):
        calls.append("reset" if reset_only else "before")

    kernel = tuned(increment, [config, CONFIGS[1]], pre_hook=pre_hook,
                   post_hook=lambda nargs, exception: calls.append("after"))

    kernel[grid](np.zeros(300, np.float32))

    assert calls == ["config 8", "before", "after", "before", "after", "reset", "config 8"]


def test_a_hook_hears_of_the_error_of_a_run():
    def out_of_bounds(x, B: bn.constexpr):
        bn.store(x + bn.arange(0, B), 1.0)

    heard = []
    kernel = tuned(out_of_bounds, CONFIGS[:2], post_hook=lambda nargs, exception: heard.append(
        type(exception).__name__))

    kernel[1](np.zeros(8, np.float32), debug=True)

    assert heard == ["NoneType", "BlockIndexError"]
    assert str(kernel.best_config) == "B=8"


def test_configurations_are_pruned_before_they_are_compiled():
    bench = Bench(1.0)
    kernel = tuned(copy, CONFIGS, do_bench=bench, prune_configs_by={
        "early_config_prune": lambda configs, named, **_: [c for c in configs
                                                           if c.kwargs["B"] <= named["n"]],
        "perf_model": lambda B, n, **_: -B, "top_k": 2})
    x, out = np.zeros((2, 300), np.float32)

    kernel[grid](x, out, 100)

    assert {row.configuration for row in kernel.timings} == {"B=64", "B=32"}


def test_a_launch_of_no_programs_tunes_nothing():
    bench = Bench(1.0)
    kernel = tuned(increment, do_bench=bench)

    kernel[0](np.zeros(0, np.float32))

    assert bench.calls == 0 and not kernel.cache


def test_one_configuration_is_not_measured():
    bench = Bench(1.0)
    kernel = tuned(increment, CONFIGS[:1], do_bench=bench)
    x = np.zeros(300, np.float32)

    kernel[grid](x)

    assert bench.calls == 0 and (x == 1).all()


def test_warmup_compiles_every_configuration_and_runs_none():
    kernel = tuned(increment, CONFIGS)
    x = np.zeros(300, np.float32)

    compiled = kernel.warmup(x, grid=grid)

    assert len({c.specialization for c in compiled}) == len(CONFIGS)
    assert (x == 0).all()


def test_binding_tunes_and_binds_the_choice():
    kernel = tuned(increment, do_bench=Bench(2.0, 1.0))
    x = np.zeros(300, np.float32)

    bound = kernel.bind(grid, x)
    bound()
    bound()

    assert (x == 2).all() and str(kernel.best_config) == "B=16"


def test_threads_tune_once():
    bench = Bench(1.0)
    kernel = tuned(increment, do_bench=bench)
    arrays = [np.zeros(300, np.float32) for _ in range(8)]
    threads = [threading.Thread(target=kernel[grid], args=(x,)) for x in arrays]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert bench.calls == 2 and all((x == 1).all() for x in arrays)


def test_options_are_tuned_too():
    kernel = tuned(increment, [bn.Config({"B": 64}, num_warps=warps) for warps in (1, 2, 4)],
                   do_bench=Bench(2.0, 1.0, 3.0))

    compiled = kernel[grid](np.zeros(300, np.float32))

    assert compiled.specialization.options.num_warps == 2
    assert str(kernel.best_config) == "B=64, num_warps=2"


def test_heuristics_compute_constants_from_the_choice():
    def fill(x, n, EVEN: bn.constexpr, DOUBLE: bn.constexpr, B: bn.constexpr):
        r = bn.block(0, B)
        x[r] = EVEN * 1000 + DOUBLE

    values = {"EVEN": lambda args: args["n"] % args["B"] == 0,
              "DOUBLE": lambda args: 2 * args["B"] + args["EVEN"]}
    below = bn.autotune(CONFIGS[:2], [], do_bench=Bench(2.0, 1.0))(
        bn.heuristics(values)(bn.jit(fill, interpret=True)))
    x = np.zeros(300, np.float32)

    below[grid](x, 320)

    assert (x == 1033).all()


def test_heuristics_go_above_autotune_too():
    def fill(x, OFFSET: bn.constexpr, B: bn.constexpr):
        r = bn.block(0, B)
        x[r] += OFFSET

    kernel = bn.heuristics({"OFFSET": lambda args: args["x"].size})(tuned(fill))
    x = np.zeros(300, np.float32)

    kernel[grid](x)

    assert (x == 300).all()


@pytest.mark.parametrize("call, message", [
    (lambda kernel, x: kernel[1](x, B=8), "increment: given B, which autotune chooses"),
    (lambda kernel, x: kernel[1](x, 8), "increment: given B, which autotune chooses"),
    (lambda kernel, x: kernel[1](x, x=x), "increment: given x twice, by position and by name"),
    (lambda kernel, x: kernel[1](x, C=1), "increment: given C=, accepted"),
    (lambda kernel, x: kernel[1]([1.0]), r"increment: argument x: given \[1.0\]"),
    (lambda kernel, x: kernel[1](), "increment: missing x"),
    (lambda kernel, x: kernel(x), "increment: called without a grid")])
def test_a_wrong_call_says_what_is_wrong(call, message):
    kernel = tuned(increment)

    with pytest.raises((BlockTypeError, BlockValueError), match=f"^{message}"):
        call(kernel, np.zeros(8, np.float32))


@pytest.mark.parametrize("make, message", [
    (lambda: tuned(increment, key=["y"]),
     "autotune: given the key 'y', accepted arguments of increment that are not tuned: x"),
    (lambda: tuned(increment, key="x"), "autotune: given the key 'x', accepted a list of names"),
    (lambda: tuned(increment, [bn.Config({"C": 1})]),
     "autotune of increment: given C, accepted x, B"),
    (lambda: tuned(increment, [CONFIGS[0]] * 2), "autotune: given the configuration B=8 twice"),
    (lambda: tuned(increment, reset_to_zero=["y"]),
     "autotune: given to reset or restore y, accepted x, B"),
    (lambda: tuned(increment, prune_configs_by={"top": 1}),
     "autotune: given prune_configs_by top, accepted early_config_prune, perf_model, top_k, "
     "max_spills"),
    (lambda: bn.Config({"B": 8}, num_warps=3),
     "num_warps: given 3, accepted a power of two up to 32"),
    (lambda: bn.autotune(CONFIGS)(increment),
     "autotune: given the function increment, accepted a kernel")])
def test_a_wrong_decorator_says_what_is_wrong(make, message):
    with pytest.raises((BlockTypeError, BlockValueError)) as raised:
        make()

    assert raised.value.message == message


def test_an_array_is_no_key():
    kernel = tuned(increment, key=["x"])

    with pytest.raises(BlockTypeError) as raised:
        kernel[grid](np.zeros(300, np.float32))

    assert str(raised.value) == ("increment: the key 'x' is an array, accepted numbers and "
                                 "attributes\n  hint: use x.shape or x.dtype")
