"""Kernels around wgmma: operands brought to shared memory, descriptors, accumulators taken out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from elements import DTYPES, random_matrix
from ptx import module

_CODES = {0: 0, 128: 1, 64: 2, 32: 3}  # of the swizzle in a descriptor
_IMAGE = 16384  # bytes of each operand's image
SHARED = f".shared .align 1024 .b8 first[{_IMAGE}];\n.shared .align 1024 .b8 second[{_IMAGE}];\n"


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
    leading, stride = (4096, 1024 if swizzle else 256) if transposed else (
        1024, 8 * swizzle or 2048)
    for row, column in np.ndindex(rows, depth):
        if transposed:  # MN-major: 16-bit elements, a line of the swizzle's width along M or N
            width = (swizzle or 16) // item
            line = (row // width * leading + column // 8 * stride if swizzle
                    else row // width * stride + column // 8 * leading)
            offset = line + column % 8 * width * item + row % width * item
        elif swizzle:
            offset = row // 8 * stride + row % 8 * swizzle + column * item
        else:
            offset = (row // 8 * stride + row % 8 * 16 + column * item // 16 * leading
                     + column * item % 16)
        offset = swizzle_address(offset, swizzle)
        out[offset:offset + item] = np.frombuffer(matrix[row, column].tobytes(), np.uint8)
    return out, leading, stride


def descriptor(register, name, leading, stride, swizzle):
    """A register with the descriptor of an image in shared memory."""
    constant = leading // 16 << 16 | stride // 16 << 32 | _CODES[swizzle] << 62
    return f"""mov.u32 %r9, {name}; and.b32 %r9, %r9, 0x3FFFF; shr.u32 %r9, %r9, 4;
        cvt.u64.u32 {register}, %r9; or.b64 {register}, {register}, {constant:#x};"""


def fill(name, pointer, size=_IMAGE):
    """All 128 threads copy an image to shared memory."""
    return f"""{{ .reg .pred q; .reg .b32 a, i; .reg .b64 g; mov.b32 i, %r1;
        L: shl.b32 a, i, 4; cvt.u64.u32 g, a; add.s64 g, g, {pointer}; mov.u32 %r2, {name};
        add.u32 a, a, %r2; ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [g];
        st.shared.v4.b32 [a], {{%r3, %r4, %r5, %r6}};
        add.u32 i, i, 128; setp.lt.u32 q, i, {size // 16}; @q bra L; }}"""


def registers(columns, letter="%f", first=0):
    """The accumulators of one thread, as an operand."""
    return "{" + ", ".join(f"{letter}{first + index}" for index in range(columns // 2)) + "}"


def store(columns, letter="%f", first=0):
    """Every thread's accumulators to p0, columns // 2 to a thread."""
    words = columns // 2
    return f"mad.wide.u32 %rd9, %r1, {4 * words}, %rd1;" + "".join(
        f"st.global.b32 [%rd9+{4 * index}], {letter}{first + index};" for index in range(words))


def accumulator(words, columns):
    """The (64, columns) matrix in the accumulators of 128 threads, from the PTX ISA's figure."""
    matrix = np.zeros((64, columns), words.dtype)
    for thread, index in np.ndindex(words.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index // 2 % 2)
        matrix[row, index // 4 * 8 + thread % 4 * 2 + index % 2] = words[thread, index]
    return matrix


FENCE = "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;"
COMMIT, WAIT = "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
IN_ORDER = "{fence} {first} {second} {commit} {wait} {store}"


@dataclass(frozen=True)
class Wgmma:
    """A kernel that computes a @ b.T twice, the second time added to the first.

    columns: N.   left, right, result: kinds of elements.
    swizzles, transposed: of both operands.   signs: of both operands, in the opcode's words.
    order: the body, with the names of IN_ORDER.
    """

    columns: int
    left: str
    right: str
    swizzles: tuple[int, int] = (128, 128)
    transposed: tuple[bool, bool] = (False, False)
    result: str = "f32"
    signs: str = "1, 1"
    order: str = IN_ORDER

    @property
    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        """a, (64, K), and b, (N, K)."""
        depth = 32 // DTYPES[self.left].itemsize
        return (random_matrix((64, depth), self.left, 1),
                random_matrix((self.columns, depth), self.right, 2))

    @property
    def images(self) -> list[tuple[np.ndarray, int, int]]:
        """What image says of both operands."""
        return [image(*one) for one in zip(self.operands, self.swizzles, self.transposed)]

    @property
    def output(self) -> np.ndarray:
        """Room for the accumulators of 128 threads."""
        return np.zeros((128, self.columns // 2), DTYPES[self.result])

    def text(self) -> str:
        """The kernel: k(output, image of a, image of b)."""
        (_, *strides_a), (_, *strides_b) = self.images
        letter, base = ("%f", 0) if self.result == "f32" else ("%r", 64)
        names = registers(self.columns, letter, base)
        multiply = self._multiplication(names.replace("{", "{{").replace("}", "}}"))
        body = f"""{fill("first", "%rd2")} {fill("second", "%rd3")}
            {descriptor("%rd20", "first", *strides_a, self.swizzles[0])}
            {descriptor("%rd21", "second", *strides_b, self.swizzles[1])}
            setp.ne.b32 %p1, 0, 0; setp.ne.b32 %p2, 1, 0;"""
        body += self.order.format(
            fence=FENCE, first=multiply.format("%p1"), second=multiply.format("%p2"),
            commit=COMMIT, wait=WAIT, store=store(self.columns, letter, base))
        return module(body, 3, SHARED)

    def _multiplication(self, names: str) -> str:
        depth = 32 // DTYPES[self.left].itemsize
        signs = f", {self.signs}" if self.result == "f32" else ""
        transposed = "".join(f", {int(one)}" for one in self.transposed)
        if self.left not in ("f16", "bf16"):
            transposed = ""
        opcode = f"wgmma.mma_async.sync.aligned.m64n{self.columns}k{depth}"
        kinds = f"{self.result}.{self.left}.{self.right}"
        return f"{opcode}.{kinds} {names}, %rd20, %rd21, {{}}{signs}{transposed};"
