"""The user's own PTX, which no CPU runs.

A module of its own: the families of ops have one name in every stage.
"""

from __future__ import annotations

from blocknumba.cpu_lower.emitter import Emitter, root
from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops.assembly import REFUSED, inline_asm


@root(inline_asm)
def _(emitter: Emitter, op: Op) -> None:
    raise UnsupportedError(REFUSED, loc=op.loc)
