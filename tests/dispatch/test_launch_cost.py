"""Cost of a launch without the driver: a number to look at, measured against the stub driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_host_time_of_launches_is_measured_on_the_stub(stub_folder, record_property):
    environment = os.environ | {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(stub_folder),
                                                         os.environ.get("LD_LIBRARY_PATH")])),
        "PYTHONPATH": str(ROOT), "STUB_DEVICES": "1", "BLOCKNUMBA_CACHE": "0"}

    done = subprocess.run([sys.executable, ROOT / "perf" / "launch_cost.py"], env=environment,
                          capture_output=True, text=True, check=True)

    cost_ns = json.loads(done.stdout)
    for passed in ("4 arguments", "4 arguments, bound", "4 arguments, other arrays each time"):
        record_property("measured", f"host time of a launch on the stub driver, {passed}: "
                                    f"{cost_ns[passed] / 1e3:.2f} us")
    # not a limit on time, which depends on the machine: one of what a call by cuda-bindings is
    assert cost_ns["4 arguments, bound"] < 3 * cost_ns["cuda-bindings"]
