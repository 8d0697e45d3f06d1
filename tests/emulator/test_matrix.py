"""ldmatrix, stmatrix, movmatrix and mma.sync put elements where the manual draws them."""

import ml_dtypes
import numpy as np
import pytest
from ptx import run

from blocknumba.emulator import AccessError, SynchronizationError

_SHARED = ".shared .align 128 .b8 buffer[4096];\n"
_LANE = np.arange(32)
_DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
           "tf32": np.dtype(np.float32), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
           "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "s32": np.dtype(np.int32),
           "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}


def _names(first, count, letter="%r"):
    return "{" + ", ".join(f"{letter}{first + index}" for index in range(count)) + "}"


# Copies 512 bytes of p0 to shared memory; %r2 is the address of each lane's row of 16 bytes.
_FILL = """mov.u32 %r2, buffer; mad.lo.u32 %r2, %r1, 16, %r2; mad.wide.u32 %rd8, %r1, 16, %rd1;
    ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd8]; st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};"""
_STORE = """mad.wide.u32 %rd9, %r1, 16, %rd2;
    st.global.v4.b32 [%rd9], {%r10, %r11, %r12, %r13};"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_two_neighbours(count, transposed):
    matrices = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    output = np.zeros((32, 4, 2), np.uint16)
    name = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16"
    clear = "".join(f"mov.b32 %r{10 + i}, 0;" for i in range(4))
    run(f"{_FILL} {clear} {name} {_names(10, count)}, [%r2]; {_STORE}", matrices, output,
        variables=_SHARED)
    expected = matrices.swapaxes(1, 2) if transposed else matrices
    for matrix in range(count):
        assert output[:, matrix].ravel().tolist() == expected[matrix].ravel().tolist()
    assert not output[:, count:].any()


@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_stmatrix_is_the_inverse_of_ldmatrix(transposed):
    matrices = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    output = np.zeros_like(matrices)
    run(f"""{_FILL} ldmatrix.sync.aligned.m8n8.x4{transposed}.shared.b16 {_names(10, 4)}, [%r2];
        mov.u32 %r20, copy; mad.lo.u32 %r21, %r1, 16, %r20;
        stmatrix.sync.aligned.m8n8.x4{transposed}.shared.b16 [%r21], {_names(10, 4)};
        ld.shared.v4.b32 {_names(10, 4)}, [%r21]; {_STORE}""", matrices, output,
        variables=_SHARED + ".shared .align 16 .b8 copy[512];\n")
    assert output.tolist() == matrices.tolist()


def test_movmatrix_transposes_across_the_warp():
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    output = np.zeros_like(matrix)
    run("""mad.wide.u32 %rd8, %r1, 4, %rd1; mad.wide.u32 %rd9, %r1, 4, %rd2;
        ld.global.b32 %r2, [%rd8]; movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;
        st.global.b32 [%rd9], %r3;""", matrix, output)
    assert output.tolist() == matrix.T.tolist()


def test_rows_that_share_banks_are_counted():
    body = f"{_FILL} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {_names(10, 4)}, [%r20];"
    rows = "mov.u32 %r20, buffer; mad.lo.u32 %r20, {}, %r20;"
    free = run(body.replace("ldmatrix", rows.format("%r1, 16") + " ldmatrix"),
               np.zeros(256, np.uint16), variables=_SHARED)
    busy = run(body.replace("ldmatrix", rows.format("%r1, 128") + " ldmatrix"),
               np.zeros(256, np.uint16), variables=_SHARED, uninitialized=False)
    assert (free.bank_conflicts, busy.bank_conflicts) == (0, 28)


def test_a_misaligned_row_is_found():
    with pytest.raises(AccessError, match="row of 16 bytes: misaligned"):
        run("mov.u32 %r2, buffer+8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];",
            variables=_SHARED)


def test_part_of_a_warp_cannot_multiply():
    with pytest.raises(SynchronizationError, match="part of a warp"):
        run(f"""setp.lt.u32 %p1, %r1, 16; @%p1 bra D;
            mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_names(1, 4, '%f')},
            {_names(2, 2)}, {{%r4}}, {_names(1, 4, '%f')}; D:""")


def first_operand(matrix, registers):
    """The registers of each lane for a of mma, from the tables of the PTX ISA: (lanes, registers).

    matrix: (M, K).
    """
    word = 8 if matrix.dtype.itemsize == 8 else 4
    per_register = word // matrix.dtype.itemsize
    words = np.zeros((32, registers, per_register), matrix.dtype)
    for lane in range(32):
        group, member = lane // 4, lane % 4
        for index in range(registers):
            row = group + 8 * (index % 2) if len(matrix) == 16 else group
            half = index // 2 if len(matrix) == 16 else index
            for element in range(per_register):
                column = member * per_register + element + half * 4 * per_register
                words[lane, index, element] = matrix[row, column]
    return words.view(f"u{word}")[:, :, 0]


def result_of(words, rows, dtype):
    """The (rows, 8) matrix in the registers of c, from the tables of the PTX ISA."""
    matrix = np.zeros((rows, 8), dtype)
    elements = np.ascontiguousarray(words).view(dtype).reshape(32, -1)
    for lane in range(32):
        for index, value in enumerate(elements[lane]):
            matrix[lane // 4 + 8 * (index // 2), lane % 4 * 2 + index % 2] = value
    return matrix


_SHAPES = [
    ("m16n8k16", "f32", "f16", "f16"), ("m16n8k8", "f32", "f16", "f16"),
    ("m16n8k16", "f32", "bf16", "bf16"), ("m16n8k8", "f32", "bf16", "bf16"),
    ("m16n8k16", "f16", "f16", "f16"), ("m16n8k8", "f16", "f16", "f16"),
    ("m16n8k8", "f32", "tf32", "tf32"), ("m16n8k4", "f32", "tf32", "tf32"),
    ("m16n8k32", "s32", "s8", "s8"), ("m16n8k32", "s32", "u8", "s8"),
    ("m16n8k16", "s32", "s8", "u8"), ("m8n8k16", "s32", "u8", "u8"),
    ("m16n8k32", "f32", "e4m3", "e4m3"), ("m16n8k32", "f32", "e5m2", "e4m3"),
    ("m16n8k32", "f16", "e4m3", "e5m2"), ("m8n8k4", "f64", "f64", "f64"),
    ("m16n8k4", "f64", "f64", "f64"), ("m16n8k8", "f64", "f64", "f64"),
    ("m16n8k16", "f64", "f64", "f64"),
]


def random_matrix(shape, kind, seed):
    """Small integers, exact in every kind of element and in every sum."""
    low = 0 if kind[0] == "u" else -4
    values = np.random.default_rng(seed).integers(low, 5, shape)
    return values.astype(_DTYPES[kind])


@pytest.mark.parametrize("shape, result, left, right", _SHAPES)
def test_mma_multiplies_matrices_of_every_shape_and_kind(shape, result, left, right):
    rows, depth = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
    a, b = random_matrix((rows, depth), left, 1), random_matrix((8, depth), right, 2)
    word = 8 if left == "f64" else 4
    count_a, count_b = (m.size * m.itemsize // (32 * word) for m in (a, b))
    count_d = rows * 8 * _DTYPES[result].itemsize // (32 * word)
    packed_a, packed_b = first_operand(a, count_a), first_operand(b, count_b)
    output = np.zeros((32, count_d), f"u{word}")
    letter, bits = ("%rd", 64) if word == 8 else ("%r", 32)

    def load(first, count, pointer):
        return f"mad.wide.u32 %rd60, %r1, {count * word}, {pointer};" + "".join(
            f"ld.global.b{bits} {letter}{first + i}, [%rd60+{word * i}];" for i in range(count))
    clear = "".join(f"mov.b{bits} {letter}{30 + i}, 0;" for i in range(count_d))
    store = f"mad.wide.u32 %rd60, %r1, {count_d * word}, %rd1;" + "".join(
        f"st.global.b{bits} [%rd60+{word * i}], {letter}{30 + i};" for i in range(count_d))
    multiply = (f"mma.sync.aligned.{shape}.row.col.{result}.{left}.{right}.{result} "
                f"{_names(30, count_d, letter)}, {_names(10, count_a, letter)}, "
                f"{_names(20, count_b, letter)}, {_names(30, count_d, letter)};")
    run(f"{load(10, count_a, '%rd2')} {load(20, count_b, '%rd3')} {clear} {multiply} {multiply} "
        f"{store}", output, packed_a, packed_b)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64).T)
    assert result_of(output, rows, _DTYPES[result]).astype(float).tolist() == expected.tolist()
