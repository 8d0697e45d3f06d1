"""Kernels in the text of the tile IR, with arrays to run them on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.text.parser import parse


@dataclass(frozen=True)
class Kernel:
    """A kernel of one program.

    arrays: shape and dtype of each array argument, in the order of the parameters.
    """

    text: str
    arrays: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    def function(self) -> Function:
        return parse(self.text)

    def make_arrays(self) -> dict[str, np.ndarray]:
        """Random floats from 0 to 1; integers are a permutation, so they can be indices."""
        numbers = np.random.default_rng(0)
        made = {}
        for name, (shape, dtype) in self.arrays.items():
            if np.dtype(dtype).kind == "i":
                made[name] = numbers.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)
            else:
                made[name] = numbers.random(shape, np.float32).astype(dtype)
        return made

    def scalars(self) -> dict[tuple[str, str, int], int]:
        """Extents and strides of the arrays, by (kind, argument, axis)."""
        found = {}
        for name, (shape, _) in self.arrays.items():
            stride = 1
            for axis in reversed(range(len(shape))):
                found["extent", name, axis] = shape[axis]
                found["stride", name, axis] = stride
                stride *= shape[axis]
        return found


ADD = Kernel(
    """
kernel add(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %y: ptr<float32> = pointer(y) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
  %n: int32 = extent(x, 0) {minimum=0}
) {
  %pid = program_id {axis=0} : int32
  %c = constant {value=1024} : int32
  %base = mul %pid, %c : int32
  %lanes = arange {start=0, size=1024} : tile<1024xint32>
  %b = splat %base : tile<1024xint32>
  %i = add %lanes, %b : tile<1024xint32>
  %nn = splat %n : tile<1024xint32>
  %m = lt %i, %nn : tile<1024xbool>
  %xs = splat %x : tile<1024xptr<float32>>
  %xp = offset %xs, %i : tile<1024xptr<float32>>
  %ys = splat %y : tile<1024xptr<float32>>
  %yp = offset %ys, %i : tile<1024xptr<float32>>
  %zs = splat %z : tile<1024xptr<float32>>
  %zp = offset %zs, %i : tile<1024xptr<float32>>
  %a = load %xp, %m : tile<1024xfloat32>
  %bb = load %yp, %m : tile<1024xfloat32>
  %s = add %a, %bb : tile<1024xfloat32>
  store %zp, %s, %m
  return
}
""",
    {
        "x": ((1000,), "float32"),
        "y": ((1000,), "float32"),
        "z": ((1000,), "float32"),
    },
)

SOFTMAX = Kernel(
    """
kernel softmax(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
  %n: int32 = extent(x, 1) {minimum=0}
  %stride: int32 = stride(x, 0) {divisibility=16}
) {
  %pid = program_id {axis=0} : int32
  %base = mul %pid, %stride : int32
  %xrow = offset %x, %base : ptr<float32>
  %zrow = offset %z, %base : ptr<float32>
  %i = arange {start=0, size=1024} : tile<1024xint32>
  %nn = splat %n : tile<1024xint32>
  %m = lt %i, %nn : tile<1024xbool>
  %xs = splat %xrow : tile<1024xptr<float32>>
  %xp = offset %xs, %i : tile<1024xptr<float32>>
  %ninf = constant {value=-inf} : float32
  %other = splat %ninf : tile<1024xfloat32>
  %a = load %xp, %m, %other : tile<1024xfloat32>
  %max = reduce %a {axis=0, kind="max"} : float32
  %maxs = splat %max : tile<1024xfloat32>
  %d = sub %a, %maxs : tile<1024xfloat32>
  %e = exp %d : tile<1024xfloat32>
  %sum = reduce %e {axis=0, kind="sum"} : float32
  %sums = splat %sum : tile<1024xfloat32>
  %r = div %e, %sums : tile<1024xfloat32>
  %zs = splat %zrow : tile<1024xptr<float32>>
  %zp = offset %zs, %i : tile<1024xptr<float32>>
  store %zp, %r, %m
  return
}
""",
    {
        "x": ((1, 1024), "float32"),
        "z": ((1, 1024), "float32"),
    },
)

SUBTRACT_ROW_MAXIMUM = Kernel(
    """
kernel softmax2d(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
  %s: int32 = stride(x, 0) {divisibility=16}
) {
  %r = arange {start=0, size=8} : tile<8xint32>
  %c = arange {start=0, size=256} : tile<256xint32>
  %r2 = reshape %r : tile<8x1xint32>
  %c2 = reshape %c : tile<1x256xint32>
  %ss = splat %s : tile<8x1xint32>
  %rs = mul %r2, %ss : tile<8x1xint32>
  %rb = broadcast %rs : tile<8x256xint32>
  %cb = broadcast %c2 : tile<8x256xint32>
  %i = add %rb, %cb : tile<8x256xint32>
  %xs = splat %x : tile<8x256xptr<float32>>
  %xp = offset %xs, %i : tile<8x256xptr<float32>>
  %a = load %xp : tile<8x256xfloat32>
  %m = reduce %a {axis=1, kind="max"} : tile<8xfloat32>
  %m2 = reshape %m : tile<8x1xfloat32>
  %mb = broadcast %m2 : tile<8x256xfloat32>
  %d = sub %a, %mb : tile<8x256xfloat32>
  %zs = splat %z : tile<8x256xptr<float32>>
  %zp = offset %zs, %i : tile<8x256xptr<float32>>
  store %zp, %d
  return
}
""",
    {
        "x": ((8, 256), "float32"),
        "z": ((8, 256), "float32"),
    },
)

TRANSPOSE = Kernel(
    """
kernel transpose(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
  %s: int32 = stride(x, 0) {divisibility=16}
) {
  %r = arange {start=0, size=64} : tile<64xint32>
  %r2 = reshape %r : tile<64x1xint32>
  %c2 = reshape %r : tile<1x64xint32>
  %ss = splat %s : tile<64x1xint32>
  %rs = mul %r2, %ss : tile<64x1xint32>
  %rb = broadcast %rs : tile<64x64xint32>
  %cb = broadcast %c2 : tile<64x64xint32>
  %i = add %rb, %cb : tile<64x64xint32>
  %xs = splat %x : tile<64x64xptr<float32>>
  %xp = offset %xs, %i : tile<64x64xptr<float32>>
  %a = load %xp : tile<64x64xfloat32>
  %t = transpose %a {axes=(1, 0)} : tile<64x64xfloat32>
  %zs = splat %z : tile<64x64xptr<float32>>
  %zp = offset %zs, %i : tile<64x64xptr<float32>>
  store %zp, %t
  return
}
""",
    {
        "x": ((64, 64), "float32"),
        "z": ((64, 64), "float32"),
    },
)

COLUMN_SUMS = Kernel(
    """
kernel colsum(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %b: ptr<float16> = pointer(b) {divisibility=16}
  %z: ptr<float16> = pointer(z) {divisibility=16}
  %s: int32 = stride(x, 0) {divisibility=16}
  %n: int32 = extent(x, 0) {minimum=0}
) {
  %r = arange {start=0, size=32} : tile<32xint32>
  %c = arange {start=0, size=64} : tile<64xint32>
  %r2 = reshape %r : tile<32x1xint32>
  %c2 = reshape %c : tile<1x64xint32>
  %ss = splat %s : tile<32x1xint32>
  %rs = mul %r2, %ss : tile<32x1xint32>
  %rb = broadcast %rs : tile<32x64xint32>
  %cb = broadcast %c2 : tile<32x64xint32>
  %i = add %rb, %cb : tile<32x64xint32>
  %xs = splat %x : tile<32x64xptr<float16>>
  %xp = offset %xs, %i : tile<32x64xptr<float16>>
  %zero = constant {value=0.0} : float32
  %c0 = constant {value=0} : int32
  %c32 = constant {value=32} : int32
  %acc0 = splat %zero : tile<64xfloat32>
  %bs = splat %b : tile<64xptr<float16>>
  %bp = offset %bs, %c : tile<64xptr<float16>>
  %bias = load %bp : tile<64xfloat16>
  %biasf = cast %bias {dtype="float32"} : tile<64xfloat32>
  %bias2 = reshape %biasf : tile<1x64xfloat32>
  %biasb = broadcast %bias2 : tile<32x64xfloat32>
  %acc = for %c0, %n, %c32, %acc0 : tile<64xfloat32> (%k: int32, %acc1: tile<64xfloat32>) {
    %row = mul %k, %s : int32
    %rowb = splat %row : tile<32x64xint32>
    %p = offset %xp, %rowb : tile<32x64xptr<float16>>
    %a = load %p : tile<32x64xfloat16>
    %af = cast %a {dtype="float32"} : tile<32x64xfloat32>
    %ab = add %af, %biasb : tile<32x64xfloat32>
    %sum = reduce %ab {axis=0, kind="sum"} : tile<64xfloat32>
    %acc2 = add %acc1, %sum : tile<64xfloat32>
    yield %acc2
  }
  %h = cast %acc {dtype="float16"} : tile<64xfloat16>
  %zs = splat %z : tile<64xptr<float16>>
  %zp = offset %zs, %c : tile<64xptr<float16>>
  store %zp, %h
  return
}
""",
    {
        "x": ((64, 64), "float16"),
        "b": ((64,), "float16"),
        "z": ((64,), "float16"),
    },
)

GATHER_AND_COUNT = Kernel(
    """
kernel misc(
  %x: ptr<int32> = pointer(x) {divisibility=16}
  %y: ptr<float32> = pointer(y) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
) {
  %i = arange {start=0, size=512} : tile<512xint32>
  %xs = splat %x : tile<512xptr<int32>>
  %xp = offset %xs, %i : tile<512xptr<int32>>
  %idx = load %xp : tile<512xint32>
  %ys = splat %y : tile<512xptr<float32>>
  %yp = offset %ys, %idx : tile<512xptr<float32>>
  %v = load %yp : tile<512xfloat32>
  %zs = splat %z : tile<512xptr<float32>>
  %zp = offset %zs, %i : tile<512xptr<float32>>
  store %zp, %v
  %old = atomic_rmw %zp, %v {kind="add"} : tile<512xfloat32>
  %am = arg_reduce %old {axis=0, kind="max"} : int32
  %p1 = offset %x, %am : ptr<int32>
  %one = constant {value=1} : int32
  %q = atomic_rmw %p1, %one {kind="add"} : int32
  %j = arange {start=0, size=16} : tile<16xint32>
  %qs = splat %q : tile<16xint32>
  %jj = add %j, %qs : tile<16xint32>
  %x3 = splat %x : tile<16xptr<int32>>
  %p3 = offset %x3, %jj : tile<16xptr<int32>>
  %old3 = atomic_rmw %p3, %jj {kind="max"} : tile<16xint32>
  store %p3, %old3
  return
}
""",
    {
        "x": ((512,), "int32"),
        "y": ((512,), "float32"),
        "z": ((512,), "float32"),
    },
)

WALK_ROWS = Kernel(
    """
kernel walk_rows(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
  %n: int32 = extent(x, 0) {minimum=0}
  %s: int32 = stride(x, 0) {divisibility=16}
) {
  %i = arange {start=0, size=256} : tile<256xint32>
  %xs = splat %x : tile<256xptr<float32>>
  %xp = offset %xs, %i : tile<256xptr<float32>>
  %step = splat %s : tile<256xint32>
  %c0 = constant {value=0} : int32
  %c1 = constant {value=1} : int32
  %p = for %c0, %n, %c1, %xp : tile<256xptr<float32>> (%k: int32, %q: tile<256xptr<float32>>) {
    %a = load %q : tile<256xfloat32>
    %sum = reduce %a {axis=0, kind="sum"} : float32
    %zp = offset %z, %k : ptr<float32>
    store %zp, %sum
    %next = offset %q, %step : tile<256xptr<float32>>
    yield %next
  }
  return
}
""",
    {
        "x": ((4, 256), "float32"),
        "z": ((4,), "float32"),
    },
)

REARRANGE = Kernel(
    """
kernel rearrange(
  %x: ptr<int32> = pointer(x) {divisibility=16}
  %y: ptr<int32> = pointer(y) {divisibility=16}
  %z: ptr<int32> = pointer(z) {divisibility=16}
) {
  %i = arange {start=0, size=1024} : tile<1024xint32>
  %xs = splat %x : tile<1024xptr<int32>>
  %xp = offset %xs, %i : tile<1024xptr<int32>>
  %a = load %xp : tile<1024xint32>
  %flipped = flip %a {axis=0} : tile<1024xint32>
  %pairs = join %flipped, %a : tile<1024x2xint32>
  %flat = reshape %pairs : tile<2048xint32>
  %upper = extract %flat {starts=(1024,), shape=(1024,)} : tile<1024xint32>
  %halves = reshape %upper : tile<512x2xint32>
  %left, %right = split %halves : tile<512xint32>, tile<512xint32>
  %grid = reshape %left : tile<16x32xint32>
  %turned = flip %grid {axis=1} : tile<16x32xint32>
  %best = arg_reduce %turned {axis=1, kind="max"} : tile<16xint32>
  %j = arange {start=0, size=512} : tile<512xint32>
  %ys = splat %y : tile<512xptr<int32>>
  %yp = offset %ys, %j : tile<512xptr<int32>>
  store %yp, %right
  %k = arange {start=0, size=16} : tile<16xint32>
  %zs = splat %z : tile<16xptr<int32>>
  %zp = offset %zs, %k : tile<16xptr<int32>>
  store %zp, %best
  return
}
""",
    {
        "x": ((1024,), "int32"),
        "y": ((512,), "int32"),
        "z": ((16,), "int32"),
    },
)

KERNELS = {
    "add": ADD,
    "softmax": SOFTMAX,
    "subtract_row_maximum": SUBTRACT_ROW_MAXIMUM,
    "transpose": TRANSPOSE,
    "column_sums": COLUMN_SUMS,
    "gather_and_count": GATHER_AND_COUNT,
    "walk_rows": WALK_ROWS,
    "rearrange": REARRANGE,
}
