"""Where each tile of a function would be by itself, before anything is weighed."""

from __future__ import annotations

from blocknumba.gpu_layout.coalescing import Accesses
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement import placement_of
from blocknumba.gpu_layout.registers import in_rows
from blocknumba.gpu_layout.shared import in_registers
from blocknumba.tile_ir.ir import Function, Op, Region, Value


class Homes:
    """homes[value]: the layout that a tile has naturally; None if any will do, and
    for scalars and buffers.

    Accesses to memory are coalesced, other ops follow their operands, and what is made from scalars
    alone is at home nowhere.  Values that a loop or an `if` hands on always have a home, because
    they have one layout for all rounds: the one the body makes them in, else the first one wanted.
    """

    def __init__(self, fn: Function, accesses: Accesses, options: LayoutOptions):
        self._accesses = accesses
        self._num_warps = options.num_warps
        self._homes: dict[Value, LinearLayout | None] = {}
        self._wants: dict[Value, LinearLayout] = {}
        self._forward(fn.body)
        self._backward(fn.body)

    def __getitem__(self, value: Value) -> LinearLayout | None:
        return self._homes.get(value)

    def op_layout(self, op: Op) -> LinearLayout | None:
        """The layout that suits an op where its operands are at home, or None."""
        layouts = tuple(self._homes.get(value) for value in op.operands)
        coalesced = self._accesses.layout(op)
        if coalesced is not None:
            follow = layouts[0] if self._accesses.is_scattered(op) else None
            return follow or coalesced
        placement = placement_of(op)
        natural = placement.natural(op, layouts)
        return natural if natural is not None and placement.accepts(op, natural) else None

    def _forward(self, region: Region) -> None:
        for op in region.ops:
            if op.regions:
                self._control(op)
                continue
            if not any(in_registers(value.type) for value in op.results):
                continue
            layout = self.op_layout(op)
            if layout is None:
                continue
            layout = placement_of(op).result(op, layout)
            for value in op.results:
                self._homes[value] = layout

    def _control(self, op: Op) -> None:
        """The homes of what a loop carries: as its body makes it, else as it came in."""
        count = len(op.results)
        tiles = [i for i in range(count) if in_registers(op.results[i].type)]
        for region in op.regions:
            self._forward(region)
        yields = [region.terminator.operands[-count:] for region in op.regions]
        for i in tiles:
            made = (self._homes.get(values[i]) for values in yields)
            home = next((layout for layout in made if layout is not None), None)
            if home is None and op.regions[0].args:
                home = self._homes.get(op.operands[-count:][i])
            self._homes[op.results[i]] = home
        if not tiles or not op.regions[0].args:
            return
        (region,) = op.regions
        for i in tiles:
            self._homes[region.args[-count:][i]] = self._homes[op.results[i]]
        self._forward(region)

    def _backward(self, region: Region) -> None:
        """Find homes for carried values that have none: what is first wanted of them."""
        for op in reversed(region.ops):
            if op.regions:
                self._settle(op)
                continue
            layout = self._accesses.layout(op)
            if layout is None and len(op.results) == 1:
                layout = self._wants.get(op.result) or self._homes.get(op.result)
            if layout is None or not placement_of(op).inverts:
                continue
            if placement_of(op).accepts(op, layout):
                self._want(op.operands, placement_of(op).operands(op, layout))

    def _want(self, values: tuple[Value, ...], layouts: tuple[LinearLayout | None, ...]) -> None:
        for value, layout in zip(values, layouts, strict=True):
            if layout is not None and self._homes.get(value) is None:
                self._wants.setdefault(value, layout)

    def _settle(self, op: Op) -> None:
        """Give every tile that a control op hands on a home, from inside or from after it."""
        count = len(op.results)
        for region in op.regions:
            values = region.terminator.operands[-count:] if count else ()
            known = tuple(
                self._homes.get(value) or self._wants.get(value) for value in op.results
            )
            self._want(values, known)
            self._backward(region)
        args = op.regions[0].args[-count:] if op.regions[0].args and count else ()
        for i, result in enumerate(op.results):
            if not in_registers(result.type):
                continue
            inside = self._wants.get(args[i]) if args else None
            home = self._homes.get(result) or inside or self._wants.get(result)
            home = home or in_rows(result.type.shape, self._num_warps)
            self._homes[result] = home
            if args:
                self._homes[args[i]] = home
                self._want((op.operands[-count:][i],), (home,))
