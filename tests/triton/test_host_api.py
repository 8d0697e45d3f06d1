"""Members of kernels, of compiled code and of the driver that launchers of others ask for."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError
from blocknumba.triton.backends.compiler import GPUTarget
from blocknumba.triton.runtime.driver import ActiveDriver, driver
from blocknumba.triton.testing import assert_close, get_dram_gbps

N = 300
HOPPER = GPUTarget("cuda", 90, 32)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0])
def scaled(x, out, factor, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr = 1):
    """The docstring."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor + SHIFT, mask=i < n)


@pytest.fixture
def arrays():
    return (np.random.default_rng().standard_normal(N, np.float32),
            np.full(N, np.nan, np.float32))


def wanted(x, factor=2.0, shift=1):
    return x * np.float32(factor) + np.float32(shift)


def check(x, out, *arguments):
    np.testing.assert_allclose(out, wanted(x, *arguments), rtol=1e-6, atol=1e-6)


def test_a_kernel_has_the_members_of_tritons():
    assert scaled.fn is scaled.py_func
    assert scaled.arg_names == ["x", "out", "factor", "n", "BLOCK", "SHIFT"]
    assert scaled.constexprs == [4, 5]
    assert scaled.module == scaled.__module__ == __name__
    assert scaled.__doc__ == "The docstring."
    assert scaled.src.startswith("def scaled(x, out,")
    assert scaled.raw_src.startswith("@triton.jit")
    assert inspect.signature(scaled) == inspect.signature(scaled.fn)
    assert list(scaled.signature.parameters) == scaled.arg_names


def test_a_parameter_says_what_launchers_key_by():
    found = [(p.num, p.name, p.is_constexpr, p.do_not_specialize,
              p.do_not_specialize_on_alignment, p.has_default) for p in scaled.params]

    assert found == [(0, "x", False, False, True, False), (1, "out", False, False, False, False),
                     (2, "factor", False, False, False, False), (3, "n", False, True, False, False),
                     (4, "BLOCK", True, False, False, False),
                     (5, "SHIFT", True, False, False, True)]
    assert scaled.params[5].default == 1
    assert scaled.params[0].default is inspect.Parameter.empty
    assert scaled.params[4].annotation == "constexpr"


def test_the_cache_key_is_of_the_code():
    def other(x):
        tl.store(x, 1.0)

    assert len(scaled.cache_key) == 64
    assert triton.jit(scaled.fn).cache_key == scaled.cache_key != triton.jit(other).cache_key


@pytest.mark.parametrize("launch", [
    lambda x, out: scaled[(5,)](x, out, 2.0, N, BLOCK=64),
    lambda x, out: scaled[[5, 1]](x, out, 2.0, N, 64),
    lambda x, out: scaled[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](
        x, out, 2.0, N, BLOCK=64, num_warps=4, num_stages=0),
    lambda x, out: scaled.run(x, out, 2.0, N, BLOCK=64, grid=(5, 1, 1), warmup=False),
    lambda x, out: scaled[(5,)](x, out, 2.0, N, BLOCK=64, enable_reflect_ftz=True, warp_size=32),
    lambda x, out: scaled[(5,)](x, out, 2.0, N, BLOCK=64, extern_libs=None, ptx_version=84),
    lambda x, out: scaled[(5,)](x, out, 2.0, N, BLOCK=64, extern_libs={"libdevice": "a.bc"}),
    lambda x, out: scaled.warmup(x, out, 2.0, N, BLOCK=64, grid=(5,))[(5,)](x, out, 2.0, N, 0, 0),
    lambda x, out: scaled.warmup(x, out, 2.0, N, BLOCK=64, grid=None)[(5,)](x, out, 2.0, N),
])
def test_every_way_of_launching_computes(arrays, launch):
    launch(*arrays)

    check(*arrays)


def test_compiled_code_is_launched_with_its_own_constants(arrays):
    x, out = arrays
    compiled = scaled[(5,)](x, out, 2.0, N, BLOCK=64, SHIFT=7)
    out.fill(np.nan)

    compiled[(5, 1, 1)](x, out, 3.0, N, 8, 1)

    check(x, out, 3.0, 7)


def test_compiled_code_refuses_another_number_of_arguments(arrays):
    compiled = scaled.warmup(*arrays, 2.0, N, BLOCK=64, grid=(1,))

    with pytest.raises(BlockError, match="scaled: given 1 arguments, accepted 4"):
        compiled[(1,)](arrays[0])


@pytest.mark.parametrize("option, value", [("extern_libs", {"a": "b"}), ("ir_override", "a.ttir"),
                                           ("warp_size", 64), ("no_such_option", 1)])
def test_an_option_that_nothing_here_does_is_refused(arrays, option, value):
    with pytest.raises(BlockError, match=f"scaled: given {option}"):
        scaled[(5,)](*arrays, 2.0, N, BLOCK=64, **{option: value})


def test_code_has_the_texts_of_tritons_stages():
    source = triton.compiler.ASTSource(
        scaled, {"x": "*fp32", "out": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 64}, attrs={(0,): [["tt.divisibility", 16]]})

    compiled = triton.compile(source, target=HOPPER, options={"num_warps": 2})

    assert {"ttir", "ttgir", "llir", "ptx", "cubin", "sass"} <= {*compiled.asm}
    assert ".visible .entry" in compiled.asm["ptx"]
    assert compiled.asm["ttir"] == compiled.asm["tile"]
    assert compiled.asm["llir"] == compiled.asm["nvvm"]
    assert compiled.kernel == compiled.asm["cubin"]
    assert compiled.n_regs == compiled.stats.registers > 0
    assert compiled.n_spills == 0
    assert compiled.n_max_threads == 1024
    assert compiled.metadata.target == HOPPER
    assert (compiled.metadata.num_warps, compiled.metadata.num_ctas) == (2, 1)
    assert compiled.metadata.shared == compiled.stats.shared_bytes
    assert compiled.metadata.name == compiled.name == "scaled"


def test_constants_are_given_by_position_too():
    source = triton.compiler.ASTSource(
        scaled, {0: "*fp32", 1: "*fp32", 2: "fp32", 3: "i32"}, constexprs={(4,): 64, (5,): 0})

    compiled = triton.compile(source, target="cuda:80")

    assert compiled.metadata.target == GPUTarget("cuda", 80, 32)


def test_native_code_has_texts_too(arrays):
    compiled = scaled.warmup(*arrays, 2.0, N, BLOCK=64, grid=(1,))
    if compiled.specialization.target is not None:
        pytest.skip("there is a GPU")

    compiled._init_handles()

    assert compiled.asm["llir"] == compiled.asm["llvm"]
    assert (compiled.n_regs, compiled.n_spills, compiled.metadata.shared) == (0, 0, 0)
    assert compiled.metadata.target == GPUTarget("cpu", 0, 1)


@triton.jit
def staged(x, out, n, B: tl.constexpr, num_stages: tl.constexpr):
    for start in tl.range(0, n, B, num_stages=num_stages):
        place = start + tl.arange(0, B)
        tl.store(out + place, tl.load(x + place, mask=place < n) * num_stages, mask=place < n)


@pytest.mark.parametrize("given", [(40, 16, 3), (40,)])
def test_compiled_code_is_launched_with_a_parameter_named_as_an_option(given):
    x, out = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    compiled = staged.warmup(x, out, 40, B=16, num_stages=3, num_warps=2, grid=(1,))

    compiled[(1,)](x, out, *given)

    np.testing.assert_array_equal(out, x * 3)


def test_without_fusion_products_and_sums_are_rounded_apart():
    @triton.jit
    def sums(x, out, B: tl.constexpr):
        i = tl.arange(0, B)
        value = tl.load(x + i)
        tl.store(out + i, value * value + value)

    source = triton.compiler.ASTSource(sums, {"x": "*fp32", "out": "*fp32"}, {"B": 128})

    fused = triton.compile(source, target=HOPPER).asm["ptx"]
    apart = triton.compile(source, target=HOPPER, options={"enable_fp_fusion": False}).asm["ptx"]

    assert "fma.rn.f32" in fused
    assert "fma" not in apart and "mul" in apart
    x, out = np.random.default_rng().standard_normal(128, np.float32), np.zeros(128, np.float32)
    compiled = sums[(1,)](x, out, B=128, enable_fp_fusion=False)
    np.testing.assert_array_equal(out, x * x + x)
    out.fill(np.nan)
    compiled[(1,)](x, out, 128)
    np.testing.assert_array_equal(out, x * x + x)
    assert sums.warmup(x, out, B=128, grid=(1,), enable_fp_fusion=False) is compiled


def test_code_so_far_is_found_by_device(arrays):
    def fresh(x):
        tl.store(x, 1.0)

    kernel = triton.jit(fresh)
    compiled = kernel[(1,)](arrays[0])

    assert list(kernel.device_caches[driver.active.get_current_device()][0].values()) == [compiled]


@pytest.mark.parametrize("keywords, is_constant", [
    ({}, True), ({"do_not_specialize": ["n"]}, False), ({"do_not_specialize": [1]}, False)])
def test_a_number_that_is_1_is_a_constant_unless_it_is_not_specialised(keywords, is_constant):
    def told(x, n, out):
        if isinstance(n, tl.tensor):
            tl.store(out, 0)
        else:
            tl.store(out, 1)
        narrow = tl.load(x) * n
        if narrow.dtype == tl.int8:
            tl.store(out + 1, 1)
        else:
            tl.store(out + 1, 0)

    out = np.full(2, -1, np.int32)

    triton.jit(**keywords)(told)[(1,)](np.ones(1, np.int8), 1, out)

    np.testing.assert_array_equal(out, [is_constant, is_constant])


def test_numbers_that_are_not_specialised_share_code():
    def copies(x, n, out):
        tl.store(out, tl.load(x) + n)

    kernel = triton.jit(do_not_specialize=["n"])(copies)
    x, out = np.ones(1, np.int32), np.zeros(1, np.int32)

    compiled = {id(kernel[(1,)](x, n, out)) for n in (1, 2, 3, 16, -5, 0)}

    assert len(compiled) == 1
    assert out[0] == 1


def test_hooks_see_the_arguments_of_each_run(arrays):
    def fresh(x, n, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), n)

    kernel, seen = triton.jit(fresh), []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((*args, kwargs)))

    kernel[(1,)](arrays[0], 3.0, B=4)
    kernel.run(arrays[0], 4.0, B=4, grid=(1,))

    assert [call[0] is arrays[0] for call in seen] == [True, True]
    assert [call[1:] for call in seen] == [(3.0, {"B": 4}), (4.0, {"B": 4})]


def test_a_subclass_with_its_own_run_is_launched_through_it(arrays):
    class Counting(triton.JITFunction):
        runs = 0

        def run(self, *args, grid, warmup, **kwargs):
            self.runs += 1
            return super().run(*args, grid=grid, warmup=warmup, **kwargs)

    kernel = Counting(scaled.fn)
    kernel[(5,)](*arrays, 2.0, N, BLOCK=64)

    assert kernel.runs == 1
    check(*arrays)


def test_copies_and_pickles_of_a_kernel_are_itself():
    assert copy.deepcopy(scaled) is scaled
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_stand_ins_of_tensors_compile():
    compiled = scaled.warmup(triton.MockTensor(np.float32), triton.MockTensor(tl.float32, [N]),
                             1.0, N, BLOCK=64, grid=(1,))

    assert compiled.name == "scaled"
    assert triton.MockTensor("float16", [2, 3, 4]).stride() == (12, 4, 1)


def test_memory_is_read_as_another_dtype():
    @triton.jit
    def bits(x, out, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out + i, tl.load(x + i))

    x, out = np.arange(1, 17, dtype=np.float32), np.zeros(16, np.int32)

    bits[(1,)](triton.reinterpret(x, tl.int32), out, B=16)

    np.testing.assert_array_equal(out, x.view(np.int32))
    assert triton.reinterpret(x, x.dtype) is x
    narrow = np.zeros(32, np.int16)
    bits[(1,)](triton.reinterpret(x, np.int16), narrow, B=32)
    np.testing.assert_array_equal(narrow, x.view(np.int16))


def test_the_driver_of_the_cpu_device_answers(monkeypatch):
    module = inspect.getmodule(ActiveDriver)
    monkeypatch.setattr(module, "find_driver", lambda: None)

    assert ActiveDriver().get_current_device() == ActiveDriver().get_current_stream(0) == 0
    assert ActiveDriver().get_device_capability() == (0, 0)
    found = ActiveDriver().utils.get_device_properties(0)
    assert found["multiprocessor_count"] >= 1 and found["warpSize"] == 1
    assert {"max_shared_mem", "max_num_regs", "sm_clock_rate", "mem_clock_rate",
            "mem_bus_width"} <= {*found}
    assert ActiveDriver().get_benchmarker()(lambda: None, quantiles=[0.5]) >= 0


def test_another_driver_may_be_put_in_place():
    class Other:
        def get_current_target(self):
            return HOPPER

    driver.set_active(Other())
    try:
        assert triton.runtime.driver.active.get_current_target() == HOPPER
    finally:
        driver.reset_active()
    assert driver.active is driver.default


def test_torch_that_was_not_imported_is_an_import_error(monkeypatch):
    monkeypatch.delitem(inspect.getmodule(ActiveDriver).sys.modules, "torch", raising=False)

    with pytest.raises(ModuleNotFoundError, match="has not imported torch"):
        driver.active.get_active_torch_device()


@pytest.mark.parametrize("x, y, keywords", [
    (np.ones(3), np.ones(3) + 0.009, {}), ([1.0, np.nan], [1.0, np.nan], {}), (2.0, 2.005, {}),
    (np.float16([1]), np.float32([1.05]), {"atol": lambda dtype: 0.1}),
    (np.ones(2), np.ones(2) * 1.5, {"atol": 0, "rtol": 0.5})])
def test_results_are_close(x, y, keywords):
    assert_close(x, y, **keywords)


@pytest.mark.parametrize("x, y, keywords", [(np.ones(3), np.ones(3) + 0.02, {}), (1.0, 1.5, {}),
                                            (np.ones(3), np.ones(3) + 0.009, {"atol": 1e-3})])
def test_results_are_not_close(x, y, keywords):
    with pytest.raises(AssertionError):
        assert_close(x, y, **keywords)


def test_the_bandwidth_is_that_of_the_bus():
    class Hopper:
        def get_device_properties(self, _):
            return {"mem_clock_rate": 2619000, "mem_bus_width": 5120}

    class Other:
        utils = Hopper()

    driver.set_active(Other())
    try:
        assert get_dram_gbps(0) == pytest.approx(3352.3, rel=1e-3)
    finally:
        driver.reset_active()


def test_an_allocator_is_accepted():
    triton.set_allocator(lambda size, alignment, stream: None)

    with pytest.raises(TypeError, match="set_allocator: given 1"):
        triton.set_allocator(1)
