"""Tuners and heuristics, and subclasses as libraries write them."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.triton.errors import AutotunerError, OutOfResources
from blocknumba.triton.runtime.autotuner import Autotuner

N = 200


def fixed_time(times):
    """A measurement that runs once, and says what times has for the BLOCK of the run."""
    def do_bench(call, quantiles):
        call()
        return [times[ran[-1]]] * 3
    return do_bench


ran = []


@triton.jit
def increment(x, n, amount, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + amount, mask=i < n)


def grid(meta):
    ran.append(meta["BLOCK"])
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def configs(*blocks, **options):
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]


@pytest.fixture
def x():
    ran.clear()
    return np.random.default_rng().standard_normal(N, np.float32)


def test_the_fastest_is_launched_and_known_afterwards(x):
    before = x.copy()
    tuned = triton.autotune(configs(32, 64, 128), key=["n"], restore_value=["x"],
                            do_bench=fixed_time({32: 3.0, 64: 1.0, 128: 2.0}))(increment)

    tuned[grid](x, N, 1.0)
    tuned[grid](x, N, 1.0)

    np.testing.assert_allclose(x, before + 2, rtol=1e-6)
    assert ran == [32, 64, 128, 64, 64]
    assert tuned.best_config.kwargs == {"BLOCK": 64}
    assert tuned.best_config.all_kwargs() == {"BLOCK": 64, "num_warps": 4, "num_stages": 3,
                                              "num_ctas": 1}
    assert {c.kwargs["BLOCK"]: t[0] for c, t in tuned.configs_timings.items()} == {
        32: 3.0, 64: 1.0, 128: 2.0}
    assert tuned.bench_time > 0
    assert list(tuned.cache) == [(N, "float32")]


def test_another_key_or_dtype_is_measured_anew(x):
    tuned = triton.autotune(configs(32, 64), key=["n"],
                            do_bench=fixed_time({32: 1.0, 64: 2.0}))(increment)

    tuned[grid](x, N, 0.0)
    tuned[grid](x, N - 1, 0.0)
    tuned[grid](x.astype(np.float64), N, 0.0)

    assert list(tuned.cache) == [(N, "float32"), (N - 1, "float32"), (N, "float64")]


def test_arrays_are_reset_before_each_run(x):
    tuned = triton.autotune(configs(32, 64), key=[], reset_to_zero=["x"],
                            do_bench=fixed_time({32: 1.0, 64: 2.0}))(increment)

    tuned[grid](x, N, 1.0)

    np.testing.assert_array_equal(x, np.ones(N, np.float32))


def test_hooks_see_all_arguments_before_every_run(x):
    seen = []
    tuned = triton.autotune(
        configs(32, 64, pre_hook=lambda args: seen.append((args["BLOCK"], args["amount"],
                                                           args["num_warps"]))),
        key=["n"], do_bench=fixed_time({32: 1.0, 64: 2.0}))(increment)

    tuned[grid](x, N, 0.5)
    tuned[grid](x, N, amount=0.25)

    assert seen == [(32, 0.5, 4), (64, 0.5, 4), (32, 0.5, 4), (32, 0.25, 4)]


def test_hooks_of_the_tuner_are_called_around_measured_runs(x):
    calls = []
    tuned = triton.autotune(
        configs(32, 64), key=["n"], do_bench=fixed_time({32: 1.0, 64: 2.0}),
        pre_hook=lambda args, reset_only=False: calls.append(("pre", reset_only)),
        post_hook=lambda args, exception: calls.append(("post", exception)))(increment)

    tuned[grid](x, N, 0.0)

    assert calls == [("pre", False), ("post", None)] * 2 + [("pre", True)]


def test_configurations_are_pruned_by_what_the_launch_is_given(x):
    def early(configs, named_args, **kwargs):
        assert named_args["n"] == N and kwargs["amount"] == 0.0
        return [config for config in configs if config.kwargs["BLOCK"] < 128]

    tuned = triton.autotune(
        configs(32, 64, 128), key=["n"], do_bench=fixed_time({32: 1.0, 64: 2.0}),
        prune_configs_by={"early_config_prune": early, "top_k": 1,
                          "perf_model": lambda BLOCK, n, **_: -BLOCK})(increment)

    tuned[grid](x, N, amount=0.0)

    assert ran == [64, 64]


def test_nothing_left_to_try_is_an_error(x):
    tuned = triton.autotune(configs(32, 64), key=["n"], prune_configs_by={
        "early_config_prune": lambda configs, named_args, **kwargs: []})(increment)

    with pytest.raises(AutotunerError, match="kept no configuration"):
        tuned[grid](x, N, 0.0)


def test_what_the_configurations_choose_is_not_given(x):
    tuned = triton.autotune(configs(32, 64), key=["n"])(increment)

    with pytest.raises(ValueError, match="gives BLOCK, which the configuration chooses"):
        tuned[grid](x, N, 0.0, BLOCK=32)


def test_a_configuration_that_cannot_be_used_is_passed_over(x):
    @triton.jit
    def picky(x, n, amount, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK != 32)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) + amount, mask=i < n)

    tuned = triton.autotune(configs(32, 64), key=["n"],
                            do_bench=fixed_time({64: 2.0}))(picky)

    tuned[grid](x, N, 0.0)

    assert tuned.best_config.kwargs == {"BLOCK": 64}
    assert min(tuned.configs_timings.values()) == [2.0] * 3
    assert max(tuned.configs_timings.values()) == [float("inf")] * 3


def test_timings_are_kept_on_disk(x, tmp_path, monkeypatch):
    from blocknumba.triton.runtime import cache
    monkeypatch.setattr(cache, "default_cache_dir", lambda: str(tmp_path))

    def tune():
        return triton.autotune(configs(32, 64), key=["n"], cache_results=True,
                               do_bench=fixed_time({32: 2.0, 64: 1.0}))(increment)

    tune()[grid](x, N, 0.0)
    ran.clear()
    again = tune()
    again[grid](x, N, 0.0)

    assert ran == [64]
    assert list(again.configs_timings.values()) == [[2.0] * 3, [1.0] * 3]


def test_warmup_compiles_every_configuration(x):
    before = x.copy()
    compiled = triton.autotune(configs(32, 64), key=["n"])(increment).warmup(
        x, N, 1.0, grid=(1,))

    assert [code.constants["BLOCK"] for code in compiled] == [32, 64]
    np.testing.assert_array_equal(x, before)


def test_tuning_measures_with_our_benchmark_by_default(x):
    tuned = triton.autotune(configs(32, 64), key=["n"], warmup=0, rep=1)(increment)

    tuned[grid](x, N, 0.0)

    assert all(0 < time[0] < float("inf") for time in tuned.configs_timings.values())


def test_configurations_are_compared_and_shown_as_tritons():
    one, same, other = *configs(32, 32), triton.Config({"BLOCK": 32}, num_warps=8, maxnreg=64)

    assert one == same and hash(one) == hash(same) and one != other
    assert str(other) == "BLOCK: 32, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: 64"
    other.num_warps = 2
    assert other.all_kwargs()["num_warps"] == 2


def test_heuristics_compute_and_see_each_other(x):
    kernel = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"]) // 4,
                                "amount": lambda args: args["BLOCK"] / 4})(increment)
    before = x.copy()

    kernel[grid](x, N)

    assert ran == [64]
    np.testing.assert_allclose(x, before + 16, rtol=1e-6)


def test_heuristics_win_over_what_the_caller_passes_and_may_read_it(x):
    kernel = triton.heuristics({"amount": lambda args: args["amount"] * 10})(increment)
    before = x.copy()

    kernel[grid](x, N, amount=2.0, BLOCK=32)

    np.testing.assert_allclose(x, before + 20, rtol=1e-6)


def test_heuristics_below_a_tuner_see_its_choice(x):
    below = triton.heuristics({"amount": lambda args: float(args["BLOCK"])})(increment)
    tuned = triton.autotune(configs(32, 64), key=["n"], reset_to_zero=["x"],
                            do_bench=fixed_time({32: 2.0, 64: 1.0}))(below)

    tuned[grid](x, N)

    np.testing.assert_array_equal(x, np.full(N, 64, np.float32))
    assert tuned.base_fn is increment.fn
    assert tuned.fn.fn is increment


class KeptTuner(Autotuner):
    """A tuner as libraries write them: it rounds keys, and runs the parts of the base itself."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, **kwargs):
        super().__init__(fn, arg_names, configs, key, reset_to_zero, restore_value, **kwargs)
        self.__name__ = self.base_fn.__name__
        below = self.fn
        while not isinstance(below, triton.runtime.JITFunction):
            below = below.fn
        self.table = f"{self.__name__}_{below.cache_key[:8]}"

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        everything = {**self.nargs, **kwargs}
        key = tuple(triton.next_power_of_2(everything[name]) for name in self.keys)
        if key not in self.cache:
            timings = {config: self._bench(*args, config=config, **kwargs)
                       for config in self.prune_configs(kwargs)}
            self.cache[key] = min(timings, key=timings.get)
            full = {**self.nargs, **kwargs, **self.cache[key].all_kwargs()}
            self.pre_hook(full, reset_only=True)
            self.configs_timings = timings
        self.best_config = config = self.cache[key]
        return self.fn.run(*args, **kwargs, **config.all_kwargs())


def test_a_tuner_that_runs_the_parts_of_the_base_works(x):
    tuned = KeptTuner(increment, increment.arg_names, configs(32, 64), ["n"], ["x"], None,
                      do_bench=fixed_time({32: 2.0, 64: 1.0}))

    tuned[grid](x, N, 1.0)
    tuned[grid](x, N - 10, 1.0)

    assert list(tuned.cache) == [(256,)]
    assert ran == [32, 64, 64, 64]
    assert tuned.table.startswith("increment_")


class Entry(triton.KernelInterface):
    """An entry as libraries write them: it keeps compiled code by its own key, and launches it."""

    def __init__(self, fn):
        self.fn, self.arg_names, self.kept = fn, fn.arg_names, {}
        while not isinstance(fn, triton.runtime.JITFunction):
            fn = fn.fn
        self.kernel = fn
        self.free = [p.num for p in fn.params if not p.is_constexpr and not p.do_not_specialize]

    def run(self, *args, **kwargs):
        grid = kwargs["grid"]
        key = tuple((type(args[i]), getattr(args[i], "dtype", None)) for i in self.free
                    if i < len(args))
        if key not in self.kept:
            compiled, below, chosen = self.fn.run(*args, **kwargs), self.fn, {}
            while not isinstance(below, triton.runtime.JITFunction):
                if isinstance(below, triton.runtime.Autotuner):
                    chosen |= below.best_config.kwargs
                elif isinstance(below, triton.runtime.Heuristics):
                    for name, value in below.values.items():
                        chosen[name] = value({**dict(zip(below.arg_names, args)), **kwargs,
                                              **chosen})
                below = below.fn
            self.kept[key] = compiled, chosen
            return compiled
        compiled, chosen = self.kept[key]
        meta = {**dict(zip(self.arg_names, args)), **kwargs, **chosen}
        every = [meta[name] for name in self.kernel.signature.parameters]
        compiled[(*grid(meta), 1, 1)[:3]](*every)
        return compiled


def test_an_entry_launches_compiled_code_that_it_kept(x):
    before = x.copy()
    entry = Entry(triton.autotune(configs(32, 64), key=["n"], restore_value=["x"],
                                  do_bench=fixed_time({32: 2.0, 64: 1.0}))(
        triton.heuristics({"amount": lambda args: 3.0})(increment)))

    first = entry[grid](x, N)
    second = entry[grid](x, N)

    assert first is second
    np.testing.assert_allclose(x, before + 6, rtol=1e-6)


class OwnTuner(triton.KernelInterface):
    """A tuner as libraries write them that shares nothing with Triton's but the interface."""

    def __init__(self, fn, configs):
        self.fn, self.arg_names, self.configs, self.failed = fn, fn.arg_names, configs, []

    def run(self, *args, **kwargs):
        timings = {}
        for config in self.configs:
            try:
                timings[config] = triton.testing.do_bench(
                    lambda: self.fn.run(*args, num_warps=config.num_warps,
                                        num_stages=config.num_stages, **kwargs, **config.kwargs),
                    quantiles=(0.5, 0.2, 0.8), warmup=0, rep=1)
            except triton.OutOfResources as error:
                self.failed.append(error)
        best = min(timings, key=timings.get)
        return self.fn.run(*args, num_warps=best.num_warps, num_stages=best.num_stages, **kwargs,
                           **best.kwargs)


def test_a_tuner_of_its_own_catches_what_does_not_fit(x):
    @triton.jit
    def fill(x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, 1.0, mask=i < n)

    huge = 1 << 29
    tuned = OwnTuner(fill, configs(huge, 256))

    tuned[(1,)](x, N)

    assert [type(error).__name__ for error in tuned.failed] == ["ResourceError"]
    assert isinstance(tuned.failed[0], OutOfResources)
    assert tuned.failed[0].required > tuned.failed[0].limit > 0
    np.testing.assert_array_equal(x, np.ones(N, np.float32))
