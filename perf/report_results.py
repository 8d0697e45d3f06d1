"""The files of perf/results, read into one shape for the report: what was timed, and by whom."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
OURS, OWN_WARPS, BEST = "blocknumba", "own warps", "the best"
# bytes of an element of each operand and of the result, by the first word of a product's name
ELEMENT_BYTES = {"f16": (2, 2), "bf16": (2, 2), "fp8": (1, 2), "tf32": (4, 4), "tf32x3": (4, 4),
                 "f32": (4, 4), "int8": (1, 4), "f64": (8, 8)}
# bytes that attention of perf/attention_cases.py moves: q, k, v and the result, float16
ATTENTION_BYTES = 4 * 2 * 4 * 4096 * 2048
# floating-point operations of an element, and the bytes of one, of the row kernels
ROW_OPERATIONS = {"add": (1, {"f32": 12}), "softmax": (5, {"f32": 8, "f16": 4}),
                  "layernorm": (8, {"f32": 8, "f16": 4})}


@dataclass(frozen=True)
class Measured:
    """One case.

    seconds: of each side that was timed.  work: bytes or operations, what its rate is of.
    traffic, operations: bytes and operations of a roofline; 0 where they are not known.
    ratios: of peers' times to ours, where they were measured round by round.
    unfit: sides whose results were less exact than was allowed.  note: for a column of its own.
    """

    name: str
    seconds: dict[str, float]
    work: float = 0
    traffic: float = 0
    operations: float = 0
    ratios: Mapping[str, float] = field(default_factory=dict)
    unfit: frozenset[str] = frozenset()
    note: str = ""

    def ratio(self, peer: str, ours: str = OURS) -> float | None:
        """The peer's time by ours; None where either was not measured, or is not exact."""
        if not {peer, ours} <= self.seconds.keys() or {peer, ours} & self.unfit:
            return None
        if ours == OURS and peer in self.ratios:
            return self.ratios[peer]
        return self.seconds[peer] / self.seconds[ours]

    def rate(self, who: str, divisor: float) -> float | None:
        """Work in a second, in units of divisor."""
        return self.work / self.seconds[who] / divisor if who in self.seconds else None

    def us(self, who: str) -> float | None:
        """Microseconds of a side."""
        return 1e6 * self.seconds[who] if who in self.seconds else None


def mean(ratios: list[float], cap: float = math.inf) -> float:
    """Geometric mean of ratios, each at most cap."""
    return statistics.geometric_mean(min(r, cap) for r in ratios)


@cache
def read(file: str) -> dict:
    """A file of results."""
    return json.loads((RESULTS / file).read_text())


def about(file: str, part: str | None = None) -> str:
    """One sentence: on what the numbers of a file were measured, and when."""
    content = read(file)[part] if part else read(file)
    machine = content.get("machine", content)
    card = machine.get("card") or machine.get("device")
    versions = [f"{title} {machine[key].partition('+')[0]}" for title, key in (
        ("Torch", "torch"), ("Triton", "triton"), ("CuPy", "cupy-cuda13x"), ("CuPy", "cupy"),
        ("numba-cuda", "numba-cuda")) if key in machine]
    date = f", {machine['date']}" if "date" in machine else ""
    return f"{card}, {', '.join(versions)}{date} (`{file}`)."


def _seconds(us: dict[str, float]) -> dict[str, float]:
    return {who: 1e-6 * value for who, value in us.items()}


def memory_cases(file: str = "nvidia-h200.json") -> list[Measured]:
    """The row kernels and addition, in bytes."""
    found = []
    for name, result in read(file)["memory"]["results"].items():
        kernel, dtype = name.split()[:2]
        operations, bytes_of = ROW_OPERATIONS[kernel]
        found.append(Measured(name, _seconds(result["us"]), result["bytes"], result["bytes"],
                              operations * result["bytes"] / bytes_of[dtype]))
    return found


def product_cases(file: str = "nvidia-h200.json") -> list[Measured]:
    """Products and attention that were timed, in operations."""
    content = read(file)
    found = [Measured(name, _seconds(result["us"]), result["operations"], product_bytes(name),
                      result["operations"], result["ratios"])
             for name, result in content["matmul"]["results"].items() if "us" in result]
    return found + [
        Measured(f"attention {name}", _seconds(result["us"]), result["operations"],
                 ATTENTION_BYTES, result["operations"], result["ratios"])
        for name, result in content["attention"]["results"].items()]


def product_bytes(name: str) -> int:
    """Bytes of the operands and the result of a product, as the case is named.

    name: a kind of perf/matmul_cases.py, then `4096^3` or `M x N x K`.
    """
    cubic, shape = re.search(r" (\d+)\^3", name), re.search(r" (\d+) x (\d+) x (\d+)", name)
    M, N, K = (int(cubic[1]),) * 3 if cubic else map(int, shape.groups())
    operand, result = ELEMENT_BYTES[name.split()[0]]
    return operand * (M * K + K * N) + result * M * N


def kind_cases(file: str = "nvidia-h200-kinds.json") -> dict[str, list[Measured]]:
    """Kernels of many kinds by what bounds them, the slowest next to Triton first."""
    found: dict[str, list[Measured]] = {}
    for name, result in sorted(read(file)["results"].items()):
        sides = {OURS if who == "ours" else who: side for who, side in result["sides"].items()}
        found.setdefault(result["kind"], []).append(Measured(
            name.replace("_", " "),
            {who: 1e-6 * side["us"] for who, side in sides.items() if "us" in side},
            unfit=frozenset(who for who, side in sides.items() if not side.get("error", 2) <= 1)))
    return {bound: sorted(cases, key=lambda case: case.ratio("Triton") or math.inf)
            for bound, cases in sorted(found.items())}


def auto_cases(file: str = "nvidia-h200-auto.json") -> list[Measured]:
    """Kernels with the tiles that `bn.auto` chose, and with the best of a list."""
    return [Measured(name, {OURS: 1e-6 * result["us"]["bn.auto"],
                            BEST: 1e-6 * result["us"]["best of the list"]},
                     ratios={BEST: result["ratio"]},
                     note=f"`{result['chosen']}` of {result['configurations']}")
            for name, result in read(file)["cases"].items()]


def scan_cases() -> list[tuple[tuple[str, ...], list[Measured]]]:
    """Cumulative sums: of rows, and of whole arrays, each with its peers."""
    rows, whole = ([Measured(name, _seconds(result["us"]))
                    for name, result in read(file)["cases"].items()]
                   for file in ("nvidia-h200-scans.json", "nvidia-h200-array-scan.json"))
    return [(("Triton",), rows), (("CuPy", "CUB", "copy"), whole)]


def launch_times(file: str = "nvidia-h200.json") -> tuple[list[str], list[tuple[str, list]]]:
    """Names of those who launch, and microseconds by the number of arguments."""
    results = read(file)["launch, us"]["results"]
    names = list(dict.fromkeys(who for times in results.values() for who in times))
    return names, [(title, [times.get(who) for who in names]) for title, times in results.items()]


def cpu_cases() -> list[Measured]:
    """The CPU device next to NumPy and Numba; of some kernels the ratios alone were kept."""
    found = []
    for file in ("cpu-xeon-kernels.json", "cpu-xeon-user.json"):
        for name, result in read(file).items():
            ratios = {title: statistics.median(result["ratios"][key])
                      for title, key in (("NumPy", "numpy"), ("Numba", "numba"))}
            ours = 1e-3 * statistics.median(result.get("ms", {}).get("ours", [math.nan]))
            times = {OURS: ours} | {peer: ours * r for peer, r in ratios.items()}
            found.append(Measured(name, times, ratios=ratios))
    return found
