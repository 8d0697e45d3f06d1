"""Benchmarking, with Triton's interface.

Example:
>>> sorted(bn.testing.__all__)
['Benchmark', 'Report', 'do_bench', 'do_bench_cudagraph', 'perf_report']
"""

from blocknumba.testing.benchmark import do_bench, do_bench_cudagraph
from blocknumba.testing.report import Benchmark, Report, perf_report

__all__ = ["Benchmark", "Report", "do_bench", "do_bench_cudagraph", "perf_report"]
