"""One launch of a kernel under Triton and under us on equal data, and what differs.

Every array is filled, so that what a kernel does not write must stay.  On a GPU both run there; in
host memory Triton's interpreter runs beside our CPU device, each in a process of its own.
"""

from __future__ import annotations

import inspect
import mmap
import os
import random
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import triton as theirs
import triton.language as their_language
from public_variants import ieee_products, is_explained
from triton.runtime import interpreter

from blocknumba.errors import BlockError, RaceError
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops import dot
from blocknumba.triton.porting.arguments import launched_values
from blocknumba.triton.runtime.jit import JITFunction
from blocknumba.typing.functions.count import BINS

NOTHING = "nothing written"
# elements of an array before and after its address
BEFORE, AFTER = {"cuda": 1 << 21, "cpu": 1 << 18}, {"cuda": 1 << 23, "cpu": 1 << 21}
GRID = (3, 2, 2)  # along the axes that a kernel asks for; 1 along others
STRIDES = (1, 64, 4096, 1 << 18)  # of the axes of one array, the last one first
SECONDS = 25  # of a run in host memory, after which it is given up
_TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32,
          "fp64": torch.float64, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
          "i64": torch.int64, "u8": torch.uint8, "i1": torch.bool,
          "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-3, torch.float64: 1e-9,
              torch.float8_e4m3fn: 0.13, torch.float8_e5m2: 0.26}


class TritonStops(Exception):
    """Triton's own run ended with an error, after which a GPU may be lost."""


@dataclass(frozen=True)
class Launch:
    """A kernel of both sides, and what it is given.

    given: the arguments that are no arrays.  start: the arrays, with room before their addresses.
    """

    ours: JITFunction
    theirs: object
    grid: tuple[int, ...]
    given: Mapping[str, object]
    constants: Mapping[str, object]
    start: Mapping[str, torch.Tensor]
    device: str

    @property
    def before(self) -> int:
        """Elements before an array's address."""
        return BEFORE[self.device]

    def on(self, kernel: object, arrays: Mapping[str, torch.Tensor], **options: object) -> None:
        """Launch a kernel of either side.   options: but those that are parameters of its own."""
        is_ours = isinstance(kernel, JITFunction)
        constants = {name: value if is_ours else their_constant(value)
                     for name, value in self.constants.items()}
        kernel[self.grid](**options | self.given | constants, **{
            name: array[self.before:] for name, array in arrays.items()})

    def on_gpu(self, kernel: object, **options: object) -> dict[str, torch.Tensor]:
        """The arrays after a launch there."""
        arrays = {name: array.clone() for name, array in self.start.items()}
        self.on(kernel, arrays, **options)
        torch.cuda.synchronize()
        return arrays

    def on_cpu(self, kernel: object, **options: object) -> tuple[dict[str, torch.Tensor], str]:
        """The arrays after a launch in another process, and its error; empty without one."""
        arrays = {name: shared(array) for name, array in self.start.items()}
        return arrays, apart(lambda: self.on(kernel, arrays, **options))

    def interpreted_by_triton(self) -> tuple[dict[str, torch.Tensor], str]:
        """As `on_cpu`, by Triton's interpreter."""
        arrays = {name: shared(array) for name, array in self.start.items()}

        def run() -> None:
            # of the process alone: the interpreter leaves Triton's language changed
            theirs.knobs.runtime.interpret = True
            theirs.runtime.JITFunction.__call__ = lambda self, *arguments, **named: (
                interpreter.InterpretedFunction(self.fn)(*arguments, **named))
            interpret_as_compiled()
            self.on(interpreter.InterpretedFunction(self.theirs.fn), arrays)

        return arrays, apart(run)

    def interpreted_exactly(self) -> tuple[dict[str, torch.Tensor], str]:
        """As `on_cpu`, by our interpreter with products of float32 that do not round to tf32."""
        arrays = {name: shared(array) for name, array in self.start.items()}

        def run() -> None:
            dot.rounded_to_tf32 = lambda values: values  # of the process alone
            self.on(self.ours, arrays, device="cpu", interpret=True)

        return arrays, apart(run)


def launch_of(ours: JITFunction, original: object, types: Mapping[str, str],
              constants: Mapping[str, object], seed: int, device: str) -> Launch:
    """A launch with drawn arguments."""
    start = {name: filled(spelled, seed + number, device)
             for number, (name, spelled) in enumerate(types.items()) if spelled.startswith("*")}
    return Launch(ours, original, grid_of(ours), numbers(ours, types, seed), constants, start,
                  device)


def gpu_result(launch: Launch, say: Callable[[], None]) -> tuple[str, str]:
    """Our error or "ok", and what differs.  Errors: TritonStops.

    say: called between Triton's run and ours.
    """
    try:
        wanted = launch.on_gpu(launch.theirs, num_warps=4)
    except Exception as error:
        raise TritonStops(said(error)) from None
    say()
    try:
        found = launch.on_gpu(launch.ours)
    except BlockError as error:
        return said(error), ""
    run = compared(found, wanted, launch.start)
    if run in ("equal", NOTHING):
        return "ok", run
    if any(compared(launch.on_gpu(launch.theirs, num_warps=warps), wanted, launch.start) != "equal"
           for warps in (8, 4, 1)):
        return "ok", f"Triton differs from itself; {run}"
    if race := race_of(launch):
        return "ok", f"undefined: {race}; {run}"
    if is_more_exact(lambda: launch.on_gpu(launch.theirs, num_warps=4), found, wanted,
                     launch.start):
        return "ok", f"more exact; {run}"
    return "ok", run


def cpu_result(launch: Launch) -> tuple[str, str]:
    """As `gpu_result`, in host memory; a difference says whether our interpreter has it, too."""
    wanted, error = launch.interpreted_by_triton()
    if error:
        raise TritonStops(error)
    found, error = launch.on_cpu(launch.ours, device="cpu")
    if error:
        return error, ""
    run = compared(found, wanted, launch.start)
    if run in ("equal", NOTHING):
        return "ok", run
    _, error = launch.on_cpu(launch.ours, device="cpu", debug=True)
    if error.startswith(RaceError.__name__):
        return "ok", f"undefined: {error}; {run}"
    exact, error = launch.interpreted_exactly()
    if not error and compared(exact, wanted, launch.start) == "equal":
        return "ok", f"tf32: Triton's interpreter has products of float32; {run}"
    interpreted, error = launch.on_cpu(launch.ours, device="cpu", interpret=True)
    ours = error or compared(found, interpreted, launch.start)
    return "ok", f"{run}; our interpreter and native code: {ours}"


def interpret_as_compiled() -> None:
    """Let Triton's interpreter compute what Triton's code does, where it has other numbers.

    It truncates to bfloat16, loses carries and overflows in 8-bit floats, and keeps NaNs in
    maxima and minima that leave them out.
    """
    by_interpreter = interpreter._convert_float

    def converted(values: np.ndarray, source: object, target: object,
                  rounding: object) -> np.ndarray:
        is_narrowed = target.primitive_bitwidth < source.primitive_bitwidth
        if not is_narrowed or rounding == interpreter._ir.ROUNDING_MODE.RTZ:
            return by_interpreter(values, source, target, rounding)
        return to_nearest(values, _TORCH[source.name], _TORCH[target.name])

    interpreter._convert_float = converted
    builder = interpreter.InterpreterBuilder
    builder.create_maxnumf = lambda self, x, y: self.binary_op(x, y, np.fmax)
    builder.create_minnumf = lambda self, x, y: self.binary_op(x, y, np.fmin)


def to_nearest(values: np.ndarray, source: torch.dtype, target: torch.dtype) -> np.ndarray:
    """Floats, or their bits, as the bits of narrower ones; 8-bit ones are finite or NaN."""
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    wide = torch.from_numpy(values.copy().view(f"i{source.itemsize}")).view(source)
    if target.itemsize == 1:
        wide = wide.float().clamp(-torch.finfo(target).max, torch.finfo(target).max)
    narrow = wide.to(target).view(words[target.itemsize])
    return narrow.numpy().view(f"u{target.itemsize}")


def apart(action: Callable[[], None]) -> str:
    """Do something in a process of its own, which may crash; its error, empty without one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        text = ""
        signal.alarm(SECONDS)
        try:
            action()
        except BaseException as error:
            text = said(error)
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return text


def shared(array: torch.Tensor) -> torch.Tensor:
    """A copy in memory that is shared with processes that are begun later."""
    memory = mmap.mmap(-1, array.nbytes)
    copy = torch.frombuffer(memory, dtype=array.dtype)
    copy.copy_(array)
    return copy


def their_constant(value: object) -> object:
    """A constant as Triton has it."""
    if isinstance(value, DType):
        names = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
        return getattr(their_language, names.get(value.name, value.name))
    return value


def numbers(kernel: JITFunction, types: Mapping[str, str], seed: int) -> dict[str, object]:
    """The values of the arguments that are no arrays."""
    rng, known, found = random.Random(seed), launched_values(kernel), {}
    for name, spelled in types.items():
        value = known.get(name)
        if spelled.startswith("*"):
            continue
        if isinstance(value, bool | int | float):
            found[name] = value
        elif spelled == "float":
            found[name] = rng.choice((0.5, 1.25))
        elif spelled == "bool":
            found[name] = rng.random() < 0.5
        elif "stride" not in name.lower():
            found[name] = rng.choice((48, 64))
    return strides([name for name in types if "stride" in name.lower() and name not in found
                    and not types[name].startswith("*")]) | found


def strides(names: Sequence[str]) -> dict[str, int]:
    """Strides of arrays whose elements lie apart: those of an array's axes grow to its first."""
    by_array: dict[str, list[str]] = {}
    for name in names:
        words = [word for word in name.lower().replace("stride", "").split("_") if word]
        array = "_".join(words[:-1]) if len(words) > 1 else "".join(words)[:-1]
        by_array.setdefault(array, []).append(name)
    return {name: STRIDES[min(len(axes) - 1 - number, len(STRIDES) - 1)] if len(axes) > 1 else 64
            for axes in by_array.values() for number, name in enumerate(axes)}


def grid_of(kernel: JITFunction) -> tuple[int, ...]:
    """The grid of a kernel, which has one program along the axes that it does not ask for."""
    axes = set(re.findall(r"(?:program_id|num_programs)\(\s*(?:axis\s*=\s*)?(\d)",
                          inspect.getsource(kernel.python_function)))
    return tuple(count if str(axis) in axes or not axes else 1 for axis, count in enumerate(GRID))


def filled(spelled: str, seed: int, device: str) -> torch.Tensor:
    """An array with room before its address, of random numbers."""
    dtype = _TORCH[spelled.strip("*").partition(":")[0]]
    generator = torch.Generator(device).manual_seed(seed)
    shape = (BEFORE[device] + AFTER[device],)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, device=device).to(dtype)
    high = {torch.uint8: 256, torch.int8: 128, torch.bool: 2}.get(dtype, 8)
    low = -128 if dtype == torch.int8 else 0
    return torch.randint(low, high, shape, generator=generator, device=device).to(dtype)


def difference(ours: torch.Tensor, wanted: torch.Tensor, start: torch.Tensor) -> str:
    """Where two arrays differ more than the dtype's bound; empty where nowhere."""
    changed = (bits(wanted) != bits(start)) | (bits(ours) != bits(start))
    a, b = ours[changed], wanted[changed]
    if ours.dtype not in _TOLERANCE:
        bad = a != b
    else:
        a, b = a.double(), b.double()
        finite = b[b.isfinite()]
        scale = finite.square().mean().sqrt() if len(finite) else 0
        bad = ~(((a - b).abs() <= _TOLERANCE[ours.dtype] * (b.abs() + scale)) | (a == b)
                | (a.isnan() & b.isnan()))
    if not bad.any():
        return ""
    first = bad.nonzero()[0, 0]
    return (f"{int(bad.sum())} of {bad.numel()} written differ, first {a[first].item():.6g}, "
            f"wanted {b[first].item():.6g}")


def bits(array: torch.Tensor) -> torch.Tensor:
    """The bits of an array, as integers."""
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return array.view(sizes[array.element_size()])


def race_of(launch: Launch) -> str:
    """What is undefined in a launch, which debug=True finds on the CPU: races; empty if nothing."""
    arrays = {name: array.cpu()[launch.before:] for name, array in launch.start.items()}
    try:
        launch.ours[launch.grid](**launch.given, **launch.constants, **arrays, device="cpu",
                                 debug=True)
    except RaceError as error:
        return said(error)
    except BlockError as error:
        # an access outside of the arrays is defined, which have room on the GPU
        return said(error) if BINS in str(error) else ""
    return ""


def is_more_exact(run: Callable[[], Mapping[str, torch.Tensor]],
                  found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor],
                  start: Mapping[str, torch.Tensor]) -> bool:
    """Whether ours is no farther from Triton's products of float32 without tf32 than Triton's."""
    with ieee_products():
        exact = run()
    return all(is_explained("ieee", found[name], wanted[name], exact[name]) for name in wanted
               if difference(found[name], wanted[name], start[name]))


def compared(found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor],
             start: Mapping[str, torch.Tensor]) -> str:
    """The differences of all arrays; "equal" without any, "nothing written" if so."""
    texts = [f"{name}: {text}" for name in wanted
             if (text := difference(found[name], wanted[name], start[name]))]
    if texts:
        return "; ".join(texts)
    if all(torch.equal(bits(wanted[name]), bits(start[name])) for name in wanted):
        return NOTHING
    return "equal"


def said(error: BaseException) -> str:
    """An error on one line, with its place in the user's source."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    line = getattr(getattr(error, "loc", None), "line", "")
    text = re.sub(r"^at \d+:\d+:.*\^ *", "", text)
    return f"{type(error).__name__}: {text[-300:]}" + (f" (line {line})" if line else "")
