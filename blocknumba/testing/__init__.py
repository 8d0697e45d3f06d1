"""Benchmarking, with Triton's interface; `bn.evaluate`.

Example:
>>> "do_bench" in bn.testing.__all__
True
"""

from blocknumba.testing.benchmark import do_bench, do_bench_cudagraph
from blocknumba.testing.report import Benchmark, Report, perf_report

__all__ = ["Benchmark", "Report", "do_bench", "do_bench_cudagraph", "perf_report"]
