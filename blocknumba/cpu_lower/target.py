"""Targets of the CPU lowering: a processor, and the width of its vectors."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from llvmlite import binding

from blocknumba.cpu_lower.micro_kernel import AVX2, AVX512, NEON, SSE2, VectorUnit

UNITS = (AVX512, AVX2, NEON)  # the widest first


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A processor.

    triple: LLVM's name of architecture and system; processor, features: LLVM's names.
    vector_unit: its vector registers.
    """

    triple: str
    processor: str
    features: str
    vector_unit: VectorUnit

    @property
    def vector_bytes(self) -> int:
        """The size of a vector register."""
        return self.vector_unit.bits // 8

    def __str__(self) -> str:
        return f"{self.processor} ({self.vector_unit.name}, {self.triple.partition('-')[0]})"

    def lanes(self, element_bytes: int) -> int:
        """Number of elements that a vector holds."""
        return max(1, self.vector_bytes // element_bytes)

    @property
    def attributes(self) -> str:
        """The attributes of functions."""
        return f'nounwind "prefer-vector-width"="{self.vector_bytes * 8}"'

    @staticmethod
    def of(triple: str, processor: str, features: str) -> CpuTarget:
        """The target of a processor with some features, spelled "+avx2,+fma"."""
        names = {name[1:] for name in features.split(",") if name.startswith("+")}
        if triple.startswith("aarch64"):
            names.add("neon")
        unit = next((unit for unit in UNITS if unit.name in names), SSE2)
        return CpuTarget(triple, processor, features, unit)


@functools.cache
def host() -> CpuTarget:
    """This machine."""
    return CpuTarget.of(binding.get_process_triple(), binding.get_host_cpu_name(),
                        binding.get_host_cpu_features().flatten())
