"""Compiled kernels as files, for programs that have no Python."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from blocknumba.dispatch.c_header import c_header
from blocknumba.dispatch.compiled import Compiled
from blocknumba.dispatch.entry import parameter_fields
from blocknumba.errors import BlockValueError, require
from blocknumba.tile_ir.arguments import Argument
from blocknumba.wording import quoted

_NAME = re.compile(r"\w[\w.+-]*")  # no separator of any system, and never ".."


def export(compiled: Compiled, folder: Path, name: str | None = None) -> list[Path]:
    """Write NAME.cubin, NAME.ptx, NAME.json and NAME.h; the files.

    name: of the files, without a folder; the kernel's symbol when it is not given.
    Errors: BlockValueError for the interpreter's code, for a name that is none of a file in the
    folder, and when they cannot be written.
    """
    require_name(name)
    header = c_header(compiled)  # first: it refuses the interpreter's code
    stem = compiled.machine.symbol if name is None else name
    contents = {"cubin": compiled.asm["cubin"], "ptx": compiled.asm["ptx"].encode(),
                "json": json.dumps(description(compiled), indent=2).encode() + b"\n",
                "h": header.encode()}
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ending, content in contents.items():
            files.append(folder / f"{stem}.{ending}")
            files[-1].write_bytes(content)
    except OSError as error:
        raise BlockValueError(f"compile: cannot write to {folder}: {error.strerror}") from error
    return files


def require_name(name: str | None) -> None:
    """Errors: BlockValueError for a name that would be of files elsewhere."""
    require(name is None or _NAME.fullmatch(name), "compile: given the name {}, accepted letters, "
            "digits, _, -, + and ., the first a letter, a digit or _", quoted(name or ""),
            error=BlockValueError, hint="the folder is another argument: -o DIR")


def description(compiled: Compiled) -> dict[str, object]:
    """All that a launcher must know of a kernel, as JSON."""
    machine, specialization, stats = compiled.machine, compiled.specialization, compiled.stats
    return {
        "kernel": compiled.name, "symbol": machine.symbol, "target": str(specialization.target),
        "threads": machine.threads, "shared_bytes": machine.shared_bytes,
        "cluster": machine.cluster,
        "parameters": [*map(parameter_fields, machine.parameters)],
        "arguments": {name: _described(argument) for name, argument in specialization.arguments},
        "constants": {name: _readable(value) for name, value in specialization.constants},
        "options": dict(sorted(specialization.options.named().items())),
        "arrays_are_disjoint": specialization.disjoint,
        "reads": sorted(compiled.effects.read), "stores": sorted(compiled.effects.stored),
        "registers": stats.registers, "spill_bytes": stats.spills,
        "occupancy": stats.occupancy,
    }


def _described(argument: Argument) -> dict[str, object]:
    return {**asdict(argument), "dtype": argument.dtype.name}


def _readable(frozen: object) -> str:
    """A frozen constant as a reader knows it: freeze puts its type in front."""
    pair = isinstance(frozen, tuple) and len(frozen) == 2 and isinstance(frozen[0], type)
    return repr(frozen[1]) if pair else str(frozen)
