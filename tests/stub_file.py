"""What type checkers and editors read of blocknumba: stubs, made from its public names.

Names that the package itself types are imported; functions of the language take and give Any, with
the names and defaults of their parameters; `jit` and its kernels are written out below.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import FunctionType, ModuleType

import blocknumba as bn
from blocknumba import language, libdevice
from blocknumba.dispatch.compile.options import OPTION_NAMES, Options
from blocknumba.dispatch.launch.kernel import TRITON_HINTS
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.function import BlockFunction

PACKAGE = Path(bn.__file__).parent
_WIDTH = 100
_WRITTEN_OUT = ("Kernel", "constexpr", "jit")
_LAUNCH_OPTIONS = {field.name: field.type for field in fields(Options)
                   if field.name in OPTION_NAMES} | {"stream": "Any"}
_HEAD = '''\
"""{doc}

Made by `pytest tests/test_stub.py --bless`.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, SupportsIndex, overload

from typing_extensions import ParamSpec, TypeVar

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.kernel import Kernel as _Kernel
from blocknumba.tile_ir.ir.types import DType
'''
_KERNELS = '''\
# No module has this name: what a type checker does not find is Any, as an annotation and called.
# So launches take any value for a constant, and kernels use it as what they know that it is.
from _untyped import constexpr as constexpr  # type: ignore

_P = ParamSpec("_P", default=...)
_R = TypeVar("_R", default=Any)
_Grid = SupportsIndex | tuple[SupportsIndex, ...] | list[Any] | Callable[[dict[str, Any]], Any]

class _Launch(Protocol[_P]):
    @overload
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> Compiled: ...
    # a keyword that is no parameter of the kernel cannot stand beside a ParamSpec's
{launches}

class Kernel(_Kernel, Generic[_P, _R]):
    def __getitem__(self, configuration: _Grid | tuple[_Grid, Any]) -> _Launch[_P]: ...
    # within another kernel
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> _R: ...  # type: ignore

@overload
def jit(
        function: Callable[_P, _R], /, *,
        {options},
) -> Kernel[_P, _R]:
{doc}

@overload
def jit(
        *,
        {options},
) -> Callable[[Callable[_P, _R]], Kernel[_P, _R]]: ...
'''


def stubs() -> dict[Path, str]:
    """The stubs by their paths: of the package, of its language, of libdevice."""
    public = {name: getattr(bn, name) for name in dir(bn) if not name.startswith("_")}
    other = sorted(language.__all__)
    return {
        PACKAGE / "__init__.pyi": "\n".join([
            _HEAD.format(doc=bn.__doc__), *sorted(_imports(public)), "", _kernels(),
            *_declarations(public), "__version__: str", _all(bn.__all__)]),
        PACKAGE / "language.pyi": "\n".join([
            f'"""{language.__doc__}"""\n', "from typing import Any\n",
            *(f"from blocknumba import {name} as {name}" for name in other),
            "from blocknumba import libdevice as math", "\nextra: Any", _all(other)]),
        PACKAGE / "libdevice" / "__init__.pyi": "\n".join([
            f'"""{libdevice.__doc__}"""\n', "from typing import Any\n",
            *_declarations({name: getattr(libdevice, name) for name in libdevice.__all__}),
            _all(libdevice.__all__)])}


def _all(names: Iterable[str]) -> str:
    listed = _listed([f'"{name}"' for name in names], indent=4)
    return f"\n__all__ = [\n    {listed},\n]\n"


def _is_typed(value: object) -> bool:
    """Whether its module says the types of a value: a class, or a function with annotations."""
    if isinstance(value, FunctionType):
        return "return" in value.__annotations__
    return isinstance(value, type)


def _imports(values: dict[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, ModuleType):
            yield f"from blocknumba import {name} as {name}"
        elif name not in _WRITTEN_OUT and _is_typed(value):
            yield f"from {value.__module__} import {name} as {name}"
        elif name == "auto":
            yield f"from {type(value).__module__} import {name} as {name}"


def _declarations(values: dict[str, object]) -> Iterator[str]:
    """Declarations of dtypes, and of the functions of the language and of its library."""
    for name, value in values.items():
        if isinstance(value, DType):
            yield f"{name}: DType"
        elif isinstance(value, BlockFunction) or (
                isinstance(value, FunctionType) and not _is_typed(value)):
            yield _declared(name, value)


def _declared(name: str, function: BlockFunction | FunctionType) -> str:
    parameters = [_with_any(parameter)
                  for parameter in inspect.signature(function).parameters.values()]
    text = str(inspect.Signature(parameters)).replace("'", '"')[1:-1]
    start = f"def {name}("
    return (f"{start}{_listed(text.split(', '), len(start), len(') -> Any:'))}) -> Any:\n"
            f"{_docstring(function)}\n")


def _listed(items: list[str], indent: int, after: int = 1) -> str:
    """Items with commas, on lines from a column on, each with room for so many characters after."""
    lines, room = [""], _WIDTH - indent - after
    for item in items:
        if lines[-1] and len(f"{lines[-1]}, {item}") > room:
            lines.append("")
        lines[-1] += f", {item}" if lines[-1] else item
    return f",\n{' ' * indent}".join(lines)


def _with_any(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter that takes anything; `...` is a default that no literal spells."""
    default = parameter.default
    if not isinstance(default, (type(None), bool, int, float, str, type(inspect.Parameter.empty))):
        default = ...
    return parameter.replace(annotation=_Any(), default=default)


class _Any:
    def __repr__(self) -> str:
        return "Any"


def _docstring(value: object) -> str:
    """The first paragraph of a docstring, within a function."""
    text = inspect.cleandoc(value.__doc__).partition("\n\n")[0]
    return textwrap.fill(f'"""{text}"""', _WIDTH, initial_indent="    ", subsequent_indent="    ",
                         break_on_hyphens=False)


def _kernels() -> str:
    launches = "\n".join(
        f"    @overload\n    def __call__(self, *arguments: Any, {name}: {kind},\n"
        f"                 **keywords: Any) -> Compiled: ..."
        for name, kind in _LAUNCH_OPTIONS.items())
    options = [f"{name}: {kind} = ..." for name, kind in _LAUNCH_OPTIONS.items()
               if name in OPTION_NAMES]
    options += [f"{name}: Any = ..." for name in sorted(TRITON_HINTS)]
    return _KERNELS.format(launches=launches, doc=_docstring(bn.jit),
                           options=_listed(options, indent=8))
