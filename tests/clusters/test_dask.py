"""Kernels on the chunks of Dask arrays: in threads, in processes, in workers of a local cluster."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError

da = pytest.importorskip("dask.array", reason="Dask is not installed: `.ci/more dask` has it")
distributed = pytest.importorskip("distributed", reason="as above")

import dask_spread  # noqa: E402

SHAPE, CHUNKS = (130, 210), (50, 70)


@pytest.fixture(scope="module")
def client():
    """Of two worker processes with one thread each."""
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                   dashboard_address=None) as cluster,
          distributed.Client(cluster) as client):
        yield client


@pytest.fixture
def x():
    return np.random.default_rng().standard_normal(SHAPE).astype(np.float32)


@bn.autotune([bn.Config({"B": 64}), bn.Config({"B": 256})])
@bn.jit
def doubled(x, out, B: bn.constexpr):
    i, r = bn.program_id(0), bn.block(1, B)
    out[i, r] = x[i, r] * 2


def doubled_chunk(chunk):
    out = np.full_like(chunk, np.nan)
    doubled[lambda a: (chunk.shape[0], bn.cdiv(chunk.shape[1], a["B"]))](chunk, out)
    return out


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_chunks_on_one_machine(x, scheduler):
    chunks = da.from_array(x, chunks=CHUNKS)
    dask_spread.check(dask_spread.spread(chunks).compute(scheduler=scheduler), x)


def test_chunks_in_worker_processes(client, x):
    dask_spread.check(dask_spread.spread(da.from_array(x, chunks=CHUNKS)).compute(), x)


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_a_tuned_kernel_goes_to_workers(client, x, dtype):
    x = (x * 100).astype(dtype)
    found = da.from_array(x, chunks=CHUNKS).map_blocks(doubled_chunk).compute()

    np.testing.assert_array_equal(found, x * 2)


def test_a_kernel_that_has_no_name_elsewhere_goes_to_workers(client, x):
    @bn.jit
    def shifted(x, out, by, B: bn.constexpr):
        i, r = bn.program_id(0), bn.block(1, B)
        out[i, r] = x[i, r] + by

    def chunk(block):
        out = np.full_like(block, np.nan)
        shifted[block.shape[0], bn.cdiv(block.shape[1], 64)](block, out, 3, B=64)
        return out

    found = da.from_array(x, chunks=CHUNKS).map_blocks(chunk, dtype=x.dtype).compute()
    np.testing.assert_array_equal(found, x + 3)


def test_an_error_of_a_worker_shows_the_line(client, x):
    @bn.jit
    def wrong(x):
        x[bn.span(0, 16)] = "text"

    def chunk(block):
        wrong[1](block[0].copy())

    with pytest.raises(BlockTypeError, match=r"(?s)given 'text'.*test_dask.py, line \d+, in wrong"):
        da.from_array(x, chunks=CHUNKS).map_blocks(chunk, dtype=x.dtype).compute()


def test_the_example_as_a_script():
    """Its kernel is of __main__, which workers import under another name."""
    example = Path(dask_spread.__file__)
    found = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    assert "2 workers: equal to NumPy" in found.stdout
