"""Without Triton, `import triton` finds the folder tests/triton; here it finds nothing."""

import importlib.util
import sys

if (found := importlib.util.find_spec("triton")) is not None and found.origin is None:
    sys.modules["triton"] = None  # what Torch takes for absent
