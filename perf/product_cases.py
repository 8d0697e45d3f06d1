"""Products on the GPU by blocknumba and its peers: what takes turns, and how far off each is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from measure import Run, Samples, gpu_timer, interleaved
from product_rounding import Rounding, is_right

SUBJECT = "blocknumba"
SEED = 0
ROUNDS = 30
SAMPLE_SECONDS = 2e-3  # of one sample: long against the clock, short against drifting clocks
MOST_LAUNCHES = 40  # of one sample
WARM_UP = 3


@dataclass(frozen=True)
class Case:
    """One piece of work.

    operations: multiplications and additions.
    runs: who -> a function that queues the work and returns the tensor that the result will be in.
    reference: the result in float64, and what the terms of each element's sum add up to without
        their signs.
    rounding: what a right result is off.
    depth: terms of each element's sum; a tensor where elements have different numbers.
    """

    operations: int
    runs: Mapping[str, Callable[[], torch.Tensor]]
    reference: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    rounding: Rounding
    depth: int | torch.Tensor

    def errors(self) -> dict[str, dict[str, float]]:
        """Who -> how far off, against float64.

        of terms: the greatest |c - reference| / (|a| @ |b|).
        relative: |c - reference| / |reference|, norms of the whole matrices.
        mean, anywhere: times what is typical of the roundings, see Rounding.measure.
        """
        exact, terms = self.reference()
        found = {}
        for who, run in self.runs.items():
            torch.cuda.synchronize()
            off = (run().double() - exact).abs_()
            relative = (off.norm() / exact.norm()).item()
            times = self.rounding.measure(off, exact, terms, self.depth)
            found[who] = {"of terms": off.div_(terms).max().item(), "relative": relative, **times}
        return found

    def wrong(self, errors: dict[str, dict[str, float]]) -> list[str]:
        """Whose errors are too large, or NaN."""
        return [who for who, off in errors.items() if not is_right(off)]

    def samples(self) -> Samples:
        """Seconds of one run, of everybody in turn, in CUDA graphs: launches cost nothing there."""
        timer = gpu_timer()
        longest = max(timer(run, WARM_UP) for run in self.runs.values())
        count = max(1, min(round(SAMPLE_SECONDS / longest), MOST_LAUNCHES))
        graphs = {who: in_graph(run, count) for who, run in self.runs.items()}
        measured = interleaved(graphs, timer, ROUNDS, 1)
        return {who: [seconds / count for seconds in taken] for who, taken in measured.items()}


def in_graph(run: Run, count: int) -> Run:
    """What queues a CUDA graph of as many runs."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):  # libraries allocate the first time that they use a stream
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(count):
            run()
    return graph.replay


def giving(result: torch.Tensor, run: Run) -> Callable[[], torch.Tensor]:
    """run, returning result."""
    def run_and_give() -> torch.Tensor:
        run()
        return result
    return run_and_give


def poisoned(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor whose elements are all wrong: NaN, or the least integer."""
    wrong = float("nan") if dtype.is_floating_point else torch.iinfo(dtype).min
    return torch.full(shape, wrong, device="cuda", dtype=dtype)


def random_generator() -> torch.Generator:
    """The same numbers at every call."""
    return torch.Generator("cuda").manual_seed(SEED)
