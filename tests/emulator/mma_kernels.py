"""Kernels around mma.sync: matrices in the registers of a warp, as the PTX ISA's tables say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from elements import DTYPES, random_matrix
from ptx import module

SHAPES = [
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


@dataclass(frozen=True)
class Multiplication:
    """A kernel of one warp that computes a @ b.T twice, the second time added to the first.

    shape: as in the opcode.   result, left, right: kinds of elements.
    """

    shape: str
    result: str
    left: str
    right: str

    @property
    def rows(self) -> int:
        """M."""
        return int(self.shape[1:].split("n")[0])

    @property
    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        """a, (M, K), and b, (8, K)."""
        depth = int(self.shape.split("k")[1])
        return (random_matrix((self.rows, depth), self.left, 1),
                random_matrix((8, depth), self.right, 2))

    @property
    def word(self) -> int:
        """Bytes of a register."""
        return 8 if self.left == "f64" else 4

    @property
    def packed(self) -> list[np.ndarray]:
        """The registers of a and b."""
        return [first_operand(matrix, matrix.nbytes // (32 * self.word))
                for matrix in self.operands]

    @property
    def output(self) -> np.ndarray:
        """Room for the accumulators of 32 threads."""
        size = self.rows * 8 * DTYPES[self.result].itemsize
        return np.zeros((32, size // (32 * self.word)), f"u{self.word}")

    def text(self) -> str:
        """The kernel: k(output, registers of a, registers of b)."""
        a, b = (registers.shape[1] for registers in self.packed)
        d = self.output.shape[1]
        letter, bits = ("%rd", 64) if self.word == 8 else ("%r", 32)
        clear = "".join(f"mov.b{bits} {letter}{30 + i}, 0;" for i in range(d))
        names = [_names(letter, *group) for group in ((30, d), (10, a), (20, b), (30, d))]
        kinds = f"{self.result}.{self.left}.{self.right}.{self.result}"
        multiply = f"mma.sync.aligned.{self.shape}.row.col.{kinds} {', '.join(names)};"
        return module("\n".join([self._move("ld", 10, a, 2), self._move("ld", 20, b, 3), clear,
                                 multiply, multiply, self._move("st", 30, d, 1)]), 3)

    def _move(self, opcode: str, first: int, count: int, pointer: int) -> str:
        """Loads or stores of each thread's registers."""
        letter, bits = ("%rd", 64) if self.word == 8 else ("%r", 32)
        lines = [f"mad.wide.u32 %rd60, %r1, {count * self.word}, %rd{pointer};"]
        for index in range(count):
            register, address = f"{letter}{first + index}", f"[%rd60+{self.word * index}]"
            operands = f"{register}, {address}" if opcode == "ld" else f"{address}, {register}"
            lines.append(f"{opcode}.global.b{bits} {operands};")
        return "\n".join(lines)


def _names(letter: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"{letter}{first + index}" for index in range(count)) + "}"
