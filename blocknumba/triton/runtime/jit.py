"""`triton.jit`: kernels in Triton's dialect, with the members that launchers of others ask for."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.fingerprint import fingerprint
from blocknumba.dispatch.launch.bound import LaunchEvent
from blocknumba.dispatch.launch.call import Call
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.launch.plan import Plan
from blocknumba.dispatch.launch.signature import Signature, read_signature
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.errors import BlockError, ResourceError, require
from blocknumba.tracebacks import leave_out_our_frames, without_our_frames
from blocknumba.triton.errors import of_compilation, of_interpretation
from blocknumba.triton.runtime.compiled_kernel import CompiledKernel
from blocknumba.triton.runtime.driver import driver
from blocknumba.triton.runtime.interface import KernelInterface
from blocknumba.triton.runtime.options import TritonOptions, without_triton_options
from blocknumba.triton.runtime.tensors import MockTensor, TensorWrapper, reinterpret
from blocknumba.typing.dialect import TRITON_NAME
from blocknumba.typing.function import own_signature

_FUSION = "enable_fp_fusion"

__all__ = ["JITFunction", "KernelInterface", "KernelParam", "MockTensor", "TensorWrapper", "jit",
           "reinterpret"]


@dataclass(frozen=True)
class ParametersSignature(Signature):
    """A kernel's signature that answers as one of inspect does.

    parameters: name -> inspect's.
    """

    parameters: Mapping[str, inspect.Parameter] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class KernelParam:
    """A parameter of a kernel.

    num: its position.  parameter: as inspect describes it.
    is_constexpr: a constant at compile time.
    do_not_specialize, do_not_specialize_on_alignment: as jit was told.
    """

    num: int
    parameter: inspect.Parameter
    is_constexpr: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.parameter.name

    @property
    def annotation(self) -> str:
        """Its annotation as text; empty without one."""
        given = self.parameter.annotation
        if given is inspect.Parameter.empty:
            return ""
        return given if isinstance(given, str) else getattr(given, "__name__", str(given))

    @property
    def default(self) -> object:
        """Its default; inspect's mark of none."""
        return self.parameter.default

    @property
    def has_default(self) -> bool:
        """Whether it may be left out."""
        return self.default is not inspect.Parameter.empty

    @property
    def is_const(self) -> bool:
        """Whether it is annotated as a pointer to what is only read."""
        return self.annotation.rpartition(".")[2] == "const" or self.annotation.startswith("*k")


class JITFunction(Kernel, KernelInterface):
    """A kernel in Triton's dialect, or a function that kernels call.

    fn: the decorated function.  params: its parameters.  arg_names: their names.
    constexprs: the positions of those that are constants.

    Example:
    >>> @triton.jit
    ... def double(x, n, BLOCK: tl.constexpr):
    ...     i = tl.arange(0, BLOCK)
    ...     tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    >>> isinstance(double, triton.JITFunction), double.arg_names
    (True, ['x', 'n', 'BLOCK'])
    """

    @without_our_frames
    def __init__(self, fn: FunctionType, version: object = None,
                 do_not_specialize: Iterable[int | str] | None = None,
                 do_not_specialize_on_alignment: Iterable[int | str] | None = None,
                 debug: bool | None = None, noinline: bool | None = None,
                 repr: Callable | None = None, launch_metadata: Callable | None = None):
        read = read_signature(fn, TRITON_NAME)
        parameters = own_signature(fn).parameters
        unspecialized = {*(do_not_specialize or ())}
        formals = tuple(
            replace(formal, is_specialized=not {number, formal.name} & unspecialized)
            for number, formal in enumerate(read.formals))
        super().__init__(fn, TritonOptions(debug=bool(debug), dialect=TRITON_NAME),
                         ParametersSignature(read.kernel, formals, parameters))
        self._ambiguous = [formal.name for number, formal in enumerate(formals)
                           if formal.is_constant and {number, formal.name} & unspecialized]
        self.fn, self.module, self.version = fn, fn.__module__, version
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self.debug, self.noinline = debug, noinline
        self.custom_repr, self.launch_metadata = repr, launch_metadata
        self.params = [
            KernelParam(number, parameters[formal.name], formal.is_constant,
                        bool({number, formal.name} & {*self.do_not_specialize}),
                        bool({number, formal.name} & {*self.do_not_specialize_on_alignment}))
            for number, formal in enumerate(self.signature.formals)]
        self.arg_names = [parameter.name for parameter in self.params]
        self.constexprs = [param.num for param in self.params if param.is_constexpr]
        self.pre_run_hooks: list[Callable[..., object]] = []
        self.used_global_vals: dict[object, object] = {}

    def __init_subclass__(cls, **keywords: object):
        """Let `kernel[grid]` call the method run of a subclass that has its own."""
        super().__init_subclass__(**keywords)
        if "run" in vars(cls) and "__getitem__" not in vars(cls):
            cls.__getitem__ = KernelInterface.__getitem__

    @without_our_frames
    def run(self, *arguments: object, grid: object, warmup: bool = False,
            **keywords: object) -> CompiledKernel:
        """Launch, or with warmup only compile."""
        if warmup:
            return self.warmup(*arguments, grid=grid, **keywords)
        return Kernel.__getitem__(self, grid)(*arguments, **keywords)

    @without_our_frames
    def warmup(self, *arguments: object, grid: object = 1, **keywords: object) -> CompiledKernel:
        """Compile for these arguments without running anything; the grid does not matter.

        Dtypes of Torch and MockTensor may stand for tensors.
        """
        given = map(MockTensor.wrap_dtype, arguments)
        named = {name: MockTensor.wrap_dtype(value) for name, value in keywords.items()}
        kernel, left = self.chosen(named)
        return Kernel.warmup(kernel, *given, grid=1, **left)

    def new_code(self, specialization: Specialization,
                 constants: Mapping[str, object]) -> CompiledKernel:
        """See Kernel.new_code.  Errors: those of errors.py, which are Triton's too."""
        try:
            require(not self._ambiguous, "{}: given {} as constexpr and in do_not_specialize, "
                    "accepted in one of them", self.__name__, " and ".join(self._ambiguous))
            compiled = super().new_code(specialization, constants)
        except BlockError as error:
            raise of_compilation(error) from error.__cause__
        return CompiledKernel.of(compiled, self, constants)

    def execute(self, call: Call, extents: Grid, stream: object) -> Plan | None:
        """See Kernel.execute."""
        try:
            return super().execute(call, extents, stream)
        except ResourceError as error:
            raise of_compilation(error) from error.__cause__
        except BlockError as error:
            if call.driver is not None or call.compiled.native is not None:
                raise
            raise of_interpretation(error) from error.__cause__

    def compile(self, specialization: Specialization,
                constants: Mapping[str, object]) -> CompiledKernel:
        """See Kernel.compile."""
        return super().compile(specialization, constants)

    def _any_call(self, configuration: object, /, *arguments: object, stream: object = None,
                  **keywords: object) -> Compiled:
        """See Kernel._any_call; options that only Triton has are taken out first."""
        try:
            kernel, keywords = self.chosen(keywords)
        except Exception as error:
            leave_out_our_frames(error)
            raise
        return Kernel._any_call(kernel, configuration, *arguments, stream=stream, **keywords)

    def chosen(self, keywords: Mapping[str, object]) -> tuple[JITFunction, dict[str, object]]:
        """The kernel that a launch with some keywords means, and those that are left for it."""
        left = without_triton_options(self.signature, keywords)
        if _FUSION in self.arg_names or left.pop(_FUSION, True):
            return self, left
        return self._unfused, left

    @functools.cached_property
    def _unfused(self) -> JITFunction:
        """The same kernel without contraction of products and sums."""
        _, arguments = self.remake()
        made = JITFunction(*arguments)
        made.options, made._hooks = replace(self.options, contract=False), self._hooks
        return made

    def add_pre_run_hook(self, hook: Callable[..., object]) -> None:
        """Call hook(*arguments, **constants) before every launch, however they were given."""
        if not self.pre_run_hooks:
            self.add_launch_hook(self._call_pre_run_hooks)
        self.pre_run_hooks.append(hook)

    def _call_pre_run_hooks(self, event: LaunchEvent) -> None:
        named = {param.name: event.arguments[param.name] for param in self.params}
        constants = {param.name: named.pop(param.name) for param in self.params
                     if param.is_constexpr}
        for hook in tuple(self.pre_run_hooks):
            hook(*named.values(), **constants)

    @functools.cached_property
    def cache_key(self) -> str:
        """A digest of its code and of all that the code reads, the same in every process."""
        found = fingerprint(self.fn, Specialization((), (), (), self.options, None), {})
        text = found if found is not None else f"{self.module}.{self.__qualname__}\n{self.src}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def hash(self) -> str:
        """Its cache_key."""
        return self.cache_key

    @property
    def src(self) -> str:
        """The source of the function, from its `def` on."""
        lines = inspect.cleandoc("\n" + self.raw_src)
        return lines[max(lines.find("def "), 0):]

    @property
    def raw_src(self) -> str:
        """The source of the function, decorators included."""
        return inspect.getsource(self.fn)

    @property
    def starting_line_number(self) -> int:
        """The line of its file where the source begins."""
        return inspect.getsourcelines(self.fn)[1]

    @property
    def __globals__(self) -> dict[str, object]:
        """The globals of the function."""
        return self.fn.__globals__

    @property
    def device_caches(self) -> Mapping[int, tuple]:
        """Of each device a tuple that begins with the code so far by specialization."""
        return defaultdict(lambda: (self._compiled, {}, driver.active.get_current_target(), None,
                                    None))

    def remake(self) -> tuple[type, tuple]:
        """See Named.remake."""
        return type(self), (self.fn, self.version, self.do_not_specialize,
                            self.do_not_specialize_on_alignment, self.debug, self.noinline,
                            self.custom_repr, self.launch_metadata)


@without_our_frames
def jit(fn: FunctionType | None = None, *, version: object = None,
        repr: Callable | None = None, launch_metadata: Callable | None = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None, noinline: bool | None = None,
        ) -> JITFunction | Callable[[FunctionType], JITFunction]:
    """Make a kernel, or a function that kernels call, of a Python function in Triton's dialect.

    debug: check asserts and accesses.
    do_not_specialize: names or positions of numbers of which code knows nothing but the dtype:
        not that one is 1, and so a constant; not what divides it.
    The other keywords are kept and change nothing: arrays are specialised, and calls inlined.

    Example:
    >>> @triton.jit
    ... def double(x, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    >>> x = np.arange(6, dtype=np.float32)
    >>> _ = double[(2,)](x, 6, BLOCK=4)
    >>> x
    array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    keywords = dict(version=version, do_not_specialize=do_not_specialize,
                    do_not_specialize_on_alignment=do_not_specialize_on_alignment, debug=debug,
                    noinline=noinline, repr=repr, launch_metadata=launch_metadata)
    if fn is None:
        return without_our_frames(lambda function: JITFunction(function, **keywords))
    return JITFunction(fn, **keywords)
