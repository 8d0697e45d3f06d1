"""The code of a kernel: a Python function, and what has been compiled of it so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Iterable, Mapping
from types import FunctionType

from blocknumba.dispatch.compile.cache import user_cache
from blocknumba.dispatch.compile.captures import Captures, capture, is_settled
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.entry import decode, encode
from blocknumba.dispatch.compile.fingerprint import fingerprint
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.forks import COMPILATIONS, Lock
from blocknumba.dispatch.launch.signature import Signature
from blocknumba.dispatch.launch.specialize import (
    Specialization, frozen_constants, identify, processor_of,
)
from blocknumba.nvvm_lower.target import Target
from blocknumba.nvvm_lower.toolchain import libraries
from blocknumba.settings import SETTINGS
from blocknumba.tables import html_table

MAX_CAPTURES = 1024  # objects that never come back must not fill the memory


class KernelCode(Named):
    """A Python function, and its code for each specialization that was asked for.

    python_function: the decorated function.
    signature: its parameters.
    options: compile options.
    """

    __slots__ = ("__dict__", "__weakref__")

    def __init__(self, function: FunctionType, options: Options, signature: Signature):
        self.python_function, self.options, self.signature = function, options, signature
        self._compiled: dict[Specialization, Compiled] = {}
        self._captures: dict[tuple[tuple[str, Hashable], ...], Captures] = {}
        self._compiling: dict[Specialization, Lock] = {}
        self._lock = Lock()

    def captures(self, constants: Mapping[str, object]) -> Captures:
        """Globals and other values that the code reads besides its arguments, as they are now.

        constants: of objects among them it reads attributes, of which strings may be the names.
        """
        read = {name: value for name, value in constants.items()
                if isinstance(value, str) or not is_settled(value)}
        key = tuple((name, identify(value, name)) for name, value in read.items())
        found = self._captures.get(key)
        if found is None or not found.is_current():
            if len(self._captures) >= MAX_CAPTURES:
                self._captures.clear()
            found = self._captures[key] = capture(self.python_function, read)
        return found

    def specialize(self, arguments: tuple, constants: Mapping[str, object], options: Options,
                   target: Target | None, disjoint: bool) -> tuple[Specialization, Captures]:
        """The key of the code for arguments given as (name, Argument) pairs.

        disjoint: no array that is stored to shares memory with another; the interpreter does not
            care.
        """
        frozen = frozen_constants(self.signature, constants)
        captures = self.captures(constants)
        processor = processor_of(options) if target is None else None
        # target and processor say it
        options = options.override({"interpret": False, "device": None})
        return Specialization(arguments, frozen, captures.values, options, target,
                              disjoint and not (target is processor is None),
                              processor=processor), captures

    def compile(self, specialization: Specialization, constants: Mapping[str, object]) -> Compiled:
        """The code for a specialization, compiled once however many threads ask.

        constants: the values whose keys are in the specialization.
        """
        compiled = self._compiled.get(specialization)
        if compiled is None:
            with self._lock:
                lock = self._compiling.setdefault(specialization, Lock())
            with lock:  # of this specialization: others compile meanwhile
                compiled = self._compiled.get(specialization)
                if compiled is None:
                    with COMPILATIONS.running():
                        compiled = self.new_code(specialization, constants)
                    # else something changed meanwhile: nobody knows what the code has of it
                    if self.captures(constants).values == specialization.captured:
                        self._compiled[specialization] = compiled
        return compiled

    def new_code(self, specialization: Specialization,
                 constants: Mapping[str, object]) -> Compiled:
        """The code for a specialization, compiled or read from disk; see compile."""
        return load_or_compile(self.python_function, specialization, constants)

    def inspect_tile(self) -> dict[Specialization, str]:
        """The tile IR of all code so far."""
        return self._texts("tile")

    def inspect_llvm(self) -> dict[Specialization, str]:
        """The NVVM IR of all code so far, under Numba's name."""
        return self._texts("nvvm")

    def inspect_asm(self) -> dict[Specialization, str]:
        """The PTX of all code so far, under Numba's name."""
        return self._texts("ptx")

    def inspect_sass(self) -> dict[Specialization, str]:
        """The machine code of all code so far, under Numba's name; not of interpreted kernels."""
        return self._texts("sass")

    def _repr_html_(self) -> str:
        """A table for notebooks: each compilation so far, its device and what it was made for."""
        return html_table(("device", "arguments, constants and options"), (
            (compiled.device, compiled.made_for) for code in self._variants()
            for compiled in code._compiled.values()), repr(self))

    def _texts(self, level: str) -> dict[Specialization, str]:
        return {specialization: compiled.asm[level] for code in self._variants()
                for specialization, compiled in code._compiled.items() if level in compiled.asm}

    def _variants(self) -> Iterable[KernelCode]:
        """All that hold code of the function: this, and those of arguments taken apart."""
        return self,


def load_or_compile(function: FunctionType, specialization: Specialization,
                    constants: Mapping[str, object]) -> Compiled:
    """The code of a kernel, from the disk cache, or compiled and saved there.

    constants: the values whose keys are in the specialization.
    Errors: see pipeline.compile_function.
    """
    cache = user_cache()
    key = None if cache is None else fingerprint(function, specialization, constants)
    compiled = None
    if key is not None:
        start = time.perf_counter()
        content = cache.load(key)
        compiled = None if content is None else decode(content, specialization)
        if compiled is not None:
            compiled.times_ms = {"cache": (time.perf_counter() - start) * 1e3}
    if compiled is None:
        # here and not above: numba takes longer to import than all of blocknumba
        from blocknumba.dispatch.compile import pipeline

        compiled = pipeline.compile_function(function, specialization, constants)
        # something that the kernel reads may have changed while it was compiled
        is_storable = key is not None and compiled.is_text
        if is_storable and fingerprint(function, specialization, constants) == key:
            toolchain = () if specialization.target is None else libraries()
            cache.save(key, encode(compiled, toolchain))
    _report(compiled)
    return compiled


def _report(compiled: Compiled) -> None:
    """Write to standard error what the settings ask for about a kernel."""
    title = f"{compiled.name} for {compiled.device}"
    if SETTINGS.time:
        stages = ", ".join(f"{name} {ms:.1f}" for name, ms in compiled.times_ms.items())
        total = sum(compiled.times_ms.values())
        sys.stderr.write(f"# {title}: {total:.1f} ms ({stages})\n")
    for level in SETTINGS.dump:
        if level in compiled.asm:
            sys.stderr.write(f"# {title}: {level}\n{compiled.asm[level].rstrip()}\n")
