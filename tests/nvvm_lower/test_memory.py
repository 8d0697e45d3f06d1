"""Global memory: how wide accesses are, what masks do, what the caches are told."""

import re

import numpy as np
import pytest
from kernels import assembled, elementwise_kernel, emulated, kernel

from blocknumba.nvvm_lower.toolchain import disassemble
from blocknumba.tile_ir.ir.types import DTYPES

COPY = {name: f"%result = bitcast %a : tile<1024x{name}>" for name in DTYPES}


def copy_kernel(dtype, size=1024, **more):
    return elementwise_kernel(f"%result = bitcast %a : tile<{size}x{dtype}>", dtype, result=dtype,
                              size=size, **more)


def accesses(text, target="sm_90a"):
    """The loads and stores of global memory in the machine code, with their widths."""
    return re.findall(r"\b(?:LDG|STG)\.E[.\w]*", disassemble(assembled(text, target).cubin))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("mask", [True, False])
def test_aligned_float32_moves_sixteen_bytes_at_once(mask, target):
    text = copy_kernel("float32", mask=mask, multiple=16)

    found = accesses(text, target)

    assert found == ["LDG.E.128", "LDG.E.128", "STG.E.128", "STG.E.128"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float64", "int64", "bool"])
def test_every_dtype_moves_sixteen_bytes_at_once(dtype):
    size = 16 // DTYPES[dtype].bytes * 128

    found = accesses(copy_kernel(dtype, size, multiple=16))

    assert found == ["LDG.E.128", "STG.E.128"]


def test_a_length_that_may_be_odd_moves_vectors_and_elements_of_those_that_it_cuts():
    found = accesses(copy_kernel("float32"))

    assert sorted(found) == (["LDG.E"] * 6 + ["LDG.E.128"] * 2 + ["STG.E"] * 6
                             + ["STG.E.128"] * 2)


def test_loads_of_two_arrays_that_a_length_cuts_are_all_issued_before_one_is_awaited():
    text = elementwise_kernel("%result = add %a, %b : tile<1024xfloat32>", "float32", "float32",
                              result="float32", size=1024)

    code = disassemble(assembled(text).cubin)

    until_sum = code[:code.index("FADD")]
    assert len(re.findall(r"LDG\.E", until_sum)) == 2 * (2 + 6)
    assert not re.search(r"BSSY|BRA", until_sum)


def test_threads_whose_vectors_are_not_cut_compare_only_their_ends():
    code = disassemble(assembled(copy_kernel("int8", 2048)).cubin)

    until_branch = code[:code.index("BRA")]
    assert until_branch.count("ISETP") <= 4
    assert until_branch.count("LDG.E.128") == 1


def test_vectors_that_a_mask_may_cut_leave_registers_for_many_threads():
    machine = assembled(copy_kernel("float16", 4096))

    assert machine.registers <= 48


DIAGONAL = """
%i = arange {start=0, size=16} : tile<16xint32>
%ic = reshape %i : tile<16x1xint32>
%r = broadcast %ic : tile<16x64xint32>
%j = arange {start=0, size=64} : tile<64xint32>
%jr = reshape %j : tile<1x64xint32>
%c = broadcast %jr : tile<16x64xint32>
%ns = splat %n : tile<16x64xint32>
%ms = splat %m : tile<16x64xint32>
%last = add %r, %ms : tile<16x64xint32>
%upto = le %c, LAST : tile<16x64xbool>
%inside = lt %c, %ns : tile<16x64xbool>
%mask = and %upto, %inside : tile<16x64xbool>
%row = mul %r, %ns : tile<16x64xint32>
%at = add %row, %c : tile<16x64xint32>
%xs = splat %x : tile<16x64xptr<float16>>
%xp = offset %xs, %at : tile<16x64xptr<float16>>
%minus.one = constant {value=-1.0} : float16
%minus = splat %minus.one : tile<16x64xfloat16>
%a = load %xp, %mask, %minus : tile<16x64xfloat16>
%outs = splat %out : tile<16x64xptr<float16>>
%whole.one = constant {value=64} : int32
%whole = splat %whole.one : tile<16x64xint32>
%outrow = mul %r, %whole : tile<16x64xint32>
%to = add %outrow, %c : tile<16x64xint32>
%op = offset %outs, %to : tile<16x64xptr<float16>>
store %op, %a
"""


def rows_up_to(last, dtype="float16", other=-1.0):
    """Rows of (16, n) to (16, 64): columns up to last, a value, inside of n."""
    body = DIAGONAL.replace("LAST", last).replace("-1.0", str(other))
    return kernel("""
%x: ptr<float16> = pointer(x) {divisibility=16}
%out: ptr<float16> = pointer(out) {divisibility=16}
%m: int32 = value(m) {divisibility=1}
%n: int32 = value(n) {divisibility=16}
""".replace("float16", dtype), body.replace("float16", dtype))


@pytest.mark.parametrize("m", [-5, 3, 90])
@pytest.mark.parametrize("n", [48, 64])
def test_vectors_that_a_diagonal_cuts_are_read_as_a_whole(m, n):
    x = np.random.default_rng().standard_normal((16, n)).astype(np.float16)
    out = np.full((16, 64), np.nan, np.float16)

    text = rows_up_to("%last")
    emulated(text, 1, x, out, np.int32(m), np.int32(n))

    r, c = np.ogrid[:16, :64]
    padded = np.pad(x, ((0, 0), (0, 64 - n)))
    assert np.array_equal(out, np.where((c <= r + m) & (c < n), padded, np.float16(-1)))
    assert accesses(text) == ["LDG.E.128", "STG.E.128"]


@pytest.mark.parametrize("dtype, other", [("int8", -1), ("bool", True), ("float64", -1.0)])
def test_vectors_of_any_dtype_are_read_as_a_whole_where_a_diagonal_cuts_them(dtype, other):
    x = np.random.default_rng().integers(0, 2, (16, 64)).astype(dtype)
    out = np.full((16, 64), 7).astype(dtype)
    text = rows_up_to("%last", dtype, other)

    emulated(text, 1, x, out, np.int32(21), np.int32(64))

    r, c = np.ogrid[:16, :64]
    assert np.array_equal(out, np.where(c <= r + 21, x, np.array(other, dtype)))


def test_vectors_that_a_bound_of_the_array_cuts_are_not_read_as_a_whole():
    by_diagonal, by_both = accesses(rows_up_to("%last")), accesses(rows_up_to("%ms"))

    assert by_diagonal.count("LDG.E.U16") == 0
    assert by_both.count("LDG.E.U16") == 7


BOUNDS = {
    "upper": "%mask = lt %i, %ns", "upper, included": "%mask = le %i, %ns",
    "turned round": "%mask = gt %ns, %i",
    "of two": "%a = lt %i, %ns\n%b = le %i, %ms\n%mask = and %a, %b",
    "lower": "%mask = ge %i, %ns", "from both sides": (
        "%a = ge %i, %ms\n%b = lt %i, %ns\n%mask = and %a, %b"),
    "any": "%j = mul %i, %i\n%mask = lt %j, %ns"}


def bounded_copy(bound):
    """x to out, where a mask says; what is not loaded is -1, and what is not stored stays."""
    typed = "\n".join(f"{line} : tile<512x{'int32' if ' mul ' in line else 'bool'}>"
                      for line in bound.splitlines())
    return kernel("""%xp: ptr<int8> = pointer(x) {divisibility=16}
%op: ptr<int8> = pointer(out) {divisibility=16}
%all: ptr<int8> = pointer(whole) {divisibility=16}
%n: int32 = value(n) {}
%m: int32 = value(m) {}""", f"""
%i = arange {{size=512, start=0}} : tile<512xint32>
%ns = splat %n : tile<512xint32>
%ms = splat %m : tile<512xint32>
{typed}
%xs = splat %xp : tile<512xptr<int8>>
%p = offset %xs, %i : tile<512xptr<int8>>
%o = constant {{value=-1}} : int8
%others = splat %o : tile<512xint8>
%x = load %p, %mask, %others : tile<512xint8>
%os = splat %op : tile<512xptr<int8>>
%q = offset %os, %i : tile<512xptr<int8>>
store %q, %x, %mask
%as = splat %all : tile<512xptr<int8>>
%r = offset %as, %i : tile<512xptr<int8>>
store %r, %x""")


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_from_above_move_vectors_and_other_masks_elements(bound):
    ptx = assembled(bounded_copy(BOUNDS[bound]), num_warps=1).ptx

    is_upper = bound in ("upper", "upper, included", "turned round", "of two")
    assert ("ld.global.v4.b32" in ptx) == is_upper
    assert "ld.global.b8" in ptx


@pytest.mark.parametrize("n, m", [(0, 0), (1, 0), (15, 3), (16, 17), (129, 100), (511, 510)])
@pytest.mark.parametrize("bound", BOUNDS)
def test_any_mask_lets_through_what_it_should_and_touches_nothing_else(bound, n, m):
    i = np.arange(512)
    mask = {"upper": i < n, "upper, included": i <= n, "turned round": i < n,
            "of two": (i < n) & (i <= m), "lower": i >= n, "from both sides": (i >= m) & (i < n),
            "any": i * i < n}[bound]
    used = 1 + max(np.flatnonzero(mask), default=0)  # what lies beyond is not memory
    x = np.arange(used).astype(np.int8)
    out, whole = np.full(used, 7, np.int8), np.zeros(512, np.int8)

    emulated(bounded_copy(BOUNDS[bound]), 1, x, out, whole, np.int32(n), np.int32(m), num_warps=1)

    np.testing.assert_array_equal(out, np.where(mask[:used], x, np.int8(7)))
    np.testing.assert_array_equal(whole[:used], np.where(mask[:used], x, np.int8(-1)))
    assert (whole[used:] == -1).all()


@pytest.mark.parametrize("words", ["%p, %mask {volatile=True}", "%p, %mask"])
def test_only_what_is_not_volatile_may_be_read_twice(words):
    text = bounded_copy(BOUNDS["upper"]).replace("%p, %mask, %others", words)

    loads = assembled(text, num_warps=1).ptx.split("st.global")[0]
    assert ("v4.b32" in loads) == ("volatile" not in words)


def test_a_pointer_that_may_be_misaligned_is_accessed_element_by_element():
    text = copy_kernel("float32", mask=False).replace("{divisibility=16}", "{divisibility=4}")

    assert accesses(text) == ["LDG.E"] * 8 + ["STG.E"] * 8


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("multiple, count", [
    (1, 16), (1, 1003), (1, 2047), (1, 2048), (2, 1006), (4, 1004), (16, 16), (16, 1008),
    (16, 2048)])
def test_a_copy_copies_what_the_mask_lets_through(dtype, multiple, count):
    bits = np.random.default_rng(0).integers(0, 256, 2048 * DTYPES[dtype].bytes, np.uint8)
    source = (bits & 1 if dtype == "bool" else bits).view(DTYPES[dtype].numpy)
    out = np.zeros_like(source)

    emulated(copy_kernel(dtype, multiple=multiple), 2, source, out, count)

    raw = f"u{DTYPES[dtype].bytes}"
    np.testing.assert_array_equal(out[:count].view(raw), source[:count].view(raw))
    assert not out[count:].view(raw).any()


@pytest.mark.parametrize("other", [None, 0.0, -0.0, 7.0, float("inf")])
def test_masked_elements_are_other_or_zero(other):
    lines = "" if other is None else (
        f"%o = constant {{value={other!r}}} : float32\n%others = splat %o : tile<256xfloat32>\n")
    operands = "%p, %mask" + (", %others" if lines else "")
    text = kernel("""%xp: ptr<float32> = pointer(x) {divisibility=16}
%op: ptr<float32> = pointer(out) {divisibility=16}
%n: int32 = extent(x, 0) {}""", f"""
%i = arange {{size=256, start=0}} : tile<256xint32>
%ns = splat %n : tile<256xint32>
%mask = lt %i, %ns : tile<256xbool>
%xs = splat %xp : tile<256xptr<float32>>
%p = offset %xs, %i : tile<256xptr<float32>>
{lines}%x = load {operands} : tile<256xfloat32>
%os = splat %op : tile<256xptr<float32>>
%q = offset %os, %i : tile<256xptr<float32>>
store %q, %x""")
    x, out = np.arange(1, 101, dtype=np.float32), np.full(256, -1, np.float32)

    emulated(text, 1, x, out, 100)

    np.testing.assert_array_equal(out[:100], x)
    wanted = np.float32(other or 0.0 if other is None else other)
    np.testing.assert_array_equal(out[100:].view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("attributes, words", [
    ('{cache=".cg"}', "ld.global.cg"), ('{cache=".ca"}', "ld.global.ca"),
    ('{cache=".cs"}', "ld.global.cs"), ('{cache=".cv"}', "ld.global.cv"),
    ('{eviction="evict_first"}', "ld.global.L1::evict_first.L2::cache_hint"),
    ('{eviction="evict_last"}', "ld.global.L1::evict_last.L2::cache_hint"),
    ('{eviction="no_allocate"}', "ld.global.L1::no_allocate"),
    ("{volatile=True}", "ld.volatile.global")])
@pytest.mark.parametrize("mask", [True, False])
def test_a_load_tells_the_caches(attributes, words, mask):
    text = copy_kernel("float32", mask=mask, multiple=16)
    text = re.sub(r"(%a = load [^:]*) :", rf"\1 {attributes} :", text)

    assert f"{words}.v4.b32" in assembled(text).ptx


@pytest.mark.parametrize("attributes, words", [
    ('{cache=".cs"}', "st.global.cs"), ('{cache=".wt"}', "st.global.wt"),
    ('{cache=".cg"}', "st.global.cg"), ('{cache=".wb"}', "st.global.wb"),
    ('{eviction="evict_first"}', "st.global.L1::evict_first.L2::cache_hint")])
def test_a_store_tells_the_caches(attributes, words):
    text = re.sub(r"(store .*)", rf"\1 {attributes}", copy_kernel("float32", multiple=16))

    assert f"{words}.v4.b32" in assembled(text).ptx


def test_a_tile_smaller_than_the_program_is_stored_once():
    text = copy_kernel("int32", size=8, mask=False)
    source, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)

    report = emulated(text, 1, source, out, 8)

    np.testing.assert_array_equal(out, source)
    assert "@%p" in assembled(text).ptx or "@p st.global" in assembled(text).ptx
    assert report is not None


def test_a_scalar_is_stored_by_one_thread():
    text = kernel("%op: ptr<int32> = pointer(out) {}\n%n: int32 = value(n) {}", "store %op, %n")

    ptx = assembled(text).ptx

    assert re.search(r"setp.ne.b32 p, %r\d+, 0; @p st.global.b32", ptx)


def test_loads_are_issued_before_the_first_use():
    text = elementwise_kernel("%result = mul %a, %b : tile<2048xfloat32>", "float32", "float32",
                              size=2048, multiple=16)

    sass = disassemble(assembled(text).cubin)

    assert sass.rindex("LDG.E.128") < sass.index("FMUL")


def test_float16_results_are_rounded_in_pairs():
    text = elementwise_kernel("%result = exp %a : tile<1024xfloat16>", "float16",
                              result="float16", multiple=16)

    ptx = assembled(text).ptx

    assert ptx.count("cvt.rn.f16x2.f32") == 4
    assert "cvt.rn.f16.f32" not in ptx
