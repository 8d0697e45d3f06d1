"""Where each stage says what it knows of an op.

    python tests/faces.py scan hypot
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from blocknumba.cpu_lower import kernel as _cpu  # noqa: F401  fills its tables, as all below
from blocknumba.gpu_layout import pipeline as _layout  # noqa: F401
from blocknumba.nvvm_lower import kernel as _gpu  # noqa: F401
from blocknumba.dispatch.tiles import gpu_model as _tiles  # noqa: F401
from blocknumba.tile_ir import interpreter as _interpreter  # noqa: F401
from blocknumba.tile_ir.analysis import (  # noqa: F401
    axis_info as _axis, bounds as _bounds, iteration_step as _step, likely_strides as _strides,
)
from blocknumba.tile_ir.ir.function import OpDef
from blocknumba.tile_ir.ir.opdef import OP_TABLES, OPS

ROOT = Path(__file__).parent.parent


def faces(name: str) -> Iterator[tuple[str, str]]:
    """(what, "file:line") of all that is known of an op.  Errors: KeyError for no op."""
    opdef = OPS[name]
    own = (("type rule", opdef.infer), ("numerics", opdef.evaluate), ("execution", opdef.execute),
           *(("fold", fold) for fold in opdef.folds))
    yield from _declaration(opdef)
    for what, entry in own + tuple((table.what, table[name]) for table in OP_TABLES
                                   if name in table):
        if entry is not None:
            yield what, _place(entry)


def _declaration(opdef: OpDef) -> Iterator[tuple[str, str]]:
    """The module that has the op under a name, and the line that first writes it, if one has."""
    written = re.compile(rf'def {opdef.name}_?\(|"{opdef.name}"')
    for title, module in sorted(sys.modules.items()):
        if re.match(r"blocknumba\.(tile_ir|gpu_layout)\.([\w.]+\.)?ops\.?", title) and any(
                value is opdef for value in vars(module).values()):
            lines = enumerate(inspect.getsource(module).splitlines(), 1)
            number = next((number for number, line in lines if written.search(line)), 0)
            if number:
                yield "declaration", f"{Path(module.__file__).relative_to(ROOT)}:{number}"
                return


def _place(entry: object) -> str:
    """Where a function of ours, or those that an entry holds, are written; a number itself."""
    if isinstance(entry, int):
        return str(entry)
    held = (getattr(entry, field) for field in getattr(type(entry), "__dataclass_fields__", ()))
    functions = [value for value in (entry, *held) if inspect.isfunction(value)
                 and value.__module__.startswith("blocknumba.")
                 and value.__module__ != type(entry).__module__]  # not its defaults
    return " ".join(dict.fromkeys(
        f"{Path(function.__code__.co_filename).relative_to(ROOT)}:{function.__code__.co_firstlineno}"
        for function in functions)) or inspect.getmodule(type(entry)).__name__


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(given, *(f"    {what:32} {place}" for what, place in faces(given)), sep="\n")
