"""The kernels of examples/, which are what perf/ measures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import layernorm  # noqa: E402
import softmax  # noqa: E402
import vector_add  # noqa: E402

__all__ = ["layernorm", "softmax", "vector_add"]
