"""Kernels that choose some of their arguments themselves: what autotune and heuristics share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.bound import Bound
from blocknumba.dispatch.launch.kernel import Kernel, grid_and_stream
from blocknumba.errors import BlockValueError, require, require_known
from blocknumba.tracebacks import called, leave_out_our_frames, without_our_frames


class Layer(Named):
    """A kernel, or another layer, with some arguments chosen by a decorator.

    kernel: what it is on top of.
    base: the kernel at the bottom.
    signature: of that kernel.
    chosen: names that this layer chooses.
    all_chosen: names that this layer and those below it choose.
    """

    def __init__(self, kernel: Kernel | Layer, decorator: str, chosen: frozenset[str]):
        require(isinstance(kernel, (Kernel, Layer)),
                "{}: given {!r}, accepted a kernel", decorator, kernel,
                hint=f"put @bn.{decorator} above @bn.jit")
        functools.update_wrapper(self, kernel.py_func)
        below = kernel.all_chosen if isinstance(kernel, Layer) else frozenset()
        self.kernel = kernel
        self.base: Kernel = kernel.base if isinstance(kernel, Layer) else kernel
        self.signature = self.base.signature
        self.chosen, self.all_chosen = chosen, chosen | below
        self._decorator = decorator
        require_known(f"{decorator} of {self.signature.kernel}: given", chosen,
                      self.signature.names, OPTION_NAMES, BlockValueError)

    @property
    def py_func(self) -> FunctionType:
        """The Python function, under Numba's name."""
        return self.base.py_func

    @property
    def _numba_type_(self) -> object:
        """Its type in functions that Numba compiles; Numba asks for it by this name."""
        # here and not above: nothing else needs it, and importing it takes time
        from blocknumba.dispatch.njit.lowering import kernel_type
        return kernel_type(self)

    def __getitem__(self, configuration: object) -> LayerLaunch:
        """`kernel[grid]` or `kernel[grid, stream]`, as of the kernel; a grid that is a function
        sees the chosen constants."""
        return LayerLaunch(self, configuration)

    __iter__ = None  # as of kernels

    @without_our_frames
    def __call__(self, *arguments: object, **keywords: object) -> None:
        self.base(*arguments, **keywords)  # its error says what to write

    @without_our_frames
    def warmup(self, *arguments: object, grid: object = 1, **keywords: object) -> Compiled:
        """Choose, and compile for the choice; see Kernel.warmup."""
        keywords = self.complete(arguments, keywords, (grid, None))
        return self.base.warmup(*arguments, grid=grid, **keywords)

    @without_our_frames
    def bind(self, grid: object, *arguments: object, stream: object = None,
             **keywords: object) -> Bound:
        """Choose, and bind the choice; see Kernel.bind."""
        keywords = self.complete(arguments, keywords, (grid, stream))
        return self.base.bind(grid, *arguments, stream=stream, **keywords)

    def last_choice(self) -> dict[str, object] | None:
        """See Named.last_choice."""
        return None

    def complete(self, arguments: tuple, keywords: dict, launch: tuple) -> dict[str, object]:
        """The keywords of a launch with everything that this layer and those below it choose.

        launch: grid and stream.
        """
        if isinstance(self.kernel, Layer):
            return self.kernel.complete(arguments, keywords, launch)
        return keywords

    def named(self, arguments: tuple, keywords: dict) -> dict[str, object]:
        """The arguments of a call by name, defaults and options included, as far as they are
        given."""
        defaults = {formal.name: formal.default for formal in self.signature.formals
                    if formal.has_default}
        return {**self.base.options.named(), **defaults,
                **dict(zip(self.signature.names, arguments)), **keywords}

    def require_free(self, arguments: tuple, keywords: dict) -> None:
        """Check that a call leaves to this layer what it chooses."""
        given = {*self.signature.names[:len(arguments)], *keywords} & self.chosen
        require(not given, "{}: given {}, which {} chooses", self.signature.kernel,
                ", ".join(sorted(given)), self._decorator, error=BlockValueError,
                hint="leave it out, or launch the kernel without the decorator")

    def __repr__(self) -> str:
        return f"<{self._decorator} of {self.kernel!r}>"


class LayerLaunch:
    """A layer with a grid and a stream, waiting for its arguments."""

    __slots__ = ("_layer", "_configuration")

    def __init__(self, layer: Layer, configuration: object):
        self._layer, self._configuration = layer, configuration

    def __call__(self, *arguments: object, stream: object = None, **keywords: object) -> Compiled:
        """Choose and launch; see Kernel.__getitem__."""
        try:
            grid, chosen = grid_and_stream(self._configuration)
            keywords = self._layer.complete(arguments, keywords,
                                            (grid, chosen if stream is None else stream))
            return self._layer.base[self._configuration](*arguments, stream=stream, **keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise


class Heuristics(Layer):
    """A kernel some of whose constants are functions of its arguments.

    values: name -> function of the dict of all arguments, constants and options so far; each
        sees the results of those before it.
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
def heuristics(values: Mapping[str, Callable[[dict], object]],
               ) -> Callable[[Kernel | Layer], Heuristics]:
    """Compute constants: `@bn.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})`.

    It goes above @bn.jit, and above or below @bn.autotune, whose choice it sees when below.

    Example:
    >>> @bn.heuristics({"BLOCK": lambda arguments: bn.next_power_of_2(arguments["x"].size)})
    ... @bn.jit
    ... def normalise(x, BLOCK: bn.constexpr):
    ...     r = bn.span(0, BLOCK)
    ...     x[r] = x[r] / bn.sum(x[r])
    >>> x = np.array([1.0, 2.0, 5.0])
    >>> _ = normalise[1](x)
    >>> x
    array([0.125, 0.25 , 0.625])
    """
    require(isinstance(values, Mapping) and all(map(callable, values.values())),
            "heuristics: given {!r}, accepted a dict of functions by name", values)
    return without_our_frames(lambda kernel: Heuristics(kernel, values))
