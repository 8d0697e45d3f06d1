"""Targets: capabilities and limits of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from blocknumba.errors import BlockValueError, require
from blocknumba.wording import did_you_mean, shown


class Capability(StrEnum):
    """A feature that only some targets have; the comments name the PTX that needs it.

    Source: "Target ISA Notes" of the instruction in the PTX ISA manual, version 9.0.
    """

    CP_ASYNC = "cp_async"  # cp.async: global to shared without registers; sm_80
    MMA = "mma"  # mma.sync m16n8k16 and ldmatrix; sm_80
    REDUX = "redux"  # redux.sync of 32-bit integers; sm_80
    CACHE_POLICY = "cache_policy"  # createpolicy, .L2::cache_hint; sm_80
    FP8_CONVERT = "fp8_convert"  # cvt to and from e4m3x2 and e5m2x2; sm_89
    FP8_MMA = "fp8_mma"  # mma.sync of e4m3 and e5m2; sm_89
    ATOM_BF16 = "atom_bf16"  # atom.add.noftz.bf16; sm_90
    ATOM_128 = "atom_128"  # atom.exch and atom.cas of b128; sm_90
    ATOM_VECTOR = "atom_vector"  # red.global.add.v2.f32 and its like; sm_90
    FLOAT64_MMA = "float64_mma"  # mma.sync m16n8k4 to m16n8k16 of f64; sm_90
    TF32_CONVERT = "tf32_convert"  # cvt.rn.tf32.f32; sm_90
    STMATRIX = "stmatrix"  # registers of an mma fragment to shared; sm_90
    MBARRIER = "mbarrier"  # mbarrier.try_wait, transaction counts; sm_90
    CLUSTER = "cluster"  # barrier.cluster, mapa, distributed shared memory; sm_90
    TMA = "tma"  # cp.async.bulk, tensor maps; sm_90
    ELECT = "elect"  # elect.sync; sm_90
    LAUNCH_DEPENDENTS = "launch_dependents"  # griddepcontrol; sm_90
    WGMMA = "wgmma"  # wgmma.mma_async; sm_90a only
    MULTICAST = "multicast"  # tensor copies to all blocks of a cluster; slow beyond sm_90a, sm_100a
    SET_MAX_REGISTERS = "set_max_registers"  # setmaxnreg; sm_90a, sm_100a
    TENSOR_MAP_REPLACE = "tensor_map_replace"  # tensormap.replace; sm_90a, sm_100a
    TCGEN05 = "tcgen05"  # tensor memory and its MMA; sm_100a
    FLOAT32X2 = "float32x2"  # add, mul and fma of two float32 at once; sm_100
    VECTOR_256 = "vector_256"  # ld.global.v8.b32 and its like; sm_100


_AMPERE = frozenset(
    (Capability.CP_ASYNC, Capability.MMA, Capability.REDUX, Capability.CACHE_POLICY))
_ADA = _AMPERE | {Capability.FP8_CONVERT, Capability.FP8_MMA}
_HOPPER = _ADA | {
    Capability.ATOM_BF16, Capability.ATOM_128, Capability.ATOM_VECTOR, Capability.FLOAT64_MMA,
    Capability.TF32_CONVERT, Capability.STMATRIX, Capability.MBARRIER, Capability.CLUSTER,
    Capability.TMA, Capability.ELECT, Capability.LAUNCH_DEPENDENTS}
_HOPPER_ONLY = _HOPPER | {
    Capability.WGMMA, Capability.SET_MAX_REGISTERS, Capability.MULTICAST,
    Capability.TENSOR_MAP_REPLACE}
_BLACKWELL = _HOPPER | {Capability.FLOAT32X2, Capability.VECTOR_256}
_BLACKWELL_ONLY = _BLACKWELL | {
    Capability.SET_MAX_REGISTERS, Capability.MULTICAST, Capability.TENSOR_MAP_REPLACE,
    Capability.TCGEN05}

KIB = 1024
OLDEST = (8, 0)
MODERN_DIALECT = (10, 0)  # the oldest target of NVVM IR's newer dialect


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of GPU.

    name: as ptxas spells it, "sm_90a".
    compute_capability: (major, minor).
    capabilities: features that not all targets have.
    shared_bytes_per_block: dynamic shared memory a block may opt in to.
    shared_bytes_per_processor, threads_per_processor, blocks_per_processor: what the blocks that
        live on one multiprocessor at the same time share.
    Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
    """

    name: str
    compute_capability: tuple[int, int]
    capabilities: frozenset[Capability]
    shared_bytes_per_block: int
    shared_bytes_per_processor: int
    threads_per_processor: int
    blocks_per_processor: int

    warp_size = 32
    registers_per_thread = 255
    registers_per_processor = 65536
    registers_per_allocation = 256  # of one warp: registers are handed out in these units
    static_shared_bytes = 48 * KIB  # a block gets these without opting in
    reserved_shared_bytes = 1 * KIB  # of every block, for the system

    def __str__(self) -> str:
        return self.name

    @property
    def compute(self) -> str:
        """The name of the virtual architecture, "compute_90a"."""
        return self.name.replace("sm_", "compute_")

    @property
    def vector_bits(self) -> int:
        """The widest access one thread can make to global memory."""
        return 256 if self.has(Capability.VECTOR_256) else 128

    @property
    def names_what_is_by_value(self) -> bool:
        """Whether the attribute byval of NVVM IR names the type that is passed.

        Source: NVVM IR Specification, "Introduction": from Blackwell on it is a modern dialect.
        """
        return self.compute_capability >= MODERN_DIALECT

    def has(self, capability: Capability | str) -> bool:
        """Whether this target can do something; a string must be the value of a Capability."""
        return Capability(capability) in self.capabilities

    def resident_blocks(self, num_warps: int, registers: int, shared_bytes: int) -> int:
        """Number of blocks of a kernel that fit on one multiprocessor at the same time.

        registers: per thread.  Source: CUDA C++ Best Practices Guide, "Occupancy".
        """
        threads = num_warps * self.warp_size
        unit = self.registers_per_allocation
        warp_registers = -(-registers * self.warp_size // unit) * unit
        limits = [self.blocks_per_processor, self.threads_per_processor // threads]
        if registers:
            limits.append(self.registers_per_processor // (warp_registers * num_warps))
        block_bytes = shared_bytes + self.reserved_shared_bytes
        limits.append(self.shared_bytes_per_processor // block_bytes)
        return min(limits)

    def register_limit(self, num_warps: int, blocks: int) -> int:
        """Registers that each thread may have where so many blocks fit a multiprocessor.

        Source: as of resident_blocks.
        """
        unit = self.registers_per_allocation
        of_warp = self.registers_per_processor // (blocks * num_warps) // unit * unit
        return min(of_warp // self.warp_size, self.registers_per_thread)

    @staticmethod
    def parse(name: str) -> Target:
        """The target that ptxas calls name.

        Errors: BlockValueError for a name that is not one of TARGETS.
        """
        if not isinstance(name, str) or name not in TARGETS:
            raise BlockValueError(f"target: given {shown(name)}, accepted {', '.join(TARGETS)}",
                                  hint=did_you_mean(str(name), TARGETS))
        return TARGETS[name]

    @staticmethod
    def of_capability(compute_capability: tuple[int, int]) -> Target:
        """The best target whose code runs on a device of this compute capability.

        Code for (major, n) runs on every (major, m) with m >= n; architecture-specific code
        ("a") runs on exactly its own.
        Errors: BlockValueError for a device older than OLDEST or of an unknown major version.
        """
        major, minor = compute_capability
        usable = [t for t in TARGETS.values() if t._runs_on(major, minor)]
        require(usable, "target: given compute capability {}.{}, accepted {}.{} and later, of {}",
                major, minor, *OLDEST, ", ".join(TARGETS), error=BlockValueError)
        return max(usable, key=lambda t: (t.compute_capability, len(t.capabilities)))

    def _runs_on(self, major: int, minor: int) -> bool:
        if self.name.endswith("a"):
            return self.compute_capability == (major, minor)
        return self.compute_capability[0] == major and self.compute_capability[1] <= minor


TARGETS: dict[str, Target] = {t.name: t for t in (
    Target("sm_80", (8, 0), _AMPERE, 163 * KIB, 164 * KIB, 2048, 32),
    Target("sm_86", (8, 6), _AMPERE, 99 * KIB, 100 * KIB, 1536, 16),
    Target("sm_89", (8, 9), _ADA, 99 * KIB, 100 * KIB, 1536, 24),
    Target("sm_90", (9, 0), _HOPPER, 227 * KIB, 228 * KIB, 2048, 32),
    Target("sm_90a", (9, 0), _HOPPER_ONLY, 227 * KIB, 228 * KIB, 2048, 32),
    Target("sm_100", (10, 0), _BLACKWELL, 227 * KIB, 228 * KIB, 2048, 32),
    Target("sm_100a", (10, 0), _BLACKWELL_ONLY, 227 * KIB, 228 * KIB, 2048, 32),
    Target("sm_120", (12, 0), _BLACKWELL - {Capability.VECTOR_256}, 99 * KIB, 100 * KIB, 1536, 24),
)}
