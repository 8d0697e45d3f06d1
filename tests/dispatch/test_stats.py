"""Stats: what became of loads, stores and products, and why."""

import pytest

import blocknumba as bn

from blocknumba.dispatch.compile import kernel_code
from blocknumba.dispatch.compile.cache import Cache

ALIGNED, ANY = "f16[:,::1]:16", "f16[:,:]"


@bn.jit
def product(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr,
            PRECISION: bn.constexpr = "ieee"):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums = bn.dot(x[m, k], w[k, n], sums, precision=PRECISION)
    out[m, n] = sums


@bn.jit
def scale(x, out, N: bn.constexpr):
    n = bn.block(0, N)
    out[n] = x[n] * 2


def compiled(kernel, types, target="sm_90a", **named):
    options = {name: named.pop(name) for name in ("num_warps", "num_stages", "num_ctas")
               if name in named}
    return bn.compile(kernel, types, named, target=target, **options)


def of_kind(stats, kind):
    return {access.array: access for access in stats.accesses if access.kind == kind}


def test_what_the_copy_engine_does_is_tma_and_needs_no_reason():
    stats = compiled(product, (ALIGNED,) * 3, BM=128, BN=128, BK=64, num_stages=4).stats

    assert [(a.kind, a.array, a.tile, a.way, a.reasons) for a in stats.accesses] == [
        ("load", "x", "128x64xfloat16", "TMA", ()),
        ("load", "w", "64x128xfloat16", "TMA", ()),
        ("store", "out", "128x128xfloat16", "TMA", ())]
    assert [(r.array, r.copies, r.size_bytes) for r in stats.rings] == [
        ("x", 4, 4 * 128 * 64 * 2), ("w", 4, 4 * 64 * 128 * 2)]
    assert [(p.extents, p.way, p.reason) for p in stats.products] == [
        ((128, 128, 64), "wgmma", "")]
    assert stats.producers == 1


def test_before_hopper_copies_are_of_threads():
    stats = compiled(product, (ALIGNED,) * 3, "sm_80", BM=64, BN=64, BK=32).stats

    x = of_kind(stats, "load")["x"]
    assert (x.way, x.width_bytes) == ("asynchronous", 16)
    assert x.reasons == ("the target has no tensor maps",)
    assert [(p.extents, p.k_slices) for p in stats.products] == [((64, 64, 32), 2)]
    assert ", operands of 2 k slices read ahead; not wgmma" in str(stats)
    assert stats.products[0].way.startswith("mma m16n8k16")
    assert stats.products[0].reason == "the target has no wgmma"
    assert stats.producers == 0


def test_narrow_loads_say_why_they_are_neither_copied_nor_early():
    stats = compiled(product, (ANY, ALIGNED, ALIGNED), BM=64, BN=64, BK=64).stats

    x = of_kind(stats, "load")["x"]
    assert (x.way, x.width_bytes) == ("threads", 2)
    assert x.reasons == ("the stride of axis 0 is not known to be a multiple of 16 bytes",
                         "its threads would copy less than 4 bytes at a time")


def test_num_stages_1_is_a_reason():
    stats = compiled(product, (ALIGNED,) * 3, "sm_80", BM=64, BN=64, BK=32, num_stages=1).stats

    assert of_kind(stats, "load")["w"].reasons[1] == "num_stages is 1"
    assert stats.rings == ()


@pytest.mark.parametrize("types, named, reason", [
    (("f32[:,::1]:16",) * 3, {"BM": 64}, "wgmma rounds float32 to tf32, and the precision is ieee"),
    ((ALIGNED,) * 3, {"BM": 32}, "wgmma multiplies at least (64, 16) by (16, 8), given (32, 32) by "
     "(32, 64)"),
    ((ALIGNED,) * 3, {"BM": 64, "num_warps": 2}, "wgmma needs a multiple of 4 warps, and there "
     "are 2")])
def test_products_say_why_they_are_not_wgmma(types, named, reason):
    stats = compiled(product, types, BN=64, BK=32, **named).stats

    assert stats.products[0].reason == reason


def test_kernels_without_products_load_by_threads():
    stats = compiled(scale, ("f32[::1]:16",) * 2, N=1024).stats

    x, out = of_kind(stats, "load")["x"], of_kind(stats, "store")["out"]
    assert (x.way, x.width_bytes, x.reasons) == ("threads", 16, ("no dot reads it",))
    assert (out.way, out.width_bytes) == ("threads", 16)
    assert stats.products == stats.rings == ()


def test_tiles_that_do_not_fit_are_a_reason():
    stats = compiled(product, (ALIGNED,) * 3, BM=128, BN=256, BK=256).stats

    assert of_kind(stats, "load")["x"].reasons[0] == (
        "one copy of all that a loop fetches does not fit into shared memory")


def test_stats_are_printed_as_text():
    shown = str(compiled(product, (ALIGNED, ANY, ALIGNED), BM=64, BN=128, BK=64).stats)

    first, *lines = shown.splitlines()
    assert first.startswith("product for sm_90a: 4 warps")
    assert "no spills" in first
    assert [line for line in lines if not line.startswith(" ")] == [
        "loads", "stores", "products", "rings", "advice"]
    locations = {line.split()[0] for line in lines if line.startswith("  test_stats.py")}
    source = product.python_function.__code__.co_firstlineno
    assert locations == {f"test_stats.py:{source + 6}", f"test_stats.py:{source + 7}"}


def test_a_kernel_from_the_disk_has_the_same_stats(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_code, "user_cache", lambda: Cache(tmp_path, 1 << 30))

    first, second = (compiled(bn.jit(product.python_function), (ALIGNED,) * 3, BM=64, BN=64, BK=64)
                     for _ in range(2))

    assert list(second.times_ms) == ["cache"]
    assert str(second.stats) == str(first.stats)


def test_an_option_without_effect_is_named():
    stats = compiled(scale, ("f32[::1]:16",) * 2, N=1024, num_ctas=2).stats

    assert len(stats.unused_options) == 1 and stats.unused_options[0].startswith("num_ctas=2: ")
    assert f"options without effect\n  {stats.unused_options[0]}" in str(stats)
