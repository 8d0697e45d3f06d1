"""`@bn.jit`: a Python function as a kernel that can be launched."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.kernel_code import KernelCode
from blocknumba.dispatch.compile.options import Options, require_options
from blocknumba.dispatch.launch.bound import Bound, LaunchEvent, bind_call
from blocknumba.dispatch.launch.call import (
    Arguments, Call, device_of, read_arguments, require_ends, resolve_grid, target_of,
)
from blocknumba.dispatch.launch.driver import find_driver
from blocknumba.dispatch.torch.dynamo import leave_us_alone
from blocknumba.dispatch.launch.grid import Grid, grid_and_stream
from blocknumba.dispatch.launch.launcher import MAX_PLANS, generate_launcher
from blocknumba.dispatch.launch.launchers import Launchers
from blocknumba.dispatch.launch.nested_calls import NestedCalls
from blocknumba.dispatch.launch.plan import KeyPlans, Plan
from blocknumba.dispatch.launch.recent import Key
from blocknumba.dispatch.launch.signature import Signature, read_signature
from blocknumba.dispatch.launch.specialize import (
    Specialization, are_disjoint, arguments_of, stores_are_apart,
)
from blocknumba.dispatch.launch.structured import is_structured_class
from blocknumba.dispatch.torch.tensors import require_no_gradients
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.settings import SETTINGS
from blocknumba.tracebacks import called, leave_out_our_frames, without_our_frames
from blocknumba.typing.dialect import NUMPY_NAME
from blocknumba.typing.function import own_signature

if TYPE_CHECKING:
    from blocknumba.dispatch.tiles.chooser import Chooser

Launch = Callable[..., Compiled]

leave_us_alone()  # with the first kernel that there can be, whether Torch comes before or after


class Kernel(KernelCode):
    """A block kernel: `kernel[grid](*arguments)` launches it.

    python_function: the decorated function.
    signature: its parameters.
    options: compile options, which keywords of a launch override.

    Example:
    >>> kernel = bn.jit(lambda x: None)
    >>> isinstance(kernel, bn.Kernel)
    True
    """

    # a slot is what each launch reads: it costs less than the dict of so many attributes
    __slots__ = ("_launchers",)

    @without_our_frames
    def __init__(self, function: FunctionType, options: Options = Options(),
                 signature: Signature | None = None):
        """signature: None for that of the function."""
        super().__init__(function, options,
                         signature or read_signature(function, options.dialect))
        functools.update_wrapper(self, function)
        if vars(function):  # inspect would follow what functools.wraps left there
            self.__signature__ = own_signature(function)
        self._launchers = Launchers(self.signature, self._any_call)
        self._hooks: list[Callable[[LaunchEvent], Callable[[], object] | None]] = []
        self.nested = NestedCalls(self, self._launchers, Kernel)

    @property
    def __dialect__(self) -> str:
        """The name of the dialect that its function is in."""
        return self.options.dialect

    @property
    def py_func(self) -> FunctionType:
        """The Python function, under Numba's name."""
        return self.python_function

    @property
    def _numba_type_(self) -> object:
        """Its type in functions that Numba compiles; Numba asks for it by this name."""
        # here and not above: nothing else needs it, and importing it takes time
        from blocknumba.dispatch.njit.lowering import kernel_type
        return kernel_type(self)

    @functools.cached_property
    def tiles(self) -> Chooser:
        """Chooser of the constants that are bn.auto: str() of its `latest` is the last choice."""
        # here and not above: few kernels leave their tiles to the compiler
        from blocknumba.dispatch.tiles.chooser import Chooser
        return Chooser(self)

    def __getitem__(self, configuration: object) -> Launch:
        """`kernel[grid]` or `kernel[grid, stream]`: a function that launches.

        It takes the kernel's arguments; keywords may also be compile options, and `stream=` if the
        brackets name none.  It returns the compiled kernel, and does not wait for the GPU.
        grid: int, tuple or list of 1 to 3 ints, or a function of the dict of all arguments and
        options.  stream: None, an int, a stream of CuPy, Torch or Numba.
        """
        launchers = self._launchers
        kept, launch = launchers.kept
        if kept is configuration:
            return launch
        if launch is None:
            launchers.keep(configuration)
        # a bound method is the cheapest callable with a bound argument
        try:
            return MethodType(launchers.front, configuration)
        except TypeError:  # None, which no method can be bound to; the launch says what is wrong
            return MethodType(launchers.front, (configuration,))

    __iter__ = None  # or Python would ask for [0], [1] and so on, without end

    @without_our_frames
    def __call__(self, *arguments: object, **keywords: object) -> None:
        name = self.signature.kernel
        raise BlockTypeError(f"{name}: called without a grid, accepted {name}[grid](...)",
                             hint=f"use {name}[1](...) for one program")

    @without_our_frames
    def warmup(self, *arguments: object, grid: object = 1, **keywords: object) -> Compiled:
        """Compile for these arguments, without running anything."""
        bound, changes = self.signature.bind(arguments, keywords)
        bound = self._with_tiles(bound, changes, grid)
        options = self.options.override(changes)
        resolve_grid(grid, self.signature, bound, options)
        return self.prepare(bound, options).compiled

    @without_our_frames
    def bind(self, grid: object, *arguments: object, stream: object = None,
             **keywords: object) -> Bound:
        """A function that launches with exactly these arguments, at the least cost.

        It takes nothing but `stream=`, and returns the compiled kernel.  It keeps the arrays
        alive; an array that got other memory must be bound again.
        stream: the one to launch on each time; None for the one that is then current.
        """
        bound, changes = self.signature.bind(arguments, keywords)
        bound = self._with_tiles(bound, changes, grid)
        options = self.options.override(changes)
        extents = resolve_grid(grid, self.signature, bound, options)
        return bind_call(self.prepare(bound, options), extents, stream, self._hooks,
                         lambda chosen: self._run(grid, chosen, bound, changes)[1].compiled)

    @without_our_frames
    def add_launch_hook(self, hook: Callable[[LaunchEvent], Callable[[], object] | None]) -> None:
        """Call hook(event) before every launch; what it returns, if not None, is called after.

        After means that the launch is queued, not that it is done.  It is called also when the
        launch or another hook raises, the last hook's first.  A hook that raises stops the launch.
        Hooks that are added or removed by a hook count from the next launch on.  While there
        are hooks, no launch uses a generated launcher.
        Errors: BlockTypeError for what cannot be called.
        """
        require(callable(hook), "{}: given {!r} as a launch hook, accepted a function",
                self.signature.kernel, hook)
        self._hooks.append(hook)

    @without_our_frames
    def remove_launch_hook(self, hook: Callable[[LaunchEvent], object]) -> None:
        """Do not call a hook any more."""
        require(hook in self._hooks, "{}: given a hook that was not added",
                self.signature.kernel, error=BlockValueError)
        self._hooks.remove(hook)

    def execute(self, call: Call, extents: Grid, stream: object) -> Plan | None:
        """Run a call; see Call.run."""
        return call.run(extents, stream)

    def prepare(self, bound: Mapping[str, object], options: Options) -> Call:
        """Read the arguments of a call, given by name, and find or compile the code for them."""
        if self.nested.has_parts(bound):
            kernel, parts = self.nested.taken_apart(bound)
            return kernel.prepare(parts, options)
        return self.prepare_read(read_arguments(self.signature, bound), options)

    def prepare_read(self, arguments: Arguments, options: Options) -> Call:
        """Find or compile the code for the arguments of a call."""
        is_own = options.dialect == NUMPY_NAME
        if is_own:  # Triton asks no questions
            require_no_gradients(arguments.arrays, self.signature.kernel)
        driver, device = device_of(self.signature, arguments, options)
        require_ends(arguments.arrays, self.signature.kernel, driver is not None, not is_own)
        target = None if driver is None else target_of(driver, device)
        arrays = arguments.arrays
        specialization, captures = self.specialize(
            arguments_of(self.signature, arguments.infos, target is None), arguments.constants,
            options, target, are_disjoint(arrays.values()))
        compiled = self._code_for(specialization, arguments)
        if not (target is specialization.processor is None or specialization.disjoint) and (
                stores_are_apart(arrays, compiled.effects.stored)):
            compiled = self._code_for(replace(specialization, disjoint=True), arguments)
        return Call(self.signature, arguments, captures, compiled, driver, device)

    def _code_for(self, specialization: Specialization, arguments: Arguments) -> Compiled:
        """The code for a call; without tensor maps of numbers if its numbers describe no array.

        That is rare: extents of 0, negative strides.
        """
        compiled = self.compile(specialization, arguments.constants)
        if compiled.is_for(arguments.infos):
            return compiled
        return self.compile(replace(specialization, numbers_describe=False), arguments.constants)

    def _variants(self) -> Iterable[KernelCode]:
        """See KernelCode._variants."""
        return self, *self.nested.kernels.values()

    def remake(self) -> tuple[type, tuple]:
        """See Named.remake."""
        return Kernel, (self.python_function, self.options)

    def __repr__(self) -> str:
        return f"<kernel {self.signature.kernel}({', '.join(self.signature.names)})>"

    def _any_call(self, configuration: object, /, *arguments: object,
                  stream: object = None, **keywords: object) -> Compiled:
        """Launch a call of any signature: look its launcher up.

        arguments, keywords: some may be MISSING.
        """
        try:
            arguments, keywords = self.signature.passed(arguments, keywords)
            launcher = (self._launchers.find(arguments, keywords, self._new_launcher)
                        if self.signature.rest is None else self.nested.launch)
            return launcher(configuration, *arguments, stream=stream, **keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise

    def _new_launcher(self, arguments: tuple, keywords: Mapping[str, object]) -> Launch:
        """Generate the launcher for a call signature, and make it the front."""
        signature = self.signature
        _, changes = signature.bind(arguments, keywords)
        given = dict(zip(signature.positional_names, map(type, arguments)))
        given |= {name: type(value) for name, value in keywords.items()}
        if any(is_structured_class(given.get(formal.name, type(formal.default)))
               for formal in signature.formals if not formal.is_constant):
            return self.nested.launch
        if Auto in (given.get(formal.name, type(formal.default)) for formal in signature.formals):
            link = self._launchers.link()
            launcher = self.tiles.launcher(arguments, keywords, link)
            return self.tiles.launch if launcher is None else self._launchers.add(launcher, link)
        options = self.options.override(changes)
        if SETTINGS.interpret or options.interpret or {"interpret", "device"} & {*changes}:
            return self._run_slowly
        driver = None if options.device else find_driver()
        if driver is None:
            if options.debug or "debug" in changes:
                return self._run_slowly
            # here and not above: it imports llvmlite, which launches on a GPU do without
            from blocknumba.dispatch.launch.native import NATIVE as driver
        link = self._launchers.link()
        launcher = generate_launcher(driver, signature, given, tuple(sorted(changes)),
                                     self._miss, link, self._hooks)
        return self._run_slowly if launcher is None else self._launchers.add(launcher, link)

    def _miss(self, plans: dict[Key, KeyPlans], key: Key, configuration: object, stream: object,
              bound: dict[str, object], changes: dict[str, object]) -> Compiled:
        """Launch a call that has no plan yet, and keep its plan for calls with the same key."""
        plan, call = self._run(*grid_and_stream(configuration, stream), bound, changes)
        if plan is not None:
            if len(plans) >= MAX_PLANS:
                plans.clear()
            key_plans = plans.get(key)
            if key_plans is None:
                key_plans = plans[key] = KeyPlans(
                    call.arguments.arrays, call.compiled.effects.stored, call.arguments.constants,
                    call.touched)
            key_plans.add(plan)
        return call.compiled

    def _run_slowly(self, configuration: object, /, *arguments: object,
                    stream: object = None, **keywords: object) -> Compiled:
        """Launch without a generated launcher: read every argument."""
        return self._run(*grid_and_stream(configuration, stream),
                         *self.signature.bind(arguments, keywords))[1].compiled

    def _with_tiles(self, bound: dict[str, object], changes: dict[str, object],
                    grid: object) -> dict[str, object]:
        """The arguments of a call, with extents in place of bn.auto."""
        if any(type(value) is Auto for value in bound.values()):
            return self.tiles.complete(bound, changes, grid)
        return bound

    def _run(self, grid: object, stream: object, bound: dict[str, object],
             changes: dict[str, object]) -> tuple[Plan | None, Call]:
        options = self.options.override(changes)
        extents = resolve_grid(grid, self.signature, bound, options)
        call = self.prepare(bound, options)
        if not self._hooks:
            return self.execute(call, extents, stream), call
        event = LaunchEvent(self.signature.kernel, call.compiled, extents, stream, dict(bound))
        with ExitStack() as after:
            for hook in tuple(self._hooks):
                done = called(f"{event.kernel}: a launch hook", hook, event)
                require(done is None or callable(done), "{}: a launch hook returned {!r}, accepted "
                        "None or a function", self.signature.kernel, done)
                if done is not None:
                    after.callback(done)
            return self.execute(call, extents, stream), call


TRITON_HINTS = frozenset(("do_not_specialize", "do_not_specialize_on_alignment",
                          "launch_metadata", "noinline", "repr", "version"))


@without_our_frames
def jit(function: FunctionType | None = None, /, **options: object) -> Kernel | Callable:
    """Make a kernel of a Python function: `@bn.jit` or `@bn.jit(num_warps=8)`.

    options: num_warps, num_stages, num_ctas, fastmath, debug, maxnreg, lineinfo, device, interpret,
    launch_cooperative_grid and launch_pdl, which a launch may override: see Options.
    The other keywords of Triton's jit, as do_not_specialize, are accepted and change nothing: code
    is specialised on divisibility, never on values, and all calls are inlined.
    Errors: BlockTypeError for an option that does not exist.

    Example:
    >>> @bn.jit
    ... def double(x, BLOCK: bn.constexpr):
    ...     r = bn.block(0, BLOCK)
    ...     x[r] = x[r] * 2
    >>> x = np.arange(6)
    >>> _ = double[bn.cdiv(x.size, 4)](x, BLOCK=4)
    >>> x
    array([ 0,  2,  4,  6,  8, 10])
    """
    options = {name: value for name, value in options.items() if name not in TRITON_HINTS}
    require_options("jit", options)
    chosen = Options(**options)
    if function is None:
        return without_our_frames(lambda inner: Kernel(inner, chosen))
    return Kernel(function, chosen)

