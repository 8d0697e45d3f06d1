"""Instructions of LLVM IR that its code generators get wrong, written otherwise.

With AVX-512, LLVM 22 makes an ordinary store of a masked one whose mask is constant and has one
lane, and stores as many bytes as the element had before a truncation that it takes along: those of
the next element too.
"""

from __future__ import annotations

import re

from llvmlite import binding

_STORE = "llvm.masked.store."
_ONE_LANE = re.compile(
    r"^ *(?:tail )?call void @llvm\.masked\.store\.\w+\.p0\(<(?P<lanes>\d+) x (?P<type>\w+)> "
    r"(?P<value>%[\w.]+), ptr (?:\w+ )*?(?:align (?P<align>\d+) )?(?P<address>[%@][\w.]+), "
    r"<\d+ x i1> <(?P<before>(?:i1 false, )*)i1 true(?:, i1 false)*>\).*$", re.MULTILINE)


def corrected(module: binding.ModuleRef) -> binding.ModuleRef:
    """The module, optimised, without instructions that are known to be got wrong."""
    if not any(function.name.startswith(_STORE) for function in module.functions):
        return module
    text = str(module)
    changed, count = _ONE_LANE.subn(_stored_alone, text)
    return binding.parse_assembly(changed) if count else module


def _stored_alone(found: re.Match) -> str:
    """The store of the one element."""
    lane, number, type_ = found["before"].count("i1"), found.start(), found["type"]
    align = f", align {_alignment(type_, found['align'])}"
    return (f"  %lane.{number} = extractelement <{found['lanes']} x {type_}> {found['value']}, "
            f"i64 {lane}\n"
            f"  %at.{number} = getelementptr {type_}, ptr {found['address']}, i64 {lane}\n"
            f"  store {type_} %lane.{number}, ptr %at.{number}{align}")


def _alignment(type_: str, whole: str | None) -> int:
    """Bytes that an element is aligned to in a vector that is aligned so."""
    sizes = {"ptr": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8}
    size = sizes.get(type_) or int(type_[1:]) // 8
    return min(size, int(whole or 1))
