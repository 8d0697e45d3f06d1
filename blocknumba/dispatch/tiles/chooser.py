"""The chooser of a kernel: ranks tiles by a model, on the tile IR, when a launch has bn.auto.

    arguments, grid --probes--> tile IR --work--> numbers --model--> estimates --> the best
                                                                     that compiles
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.dispatch.compile.cache import user_cache
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.fingerprint import digest, fingerprint
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.call import (
    Arguments, Call, device_of, read_arguments, resolve_grid, target_of,
)
from blocknumba.dispatch.launch.launchers import Link
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.dispatch.launch.grid import grid_and_stream
from blocknumba.dispatch.launch.launcher import MAX_PLANS
from blocknumba.dispatch.launch.specialize import Specialization, arguments_of
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.dispatch.tiles.choice import (
    MAX_EXTENTS, Choice, bucket, bucketed, candidates, coarse_candidates, ranked,
)
from blocknumba.dispatch.tiles.front import generate_front
from blocknumba.errors import AutotuneError, BlockError, BlockValueError, require

if TYPE_CHECKING:
    from blocknumba.tile_ir.analysis.work import Work

MODEL_VERSION = 6  # of the models: choices on disk are those of one
MAX_TRIES = 8  # candidates that may fail to compile before it is the kernel's fault


@dataclass(frozen=True, slots=True)
class _Request:
    """A launch that tiles are wanted for.

    bound: the arguments by name.  names: of the constants to choose.  grid: as it was given.
    """

    bound: dict[str, object]
    names: tuple[str, ...]
    grid: object
    options: Options
    arguments: Arguments
    driver: Driver | None
    device: int


class Chooser:
    """Chooser of the tiles of one kernel.

    latest: the choice that was made last; None before the first.
    """

    def __init__(self, kernel: Named):
        self._kernel = kernel
        self._choices: dict[tuple, Choice] = {}
        self.latest: Choice | None = None

    def launcher(self, arguments: tuple, keywords: Mapping[str, object], link: Link,
                 ) -> Callable[..., Compiled] | None:
        """A launcher for calls like one, which knows the tiles of calls that it has met.

        None if arguments like these have to be read each time: `launch` does.
        """
        return generate_front(self._kernel, arguments, keywords, link, self._first)

    def launch(self, configuration: object, /, *arguments: object, stream: object = None,
               **keywords: object) -> Compiled:
        """Launch with the tiles that are best for the arguments; see Kernel.__getitem__."""
        grid, _ = grid_and_stream(configuration, stream)
        bound, changes = self._kernel.signature.bind(arguments, keywords)
        choice = self.latest = self._choice(bound, changes, grid)
        compiled = self._kernel[configuration](
            stream=stream, **self._named(arguments, keywords), **choice.constants())
        compiled.chosen = compiled.chosen or str(choice)
        return compiled

    def _named(self, arguments: tuple, keywords: Mapping[str, object]) -> dict[str, object]:
        """The arguments of a call by name, but those to choose."""
        given = {**dict(zip(self._kernel.signature.names, arguments)), **keywords}
        return {name: value for name, value in given.items() if type(value) is not Auto}

    def _first(self, key: Hashable, launches: dict[Hashable, Callable[..., Compiled]],
               configuration: object, /, *arguments: object, stream: object = None,
               **keywords: object) -> Compiled:
        """Launch a call that a generated launcher has not met, and tell it how to."""
        kernel = self._kernel
        arguments, keywords = kernel.signature.passed(arguments, keywords)
        compiled = self.launch(configuration, *arguments, stream=stream, **keywords)
        chosen = self.latest.constants()
        launcher = kernel._launchers.find_named(self._named(arguments, keywords) | chosen)
        if launcher is not None:
            if len(launches) >= MAX_PLANS:
                launches.clear()
            launches[key] = functools.partial(launcher, **chosen)
        return compiled

    def complete(self, bound: dict[str, object], changes: Mapping[str, object],
                 grid: object) -> dict[str, object]:
        """The arguments of a call with the constants that are chosen."""
        self.latest = self._choice(bound, changes, grid)
        return bound | self.latest.constants()

    def best(self, bound: dict[str, object], changes: Mapping[str, object], grid: object,
             count: int) -> list[dict[str, int]]:
        """The constants of the candidates with the least estimates, the best first, at most count.

        Arguments as of `complete`.
        """
        choice = self._choice(bound, changes, grid)
        return [choice.constants(rank) for rank in range(min(count, len(choice.extents)))]

    def _choice(self, bound: dict[str, object], changes: Mapping[str, object],
                grid: object) -> Choice:
        request = self._request(bound, changes, grid)
        key = self._key(request)
        choice = self._choices.get(key)
        if choice is None:
            choice = self._choices[key] = self._compilable(request, self._stored(request, key))
        return choice

    def _request(self, bound: dict[str, object], changes: Mapping[str, object],
                 grid: object) -> _Request:
        """Errors: BlockTypeError for bn.auto that is no constant; those of the arguments."""
        kernel = self._kernel
        formals = kernel.signature.formals
        names = tuple(formal.name for formal in formals if type(bound[formal.name]) is Auto)
        for formal in formals:
            require(formal.is_constant or formal.name not in names,
                    "{}: given bn.auto for {}, accepted for constants", kernel.signature.kernel,
                    formal.name, hint=f"annotate it: {formal.name}: bn.constexpr")
        require(len(names) <= MAX_EXTENTS, "{}: given bn.auto for {}, accepted for at most {} "
                "constants", kernel.signature.kernel, ", ".join(names), MAX_EXTENTS,
                error=BlockValueError)
        flat, parts = kernel.nested.taken_apart(bound)
        options = kernel.options.override(changes)
        given = replace(flat.signature, formals=tuple(
            formal for formal in flat.signature.formals if formal.name not in names))
        arguments = read_arguments(given, parts)
        return _Request(bound, names, grid, options, arguments,
                        *device_of(given, arguments, options))

    def _key(self, request: _Request) -> tuple:
        """Key of a choice: shapes and numbers in buckets, dtypes, constants, options, device."""
        infos = request.arguments.infos.items()
        sizes = tuple((name, str(info.dtype), *map(bucket, info.shape), *(
            stride == 1 for stride in info.strides)) if isinstance(info, ArrayInfo)
            else (name, str(info.dtype), bucketed(info.value)) for name, info in infos)
        # by name, not by address, which is another one in each process
        constants = tuple((name, getattr(value, "__qualname__", None) or repr(value))
                          for name, value in request.arguments.constants.items())
        device = "CPU" if request.driver is None else request.driver.device_name(request.device)
        return sizes, constants, request.names, request.options, device

    def _stored(self, request: _Request, key: tuple) -> Choice:
        """A choice from the disk, or a new one, which is stored."""
        cache = user_cache()
        code = None if cache is None else fingerprint(
            self._kernel.python_function, Specialization((), (), (), request.options, None),
            request.arguments.constants)
        stored = None if code is None else digest(("tiles", MODEL_VERSION, code, repr(key)), ())
        content = None if stored is None else cache.load(stored)
        if content is not None:
            return Choice.from_json(content)
        choice = self._ranked(request)
        if stored is not None:
            cache.save(stored, choice.to_json())
        return choice

    def _compilable(self, request: _Request, choice: Choice) -> Choice:
        """A choice whose first candidate compiles.

        Errors: AutotuneError when none of the best does.
        """
        reasons: list[BlockError] = []
        for rank in range(min(len(choice.extents), MAX_TRIES)):
            try:
                self._prepared(request, choice.constants(rank))
                return choice.starting_with(rank)
            except BlockError as error:
                reasons.append(error)
        name = self._kernel.signature.kernel
        if not reasons:
            raise AutotuneError(f"{name}: none of {choice.count} choices of "
                                f"{', '.join(request.names)} fits {self._device_text(request)}",
                                hint="pass the extents, and see what compiling says")
        raise AutotuneError(f"{name}: the {len(reasons)} best choices of "
                            f"{', '.join(request.names)} fail, the first one, "
                            f"{choice.constants()}: {reasons[0]}")

    def _prepared(self, request: _Request, constants: Mapping[str, int]) -> Call:
        return self._kernel.prepare(request.bound | constants, request.options)

    def _device_text(self, request: _Request) -> str:
        if request.driver is None:
            return "the CPU"
        return str(target_of(request.driver, request.device))

    def _ranked(self, request: _Request) -> Choice:
        """All candidates in the order of the model."""
        # here and not above: numba is not loaded where a choice comes from the disk
        from blocknumba.dispatch.tiles.scaling import probes, scaled

        count = len(request.names)
        works, errors = [], []
        for extents in probes(count):
            try:
                works.append(self._work(request, dict(zip(request.names, extents))))
            except BlockError as error:
                errors.append(error)
        found = candidates(count)
        work = None if errors else scaled(works, found)
        if work is not None:
            programs = np.array([self._programs(request, row) for row in found], float)
            return ranked(request.names, found, np.broadcast_to(
                self._estimate(request, work, programs), len(found)))
        found = coarse_candidates(count)
        estimates = np.full(len(found), math.inf)
        for number, row in enumerate(found):
            try:
                one = self._work(request, dict(zip(request.names, map(int, row))))
            except BlockError as error:
                errors.append(error)
                continue
            estimates[number] = self._estimate(request, one, self._programs(request, row))
        if not np.isfinite(estimates).any() and errors:
            raise errors[0]
        return ranked(request.names, found, estimates)

    def _programs(self, request: _Request, extents: np.ndarray) -> int:
        constants = dict(zip(request.names, map(int, extents)))
        return math.prod(self._grid(request, constants))

    def _grid(self, request: _Request, constants: Mapping[str, int]) -> tuple[int, int, int]:
        return resolve_grid(request.grid, self._kernel.signature, request.bound | constants,
                            request.options)

    def _work(self, request: _Request, constants: Mapping[str, int]) -> Work:
        """The work of a program of the kernel with these constants."""
        from blocknumba.dispatch.compile.pipeline import tile_function  # here: as in _ranked
        from blocknumba.tile_ir.analysis.work import work_of  # here: as in _ranked

        flat, parts = self._kernel.nested.taken_apart(request.bound | constants)
        arguments = read_arguments(flat.signature, parts)
        target = (None if request.driver is None
                  else target_of(request.driver, request.device))
        specialization, _ = flat.specialize(
            arguments_of(flat.signature, arguments.infos), arguments.constants, request.options,
            target, disjoint=True)
        fn = tile_function(flat.python_function, specialization, arguments.constants, {})
        return work_of(fn, _numbers(arguments), self._grid(request, constants))

    def _estimate(self, request: _Request, work: Work, programs: object) -> np.ndarray:
        sizes = {name: info.size * info.dtype.bytes
                 for name, info in request.arguments.arrays.items()}
        return _model(request)(work, programs, sizes)


def _model(request: _Request) -> Callable[..., np.ndarray]:
    """The model of a device: (work, programs, bytes of arrays) -> estimates."""
    if request.driver is None:
        from blocknumba.dispatch.tiles import cpu_model  # here: as in _ranked
        return cpu_model.nanoseconds
    from blocknumba.dispatch.tiles import gpu_model  # here: as in _ranked

    machine = gpu_model.Machine(
        target_of(request.driver, request.device),
        request.driver.attribute("MULTIPROCESSOR_COUNT", request.device))
    return lambda work, programs, sizes: gpu_model.cycles(work, programs, machine, sizes)


def _numbers(arguments: Arguments) -> dict[tuple[str, str, int | None], int]:
    """The ints that a kernel is launched with: extents, strides, values."""
    found: dict[tuple[str, str, int | None], int] = {}
    for name, info in arguments.infos.items():
        if isinstance(info, ArrayInfo):
            found |= {("extent", name, axis): size for axis, size in enumerate(info.shape)}
            found |= {("stride", name, axis): size for axis, size in enumerate(info.strides)}
        elif info.dtype.is_integer:
            found["value", name, None] = int(info.value)
    return found
