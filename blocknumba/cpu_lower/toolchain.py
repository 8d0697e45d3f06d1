"""From LLVM IR to machine code in this process, through llvmlite."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import threading
from collections.abc import Mapping

from llvmlite import binding

from blocknumba.cpu_lower.corrections import corrected
from blocknumba.cpu_lower.printing import declare_symbol
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.tile_ir.ops.map import HostCode

_EXTERNAL = re.compile(r'^declare [^@]*@"?(?!llvm\.)([^"(]+)"?\(|^@"?([^" ]+)"? = external ',
                       re.MULTILINE)
OPTIMISATION = 2  # of LLVM's pass pipeline
SCALAR = "scalar_"  # how symbols of scalar functions begin


def symbol(kind: str, name: str) -> str:
    """A symbol for what a user has named: ASCII, and a digest, so that no two meet."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{kind}{plain}_{digest}"


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()  # of assembly text within LLVM IR


def machine_of(target: CpuTarget, level: int = 3) -> binding.TargetMachine:
    """A code generator of LLVM for a target; an engine owns the one that it gets.

    level: of its optimisation.
    """
    _initialize()
    if target.triple != binding.get_process_triple():
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, features=target.features, opt=level, reloc="pic", codemodel="default",
        jit=False)


def linked(llvm_ir: str, functions: Mapping[str, HostCode], target: CpuTarget) -> str:
    """The module with the functions that it calls, by its names for them.

    Nothing of theirs is visible in the result, and nothing is left that it does not call.
    """
    if not functions:
        return llvm_ir
    module = binding.parse_assembly(llvm_ir)
    for name, code in functions.items():
        other = binding.parse_assembly(code.module)
        for defined in (*other.functions, *other.global_variables):
            if not defined.is_declaration:
                defined.linkage = binding.Linkage.internal
        called = other.get_function(code.symbol)
        called.name, called.linkage = name, binding.Linkage.external
        module.link_in(other)
        module.get_function(name).linkage = binding.Linkage.internal
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, binding.create_pass_builder(
        machine_of(target), binding.create_pipeline_tuning_options()))
    return str(module)


def optimised(llvm_ir: str, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module after LLVM's passes, without those that look for vectors, and corrected.

    Our loops are over vectors already, but for those that call scalar functions.
    """
    module = binding.parse_assembly(llvm_ir)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    options.slp_vectorization = False
    options.loop_vectorization = f"@{SCALAR}" in llvm_ir  # a loop over elements calls it
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return corrected(module)


def assemble(llvm_ir: str, target: CpuTarget) -> bytes:
    """An object file with the module's functions."""
    machine = machine_of(target)
    return machine.emit_object(optimised(llvm_ir, machine))


def assemble_quickly(llvm_ir: str, target: CpuTarget) -> bytes:
    """An object file of code that takes more time to optimise than it will run."""
    return machine_of(target, 0).emit_object(binding.parse_assembly(llvm_ir))


def assembly_text(llvm_ir: str, target: CpuTarget) -> str:
    """The module in the processor's assembly language."""
    machine = machine_of(target)
    return machine.emit_assembly(optimised(llvm_ir, machine))


def externals(llvm_ir: str) -> dict[str, int | None]:
    """Symbols that a module refers to, and their addresses in this process; None: not there."""
    declare_symbol()
    names = {name for found in _EXTERNAL.findall(llvm_ir) for name in found if name}
    return {name: binding.address_of_symbol(name) for name in sorted(names)}


def undefined(llvm_ir: str) -> list[str]:
    """Symbols that a module refers to, and that nothing in this process defines."""
    return [name for name, address in externals(llvm_ir).items() if address is None]


@functools.cache
def _linker() -> binding.LLJIT:
    """JITLink: it keeps code and constants together.  LLVM's older linker ends the process where
    they are more than 2 GiB apart, as in address space that a GPU's driver has cut up."""
    _initialize()
    return binding.create_lljit_compiler(use_jit_link=True)


_LOADING, _NUMBERS = threading.Lock(), itertools.count()


class Loaded:
    """An object file in this process; it lives as long as this.

    code: of the module llvm_ir.
    """

    def __init__(self, code: bytes, llvm_ir: str):
        builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in externals(llvm_ir).items():
            if address is not None:
                builder.import_symbol(name, address)
        with _LOADING:
            self._library = f"code{next(_NUMBERS)}"
            self._trackers = [builder.link(_linker(), self._library)]  # each keeps the code

    def address(self, name: str) -> int:
        """The address of a function."""
        with _LOADING:
            self._trackers.append(_linker().lookup(self._library, name))
        return self._trackers[-1][name]
