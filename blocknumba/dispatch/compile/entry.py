"""Compiled kernels as bytes, for the cache on disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.compiled import Compiled, StoredFunction, located, numbered
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.nvvm_lower.toolchain import Assembled
from blocknumba.tile_ir.analysis.provenance import Effects
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.remarks import Remark
from blocknumba.tile_ir.ir.tensor_map import TensorMap

if TYPE_CHECKING:
    from blocknumba.dispatch.compile.native import NativeCode

_LENGTH_BYTES = 8
_ELF = b"\x7fELF"  # how a cubin begins
_HEAD = {"name": str, "toolchain": list, "read": list, "stored": list, "locations": list,
         "op_locations": list}
_MACHINE = {"symbol": str, "parameters": list, "threads": int, "shared_bytes": int, "cluster": int,
            "registers": int, "spill_bytes": int, "stack_bytes": int, "static_shared_bytes": int,
            "warnings": list, "remarks": dict}
_NATIVE = {"symbol": str, "versions": int, "parameters": list, "stops": list, "prints": list,
           "locations": list, "numbers": list}
_PARAMETER = {"kind": str, "argument": str, "axis": int | None, "divisibility": int,
              "minimum": int | None, "mappable": bool, "tensor_map": dict | None}
_FAST = 1  # zlib's level: texts shrink to a tenth, in a third of the time of the default


@dataclass(frozen=True, slots=True)
class Build:
    """One file of the toolchain, told from others of its name by its size and time."""

    path: str
    size_bytes: int
    modified_ns: int

    @staticmethod
    def of(file: str | Path) -> Build:
        """The file as it is now.  Errors: OSError when it is not there."""
        status = Path(file).stat()
        return Build(str(file), status.st_size, status.st_mtime_ns)

    @property
    def is_current(self) -> bool:
        """Whether the file is what it was."""
        try:
            return Build.of(self.path) == self
        except OSError:
            return False


def encode(compiled: Compiled, toolchain: Iterable[Path]) -> bytes:
    """A compiled kernel as bytes.

    toolchain: the files that it was compiled with, which are not looked for when it is read:
        that would mean loading them.
    """
    source = compiled.source
    tile = source if isinstance(source, StoredFunction) else StoredFunction.of(source)
    head = {"name": compiled.name, "toolchain": [asdict(Build.of(file)) for file in toolchain],
            "read": sorted(compiled.effects.read), "stored": sorted(compiled.effects.stored),
            "locations": tile.locations, "op_locations": tile.op_locations}
    sections = [tile.text.encode()]
    if compiled.machine is not None:
        machine, assembled = compiled.machine, compiled.machine.assembled
        head["machine"] = {
            "symbol": machine.symbol, "parameters": [*map(parameter_fields, machine.parameters)],
            "threads": machine.threads, "shared_bytes": machine.shared_bytes,
            "cluster": machine.cluster,
            "registers": assembled.registers, "spill_bytes": assembled.spill_bytes,
            "stack_bytes": assembled.stack_bytes, "static_shared_bytes": assembled.shared_bytes,
            "warnings": assembled.warnings, "remarks": _remark_fields(machine.remarks)}
        sections += [machine.gpu.encode(), machine.nvvm.encode(), assembled.ptx.encode(),
                  assembled.cubin]
    elif compiled.native is not None:
        native = compiled.native
        head["native"] = _native_fields(native)
        sections += [native.llvm_ir.encode(), native.code]
    return _joined([json.dumps(head).encode(), *sections])


def decode(content: bytes, specialization: Specialization) -> Compiled | None:
    """The kernel that encode wrote.

    None when it was compiled with another toolchain, and for bytes that encode does not write.
    """
    try:
        return _decoded(content, specialization)
    except Exception:  # zlib, JSON, the parser: each has its own for what it cannot read
        return None


def _decoded(content: bytes, specialization: Specialization) -> Compiled | None:
    first, *sections = _separated(content)
    head = _typed(json.loads(first), _HEAD)
    if not all(Build(**build).is_current for build in head["toolchain"]):
        return None
    tile = StoredFunction(sections[0].decode(), head["locations"], head["op_locations"])
    tile.check()
    machine = _machine_code(head["machine"], sections[1:]) if "machine" in head else None
    if (machine is None) is not (specialization.target is None):
        raise ValueError(head["name"])
    native = _native_code(head["native"], *sections[1:]) if "native" in head else None
    # the interpreter will need all of it: now is the time to find out that it is damaged
    source = tile.read() if machine is None and native is None else tile
    effects = Effects(_names(head["read"]), _names(head["stored"]))
    return Compiled(head["name"], specialization, source, effects, machine, {}, native)


def _native_fields(native: NativeCode) -> dict[str, object]:
    """Everything but texts and code, for JSON."""
    locations, numbers = numbered(stop.loc for stop in native.stops)
    return {"symbol": native.symbol, "versions": native.versions,
            "parameters": [*map(parameter_fields, native.parameters)],
            "stops": [[s.kind, s.message, list(s.shape)] for s in native.stops],
            "prints": [[p.prefix, p.hexadecimal, [[n, list(s)] for n, s in p.operands]]
                       for p in native.prints],
            "locations": locations, "numbers": numbers}


def _native_code(head: dict, llvm_ir: bytes, code: bytes) -> NativeCode:
    # here and not above: both import llvmlite, which launches on a GPU do without
    from blocknumba.cpu_lower.printing import PrintOp  # see above
    from blocknumba.dispatch.compile.native import NativeCode, StopReason

    locs = located(_typed(head, _NATIVE)["locations"], head["numbers"])
    stops = tuple(StopReason(str(kind), str(message), tuple(shape), loc)
                  for (kind, message, shape), loc in zip(head["stops"], locs, strict=True))
    prints = tuple(PrintOp(str(prefix), bool(hexadecimal),
                           tuple((str(n), tuple(s)) for n, s in operands))
                   for prefix, hexadecimal, operands in head["prints"])
    return NativeCode(llvm_ir.decode(), code, head["symbol"],
                      tuple(map(_parameter, head["parameters"])), stops, prints,
                      head["versions"])


def _machine_code(head: dict, sections: Sequence[bytes]) -> MachineCode:
    _typed(head, _MACHINE)
    gpu, nvvm, ptx, cubin = sections
    if not cubin.startswith(_ELF):
        raise ValueError(cubin[:len(_ELF)])
    assembled = Assembled(ptx.decode(), cubin, head["registers"], head["spill_bytes"],
                          head["stack_bytes"], head["static_shared_bytes"],
                          tuple(head["warnings"]))
    return MachineCode(gpu.decode(), nvvm.decode(), assembled, head["symbol"],
                       tuple(map(_parameter, head["parameters"])), head["threads"],
                       head["shared_bytes"], head["cluster"], _remarks(head["remarks"]))


def parameter_fields(parameter: Parameter) -> dict[str, object]:
    """A parameter of a kernel for JSON."""
    box = parameter.tensor_map
    return asdict(parameter) | {"tensor_map": None if box is None else box.fields()}


def _parameter(fields: dict) -> Parameter:
    """A parameter from its fields, as JSON brings them back."""
    box = _typed(fields, _PARAMETER)["tensor_map"]
    return Parameter(**fields | {"tensor_map": None if box is None else TensorMap.of(box)})


def _remark_fields(remarks: Iterable[Remark]) -> dict[str, object]:
    """Remarks for JSON: a table of locations, and each remark with its number in it."""
    remarks = tuple(remarks)
    table, numbers = numbered(remark.loc for remark in remarks)
    return {"locations": table, "remarks": [[remark.topic, number, dict(remark.details)]
                                            for remark, number in zip(remarks, numbers)]}


def _remarks(fields: dict) -> tuple[Remark, ...]:
    """Remarks from their fields, as JSON brings them back: tuples have become lists.

    Errors: ValueError, TypeError, KeyError or IndexError for what _remark_fields does not write.
    """
    topics, numbers, details = zip(*fields["remarks"]) if fields["remarks"] else ((), (), ())
    if {*map(type, topics)} - {str} or {*map(type, details)} - {dict}:
        raise TypeError(topics)
    locs = located(fields["locations"], numbers)
    return tuple(Remark(topic, loc, {name: tuple(value) if isinstance(value, list) else value
                                     for name, value in given.items()})
                 for topic, loc, given in zip(topics, locs, details))


def _joined(sections: Iterable[bytes]) -> bytes:
    """Sections, each compressed and preceded by its length."""
    packed = [zlib.compress(section, _FAST) for section in sections]
    return b"".join(len(section).to_bytes(_LENGTH_BYTES, "little") + section for section in packed)


def _separated(content: bytes) -> list[bytes]:
    sections, start = [], 0
    while start < len(content):
        length = int.from_bytes(content[start:start + _LENGTH_BYTES], "little")
        start += _LENGTH_BYTES
        sections.append(zlib.decompress(content[start:start + length]))
        start += length
    return sections


def _typed(fields: dict, types: Mapping[str, type | UnionType]) -> dict:
    """Fields, all of which are there and of their types.  Errors: KeyError, TypeError."""
    for name, accepted in types.items():
        if not isinstance(fields[name], accepted):
            raise TypeError(name)
    return fields


def _names(listed: list) -> frozenset[str]:
    """A set of names.  Errors: TypeError for what is none."""
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(listed)
    return frozenset(listed)
