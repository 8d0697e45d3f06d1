"""Compile kernels that take too much, in a process that may not: run by test_hostile_limits.py.

Reads a JSON list of (folder, target) from standard input; `folder/kernel.py` holds the kernel `k`.
Writes a line of JSON for each, as soon as it is known: the message of its error and its seconds.
"""

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import blocknumba as bn
from blocknumba.errors import BlockError

MAX_BYTES, MAX_SECONDS = 3 << 30, 60  # of all of them together


def outcome(folder: str, target: str) -> str:
    """The message of the error that a kernel ends in; empty when there is none."""
    spec = importlib.util.spec_from_file_location("kernel", Path(folder, "kernel.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        if target:
            bn.compile(module.k, "f32[::1], i32", target=target)
        else:
            module.k[1](np.zeros(8, np.float32), 5, interpret=True)
    except BlockError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    for case in json.load(sys.stdin):
        start = time.process_time()
        message = outcome(*case)
        print(json.dumps([message, time.process_time() - start]), flush=True)
