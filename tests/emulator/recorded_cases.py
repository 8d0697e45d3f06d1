"""Kernels of one instruction each, whose results are recorded on a GPU and compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np
from mma_kernels import SHAPES, Multiplication
from ptx import evaluation, module
from wgmma_kernels import Wgmma

from blocknumba.emulator import Module, TensorMap

_SEED = 11
_COUNT = 256


@dataclass(frozen=True, eq=False)
class Case:
    """One kernel k(output, inputs...).

    relative, absolute: how far the GPU may be off, from the error that the PTX ISA states; 0 and
        0 is equality of all bits, NaN being equal to NaN.
    kind: the dtype to compare as.
    """

    name: str
    text: str
    threads: int
    output: np.ndarray
    inputs: tuple[np.ndarray | TensorMap, ...]
    relative: float = 0.0
    absolute: float = 0.0
    kind: np.dtype | None = None

    def emulate(self) -> np.ndarray:
        """The output on the emulator."""
        output = self.output.copy()
        Module.parse(self.text).launch("k", 1, self.threads, [output, *self.inputs])
        return output

    def agrees(self, got: np.ndarray, recorded: np.ndarray) -> np.ndarray:
        """Which elements agree within the stated error."""
        kind = self.kind or self.output.dtype
        got, recorded = got.view(kind), recorded.view(kind)
        if kind.kind not in "fV":
            return got == recorded
        bits = np.dtype(f"u{kind.itemsize}")
        same = got.view(bits) == recorded.view(bits)
        with np.errstate(invalid="ignore"):
            left, right = got.astype(np.float64), recorded.astype(np.float64)
            close = np.abs(left - right) <= self.absolute + self.relative * np.abs(right)
        near = close & (self.relative + self.absolute > 0)
        return same | (np.isnan(left) & np.isnan(right)) | near


_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-40, -1e-40,
            1.17549435e-38, 3.4e38, -3.4e38, 65504.0, 65520.0, 1 + 2.0**-23, 2.0**31, -(2.0**31),
            4294967296.0, 2.0**63, 127.5, 128.5, -128.5, 255.5, 448.0, 464.0, 0.1, 1 / 3]


def _floats(dtype: np.dtype, index: int) -> np.ndarray:
    random = np.random.default_rng(_SEED)
    values = random.standard_normal(_COUNT) * 2.0 ** random.integers(-20, 20, _COUNT)
    values[:len(_SPECIAL)] = _SPECIAL
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    return values if index == 0 else np.random.default_rng(_SEED + index).permutation(values)


def _integers(dtype: np.dtype, index: int) -> np.ndarray:
    values = np.frombuffer(np.random.default_rng(_SEED).bytes(_COUNT * dtype.itemsize), dtype)
    values = values.copy()
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.max, 0, 1, 2, 31, 32, 33, 63, 64, 100]
    values[:len(edges)] = edges
    values[len(edges):64] %= 70  # counts of shifts and positions of fields
    return values if index == 0 else np.random.default_rng(_SEED + index).permutation(values)


_DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
           "s16": np.int16, "u16": np.uint16, "s32": np.int32, "u32": np.uint32, "b32": np.uint32,
           "s64": np.int64, "u64": np.uint64, "b16": np.uint16, "b64": np.uint64}


def _operand(type_: str, index: int) -> np.ndarray:
    dtype = np.dtype(_DTYPES[type_])
    return _floats(dtype, index) if type_[0] in "f" or type_ == "bf16" else _integers(dtype, index)


def _elementwise(opcode: str, result: str, *types: str, relative: float = 0.0,
                 absolute: float = 0.0) -> Case:
    """One instruction on vectors of edge cases and random numbers."""
    operands = tuple([_operand(type_, index) for index, type_ in enumerate(types)])
    names = ", ".join(f"${index}" for index in range(len(types) + 1))
    output = np.zeros(_COUNT, _DTYPES[result])
    text = evaluation(f"{opcode} {names};", output.dtype, *operands)
    return Case(opcode, text, _COUNT, output, operands, relative, absolute)


_INTEGER_TYPES = ("s16", "u16", "s32", "u32", "s64", "u64")


def _integer_cases() -> Iterator[Case]:
    for type_ in _INTEGER_TYPES:
        for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"):
            yield _elementwise(f"{name}.{type_}", type_, type_, type_)
        yield _elementwise(f"mad.lo.{type_}", type_, type_, type_, type_)
        yield _elementwise(f"shr.{type_}", type_, type_, "u32")
    for type_ in ("s32", "u32", "s64", "u64"):
        yield _elementwise(f"bfe.{type_}", type_, type_, "u32", "u32")
        yield _elementwise(f"bfind.{type_}", "u32", type_)
    for type_ in ("s32", "s64"):
        yield _elementwise(f"abs.{type_}", type_, type_)
        yield _elementwise(f"neg.{type_}", type_, type_)
    for type_ in ("s16", "u16", "s32", "u32"):
        wide = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}[type_]
        yield _elementwise(f"mul.wide.{type_}", wide, type_, type_)
    for opcode in ("add.sat.s32", "sub.sat.s32", "mul24.lo.s32", "mul24.hi.s32"):
        yield _elementwise(opcode, "s32", "s32", "s32")
    for opcode in ("popc.b32", "clz.b32", "brev.b32", "not.b32", "cnot.b32"):
        yield _elementwise(opcode, "u32", "b32")
    for opcode in ("popc.b64", "clz.b64"):
        yield _elementwise(opcode, "u32", "b64")
    for mode in ("l.wrap", "l.clamp", "r.wrap", "r.clamp"):
        yield _elementwise(f"shf.{mode}.b32", "b32", "b32", "b32", "u32")
    yield _elementwise("shl.b32", "b32", "b32", "u32")
    yield _elementwise("shl.b64", "b64", "b64", "u32")
    yield _elementwise("bfi.b32", "b32", "b32", "b32", "u32", "u32")
    yield _elementwise("bfi.b64", "b64", "b64", "b64", "u32", "u32")
    yield _elementwise("prmt.b32", "b32", "b32", "b32", "u32")
    yield _elementwise("sad.u32", "u32", "u32", "u32", "u32")
    yield _elementwise("dp4a.s32.s32", "s32", "s32", "s32", "s32")
    yield _elementwise("dp4a.u32.s32", "s32", "u32", "s32", "s32")


def _floating_cases() -> Iterator[Case]:
    for type_ in ("f32", "f64"):
        for mode in ("rn", "rz", "rm", "rp"):
            for name in ("add", "sub", "mul", "div"):
                yield _elementwise(f"{name}.{mode}.{type_}", type_, type_, type_)
            yield _elementwise(f"fma.{mode}.{type_}", type_, type_, type_, type_)
            yield _elementwise(f"sqrt.{mode}.{type_}", type_, type_)
            yield _elementwise(f"rcp.{mode}.{type_}", type_, type_)
    for opcode in ("add.ftz.f32", "mul.ftz.f32", "add.sat.f32", "min.NaN.f32", "max.NaN.f32",
                   "min.ftz.f32", "copysign.f32"):
        yield _elementwise(opcode, "f32", "f32", "f32")
    for type_ in ("f16", "bf16", "f32", "f64"):
        for name in ("min", "max"):
            yield _elementwise(f"{name}.{type_}", type_, type_, type_)
        for name in ("abs", "neg"):
            yield _elementwise(f"{name}.{type_}", type_, type_)
    for type_ in ("f16", "bf16"):
        yield _elementwise(f"fma.rn.{type_}", type_, type_, type_, type_)
    for name in ("add", "mul", "sub"):
        yield _elementwise(f"{name}.rn.f16", "f16", "f16", "f16")
    # The maximum errors that the PTX ISA states.
    yield _elementwise("ex2.approx.ftz.f32", "f32", "f32", relative=2.0**-22)
    yield _elementwise("lg2.approx.ftz.f32", "f32", "f32", relative=2.0**-22, absolute=2.0**-22)
    yield _elementwise("rcp.approx.ftz.f32", "f32", "f32", relative=2.0**-23)
    yield _elementwise("rsqrt.approx.ftz.f32", "f32", "f32", relative=2.0**-22)
    yield _elementwise("sqrt.approx.ftz.f32", "f32", "f32", relative=2.0**-22)
    yield _elementwise("div.approx.ftz.f32", "f32", "f32", "f32", relative=2.0**-21)
    yield _elementwise("div.full.ftz.f32", "f32", "f32", "f32", relative=2.0**-21)
    yield _elementwise("tanh.approx.f32", "f32", "f32", relative=2.0**-11)
    yield _elementwise("rcp.approx.ftz.f64", "f64", "f64", relative=2.0**-19)
    yield _elementwise("rsqrt.approx.ftz.f64", "f64", "f64", relative=2.0**-19)


def _conversion_cases() -> Iterator[Case]:
    for source in ("f32", "f64", "f16"):
        for to in _INTEGER_TYPES:
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield _elementwise(f"cvt.{mode}.{to}.{source}", to, source)
    for source in ("s32", "u32", "s64", "u64"):
        for to in ("f32", "f64", "f16"):
            for mode in ("rn", "rz", "rm", "rp"):
                yield _elementwise(f"cvt.{mode}.{to}.{source}", to, source)
    for to, source in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")):
        for mode in ("rn", "rz"):
            yield _elementwise(f"cvt.{mode}.{to}.{source}", to, source)
    for opcode in ("cvt.rm.f32.f64", "cvt.rp.f32.f64"):
        yield _elementwise(opcode, "f32", "f64")
    for mode in ("rni", "rzi", "rmi", "rpi"):
        yield _elementwise(f"cvt.{mode}.f32.f32", "f32", "f32")
    for opcode in ("cvt.rn.bf16.f32", "cvt.rz.bf16.f32"):
        yield _elementwise(opcode, "bf16", "f32")
    for opcode in ("cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32", "cvt.rz.f16x2.f32",
                   "cvt.rn.relu.f16x2.f32"):
        yield _elementwise(opcode, "b32", "f32", "f32")
    for kind in ("e4m3x2", "e5m2x2"):
        yield _elementwise(f"cvt.rn.satfinite.{kind}.f32", "b16", "f32", "f32")
        yield _elementwise(f"cvt.rn.satfinite.relu.{kind}.f32", "b16", "f32", "f32")
        yield _elementwise(f"cvt.rn.satfinite.{kind}.f16x2", "b16", "b32")
        yield _elementwise(f"cvt.rn.f16x2.{kind}", "b32", "b16")
    yield _elementwise("cvt.rna.tf32.f32", "b32", "f32")
    yield _elementwise("cvt.sat.u8.s32", "u16", "s32")
    yield _elementwise("cvt.s32.s8", "s32", "s16")
    yield _elementwise("cvt.u32.u64", "u32", "u64")


def _warp_cases() -> Iterator[Case]:
    for mode in ("idx", "up", "down", "bfly"):
        yield _elementwise(f"shfl.sync.{mode}.b32", "b32", "b32", "u32", "u32")
    for name in ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"):
        yield _elementwise(f"redux.sync.{name}", "b32", "b32")
    yield _elementwise("match.any.sync.b32", "b32", "b32")


def _with_members(case: Case) -> Case:
    """A case of a warp instruction, whose member mask names all lanes."""
    line = next(line for line in case.text.splitlines() if line.startswith(case.name))
    return Case(case.name, case.text.replace(line, line.replace(";", ", -1;", 1)), case.threads,
                case.output, case.inputs)


_BOX_BYTES = 4096
_LOAD_BOX = """mov.u32 %r20, barrier; mov.u32 %r21, buffer; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; @%p1 fence.proxy.async.shared::cta; bar.sync 0;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 4096;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r21], [%rd2, {COLUMN, ROW}], [%r20];
    { .reg .pred q; L: mbarrier.try_wait.parity.shared::cta.b64 q, [%r20], 0; @q bra D; bra L; D: }
    mad.lo.u32 %r2, %r1, 16, %r21; mad.wide.u32 %rd9, %r1, 16, %rd1;
    ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2]; st.global.v4.b32 [%rd9], {%r3, %r4, %r5, %r6};"""


def _tensor_cases() -> Iterator[Case]:
    """Boxes of 4096 bytes as they lie in shared memory, inside the array and across its edges.

    They start at multiples of 16 bytes, on the innermost axis: others are illegal instructions.
    """
    random = np.random.default_rng(_SEED)
    for dtype, swizzle in ((np.float16, 128), (np.float16, 64), (np.float16, 32), (np.float16, 0),
                           (np.float32, 128), (np.uint8, 128)):
        width = (swizzle or 64) // np.dtype(dtype).itemsize
        box = (_BOX_BYTES // (swizzle or 64), width)
        array = random.integers(0, 100, (160, 256)).astype(dtype)
        aligned = 16 // np.dtype(dtype).itemsize
        for row, column in ((8, 16), (-3, -aligned), (150, 256 - aligned)):
            body = _LOAD_BOX.replace("ROW", str(row)).replace("COLUMN", str(column))
            text = module(body, 2, ".shared .align 1024 .b8 buffer[4096];\n"
                          ".shared .align 8 .b64 barrier;\n")
            text = text.replace(".param .u64 p1", ".param .align 64 .b8 p1[128]").replace(
                "ld.param.u64 %rd2, [p1];", "mov.b64 %rd2, p1; cvta.param.u64 %rd2, %rd2;")
            name = f"tensor copy {np.dtype(dtype)} swizzle {swizzle} at ({row}, {column})"
            yield Case(name, text, 256, np.zeros(_BOX_BYTES, np.uint8),
                       (TensorMap(array, box, swizzle),))


_WGMMAS = (
    *[Wgmma(16, "f16", "f16", (swizzle, swizzle)) for swizzle in (0, 32, 64, 128)],
    *[Wgmma(16, "bf16", "bf16", (swizzle, swizzle), transposed)
      for swizzle in (0, 32, 64, 128) for transposed in ((True, False), (False, True))],
    Wgmma(64, "tf32", "tf32"), Wgmma(32, "e4m3", "e5m2"), Wgmma(32, "s8", "u8", result="s32"),
    Wgmma(128, "bf16", "bf16"), Wgmma(8, "f16", "f16", signs="-1, 1"),
)


def _wgmma_cases() -> Iterator[Case]:
    for shape in SHAPES:
        kernel = Multiplication(*shape)
        yield Case(f"mma {' '.join(shape)}", kernel.text(), 32, kernel.output,
                   tuple(kernel.packed))
    for kernel in _WGMMAS:
        images = tuple([octets for octets, _, _ in kernel.images])
        name = (f"wgmma n{kernel.columns} {kernel.result} {kernel.left} {kernel.right} "
                f"{kernel.swizzles} {kernel.transposed} {kernel.signs}")
        yield Case(name, kernel.text(), 128, kernel.output, images)


@cache
def cases() -> tuple[Case, ...]:
    """All kernels that are recorded."""
    return (*_integer_cases(), *_floating_cases(), *_conversion_cases(),
            *map(_with_members, _warp_cases()), *_tensor_cases(), *_wgmma_cases())
