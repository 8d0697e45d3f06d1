"""Generated kernels in Triton's spelling under Triton and under us: dtypes and values.

    python perf/generated_kernels.py --count 100 --processes 8

Each kernel loads three tiles of random dtypes and computes a few expressions of them, of numbers,
arguments, constants and variables.  Every result is stored in its own dtype, with a number that
says which that is.  A kernel counts when Triton compiles it; its text is printed where it differs.
Needs Torch, Triton and a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from blocknumba.triton.loading import with_our_imports

SIZE = 64
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("int1", *INTEGERS, *FLOATS)
STATEMENTS = 4
TRIES = 40  # texts that Triton may refuse
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-11}
_WIDTHS = {"int1": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2,
           "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8,
           "float64": 8}
HEAD = """\
import triton
import triton.language as tl


@triton.jit
def code_of(value):
    result: tl.constexpr = ({codes})
    return result


@triton.jit
def within(value):
    if value.dtype.is_floating():  # beyond an integer's range a conversion has no meaning in Triton
        return tl.minimum(tl.abs(value), 100)
    else:
        return value


@triton.jit
def kept(out, codes, number: tl.constexpr, value, SIZE: tl.constexpr):
    tile = tl.broadcast_to(value, (SIZE,))
    typed = (out + number * SIZE).to(tl.pointer_type(tile.dtype), bitcast=True)
    tl.store(typed + tl.arange(0, SIZE), tile)
    tl.store(codes + number, code_of(tile))


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, out, codes, n, f, C: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b, c = tl.load(a_ptr + at), tl.load(b_ptr + at), tl.load(c_ptr + at)
    m = 3
    h = 0.5
"""


class Writer:
    """Texts of expressions, by a seed."""

    def __init__(self, seed: int):
        self._rng = random.Random(seed)
        self.dtypes = [self._rng.choice(DTYPES) for _ in range(3)]
        self.constant = self._rng.choice((3, 0.5, 300, -2, True))

    def text(self) -> str:
        """A module with the kernel."""
        codes = " + ".join(f"{number} * (value.dtype == tl.{name})"
                           for number, name in enumerate(DTYPES, 1))
        body = []
        for number in range(STATEMENTS):
            body.append(f"    r{number} = {self.expression(3)}")
            body.append(f"    kept(out, codes, {number}, r{number}, SIZE)")
        return HEAD.replace("{codes}", codes) + "\n".join(body) + "\n"

    def expression(self, depth: int) -> str:
        """An expression of any type."""
        if depth == 0 or self._rng.random() < 0.1:
            return self._leaf()
        made = self._rng.choice((self._binary, self._binary, self._binary, self._division,
                                 self._bits, self._choice, self._cast, self._extreme,
                                 self._reduction, self._unary, self._shift))
        return made(depth - 1)

    def _leaf(self) -> str:
        return self._rng.choice(("a", "a", "b", "b", "c", "c", "n", "f", "C", "m", "h", "2", "-3",
                                 "0.25", "1.5", "tl.program_id(0)", "at"))

    def _binary(self, depth: int) -> str:
        sign = self._rng.choice(("+", "-", "*"))
        return f"({self.expression(depth)} {sign} {self.expression(depth)})"

    def _division(self, depth: int) -> str:
        sign = self._rng.choice(("/", "//", "%"))
        by = self._rng.choice(("3", "C", "m", "n", "(b | 1)", "7", "tl.where(b == 0, 1, b)", "2.5"))
        return f"({self.expression(depth)} {sign} {by})"

    def _bits(self, depth: int) -> str:
        sign = self._rng.choice(("&", "|", "^", "<", "==", ">=", "!="))
        return f"({self.expression(depth)} {sign} {self.expression(depth)})"

    def _shift(self, depth: int) -> str:
        sign, by = self._rng.choice(("<<", ">>")), self._rng.choice(("1", "m", "(at & 3)", "5"))
        return f"({self.expression(depth)} {sign} {by})"

    def _choice(self, depth: int) -> str:
        return (f"tl.where({self.expression(depth)} > {self._leaf()}, {self.expression(depth)}, "
                f"{self.expression(depth)})")

    def _cast(self, depth: int) -> str:
        dtype = self._rng.choice((*INTEGERS, *FLOATS))
        value = f"({self.expression(depth)} + tl.zeros_like(at))"
        return f"{'within' if dtype in INTEGERS else ''}{value}.to(tl.{dtype})"

    def _extreme(self, depth: int) -> str:
        name = self._rng.choice(("maximum", "minimum"))
        return f"tl.{name}({self.expression(depth)}, {self.expression(depth)})"

    def _reduction(self, depth: int) -> str:
        name = self._rng.choice(("sum", "max", "min", "cumsum", "sum", "argmax", "sort", "flip"))
        axis = "" if name in ("sort", "flip") else ", 0"
        return f"tl.{name}(a + {self.expression(depth)}{axis})"

    def _unary(self, depth: int) -> str:
        made = self._rng.choice(("(-{})", "tl.abs({})", "(~{})", "tl.sqrt(tl.abs({}) + 0.5)",
                                 "tl.floor({})", "(not {})"))
        return made.replace("{}", self.expression(depth))


def loaded(text: str, ours: bool) -> object:
    """The kernel of a text."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
    module = importlib.util.module_from_spec(with_our_imports(spec) if ours else spec)
    spec.loader.exec_module(module)
    return module.kernel


def array(dtype: str, generator: torch.Generator) -> torch.Tensor:
    """A tile's numbers: small, so that integers stay within what is defined."""
    if dtype == "int1":
        return torch.randint(0, 2, (SIZE,), generator=generator).bool().cuda()
    low = 0 if dtype.startswith("u") else -90
    whole = torch.randint(low, 100, (SIZE,), generator=generator)
    if dtype in FLOATS:
        return (whole / 8).to(getattr(torch, dtype)).cuda()
    return whole.to(getattr(torch, dtype)).cuda()


def results(kernel: object, writer: Writer, seed: int) -> list[tuple[str, torch.Tensor]]:
    """The dtype and the values of each statement."""
    generator = torch.Generator().manual_seed(seed)
    arrays = [array(dtype, generator) for dtype in writer.dtypes]
    out = torch.full((STATEMENTS * SIZE,), -1, dtype=torch.int64, device="cuda")
    codes = torch.zeros(STATEMENTS, dtype=torch.int32, device="cuda")
    kernel[(1,)](*arrays, out, codes, 11, 0.75, C=writer.constant, SIZE=SIZE)
    torch.cuda.synchronize()
    found = []
    for number, code in enumerate(codes.tolist()):
        name = DTYPES[code - 1]
        raw = out[number * SIZE:(number + 1) * SIZE].view(torch.uint8)[:SIZE * _WIDTHS[name]]
        dtype = {"int1": torch.uint8}.get(name) or getattr(torch, name)
        found.append((name, raw.view(dtype)))
    return found


def checked(seed: int) -> Iterator[str]:
    """Differences of one kernel; nothing where it is equal."""
    for number in range(TRIES):
        writer = Writer(1000 * seed + number)
        text = writer.text()
        try:
            wanted = results(loaded(text, False), writer, seed)
            break
        except Exception:  # of Triton: this text is none of its language
            continue
    else:
        yield "no text that Triton takes"
        return
    try:
        found = results(loaded(text, True), writer, seed)
    except Exception as error:
        yield f"{type(error).__name__}: {error}\n{writer.dtypes}\n{text}"
        return
    for statement, ((ours, a), (theirs, b)) in enumerate(zip(found, wanted)):
        shown = f"r{statement}: {ours}, {theirs} in Triton"
        if ours != theirs:
            yield f"DTYPE {shown} {writer.dtypes}\n{text}"
        elif not agree(ours, a, b, bound(ours, writer, text)):
            at = int((a.double() != b.double()).nonzero()[0, 0])
            yield (f"VALUE {shown}: {a[at].item()}, {b[at].item()} at {at} {writer.dtypes} "
                   f"C={writer.constant}\n{text}")


def bound(dtype: str, writer: Writer, text: str) -> float:
    """The bound of a result: that of the least exact dtype that it may come through.

    Triton adds numbers of 16 bits in 16 bits, we in float32.
    """
    through = {dtype, *writer.dtypes} | {name for name in TOLERANCE if f".to(tl.{name})" in text}
    return max((TOLERANCE[name] for name in through if name in TOLERANCE), default=0)


def agree(dtype: str, a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    """Whether values are equal, floats within a bound."""
    if dtype not in TOLERANCE:
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    finite = b[b.isfinite()]
    scale = finite.square().mean().sqrt() if len(finite) else 0
    near = (a - b).abs() <= tolerance * (b.abs() + scale)
    return bool((near | (a == b) | (a.isnan() & b.isnan())).all())


def job(seed: int) -> list[str]:
    """The differences of a kernel, for a pool."""
    return list(checked(seed))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=8)
    given = parser.parse_args()
    kinds: Counter[str] = Counter()
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        seeds = range(given.seed * 10_000, given.seed * 10_000 + given.count)
        for seed, texts in zip(seeds, pool.map(job, seeds)):
            kinds["equal" if not texts else texts[0].split()[0]] += 1
            for text in texts:
                print(f"{seed}: {text}", flush=True)
    print(dict(kinds))
    return int(set(kinds) != {"equal"})


if __name__ == "__main__":
    sys.exit(main())
