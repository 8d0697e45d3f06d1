"""`CompiledKernel`: compiled code under Triton's names, which can be launched as it is."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import SimpleNamespace

from blocknumba.dispatch.compile.compiled import Assembly, Compiled
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.errors import BlockTypeError, require
from blocknumba.gpu_layout.layouts.registers import MAX_WARPS
from blocknumba.tile_ir.ir.types import ArrayArgument, DType
from blocknumba.triton.backends.compiler import named

# Triton's stages -> ours; of native code the second
_STAGES = {"ttir": ("tile", "tile"), "ttgir": ("gpu", "tile"), "llir": ("nvvm", "llvm"),
           "source": ("tile", "tile")}
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "launch_cooperative_grid",
            "launch_pdl")


def _described(compiled: Compiled, fn: Kernel, constants: Mapping[str, object]) -> SimpleNamespace:
    """A specialization as the function `repr` of jit is given it.

    signature: the type of each parameter by name, "i32", "*fp16" or "constexpr".
    constants: the values of those that are constants, ints among them whose value is known.
    """
    known, signature = dict(constants), dict.fromkeys(constants, "constexpr")
    for name, argument in compiled.specialization.arguments:
        if isinstance(argument, ArrayArgument):
            signature[name] = f"*{_short_name(argument.dtype)}"
        elif argument.value is not None:
            known[name], signature[name] = argument.value, "constexpr"
        else:  # a float of Python's is float32 in a kernel
            weak = argument.weak and argument.dtype.is_float
            signature[name] = "fp32" if weak else _short_name(argument.dtype)
    return SimpleNamespace(name=compiled.name, fn=fn, signature=signature, constants=known)


def _short_name(dtype: DType) -> str:
    """Triton's name of a dtype in signatures."""
    names = {"bfloat16": "bf16", "float8_e5m2": "fp8e5", "float8_e4m3fn": "fp8e4nv"}
    if dtype.is_float:
        return names.get(dtype.name, f"fp{dtype.bits}")
    return "u1" if dtype.kind == "bool" else f"{dtype.kind[0]}{dtype.bits}"


class StagesAssembly(Assembly):
    """The texts of a compiled kernel, by Triton's names of stages besides ours."""

    def __init__(self, compiled: Compiled):
        super().__init__(compiled)
        for stage, (on_gpu, on_cpu) in _STAGES.items():
            name = on_gpu if on_gpu in self._makers else on_cpu
            if name in self._makers:
                self._makers[stage] = self._makers[name]


@dataclass(eq=False)
class CompiledKernel(Compiled):
    """One specialization of a kernel, under Triton's names.

    fn: the kernel.  constants: the values of its constants, None among them.
    """

    fn: Kernel | None = None
    constants: Mapping[str, object] = field(default_factory=dict)

    @staticmethod
    def of(compiled: Compiled, fn: Kernel, constants: Mapping[str, object]) -> CompiledKernel:
        """Code that was compiled for a kernel."""
        parts = {part.name: getattr(compiled, part.name) for part in fields(Compiled)
                 if not part.name.startswith("_")}
        if getattr(fn, "custom_repr", None) is not None:
            parts["name"] = str(fn.custom_repr(_described(compiled, fn, constants)))
        return CompiledKernel(**parts, fn=fn, constants=dict(constants))

    @property
    def asm(self) -> Mapping[str, str | bytes]:
        """The kernel at each level: Compiled.asm, and "ttir", "ttgir" and "llir" of the same."""
        return StagesAssembly(self)

    @property
    def kernel(self) -> bytes:
        """The machine code: a cubin, or an object file of native code."""
        return self.asm["cubin" if self.machine is not None else "object"]

    @property
    def n_regs(self) -> int:
        """Registers of a thread; 0 on the CPU device."""
        return self.stats.registers if self.machine is not None else 0

    @property
    def n_spills(self) -> int:
        """Registers of a thread that are kept in memory; 0 on the CPU device."""
        return self.stats.spills // 4 if self.machine is not None else 0

    @property
    def n_max_threads(self) -> int:
        """Threads of a block at most; 1 on the CPU device."""
        return MAX_WARPS * self.specialization.target.warp_size if self.machine is not None else 1

    @functools.cached_property
    def hash(self) -> str:
        """A digest of the code."""
        return hashlib.sha256(
            f"{self.tile_text()}{self.specialization.options}{self.device}".encode()).hexdigest()

    @functools.cached_property
    def metadata(self) -> SimpleNamespace:
        """Facts by Triton's names: shared (bytes of a block), num_warps, target and others."""
        options, target = self.specialization.options, named(self.specialization.target)
        warps, stages, shared, cluster = options.num_warps or 1, options.num_stages or 1, 0, 1
        if self.machine is not None:
            stats = self.stats
            warps = self.machine.threads // target.warp_size - stats.producers
            stages = options.num_stages or max((ring.copies for ring in stats.rings), default=1)
            shared, cluster = stats.shared_bytes, self.machine.cluster
        return SimpleNamespace(
            name=self.name, hash=self.hash, target=target, arch=f"sm{target.arch}",
            backend_name=target.backend, warp_size=target.warp_size, num_warps=warps,
            num_stages=stages, num_ctas=options.num_ctas, cluster_dims=(cluster, 1, 1),
            shared=shared, tmem_size=0, global_scratch_size=0, maxnreg=options.maxnreg,
            debug=options.debug, launch_cooperative_grid=options.launch_cooperative_grid,
            launch_pdl=options.launch_pdl)

    def _init_handles(self) -> None:
        """Nothing: code is loaded when it is launched, and its facts are always there."""

    def __getitem__(self, grid: object) -> Callable[..., CompiledKernel]:
        """`compiled[grid](*arguments)`: a launch with the constants that it was compiled for.

        Arguments are all of the kernel's by position, of which those of constants do not count,
        or those alone that are no constants.
        """
        return functools.partial(self._launch, grid)

    def _launch(self, grid: object, *arguments: object, stream: object = None) -> CompiledKernel:
        formals = self.fn.signature.formals
        free = [formal.name for formal in formals if formal.name not in self.constants]
        names = [formal.name for formal in formals]
        if len(arguments) != len(names):
            names = [formal.name for formal in formals if not formal.is_constant]
        require(len(arguments) == len(names), "{}: given {} arguments, accepted {} ({})", self.name,
                len(arguments), len(free), ", ".join(free), error=BlockTypeError)
        chosen, own = self.specialization.options, self.fn.options
        parameters = {formal.name for formal in formals}  # one named as an option sets it too
        options = {name: getattr(chosen, name) for name in _OPTIONS
                   if name not in parameters and getattr(chosen, name) != getattr(own, name)}
        return self.fn[grid](**dict(zip(names, arguments)) | self.constants, stream=stream,
                             **options)

    def __repr__(self) -> str:
        return f"<{self.name} compiled for {self.device}>"
