"""ldmatrix, stmatrix, movmatrix and mma.sync put elements where the manual draws them."""

import numpy as np
import pytest
from elements import DTYPES
from mma_kernels import SHAPES, Multiplication, result_of
from ptx import run

from blocknumba.emulator import AccessError, Module, SynchronizationError

_SHARED = ".shared .align 128 .b8 buffer[4096];\n"


def _names(first, count, letter="%r"):
    return "{" + ", ".join(f"{letter}{first + index}" for index in range(count)) + "}"


# Copies 512 bytes of p0 to shared memory; %r2 is the address of each lane's row of 16 bytes.
_FILL = """mov.u32 %r2, buffer; mad.lo.u32 %r2, %r1, 16, %r2; mad.wide.u32 %rd8, %r1, 16, %rd1;
    ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd8]; st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};"""
_STORE = """mad.wide.u32 %rd9, %r1, 16, %rd2;
    st.global.v4.b32 [%rd9], {%r10, %r11, %r12, %r13};"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_loads_two_neighbours_into_each_lane(count, transposed):
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


def test_a_partial_warp_cannot_multiply():
    with pytest.raises(SynchronizationError, match="part of a warp"):
        run(f"""setp.lt.u32 %p1, %r1, 16; @%p1 bra D;
            mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_names(1, 4, '%f')},
            {_names(2, 2)}, {{%r4}}, {_names(1, 4, '%f')}; D:""")


@pytest.mark.parametrize("shape, result, left, right", SHAPES)
def test_mma_multiplies_matrices_of_every_shape_and_kind(shape, result, left, right):
    kernel = Multiplication(shape, result, left, right)
    output = kernel.output
    Module.parse(kernel.text()).launch("k", 1, 32, [output, *kernel.packed])
    a, b = (operand.astype(np.float64) for operand in kernel.operands)
    got = result_of(output, kernel.rows, DTYPES[result])
    assert got.astype(float).tolist() == (2 * a @ b.T).tolist()
