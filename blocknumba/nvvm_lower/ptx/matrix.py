"""Inline PTX by which a warp multiplies matrices, and moves them to and from shared memory."""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.ptx.memory import SHARED_ADDRESS
from blocknumba.nvvm_lower.target import Capability

COLUMNS = 8
MATRICES = (1, 2, 4)  # that one ldmatrix or stmatrix moves
# kind of element -> (its bits, LLVM type of the register that holds it, alone or with others)
KINDS = {
    "f16": (16, "i32"), "bf16": (16, "i32"), "tf32": (32, "i32"), "f32": (32, "float"),
    "s32": (32, "i32"), "f64": (64, "double"), "e4m3": (8, "i32"), "e5m2": (8, "i32"),
    "s8": (8, "i32"), "u8": (8, "i32")}
_WORD_BITS = {"i32": 32, "float": 32, "double": 64}
_LANES = 32


@cache
def round_to_tf32(ties: str) -> Assembly:
    """A float32 with 11 significant bits.

    ties: "rn", to even, or "rna", away from zero, which is a comparison and an addition under it.
    """
    name = f"cvt.{ties}.tf32.f32"
    return Assembly(name, f"{name} $0, $1;", ("i32",), ("float",), "cvt",
                    needs=Capability.TF32_CONVERT if ties == "rn" else None)


def _registers(rows: int, columns: int, kind: str) -> tuple[str, ...]:
    """The LLVM types of a lane's share of a matrix."""
    bits, type_ = KINDS[kind]
    return (type_,) * (rows * columns * bits // (_LANES * _WORD_BITS[type_]))


def _list(first: int, count: int) -> str:
    return f"{{{', '.join(f'${first + i}' for i in range(count))}}}"


@cache
def multiply(rows: int, depth: int, accumulator: str, a: str, b: str) -> Assembly:
    """a @ b + c: (rows, depth) @ (depth, 8) + (rows, 8), of these kinds of elements.

    Operands: registers of a, b and c.  Results: the accumulator, in the registers of c.
    """
    accumulators = _registers(rows, COLUMNS, accumulator)
    of_a, of_b = _registers(rows, depth, a), _registers(depth, COLUMNS, b)
    first_b = len(accumulators) + len(of_a)
    first_c = first_b + len(of_b)
    name = f"mma.sync.aligned.m{rows}n{COLUMNS}k{depth}.row.col.{accumulator}.{a}.{b}.{accumulator}"
    lists = ((0, accumulators), (len(accumulators), of_a), (first_b, of_b), (first_c, accumulators))
    text = f"{name} {', '.join(_list(first, len(types)) for first, types in lists)};"
    before = len(of_a) + len(of_b)
    return Assembly(name, text, accumulators, (*of_a, *of_b, *accumulators), "mma", converges=True,
                    tied=tuple((before + i, i) for i in range(len(accumulators))),
                    needs=_needs(rows, a))


def _needs(rows: int, kind: str) -> Capability:
    if kind in ("e4m3", "e5m2"):
        return Capability.FP8_MMA
    if kind == "f64" and rows == 16:
        return Capability.FLOAT64_MMA
    return Capability.MMA


@cache
def load(matrices: int, transposed: bool) -> Assembly:
    """Read 8 by 8 matrices of 16-bit elements from shared memory.

    Operand: of lane 8 * i + r, the address of row r of matrix i.  Results: of each matrix, the two
    elements at 2 * (lane % 4) of row lane / 4; of a transposed one, of column lane / 4.
    """
    modifiers = ".trans" if transposed else ""
    text = (f"ldmatrix.sync.aligned.m8n8.x{matrices}{modifiers}.shared.b16 {_list(0, matrices)}, "
            f"[${matrices}];")
    return Assembly(f"ldmatrix.x{matrices}{modifiers}", text, ("i32",) * matrices,
                    (SHARED_ADDRESS,), "ldmatrix", needs=Capability.MMA, has_effect=True,
                    converges=True)


@cache
def store(matrices: int, transposed: bool) -> Assembly:
    """Write 8 by 8 matrices of 16-bit elements to shared memory: the inverse of load.

    Operands: of lane 8 * i + r, the address of row r of matrix i; a word of each matrix.
    """
    modifiers = ".trans" if transposed else ""
    text = (f"stmatrix.sync.aligned.m8n8.x{matrices}{modifiers}.shared.b16 [$0], "
            f"{_list(1, matrices)};")
    return Assembly(f"stmatrix.x{matrices}{modifiers}", text, (),
                    (SHARED_ADDRESS, *["i32"] * matrices), "stmatrix", needs=Capability.STMATRIX,
                    has_effect=True, touches_memory=True, converges=True)


def rows() -> list[Assembly]:
    """Every shape of every kind, for tests."""
    sixteen = [multiply(16, depth, accumulator, kind, kind) for depth in (8, 16)
               for kind, accumulator in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))]
    eight = [multiply(16, depth, accumulator, a, b) for depth in (16, 32)
             for kinds, accumulator in ((("s8", "u8"), "s32"), (("e4m3", "e5m2"), "f32"))
             for a in kinds for b in kinds]
    wide = [multiply(16, 4, "f32", "tf32", "tf32"), multiply(16, 8, "f32", "tf32", "tf32"),
            multiply(8, 4, "f64", "f64", "f64"),
            *(multiply(16, depth, "f64", "f64", "f64") for depth in (4, 8, 16))]
    loads = [load(matrices, transposed) for matrices in MATRICES for transposed in (False, True)]
    stores = [store(matrices, transposed) for matrices in MATRICES for transposed in (False, True)]
    return [*sixteen, *eight, *wide, *loads, *stores, *map(round_to_tf32, ("rn", "rna"))]
