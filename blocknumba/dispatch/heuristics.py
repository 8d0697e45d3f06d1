"""`@bn.heuristics`: constants computed from the other arguments of a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocknumba.dispatch.kernel import Kernel
from blocknumba.dispatch.layers import Layer
from blocknumba.errors import require
from blocknumba.tracebacks import called, without_our_frames


class Heuristics(Layer):
    """A kernel some of whose constants are functions of its arguments.

    values: name -> function of the dict of all arguments, constants and options so far; each
        sees what those before it gave.
    """

    def __init__(self, kernel: Kernel | Layer, values: Mapping[str, Callable[[dict], object]]):
        super().__init__(kernel, "heuristics", frozenset(values))
        self.values = dict(values)

    def remake(self) -> tuple[type, tuple]:
        """See Named.remake."""
        return Heuristics, (self.kernel, self.values)

    def complete(self, arguments: tuple, keywords: dict, launch: tuple) -> dict[str, object]:
        """See Layer.complete."""
        self.require_free(arguments, keywords)
        named = self.named(arguments, keywords)
        for name, function in self.values.items():
            named[name] = called(f"heuristics: {name}", function, named)
        chosen = {name: named[name] for name in self.values}
        return super().complete(arguments, keywords | chosen, launch)


@without_our_frames
def heuristics(values: Mapping[str, Callable[[dict], object]]) -> Callable[[Kernel], Heuristics]:
    """Compute constants: `@bn.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})`.

    It goes above @bn.jit, and above or below @bn.autotune, whose choice it sees when below.
    """
    require(isinstance(values, Mapping) and all(map(callable, values.values())),
            "heuristics: given {!r}, accepted a dict of functions by name", values)
    return without_our_frames(lambda kernel: Heuristics(kernel, values))
