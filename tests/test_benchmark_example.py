"""The example of pytest-benchmark in docs/tuning.md runs, and times a kernel beside NumPy."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_documented_benchmark_times_the_kernel_and_numpy(tmp_path):
    (example,) = re.findall(r"^```py\n(.*?)^```$", (ROOT / "docs" / "tuning.md").read_text(),
                            re.MULTILINE | re.DOTALL)
    (tmp_path / "test_scale.py").write_text(example)

    # where these tests are shared among processes, the benchmarks of the other run are not
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("PYTEST_XDIST")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path,
         "--benchmark-max-time=0.02", "--benchmark-min-rounds=2", "test_scale.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert {"test_scale[by_kernel]", "test_scale[by_numpy]"} <= set(done.stdout.split())
