"""Compilation of a kernel, or its load from the disk cache; reports to the user."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import FunctionType

from blocknumba.dispatch.compile.cache import user_cache
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.entry import decode, encode
from blocknumba.dispatch.compile.fingerprint import fingerprint
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.nvvm_lower.toolchain import libraries
from blocknumba.settings import SETTINGS, Settings


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
    report(compiled, SETTINGS)
    return compiled


def report(compiled: Compiled, settings: Settings) -> None:
    """Write to standard error what the settings ask for about a kernel."""
    title = f"{compiled.name} for {compiled.device}"
    if settings.time:
        stages = ", ".join(f"{name} {ms:.1f}" for name, ms in compiled.times_ms.items())
        total = sum(compiled.times_ms.values())
        sys.stderr.write(f"# {title}: {total:.1f} ms ({stages})\n")
    for level in settings.dump:
        if level in compiled.asm:
            sys.stderr.write(f"# {title}: {level}\n{compiled.asm[level].rstrip()}\n")
