"""Calls whose arguments are made of several: the kernels of the parts, and generated launchers.

A launcher checks how the arguments are nested, and calls the launcher of the parts' kernel with the
parts.  For `total[grid]((x, y), n)` with a tuple of two arrays:

    def _launch(_grid, pair=_missing, n=_missing, *_more, stream=None, **_others):
        if (_more or _others or _type(pair) is not _class_0 or _len(pair) != 2
                or _type(pair[0]) is not _class_1 or ...):
            return _link.following()(_grid, pair, n, *_more, stream=stream, **_others)
        ...
        return _flat.front(_grid, pair[0], pair[1], n, stream=stream)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.call import resolve_grid
from blocknumba.dispatch.launch.launchers import Launch, Launchers, Link
from blocknumba.dispatch.launch.grid import are_ints, grid_and_stream
from blocknumba.dispatch.launch.launcher import MAX_PLANS
from blocknumba.dispatch.launch.signature import MISSING, Signature
from blocknumba.dispatch.launch.structured import (
    Flattening, constant_fields, is_structured, taken_apart,
)
from blocknumba.tracebacks import GENERATED, leave_out_our_frames
from blocknumba.typing.records import fields_of, record_of
from blocknumba.typing.static_values import constexpr

if TYPE_CHECKING:
    from blocknumba.dispatch.compile.compiled import Compiled


class NestedCalls:
    """The calls of a kernel with arguments that are made of several.

    kernel: a Kernel, as all that are Named here are.   launchers: its own.
    make: (function, options, signature) -> another kernel.
    kernels: how arguments are nested -> the kernel of the parts.
    """

    def __init__(self, kernel: Named, launchers: Launchers, make: Callable[..., Named]):
        self._kernel, self._launchers, self._make = kernel, launchers, make
        self.kernels: dict[tuple, Named] = {}
        self._fronts: dict[tuple, Launch] = {}

    def has_parts(self, bound: Mapping[str, object]) -> bool:
        """Whether some argument, no constant, is made of several."""
        return any(is_structured(bound[formal.name]) for formal in self._kernel.signature.formals
                   if not formal.is_constant)

    def taken_apart(self, bound: Mapping[str, object], are_types: bool = False,
                    ) -> tuple[Named, dict[str, object]]:
        """The kernel of the parts of all arguments, and these by name; the kernel itself if none.

        are_types: what is bound are types of arguments, as text and in other ways.
        """
        if not self.has_parts(bound):
            return self._kernel, dict(bound)
        kernel, values = self._flat(bound, are_types)
        return kernel, dict(zip(kernel.signature.names, values))

    def launch(self, configuration: object, /, *arguments: object, stream: object = None,
               **keywords: object) -> Compiled:
        """Launch, and make a launcher for calls that are nested like this one."""
        kernel = self._kernel
        arguments, keywords = kernel.signature.passed(arguments, keywords)
        bound, changes = kernel.signature.bind(arguments, keywords)
        # a parameter that is an option too is passed both ways
        if kernel.signature.options.isdisjoint(changes) and self.has_parts(bound):
            positional = kernel.signature.positional_names[:len(arguments)]
            self._begin_with(bound, {*positional, *keywords}, changes)
        return self._launch_parts(configuration, *arguments, stream=stream, **keywords)

    def _launch_parts(self, configuration: object, /, *arguments: object,
                      stream: object = None, **keywords: object) -> Compiled:
        """Launch the kernel of the parts of the arguments."""
        kernel = self._kernel
        arguments, keywords = kernel.signature.passed(arguments, keywords)
        bound, changes = kernel.signature.bind(arguments, keywords)
        is_direct = kernel.signature.options.isdisjoint(changes) and self.has_parts(bound)
        if kernel._hooks or not is_direct:
            return kernel._run_slowly(configuration, *arguments, stream=stream, **keywords)
        flat, values = self._flat(bound)
        if type(configuration) is not int:
            grid, stream = grid_and_stream(configuration, stream)
            configuration = resolve_grid(grid, kernel.signature, bound,
                                         kernel.options.override(changes))
        return flat._launchers.front(configuration, *values, stream=stream, **changes)

    def _begin_with(self, bound: Mapping[str, object], given: Collection[str],
                    changes: Mapping[str, object]) -> None:
        """Make the launcher for a call the front of the kernel's, if it is met often."""
        kernel = self._kernel
        if any(name.startswith("_") for name in kernel.signature.names):
            return
        flat, _ = self._flat(bound)
        front = Front(kernel.signature, bound, given, changes)
        key = flat, front.text(), *front.classes.values()
        launcher = self._fronts.get(key)
        if launcher is not None:
            self._launchers.met(launcher)
            return
        if len(self._fronts) >= MAX_PLANS:
            self._fronts.clear()
        link = self._launchers.link()
        launcher = self._fronts[key] = generate_front(
            front, kernel.signature, link, self._launch_parts, kernel._hooks,
            _flat=flat._launchers)
        self._launchers.add(launcher, link)

    def of(self, key: tuple) -> Named:
        """The kernel of the parts of arguments that are nested in one way."""
        flat = self.kernels.get(key)
        if flat is None:
            if len(self.kernels) >= MAX_PLANS:
                self.kernels.clear()
            flat = self.kernels[key] = self._made(key)
        return flat

    def _flat(self, bound: Mapping[str, object],
              are_types: bool = False) -> tuple[Named, list[object]]:
        """The kernel of the parts of all arguments, and these."""
        key, values = taken_apart(self._kernel.signature, bound, are_types)
        return self.of(key), values

    def _made(self, key: tuple) -> Named:
        kernel = self._kernel
        flattening = Flattening(kernel.python_function, kernel.signature, key)
        flat = self._make(flattening.function, kernel.options, flattening.signature)
        flat._hooks = kernel._hooks
        flat.origin = kernel, key
        return flat


_FRONT = """\
def _launch({parameters}):
    try:
        if {differs}:
            return _link.following()({same})
        if _hooks or _type(_grid) is not _int and (
                _type(_grid) is not _tuple or not _are_ints(_grid)):
            return _slowly({same})
        return _flat.front(_grid, {parts}stream=stream{options})
    except _Exception as _error:
        _leave_out_our_frames(_error)
        raise
"""


class Front:
    """The source of a launcher for calls whose arguments are nested as those of one call.

    given: names of the parameters that it passes; the others have their defaults.
    template: its text, with {parameters}, {differs}, {same}, {parts}, {options}.
    """

    def __init__(self, signature: Signature, bound: Mapping[str, object], given: Collection[str],
                 options: Collection[str], template: str = _FRONT):
        self._template = template
        self.classes: dict[str, type] = {}
        self._tests: list[str] = ["_others"] if signature.rest else ["_more", "_others"]
        self._parts: list[str] = []
        for formal in signature.formals:
            value, name = bound[formal.name], formal.name
            if formal.is_rest:
                self._tests.append(f"_len({name}) != {len(value)}")
                for index, item in enumerate(value):
                    self._read(item, f"{name}[{index}]")
            elif name not in given:
                self._tests.append(f"{name} is not _missing")
                self._read(value, f"_default_{name}")
            elif formal.is_constant:
                self._leaf(value, name)
            else:
                self._read(value, name)
        self._options = sorted(options)
        self._tests += [f"{name} is _missing" for name in self._options]
        self._signature = signature

    def text(self) -> str:
        """The text of a function `_launch`."""
        signature, rest = self._signature, self._signature.rest
        named = [*(formal.name for formal in signature.formals if formal.keyword_only),
                 *self._options]
        positional = signature.positional_names
        more = rest or "_more"
        return self._template.format(
            parameters=", ".join(["_grid", *(f"{name}=_missing" for name in positional),
                                  f"*{more}", *(f"{name}=_missing" for name in named),
                                  "stream=None", "**_others"]),
            same=", ".join(["_grid", *positional, f"*{more}",
                            *(f"{name}={name}" for name in named), "stream=stream", "**_others"]),
            differs=" or ".join(self._tests),
            parts="".join(f"{part}, " for part in self._parts),
            options="".join(f", {name}={name}" for name in self._options))

    def _read(self, value: object, text: str) -> None:
        if not is_structured(value):
            self._leaf(value, text)
            return
        cls = type(value)
        self._test_class(cls, text)
        if isinstance(value, tuple):
            self._tests.append(f"_len({text}) != {len(value)}")
        record = record_of(cls)
        constants = frozenset() if record is None else constant_fields(cls)
        names = range(len(value)) if record is None else record._fields
        items = value if record is None else fields_of(value)
        for index, (name, item) in enumerate(zip(names, items)):
            own = f"{text}[{index}]" if isinstance(value, tuple) else f"{text}.{name}"
            (self._leaf if name in constants else self._read)(item, own)

    def _leaf(self, value: object, text: str) -> None:
        self._test_class(type(value), text)
        self._parts.append(f"{text}.value" if isinstance(value, constexpr) else text)

    def _test_class(self, cls: type, text: str) -> None:
        name = f"_class_{len(self.classes)}"
        self.classes[name] = cls
        self._tests.append(f"_type({text}) is not {name}")


def generate_front(front: Front, signature: Signature, link: Link, slowly: Callable, hooks: list,
                   **names: object) -> Callable:
    """The launcher of a source.

    link: the next launcher.   slowly: launches in any case.   names: what the template reads too.
    """
    scope = {"_link": link, "_slowly": slowly, "_hooks": hooks, "_type": type, "_int": int,
             "_tuple": tuple, "_len": len, "_are_ints": are_ints, "_missing": MISSING,
             "_Exception": Exception, "_leave_out_our_frames": leave_out_our_frames,
             **front.classes, **names}
    scope |= {f"_default_{formal.name}": formal.default for formal in signature.formals}
    file = f"{GENERATED}launcher of {signature.kernel}>"
    exec(compile(front.text(), file, "exec"), scope)
    launch = scope["_launch"]
    launch.__name__ = launch.__qualname__ = signature.kernel  # Python's own errors say it
    return launch
