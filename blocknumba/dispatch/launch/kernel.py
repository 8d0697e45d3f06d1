"""`@bn.jit`: a Python function as a kernel that can be launched."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.captures import Captures, capture, is_settled
from blocknumba.dispatch.compile.compilation import compile_function
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.options import Options, require_options
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.bound import Bound, LaunchEvent, bind_call
from blocknumba.dispatch.launch.call import (
    Arguments, Call, device_of, processor_of, read_arguments, resolve_grid, target_of,
)
from blocknumba.dispatch.launch.chain import Chain, Link
from blocknumba.dispatch.launch.driver import find_driver
from blocknumba.dispatch.torch.dynamo import leave_us_alone
from blocknumba.dispatch.launch.forks import COMPILATIONS, Lock
from blocknumba.dispatch.launch.grid import Grid, grid_and_stream
from blocknumba.dispatch.launch.inspected import Inspected
from blocknumba.dispatch.launch.launcher import MAX_PLANS, MISSING, generate_launcher
from blocknumba.dispatch.launch.nested_calls import NestedCalls
from blocknumba.dispatch.launch.plan import KeyPlans, Plan
from blocknumba.dispatch.launch.recent import Key
from blocknumba.dispatch.launch.signature import Signature, read_signature
from blocknumba.dispatch.launch.specialize import (
    Specialization, are_disjoint, arguments_of, frozen_constants, identify, stores_are_apart,
)
from blocknumba.dispatch.launch.structured import is_structured_class
from blocknumba.dispatch.torch.tensors import require_no_gradients
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS
from blocknumba.tracebacks import called, leave_out_our_frames, without_our_frames
from blocknumba.typing.dialect import NUMPY_NAME
from blocknumba.typing.function import own_signature

if TYPE_CHECKING:
    from blocknumba.dispatch.tiles.chooser import Chooser

MAX_CHAIN = 4  # generated launchers that a call tries before its signature is looked up
MAX_TRIES = 16  # to see the same grid twice in a row: those that are computed are new objects
_NOTHING_KEPT = (object(), None)  # yet

Launch = Callable[..., Compiled]

leave_us_alone()  # with the first kernel that there can be, whether Torch comes before or after


class Kernel(Inspected, Named):
    """A block kernel: `kernel[grid](*arguments)` launches it.

    python_function: the decorated function.
    signature: its parameters.
    options: compile options, which keywords of a launch override.

    Example:
    >>> kernel = bn.jit(lambda x: None)
    >>> isinstance(kernel, bn.Kernel)
    True
    """

    # slots are what each launch reads: they cost less than the dict of so many attributes
    __slots__ = ("_front", "_kept", "__dict__", "__weakref__")

    @without_our_frames
    def __init__(self, function: FunctionType, options: Options = Options()):
        require(isinstance(function, FunctionType), "jit: given {!r}, accepted a Python function",
                function)
        functools.update_wrapper(self, function)
        if vars(function):  # inspect would follow what functools.wraps left there
            self.__signature__ = own_signature(function)
        self.python_function = function
        self.signature: Signature = read_signature(function, options.dialect)
        self.options = options
        self._launchers: dict[tuple, Launch] = {}
        # called by launches; replaced as call signatures are met
        self._front: Launch = self._front_launcher
        self._positional_names = self.signature.positional_names
        self._rest = self.signature.rest
        self._maybe_options = frozenset(filter(self.signature.is_option, self.signature.names))
        # launchers of parameters that may be options take them by position or by name, not both
        self._chain = Chain(self._any_call, 1 if self._maybe_options else MAX_CHAIN)
        # the first grid that was asked for twice in a row and its launch, replaced as one
        self._kept: tuple[object, Launch | None] = _NOTHING_KEPT
        self._latest: object = _NOTHING_KEPT  # the grid that was asked for before
        self._tries_left = MAX_TRIES
        self._compiled: dict[Specialization, Compiled] = {}
        self._captures: dict[tuple[tuple[str, Hashable], ...], Captures] = {}
        self._compiling: dict[Specialization, Lock] = {}
        self._lock = Lock()
        self._hooks: list[Callable[[LaunchEvent], Callable[[], object] | None]] = []
        self.nested = NestedCalls(self, Kernel)

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
        kept, launch = self._kept
        if kept is configuration:
            return launch
        if launch is None:
            self._keep(configuration)
        # a bound method is the cheapest callable with a bound argument
        try:
            return MethodType(self._front, configuration)
        except TypeError:  # None, which no method can be bound to; the launch says what is wrong
            return MethodType(self._front, (configuration,))

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

    def compile(self, specialization: Specialization, constants: Mapping[str, object]) -> Compiled:
        """The code for a specialization, compiled once however many threads ask.

        constants: the values whose keys are in the specialization.
        """
        compiled = self._compiled.get(specialization)
        if compiled is None:
            with self._lock:
                lock = self._compiling.setdefault(specialization, Lock())
            with lock:  # of this specialization: others compile meanwhile
                compiled = self._compiled.get(specialization)
                if compiled is None:
                    with COMPILATIONS.running():
                        compiled = self.new_code(specialization, constants)
                    # else something changed meanwhile: nobody knows what the code has of it
                    if self.captures(constants).values == specialization.captured:
                        self._compiled[specialization] = compiled
        return compiled

    def new_code(self, specialization: Specialization,
                 constants: Mapping[str, object]) -> Compiled:
        """The code for a specialization, compiled or read from disk; see compile."""
        return compile_function(self.python_function, specialization, constants)

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
        if options.dialect == NUMPY_NAME:  # Triton asks no questions
            require_no_gradients(arguments.arrays, self.signature.kernel)
        driver, device = device_of(self.signature, arguments, options)
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

    def captures(self, constants: Mapping[str, object]) -> Captures:
        """Globals and other values that the code reads besides its arguments, as they are now.

        constants: of objects among them it reads attributes, of which strings may be the names.
        """
        read = {name: value for name, value in constants.items()
                if isinstance(value, str) or not is_settled(value)}
        key = tuple((name, identify(value, name)) for name, value in read.items())
        found = self._captures.get(key)
        if found is None or not found.is_current():
            if len(self._captures) >= MAX_PLANS:
                self._captures.clear()  # objects that never come back must not fill the memory
            found = self._captures[key] = capture(self.python_function, read)
        return found

    def specialize(self, arguments: tuple, constants: Mapping[str, object], options: Options,
                   target: Target | None, disjoint: bool) -> tuple[Specialization, Captures]:
        """The key of the code for arguments given as (name, Argument) pairs.

        disjoint: no array that is stored to shares memory with another; the interpreter does not
            care.
        """
        frozen = frozen_constants(self.signature, constants)
        captures = self.captures(constants)
        processor = processor_of(options) if target is None else None
        # target and processor say it
        options = options.override({"interpret": False, "device": None})
        return Specialization(arguments, frozen, captures.values, options, target,
                              disjoint and not (target is processor is None),
                              processor=processor), captures

    def remake(self) -> tuple[type, tuple]:
        """See Named.remake."""
        return Kernel, (self.python_function, self.options)

    def __repr__(self) -> str:
        return f"<kernel {self.signature.kernel}({', '.join(self.signature.names)})>"

    def _front_launcher(self, configuration: object, /, *arguments: object,
                     stream: object = None, **keywords: object) -> Compiled:
        """Call the front launcher: for `kernel[grid]` made before the kernel had one."""
        try:
            return self._chain.front(configuration, *arguments, stream=stream, **keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise

    def _any_call(self, configuration: object, /, *arguments: object,
                  stream: object = None, **keywords: object) -> Compiled:
        """Launch a call of any signature: look its launcher up.

        arguments, keywords: some may be MISSING.
        """
        try:
            launcher, arguments, keywords = self._looked_up(arguments, keywords)
            return launcher(configuration, *arguments, stream=stream, **keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise

    def _looked_up(self, arguments: tuple, keywords: dict[str, object],
                   ) -> tuple[Launch, tuple, dict[str, object]]:
        """The launcher for a call's signature, and the arguments that are not MISSING."""
        arguments, keywords = self._passed(arguments, keywords)
        given = dict(zip(self._positional_names, arguments))
        if self._rest is not None:
            return self.nested.launch, arguments, keywords
        if len(given) < len(arguments) or not given.keys().isdisjoint(keywords):
            self.signature.bind(arguments, keywords)  # raises
        call_signature = self._call_signature(given | keywords, keywords)
        launcher = self._launchers.get(call_signature)
        if launcher is None:
            launcher = self._launchers[call_signature] = self._launcher(arguments, keywords)
        elif self._chain.has(launcher):
            self._begin_with(self._chain.met(launcher))
        return launcher, arguments, keywords

    def launcher_of(self, named: Mapping[str, object]) -> Launch | None:
        """The launcher for a call with all arguments by name, if there was one like it."""
        return self._launchers.get(self._call_signature(named, named))

    def _call_signature(self, given: Mapping[str, object], keywords: Mapping[str, object]) -> tuple:
        """Key of the calls of one launcher.  given: all arguments by name."""
        return (frozenset([(name, type(value)) for name, value in given.items()]),
                self._maybe_options.intersection(keywords))

    def _begin_with(self, launcher: Launch) -> None:
        """Make a launcher, or the look-up, the front."""
        self._front = launcher
        self._kept, self._tries_left = _NOTHING_KEPT, MAX_TRIES

    def _keep(self, configuration: object) -> None:
        """Keep the launch of a grid that is asked for twice in a row; give up after MAX_TRIES."""
        if configuration is self._latest:
            self._kept = configuration, MethodType(self._front, configuration)
        elif not self._tries_left:
            self._kept = object(), self._front  # equal to nothing, and not to be replaced
        else:
            self._tries_left -= 1
            if type(configuration) in (int, tuple):  # a function might keep arrays alive
                self._latest = configuration

    def _passed(self, arguments: tuple, keywords: dict[str, object]) -> tuple[tuple, dict]:
        """The arguments that are not MISSING; those after one that is were passed by name."""
        for count, value in enumerate(arguments):
            if value is MISSING:
                keywords = dict(zip(self._positional_names[count:], arguments[count:])) | keywords
                arguments = arguments[:count]
                break
        return arguments, {name: value for name, value in keywords.items() if value is not MISSING}

    def _launcher(self, arguments: tuple, keywords: Mapping[str, object]) -> Launch:
        """Generate the launcher for a call signature, and make it the front."""
        signature = self.signature
        _, changes = signature.bind(arguments, keywords)
        given = dict(zip(signature.positional_names, map(type, arguments)))
        given |= {name: type(value) for name, value in keywords.items()}
        if any(is_structured_class(given.get(formal.name, type(formal.default)))
               for formal in signature.formals if not formal.is_constant):
            return self.nested.launch
        if Auto in (given.get(formal.name, type(formal.default)) for formal in signature.formals):
            link = self._chain.link()
            launcher = self.tiles.launcher(arguments, keywords, link)
            return self.tiles.launch if launcher is None else self._added(launcher, link)
        options = self.options.override(changes)
        if SETTINGS.interpret or options.interpret or {"interpret", "device"} & {*changes}:
            return self._run_slowly
        driver = None if options.device else find_driver()
        if driver is None:
            if options.debug or "debug" in changes:
                return self._run_slowly
            # here and not above: it imports llvmlite, which launches on a GPU do without
            from blocknumba.dispatch.launch.native import NATIVE as driver
        link = self._chain.link()
        launcher = generate_launcher(driver, signature, given, tuple(sorted(changes)),
                                     self._miss, link, self._hooks)
        return self._run_slowly if launcher is None else self._added(launcher, link)

    def _added(self, launcher: Launch, link: Link) -> Launch:
        """A launcher that was generated, as the first of the chain."""
        self._chain.add(launcher, link)
        self._begin_with(launcher)
        return launcher

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

