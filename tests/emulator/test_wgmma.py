"""wgmma multiplies what its descriptors describe, and not before the wait."""

import ml_dtypes
import numpy as np
import pytest
from ptx import run

from blocknumba.emulator import (
    AccessError,
    DeadlockError,
    ProxyFenceError,
    RaceError,
    SynchronizationError,
)

_DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
           "tf32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
           "e5m2": np.dtype(ml_dtypes.float8_e5m2), "s8": np.dtype(np.int8),
           "u8": np.dtype(np.uint8), "f32": np.dtype(np.float32), "s32": np.dtype(np.int32)}
_CODES = {0: 0, 128: 1, 64: 2, 32: 3}  # of the swizzle in a descriptor
_IMAGE = 16384  # bytes of each operand's image
_SHARED = f".shared .align 1024 .b8 first[{_IMAGE}];\n.shared .align 1024 .b8 second[{_IMAGE}];\n"


def swizzle_address(address, swizzle):
    """The PTX ISA's figures: chunks of 16 bytes, permuted by the number of the 128-byte line."""
    chunks = max(swizzle // 16, 1)
    chunk, line = address // 16 % chunks, address // 128 % chunks
    return address - 16 * chunk + 16 * (chunk ^ line)


def image(matrix, swizzle, transposed):
    """An operand's bytes in shared memory, and its two strides in bytes.

    matrix: (M or N, K).
    """
    rows, depth = matrix.shape
    item = matrix.itemsize
    out = np.zeros(_IMAGE, np.uint8)
    leading, stride = (4096, 1024 if swizzle else 256) if transposed else (1024, 2048)
    for row, column in np.ndindex(rows, depth):
        if transposed:  # MN-major: 16-bit elements, a line of the swizzle's width along M or N
            width = (swizzle or 16) // item
            line = (row // width * leading + column // 8 * stride if swizzle
                    else row // width * stride + column // 8 * leading)
            place = line + column % 8 * width * item + row % width * item
        elif swizzle:
            place = row // 8 * stride + row % 8 * swizzle + column * item
        else:
            place = (row // 8 * stride + row % 8 * 16 + column * item // 16 * leading
                     + column * item % 16)
        place = swizzle_address(place, swizzle)
        out[place:place + item] = np.frombuffer(matrix[row, column].tobytes(), np.uint8)
    return out, leading, stride


def _descriptor(register, name, leading, stride, swizzle):
    constant = leading // 16 << 16 | stride // 16 << 32 | _CODES[swizzle] << 62
    return f"""mov.u32 %r9, {name}; and.b32 %r9, %r9, 0x3FFFF; shr.u32 %r9, %r9, 4;
        cvt.u64.u32 {register}, %r9; or.b64 {register}, {register}, {constant:#x};"""


def _fill(name, pointer, size=_IMAGE):
    """All 128 threads copy an image to shared memory."""
    return f"""{{ .reg .pred q; .reg .b32 a, i; .reg .b64 g; mov.b32 i, %r1;
        L: shl.b32 a, i, 4; cvt.u64.u32 g, a; add.s64 g, g, {pointer}; mov.u32 %r2, {name};
        add.u32 a, a, %r2; ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [g];
        st.shared.v4.b32 [a], {{%r3, %r4, %r5, %r6}};
        add.u32 i, i, 128; setp.lt.u32 q, i, {size // 16}; @q bra L; }}"""


def _registers(columns, letter="%f"):
    return "{" + ", ".join(f"{letter}{index}" for index in range(columns // 2)) + "}"


def _store(columns, letter="%f"):
    """Every thread's accumulators to p0, columns // 2 to a thread."""
    words = columns // 2
    return f"mad.wide.u32 %rd9, %r1, {4 * words}, %rd1;" + "".join(
        f"st.global.b32 [%rd9+{4 * index}], {letter}{index};" for index in range(words))


def accumulator(words, columns):
    """The (64, columns) matrix in the accumulators of 128 threads, from the PTX ISA's figure."""
    matrix = np.zeros((64, columns), words.dtype)
    for thread, index in np.ndindex(words.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index // 2 % 2)
        matrix[row, index // 4 * 8 + thread % 4 * 2 + index % 2] = words[thread, index]
    return matrix


def random_matrix(shape, kind, seed):
    """Small integers, exact in every kind of element."""
    low = 0 if kind[0] == "u" else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(_DTYPES[kind])


_FENCE = "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;"
_COMMIT, _WAIT = "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"


def product(columns, left, right, swizzles=(128, 128), transposed=(False, False), result="f32",
            body=None, flags="1, 1", seed=None):
    """a @ b.T twice by two wgmmas, through shared memory; the result, and a and b."""
    depth = 32 // _DTYPES[left].itemsize
    a, b = random_matrix((64, depth), left, 1), random_matrix((columns, depth), right, 2)
    (first, *strides_a), (second, *strides_b) = (
        image(matrix, *how) for matrix, how in zip((a, b), zip(swizzles, transposed)))
    letter = "%f" if result == "f32" else "%r"
    base = 0 if letter == "%f" else 64
    names = "{" + ", ".join(f"{letter}{base + i}" for i in range(columns // 2)) + "}"
    trans = "".join(f", {int(one)}" for one in transposed) if left in ("f16", "bf16") else ""
    signs = f", {flags}" if result == "f32" else ""
    multiply = (f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{result}.{left}.{right} "
                f"{names}, %rd20, %rd21, SCALE{signs}{trans};")
    output = np.zeros((128, columns // 2), _DTYPES[result])
    text = f"""{_fill("first", "%rd2")} {_fill("second", "%rd3")}
        {_descriptor("%rd20", "first", *strides_a, swizzles[0])}
        {_descriptor("%rd21", "second", *strides_b, swizzles[1])}
        setp.ne.b32 %p1, 0, 0; setp.ne.b32 %p2, 1, 0;"""
    order = body or "{fence} {first} {second} {commit} {wait} {store}"
    store = "".join(f"st.global.b32 [%rd9+{4 * i}], {letter}{base + i};"
                    for i in range(columns // 2))
    text += order.format(
        fence=_FENCE, first=multiply.replace("SCALE", "%p1"),
        second=multiply.replace("SCALE", "%p2"), commit=_COMMIT, wait=_WAIT,
        store=f"mad.wide.u32 %rd9, %r1, {2 * columns}, %rd1; {store}", names=names)
    run(text, output, first, second, block=128, variables=_SHARED, seed=seed)
    return accumulator(output, columns), a.astype(np.float64), b.astype(np.float64)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("kind", ["f16", "tf32", "e4m3"])
def test_rows_of_k_are_read_in_every_swizzle(kind, swizzle):
    got, a, b = product(16, kind, kind, (swizzle, swizzle))
    assert got.tolist() == (2 * a @ b.T).tolist()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
def test_transposed_operands_are_read_in_every_swizzle(transposed, swizzle):
    got, a, b = product(16, "bf16", "bf16", (swizzle, swizzle), transposed)
    assert got.tolist() == (2 * a @ b.T).tolist()


@pytest.mark.parametrize("columns, left, right, result", [
    (8, "f16", "f16", "f32"), (24, "bf16", "bf16", "f32"), (64, "e4m3", "e5m2", "f32"),
    (32, "s8", "s8", "s32"), (16, "u8", "s8", "s32"), (64, "tf32", "tf32", "f32")])
def test_widths_and_kinds_of_elements(columns, left, right, result):
    got, a, b = product(columns, left, right, result=result)
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_signs_negate_operands():
    got, a, b = product(8, "f16", "f16", flags="-1, 1")
    assert got.tolist() == (-2 * a @ b.T).tolist()


def test_results_are_not_there_before_the_wait():
    got, _, _ = product(8, "f16", "f16", body="{fence} {first} {second} {commit} {store} {wait}")
    assert np.isnan(got).all()


def test_a_wait_leaves_the_latest_groups_in_flight():
    body = ("{fence} {first} {commit} {second} {commit} wgmma.wait_group.sync.aligned 1;"
            "{store} {wait}")
    got, _, _ = product(8, "f16", "f16", body=body)
    assert np.isnan(got).all()


def test_copies_of_registers_in_flight_get_the_results_too():
    copies = "".join(f"mov.f32 %f{100 + i}, %f{i};" for i in range(4))
    back = "".join(f"mov.f32 %f{i}, %f{100 + i};" for i in range(4))
    clear = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))
    got, a, b = product(8, "f16", "f16", body="{{fence}} {{first}} {{second}} {{commit}} {} {} "
                        "{{wait}} {} {{store}}".format(copies, clear, back))
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_operands_are_read_as_late_as_the_wait_allows():
    change = "mov.b32 %r9, 0; mov.u32 %r8, first; mad.lo.u32 %r8, %r1, 16, %r8;"
    body = "{fence} {first} {second} {commit}" + change + " st.shared.b32 [%r8], %r9; {wait}"
    with pytest.raises(RaceError, match="wgmma of warp 0 may still be reading"):
        product(8, "f16", "f16", body=body)


def test_operands_may_change_after_the_wait():
    body = ("{fence} {first} {second} {commit} {wait} bar.sync 0; mov.b32 %r9, 0;"
            "mov.u32 %r8, first; mad.lo.u32 %r8, %r1, 16, %r8; st.shared.b32 [%r8], %r9; {store}")
    got, a, b = product(8, "f16", "f16", body=body)
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_operands_from_the_generic_proxy_need_a_fence():
    with pytest.raises(ProxyFenceError, match="without a fence"):
        product(8, "f16", "f16", body="bar.sync 0; {first} {second} {commit} {wait} {store}")


def test_operands_need_a_barrier():
    with pytest.raises(RaceError, match="nothing orders"):
        product(8, "f16", "f16",
                body="fence.proxy.async.shared::cta; {first} {second} {commit} {wait} {store}")


@pytest.mark.parametrize("seed", range(3))
def test_warps_of_a_warpgroup_wait_for_each_other(seed):
    late = "shr.u32 %r10, %r1, 5; setp.eq.u32 %p3, %r10, 2; @!%p3 bra ON; nanosleep.u32 5; ON:"
    got, a, b = product(8, "f16", "f16", seed=seed,
                        body=f"{{fence}} {late} {{first}} {{second}} {{commit}} {{wait}} {{store}}")
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_a_warpgroup_that_is_not_whole_is_a_deadlock():
    skip = "shr.u32 %r10, %r1, 5; setp.eq.u32 %p3, %r10, 2; @%p3 exit;"
    with pytest.raises(DeadlockError, match="its warpgroup, 3 of 4 warps there"):
        product(8, "f16", "f16", body=f"{{fence}} {skip} {{first}} {{commit}} {{wait}}")


def test_part_of_a_warp_is_refused():
    skip = "setp.eq.u32 %p3, %r1, 2; @%p3 exit;"
    with pytest.raises(SynchronizationError, match="part of a warp"):
        product(8, "f16", "f16", body=f"{{fence}} {skip} {{first}} {{commit}} {{wait}}")


def test_operands_that_nothing_wrote_are_found():
    with pytest.raises(AccessError, match="nothing has written"):
        run(f"""{_descriptor("%rd20", "first", 0, 1024, 128)} setp.ne.b32 %p1, 0, 0;
            wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_registers(8)}, %rd20, %rd20, %p1,
            1, 1, 0, 0; {_COMMIT} {_WAIT}""", block=128, variables=_SHARED)


def test_the_first_operand_may_be_in_registers():
    a, b = random_matrix((64, 16), "f16", 1), random_matrix((8, 16), "f16", 2)
    second, *strides = image(b, 128, False)
    packed = np.zeros((128, 4, 2), np.float16)
    for thread, index, element in np.ndindex(packed.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index % 2)
        packed[thread, index, element] = a[row, thread % 4 * 2 + element + 8 * (index // 2)]
    output = np.zeros((128, 4), np.float32)
    run(f"""{_fill("second", "%rd3")} {_descriptor("%rd21", "second", *strides, 128)} {_FENCE}
        mad.wide.u32 %rd8, %r1, 16, %rd2; ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd8];
        setp.ne.b32 %p1, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_registers(8)},
        {{%r10, %r11, %r12, %r13}}, %rd21, %p1, 1, 1, 0; {_COMMIT} {_WAIT} {_store(8)}""",
        output, packed, second, block=128, variables=_SHARED)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    assert accumulator(output, 8).tolist() == expected.tolist()
