"""Benchmarking, with Triton's interface; `assert_close`; `bn.evaluate`.

Example:
>>> "do_bench" in bn.testing.__all__
True
"""

from blocknumba.testing.benchmark import do_bench, do_bench_cudagraph
from blocknumba.testing.close import assert_close
from blocknumba.testing.report import Benchmark, Report, perf_report

__all__ = ["Benchmark", "Report", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]
