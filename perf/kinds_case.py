"""What a kind of kernel is: its text, its launch, and what must come out.  Cases register here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

MEMORY, DOTS = "memory-bound", "with dots"
LATER = f"{MEMORY}, drawn later"  # than what was tuned; with means of their own
THIRD = f"{MEMORY}, third set"  # than those too
FOURTH, FOURTH_DOTS = f"{MEMORY}, fourth set", f"{DOTS}, fourth set"
# by the result's dtype: of floats relative to an element and to the root of the mean square of all,
# of ints absolute
TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 2e-3, "bfloat16": 1.6e-2,
              "float8_e4m3fn": 0.13, "int8": 0, "uint8": 0, "int32": 0, "int64": 0}


@dataclass(frozen=True)
class Launch:
    """One launch.

    wanted: index of an argument that the kernel writes -> what it holds afterwards, in float64,
        computed by Torch when it is called, before any launch.
    options: num_warps and num_stages, as libraries give them.
    tolerances: by index, where the dtype's own does not say it.
    restored: indices of other arguments that it writes, such as locks.
    sizes: by index, what errors are relative to besides the elements, where that is not the root of
        the mean square of all: of sums of few and of many terms, the size of the terms of each.
    """

    arguments: list
    grid: tuple[int, ...]
    constants: Mapping[str, int]
    wanted: Mapping[int, Callable[[], object]]
    options: Mapping[str, int]
    tolerances: Mapping[int, float] = field(default_factory=dict)
    restored: tuple[int, ...] = ()
    sizes: Mapping[int, Callable[[], object]] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """build: makes a launch of some sizes.   small: sizes for a check on the CPU device."""

    name: str
    bound: str
    kernel: str
    build: Callable[..., Launch]
    real: Mapping[str, object]
    small: Mapping[str, object]


KINDS: dict[str, Kind] = {}


def kind(bound: str, real: Mapping[str, object], small: Mapping[str, object],
         name: str = "", kernel: str = "") -> Callable:
    """Register a function of (make, **sizes) as the kind of its name, of the kernel of its name."""
    def register(build: Callable[..., Launch]) -> Callable[..., Launch]:
        title = name or build.__name__
        assert title not in KINDS, title
        KINDS[title] = Kind(title, bound, kernel or build.__name__, build, real, small)
        return build
    return register


class Make:
    """Torch tensors of one device; device "meta" gives shapes and dtypes only."""

    def __init__(self, torch: ModuleType, device: str):
        self.torch, self.device = torch, device

    def normal(self, *shape: int, dtype: str = "float32", scale: float = 1.0) -> object:
        """Normal random numbers."""
        wide = self.torch.randn(shape, device=self.device)
        return (wide if scale == 1 else wide * scale).to(getattr(self.torch, dtype))

    def ints(self, low: int, high: int, *shape: int, dtype: str = "int32") -> object:
        """Random ints of [low, high)."""
        return self.torch.randint(low, high, shape, device=self.device,
                                  dtype=getattr(self.torch, dtype))

    def zeros(self, *shape: int, dtype: str = "float32") -> object:
        """Zeros: what atomics add to, and locks."""
        return self.torch.zeros(shape, device=self.device, dtype=getattr(self.torch, dtype))

    def empty(self, *shape: int, dtype: str = "float32") -> object:
        """Room for results: NaN, or -77 in ints, so that what is not written is seen."""
        kind_of = getattr(self.torch, dtype)
        value = float("nan") if kind_of.is_floating_point else -77
        return self.torch.full(shape, value, device=self.device).to(kind_of)

    def given(self, values: Sequence[int], dtype: str = "int32") -> object:
        """These numbers."""
        return self.torch.tensor(values, device=self.device, dtype=getattr(self.torch, dtype))


def cdiv(a: int, b: int) -> int:
    """The quotient of positive ints, rounded up."""
    return -(-a // b)


def power_of_two(n: int) -> int:
    """The least power of two that is not less than n."""
    return 1 << (n - 1).bit_length()


def row_warps(block: int) -> int:
    """Warps for a row of block elements, as libraries of row kernels choose them."""
    return 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4


def worst(torch: ModuleType, found: object, wanted: object, tolerance: float,
          size: object = None) -> float:
    """The greatest error by what is allowed: right is up to 1.  NaN is infinitely wrong."""
    wanted, exact = wanted.double(), not found.dtype.is_floating_point
    size = wanted.square().mean().sqrt() if size is None else size
    scale = 1 if exact else wanted.abs() + size
    found, allowed = found.double(), tolerance * scale + 1e-30
    return float(torch.nan_to_num((found - wanted).abs() / allowed, nan=float("inf")).max())
