"""Generated kernels with control flow, in Triton's spelling, under Triton and under us.

    python perf/generated_programs.py --count 200 [--seed 0] [--on cpu|interpreter|emulator]
    python perf/generated_programs.py --count 200 --on cuda --processes 10

Each kernel is a row of statements, nested to a depth of two: loops, branches, pointers that a loop
carries, block pointers, descriptors, reductions and scans by functions, masked atomics, casts,
products.  All numbers are whole and small, so that floats are exact in any order, and every
difference counts.  Needs Torch and Triton.  On a GPU Triton compiles them; elsewhere it interprets
them, for which Triton 3.6 needs NumPy below 2.4.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
import tempfile
import textwrap
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

if "cuda" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402

from blocknumba.triton.loading import with_our_imports  # noqa: E402

SIZE, ROWS = 32, 6
HEAD = """\
import triton
import triton.language as tl


@triton.jit
def added(a, b):
    return a + b


@triton.jit
def mixed(a, b):
    return (a ^ b) + (a & b)


@triton.jit
def greater(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def first_greatest(a, i, b, j):
    better = (a > b) | ((a == b) & (i < j))
    return tl.where(better, a, b), tl.where(better, i, j)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def halves(x, KIND: tl.constexpr):
    if KIND == 0:
        return x, x + 1
    elif KIND == 1:
        return x - 1, x * 2
    return x + 2, x


@triton.jit
def scaled(x, BY: tl.constexpr = 3, MORE: tl.constexpr = 1):
    for k in tl.static_range(MORE):
        x = x * BY + k
    return x


@triton.jit
def chosen(x, y, c):
    if c > 3:
        return x + c
    return y


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, counts, sums, out, n, m, FLAG: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    pid = tl.program_id(0)
    u = tl.load(x_ptr + at) + pid
    v = tl.load(y_ptr + at)
    s = tl.load(x_ptr + 3)
    t = tl.load(y_ptr + 5)
"""
TAIL = """
    tl.store(out + pid * 4 * SIZE + at, u.to(tl.int64))
    tl.store(out + pid * 4 * SIZE + SIZE + at, v.to(tl.int64))
    tl.store(out + pid * 4 * SIZE + 2 * SIZE + at, tl.zeros_like(at).to(tl.int64) + s)
    tl.store(out + pid * 4 * SIZE + 3 * SIZE + at, tl.zeros_like(at).to(tl.int64) + t.to(tl.int32))
"""
# what keeps floats whole and small, and scalars of one dtype
KEPT = """\
u = (u & 0xFFFF).to(tl.int32) - 300
v = tl.minimum(tl.maximum(v.to(tl.float32), -40.0), 40.0)
s = (s & 1023).to(tl.int32)
t = tl.minimum(tl.maximum(t.to(tl.float32), -40.0), 40.0)
"""
PLAIN = (
    "u += tl.load(x_ptr + {row} * SIZE + at, mask=at < {edge}, other={small})",
    "v += tl.load(y_ptr + {row} * SIZE + at, mask=(at + {small}) % 3 == {mod}, other={float})",
    "u = u + tl.load(z_ptr + {row} * SIZE + at)",
    "u = (u.to(tl.{narrow}) * tl.load(z_ptr + at)).to(tl.int32)",
    "u = u.to(tl.{narrow}).to(tl.{other}).to(tl.int32)",
    "v = tl.minimum(tl.maximum(v, -8.0), 8.0).to(tl.{float8}).to(tl.float32) + t",
    "v = v.to(tl.{half}) * {float} - v",
    "v = u.to(tl.{narrow}).to(tl.float32) + t",
    "s += tl.reduce(u, 0, {reducer})",
    "t += tl.reduce(v, 0, {float_reducer})",
    "u = tl.associative_scan(u, 0, {reducer}, reverse={truth})",
    "best, place = tl.reduce((u, at), 0, first_greatest)\ns += place\nu -= best & 15",
    "p, q = tl.associative_scan((u & 3, u), 0, affine, reverse={truth})\nu = q - p",
    "u = tl.cumsum(u, 0, reverse={truth}) + tl.{extreme}(u, 0)",
    "v = tl.cumsum(v, 0) - tl.sum(v)",
    "s += tl.{arg}(u & 7, 0, tie_break_left=True)",
    "u = tl.where(u {compare} at * {small}, u // {divisor}, -u % {divisor})",
    "u = tl.where((u > 0) {both} (at {compare} {edge}), u, at - u)",
    "s = s // {divisor} + (-s) % {divisor} + m",
    "s = tl.cdiv(s, {divisor}) + min(s, n) * max(m, {small})",
    "u = tl.sum(tl.reshape(u, (4, SIZE // 4)), axis={axis_of_2}, keep_dims=True) + "
    "tl.reshape(u, (4, SIZE // 4))\nu = tl.reshape(tl.trans(u), (SIZE,))",
    "g, h = tl.split(tl.reshape(u, (SIZE // 2, 2)))\nu = tl.interleave(h, g + {small})",
    "u = tl.reshape(tl.join(u, at)[None, :, :], (2, SIZE))\nu = tl.sum(u, 0) ^ at",
    "u = tl.flip(u, 0) + tl.sort(u & 31)",
    "u = tl.gather(u, (at * {odd} + {small}) % SIZE, 0)",
    "u += tl.histogram(u & 15, 32)",
    "g, h = halves(u, FLAG)\nu = g ^ h",
    "g, h = halves(s, {mod})\ns = g + h\nt = t - s % 3",
    "tl.atomic_add(counts + (u & 7), at + {small}, mask=(u & {edge}) == {mod})",
    "tl.atomic_{atomic}(counts + 8 + (at & 7), u, mask=at {compare} {edge})",
    "u += tl.atomic_xchg(counts + 64 + pid * SIZE + at, u, mask=at >= {edge}) * (at >= {edge})",
    "s += tl.atomic_cas(counts + 16 + pid, 0, {small})",
    "tl.store(counts + 192 + pid * SIZE + at, u, mask=at % {divisor} == {mod})",
    "w = tl.load(y_ptr + at[:, None] % ROWS * SIZE + at[None, :]).to(tl.{half})\n"
    "v += tl.sum(tl.dot(w, tl.trans(w)), {axis_of_2})",
    "w = tl.load(z_ptr + at[:, None] % ROWS * SIZE + at[None, :])\n"
    "u += tl.sum(tl.dot(w, tl.trans(w)), {axis_of_2})",
    "box = tl.make_block_ptr(x_ptr, (ROWS, SIZE), (SIZE, 1), ({row}, {small}), (4, SIZE), "
    "(1, 0))\nu += tl.sum(tl.load(box, boundary_check=(0, 1), padding_option='zero'), 0)",
    "box = tl.make_tensor_descriptor(y_ptr, [ROWS, SIZE], [SIZE, 1], [4, 16])\n"
    "v += tl.sum(tl.reshape(box.load([{row}, {small} * 4]), (2, SIZE)), 0)",
    "u = tl.where(at == {edge}, s, u) + (x_ptr.dtype.element_ty == tl.int32)",
    "u = u << ({small} & 3) >> 1 | at",
    "v = tl.where(v == v, tl.abs(v), {float}) - tl.floor(t)",
    "u = u ^ tl.full((SIZE,), {small}, tl.{narrow})",
    "u = tl.maximum(u, tl.minimum(at * m, {edge})) - tl.load(x_ptr + s % SIZE)",
    "u, s = u + s, s + {small}",
    "u = tl.clamp(v, -{small} * 1.0, 8.0).to(tl.int32) - u",
    "u = scaled(u) - scaled(u, {step}, MORE={step2})\ns = scaled(s, BY={small})",
    "u = chosen(u, at, s)\ns = chosen(s, {small}, {row})",
    "g = (u, (s, v))\nu = g[0] + g[1][0]\nv = g[1][1] - t",
    "u = (u.to(tl.uint32) // {divisor}).to(tl.int32) - (u.to(tl.{narrow}) >> {step}).to(tl.int32)",
    "u = (u.to(tl.{narrow}) {sum} at.to(tl.{narrow})).to(tl.int32)",
    "u = tl.where(u.to(tl.{narrow}) {compare} at.to(tl.{narrow}), u, s)",
    "u = tl.{larger}(u.to(tl.{narrow}), at.to(tl.{narrow})).to(tl.int32)",
    "s += tl.{extreme}(u.to(tl.{narrow}), 0).to(tl.int32)",
    "v = (v.to(tl.float16) + t.to(tl.float16)).to(tl.float32) - "
    "tl.sum(v.to(tl.bfloat16).to(tl.float16), 0)",
    "s = s + {small} if s > {edge} else s - n\nt = -t if t > {float} else t + 1.0",
    "tl.atomic_add(sums + (u & 7), v, mask=at {compare} {edge})",
    # of what is not negative: interpreted, minima of negative floats are wrong, as sums of
    # bfloat16 are
    "tl.atomic_{larger3}(sums + 8 + (at & 7), tl.abs(v), mask=(u & 3) != {mod})",
    "w = tl.load(z_ptr + at[:, None] % ROWS * SIZE + at[None, :])\n"
    "u += tl.{arg}(w, {axis_of_2}) + tl.{larger3}(w, {axis_of_2}, keep_dims=True).reshape(SIZE)",
    "w = tl.load(x_ptr + at[:, None] % ROWS * SIZE + at[None, :])\n"
    "w = tl.associative_scan(w & 7, {axis_of_2}, {reducer}, reverse={truth})\n"
    "u ^= tl.sum(w, {axis_of_2})",
    "box = tl.make_tensor_descriptor(counts + 192, [8, 16], [16, 1], [2, 16])\n"
    "if pid == 0:\n    box.store([{mod} * 2, {small} * 4], tl.reshape(u, (2, 16)))",
    "box = tl.make_block_ptr(counts + 192 + pid * SIZE, (SIZE,), (1,), ({small},), (SIZE,), (0,))\n"
    "tl.store(box, u, boundary_check=(0,))",
)
BLOCKS = (  # each counter has a name of its own: after its loop Triton leaves it undefined
    "for i{new} in range({mod}, {count}):\n{body}\n    u += i{new}",
    "for i{new} in range(n, {mod}, -{step}):\n{body}\n    s += i{new}",
    "for i{new} in tl.range(0, m, {step}, num_stages={step}):\n{body}",
    "for i{new} in tl.static_range({step}):\n{body}\n    u = u * 3 + i{new}",
    "p{new} = x_ptr + at\nfor i{new} in range({count}):\n    u = u + tl.load(p{new})\n{body}\n"
    "    p{new} += SIZE",
    "b{new} = tl.make_block_ptr(x_ptr, (ROWS, SIZE), (SIZE, 1), (0, 0), ({step2}, SIZE), (1, 0))\n"
    "for i{new} in range(0, ROWS, {step2}):\n"
    "    u += tl.sum(tl.load(b{new}, boundary_check=(0,)), 0)\n"
    "{body}\n    b{new} = tl.advance(b{new}, ({step2}, 0))",
    "k{new} = {count} * 1\nwhile k{new} > {mod}:\n{body}\n    k{new} = k{new} - {step}",
    "while s < {edge} * 4:\n    s = s * 2 + 1\n    u -= s",
    "if s % {divisor} == {mod}:\n{body}\nelse:\n{body2}",
    "if (s > {edge}) and (n > m):\n{body}\nelif t > {float}:\n{body2}",
    "if FLAG == {mod}:\n{body}\nelse:\n{body2}",
    "if tl.sum(u & 1) > {small} or not (pid == 0):\n{body}",
    "if tl.max(v, 0) > {float}:\n    v = v - 1\n{body}",
    "if s > {edge}:\n    p{new} = x_ptr + at\n{body}\nelse:\n"
    "    p{new} = x_ptr + {row} * SIZE + at\nu = u + tl.load(p{new}, mask=at >= {edge}, other=s)",
    "k{new} = {count} * 1\nwhile (k{new} > 0) & (s < 700):\n{body}\n"
    "    k{new} -= 1\n    s += k{new}",
    "for i{new} in tl.static_range({step}, 0, -1):\n    if i{new} == {mod}:\n"
    "        u = scaled(u, i{new})\n{body}",
)

# what stands in the place of a name, in all its places of one statement
CHOICES = {
    # interpreted, `and` is that of Python
    "both": ("and", "or", "&") if "cuda" in sys.argv else ("&", "|"),
    "row": (0, 1, 2, "m", "(s % 4)", "pid"), "edge": (0, 5, 17, 31, "n", "m"), "mod": (0, 1, 2),
    "small": range(1, 10), "step": (1, 2, 3), "step2": (2, 4), "count": (3, 4, "m", "n"),
    "divisor": (2, 3, 5, 7), "odd": (1, 3, 5, 7), "axis_of_2": (0, 1), "truth": (True, False),
    "float": ("1.0", "2.0", "-3.0", "t"), "half": ("float16", "float32"),
    "narrow": ("int8", "uint8", "int16", "uint16", "int64"),
    "other": ("int8", "uint8", "int16", "uint32", "float32"), "float8": ("float8e5", "float8e4nv"),
    "sum": ("+", "-", "*", "&", "|", "^"), "larger": ("maximum", "minimum"),
    "larger3": ("max", "min"),
    "reducer": ("added", "mixed", "greater"), "float_reducer": ("added", "greater"),
    "extreme": ("max", "min", "sum", "xor_sum"), "arg": ("argmax", "argmin"),
    "compare": ("<", ">", "==", ">=", "!="), "atomic": ("max", "min", "and", "or", "xor"),
}


class Writer:
    """Texts of kernels, by a seed."""

    def __init__(self, seed: int):
        self._rng, self._number = random.Random(seed), 0
        self.flag = self._rng.randrange(3)

    def text(self) -> str:
        """A module with the kernel."""
        body = KEPT + "\n".join(self._statement(2) for _ in range(self._rng.randint(3, 6)))
        return (HEAD + textwrap.indent(body, "    ") + TAIL).replace("ROWS", str(ROWS))

    def _statement(self, depth: int) -> str:
        if depth and self._rng.random() < 0.4:
            form = self._rng.choice(BLOCKS)
            inner = {name: textwrap.indent(self._statement(depth - 1), "    ")
                     for name in ("body", "body2")}
            return self._filled(form, inner) + "\n" + KEPT.rstrip()
        return self._filled(self._rng.choice(PLAIN), {}) + "\n" + KEPT.rstrip()

    def _filled(self, form: str, inner: dict[str, str]) -> str:
        self._number += 1
        chosen = {name: self._rng.choice(values) for name, values in CHOICES.items()}
        return form.format(**chosen, **inner, new=self._number)


def loaded(text: str, ours: bool) -> object:
    """The kernel of a text."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
    module = importlib.util.module_from_spec(with_our_imports(spec) if ours else spec)
    spec.loader.exec_module(module)
    return module.kernel


def results(launch: object, seed: int, flag: int, device: str) -> list[np.ndarray]:
    """What a kernel stores and counts.   launch: (grid, arguments, constants)."""
    rng = np.random.default_rng(seed)
    shape = 16 * SIZE
    arrays = [rng.integers(-90, 100, shape).astype(np.int32),
              rng.integers(-8, 9, shape).astype(np.float32),
              rng.integers(-8, 9, shape).astype(np.int8),
              np.zeros(192 + 4 * SIZE, np.int32), np.zeros(16, np.float32),
              np.full(2 * 4 * SIZE, -77, np.int64)]
    tensors = [torch.from_numpy(array).to(device) for array in arrays]
    launch((2,), (*tensors, 11, 3), {"FLAG": flag, "SIZE": SIZE})
    return [tensor.cpu().numpy() for tensor in tensors[3:]]


def launcher(kernel: object, on: str) -> object:
    """A function that launches one of our kernels on an executor."""
    if on == "emulator":
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
        emulated_gpu = importlib.import_module("emulated_gpu")
        return lambda grid, tensors, constants: emulated_gpu.launch(
            kernel, grid, tuple(one.numpy() if isinstance(one, torch.Tensor) else one
                                for one in tensors), constants, "sm_90a")
    options = {"interpreter": {"interpret": True}, "cpu": {"device": "cpu"}, "cuda": {}}[on]
    return lambda grid, tensors, constants: kernel[grid](*tensors, **constants, **options)


def differ(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    """Whether two launches left other numbers."""
    return not all(map(np.array_equal, some, others))


def checked(seed: int, on: str) -> tuple[str, str]:
    """"equal", "refused" or "unstable" in Triton, "error" or "differs", and what differs."""
    writer = Writer(seed)
    text = writer.text()
    theirs, device = loaded(text, False), "cuda" if on == "cuda" else "cpu"
    if on == "cuda":  # for the descriptors that Triton makes on the device
        triton.set_allocator(lambda size, alignment, stream: torch.empty(
            size, dtype=torch.int8, device=device))

    def of_triton(**options) -> list[np.ndarray]:
        return results(lambda grid, tensors, constants: theirs[grid](
            *tensors, **constants, **options), seed, writer.flag, device)

    try:
        with np.errstate(all="ignore"):
            wanted = of_triton()
    except Exception as error:  # of Triton: this text is none of its language
        return "refused", f"{type(error).__name__}: {error}"[:300]
    try:
        found = results(launcher(loaded(text, True), on), seed, writer.flag, device)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}\n{text}"
    for name, one, other in zip(("counts", "sums", "out"), found, wanted):
        if not np.array_equal(one, other):
            at = int(np.flatnonzero(one != other)[0])
            what = f"{name}[{at}]: {one[at]}, {other[at]} in Triton"
            if on == "cuda":
                again = {warps: of_triton(num_warps=warps) for warps in (1, 2, 8)}
                if any(map(differ, again.values(), repeat(wanted))):
                    ours_too = [warps for warps in again if not differ(again[warps], found)]
                    return "unstable", f"{what}; equal to ours with {ours_too} warps"
            return "differs", f"{what}\n{text}"
    return "equal", ""


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--on", choices=("cpu", "interpreter", "emulator", "cuda"), default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    kinds: Counter[str] = Counter()
    seeds = range(given.seed, given.seed + given.count)
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for seed, (kind, what) in zip(seeds, pool.map(partial(checked, on=given.on), seeds)):
            kinds[kind] += 1
            if what:
                print(f"{seed}: {kind}: {what}", flush=True)
    print(dict(kinds))
    return int(bool(kinds["error"] or kinds["differs"]))


if __name__ == "__main__":
    sys.exit(main())
