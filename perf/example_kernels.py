"""The kernels of examples/, which are what perf/ measures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import attention  # noqa: E402
import heat  # noqa: E402
import layernorm  # noqa: E402
import matmul  # noqa: E402
import nearest  # noqa: E402
import softmax  # noqa: E402
import vector_add  # noqa: E402

__all__ = ["attention", "heat", "layernorm", "matmul", "nearest", "softmax", "vector_add"]
