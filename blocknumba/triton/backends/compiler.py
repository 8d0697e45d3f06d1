"""`GPUTarget`: a target as Triton names it."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.errors import BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.wording import shown

CUDA, CPU = "cuda", "cpu"


@dataclass(frozen=True)
class GPUTarget:
    """A target.

    backend: "cuda", or "cpu" for the CPU device.
    arch: ten times the compute capability; 0 of the CPU device.
    warp_size: threads of a warp.
    """

    backend: str
    arch: int | str
    warp_size: int


def named(target: Target | None) -> GPUTarget:
    """A target by Triton's names; None is the CPU device."""
    if target is None:
        return GPUTarget(CPU, 0, 1)
    major, minor = target.compute_capability
    return GPUTarget(CUDA, 10 * major + minor, target.warp_size)


def target_named(given: object) -> Target | None:
    """The target of a GPUTarget, or of "cuda:90" and "sm_90a"; None is the CPU device.

    Errors: BlockValueError for what is not compiled for.
    """
    if isinstance(given, str) and given.count(":") >= 1:
        backend, arch, *_ = given.split(":")
        given = GPUTarget(backend, int(arch) if arch.isdigit() else arch, 32)
    if isinstance(given, Target):
        return given
    if isinstance(given, str):
        return Target.parse(given)
    backend, arch = getattr(given, "backend", None), getattr(given, "arch", None)
    require(backend in (CUDA, CPU), "compile: given the target {}, accepted GPUTarget(\"cuda\", "
            "90, 32) and the like", shown(given), error=BlockValueError)
    if backend == CPU:
        return None
    return Target.of_capability(divmod(int(arch), 10))
