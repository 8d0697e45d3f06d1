"""From LLVM IR to machine code in this process, through llvmlite."""

from __future__ import annotations

import functools

from llvmlite import binding

from blocknumba.cpu_lower.printing import declare_symbol
from blocknumba.cpu_lower.target import CpuTarget

OPTIMISATION = 2  # of LLVM's pass pipeline; our loops are over vectors already


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def machine_of(target: CpuTarget) -> binding.TargetMachine:
    """A code generator of LLVM for a target; an engine owns the one that it gets."""
    _initialize()
    if target.triple != binding.get_process_triple():
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, features=target.features, opt=3, reloc="pic", codemodel="default",
        jit=False)


def optimised(llvm_ir: str, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module after LLVM's passes, without those that look for vectors."""
    module = binding.parse_assembly(llvm_ir)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    options.loop_vectorization = options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def assemble(llvm_ir: str, target: CpuTarget) -> bytes:
    """An object file with the module's functions."""
    machine = machine_of(target)
    return machine.emit_object(optimised(llvm_ir, machine))


def assembly_text(llvm_ir: str, target: CpuTarget) -> str:
    """The module in the processor's assembly language."""
    machine = machine_of(target)
    return machine.emit_assembly(optimised(llvm_ir, machine))


class Loaded:
    """An object file in this process; it lives as long as this."""

    def __init__(self, code: bytes, target: CpuTarget):
        declare_symbol()
        machine = machine_of(target)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function."""
        return self._engine.get_function_address(name)


