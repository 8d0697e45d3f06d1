"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays.

Made by `pytest tests/test_stub.py --bless`.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, SupportsIndex, overload

from typing_extensions import ParamSpec, TypeVar

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.kernel import Kernel as _Kernel
from blocknumba.tile_ir.ir.types import DType

from blocknumba import errors as errors
from blocknumba import libdevice as libdevice
from blocknumba import testing as testing
from blocknumba.dispatch.block_functions.block_function import block_function as block_function
from blocknumba.dispatch.compile.ahead import compile as compile
from blocknumba.dispatch.launch.device import current_device as current_device
from blocknumba.dispatch.njit.device_array import device as device
from blocknumba.dispatch.tiles.auto import auto as auto
from blocknumba.dispatch.tune.autotune import autotune as autotune
from blocknumba.dispatch.tune.key import Config as Config
from blocknumba.dispatch.tune.layers import heuristics as heuristics
from blocknumba.testing.evaluate import evaluate as evaluate
from blocknumba.typing.static_values import static_range as static_range

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
    @overload
    def __call__(self, *arguments: Any, num_warps: int | None,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, num_stages: int | None,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, num_ctas: int,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, fastmath: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, debug: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, maxnreg: int | None,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, lineinfo: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, launch_cooperative_grid: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, launch_pdl: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, device: str | None,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, interpret: bool,
                 **keywords: Any) -> Compiled: ...
    @overload
    def __call__(self, *arguments: Any, stream: Any,
                 **keywords: Any) -> Compiled: ...

class Kernel(_Kernel, Generic[_P, _R]):
    def __getitem__(self, configuration: _Grid | tuple[_Grid, Any]) -> _Launch[_P]: ...
    # within another kernel
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> _R: ...  # type: ignore

@overload
def jit(
        function: Callable[_P, _R], /, *,
        num_warps: int | None = ..., num_stages: int | None = ..., num_ctas: int = ...,
        fastmath: bool = ..., debug: bool = ..., maxnreg: int | None = ..., lineinfo: bool = ...,
        launch_cooperative_grid: bool = ..., launch_pdl: bool = ..., device: str | None = ...,
        interpret: bool = ..., do_not_specialize: Any = ...,
        do_not_specialize_on_alignment: Any = ..., launch_metadata: Any = ..., noinline: Any = ...,
        repr: Any = ..., version: Any = ...,
) -> Kernel[_P, _R]:
    """Make a kernel of a Python function: `@bn.jit` or `@bn.jit(num_warps=8)`."""

@overload
def jit(
        *,
        num_warps: int | None = ..., num_stages: int | None = ..., num_ctas: int = ...,
        fastmath: bool = ..., debug: bool = ..., maxnreg: int | None = ..., lineinfo: bool = ...,
        launch_cooperative_grid: bool = ..., launch_pdl: bool = ..., device: str | None = ...,
        interpret: bool = ..., do_not_specialize: Any = ...,
        do_not_specialize_on_alignment: Any = ..., launch_metadata: Any = ..., noinline: Any = ...,
        repr: Any = ..., version: Any = ...,
) -> Callable[[Callable[_P, _R]], Kernel[_P, _R]]: ...

def abs(x: Any) -> Any:
    """|x|."""

def acos(x: Any) -> Any:
    """Arc cosine in radians; NaN outside [-1, 1].  Error: at most 4 units in the last place."""

def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1.  Error: at most 4 units in the last place."""

def advance(base: Any, offsets: Any) -> Any:
    """A block pointer moved by a tuple of ints, in elements."""

def all(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
        where: Any = None) -> Any:
    """Whether every element along axis is not 0."""

def any(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
        where: Any = None) -> Any:
    """Whether any element along axis is not 0."""

def arange(start: Any, stop: Any = None) -> Any:
    """start, start+1, ..., stop-1 as an int32 tile; with one argument, from 0."""

def argmax(x: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False,
           keepdims: Any = False, *, where: Any = None) -> Any:
    """Index of the greatest element along axis, the first on ties; NaN is greatest.  int32."""

def argmin(x: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False,
           keepdims: Any = False, *, where: Any = None) -> Any:
    """Index of the least element along axis, the first on ties; NaN is least.  int32."""

def argsort(x: Any, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    """The indices that sort x along axis, int32."""

def asin(x: Any) -> Any:
    """Arc sine in radians; NaN outside [-1, 1].  Error: at most 4 units in the last place."""

def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine.  Error: at most 4 units in the last place."""

def associative_scan(tiles: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:
    """Prefixes along axis of a function: element i combines the elements 0 to i."""

def assume(condition: Any) -> Any:
    """Promise that a scalar condition holds; a program in which it does not has no meaning."""

def atan(x: Any) -> Any:
    """Arc tangent in radians.  Error: at most 4 units in the last place."""

def atan2(x: Any, y: Any) -> Any:
    """Angle in radians, in [-pi, pi], of the point of abscissa y and ordinate x.  Error: at most 4
    units in the last place."""

def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.  Error: at most 4 units in the
    last place."""

def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
               scope: Any = "gpu") -> Any:
    """Add val to the element at pointer; give the old one."""

def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
               scope: Any = "gpu") -> Any:
    """Clear the bits that are not in val of the element at pointer; give the old one."""

def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = "acq_rel", scope: Any = "gpu",
               mask: Any = None) -> Any:
    """Replace the element at pointer by val if it equals cmp, bit by bit; give the old one."""

def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
               scope: Any = "gpu") -> Any:
    """Raise the element at pointer to at least val; give the old one."""

def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
               scope: Any = "gpu") -> Any:
    """Lower the element at pointer to at most val; give the old one."""

def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
              scope: Any = "gpu") -> Any:
    """Set the bits of val in the element at pointer; give the old one."""

def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
                scope: Any = "gpu") -> Any:
    """Replace the element at pointer by val; give the old one."""

def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = "acq_rel",
               scope: Any = "gpu") -> Any:
    """Flip the bits of val in the element at pointer; give the old one."""

bfloat16: DType
def block(axis: Any, size: Any) -> Any:
    """The size elements of an axis that are this program's: span(program_id(axis) * size, size)."""

bool_: DType
def broadcast(x: Any, y: Any) -> Any:
    """The tuple of x and y in their common shape.   Source: numpy.broadcast_arrays."""

def broadcast_to(x: Any, *shape: Any) -> Any:
    """x repeated to a shape that it broadcasts to.   Source: numpy.broadcast_to."""

def cast(x: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    """x converted to dtype."""

def cat(x: Any, y: Any, can_reorder: Any = False, dim: Any = 0) -> Any:
    """x and y one after the other along an axis; can_reorder changes nothing: they stay in
    order."""

def cbrt(x: Any) -> Any:
    """Cube root, of either sign.  Error: at most 4 units in the last place."""

def cdiv(x: Any, div: Any) -> Any:
    """ceil(x / div) for positive integers, in a kernel and outside."""

def ceil(x: Any) -> Any:
    """Least integer not below x, a float; -0.0 of (-1, -0.0]."""

def clamp(x: Any, min: Any, max: Any) -> Any:
    """x limited to [min, max]; NaN stays NaN.   Source: numpy.clip."""

def clz(x: Any) -> Any:
    """Number of leading zero bits."""

def concatenate(tiles: Any, axis: Any = 0) -> Any:
    """Tiles one after the other along axis; axis=None: all of their elements, in C order."""

def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y, NaN too."""

def cos(x: Any) -> Any:
    """Cosine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def cosh(x: Any) -> Any:
    """Hyperbolic cosine.  Error: at most 4 units in the last place."""

def count_nonzero(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False) -> Any:
    """Number of elements along axis that are not 0; NaN is not.  int32."""

def cummax(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """The greatest element up to each."""

def cummin(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """The least element up to each."""

def cumprod(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """Products of the elements up to each."""

def cumsum(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """Sums of the elements up to each, along axis."""

def debug_barrier() -> Any:
    """Nothing: a program sees its own stores, and the compiler places the barriers it needs."""

def device_assert(condition: Any, message: Any = "", mask: Any = None) -> Any:
    """With debug=True, stop the kernel where an element of condition is false."""

def device_print(prefix: Any, *values: Any, hex: Any = False) -> Any:
    """Print prefix and every element of values, from each program."""

def div(x: Any, y: Any) -> Any:
    """x / y, correctly rounded."""

def div_rn(x: Any, y: Any) -> Any:
    """x / y, correctly rounded."""

def dot(a: Any, b: Any, acc: Any = None, input_precision: Any = None,
        allow_tf32: Any = None, max_num_imprecise_acc: Any = None, out_dtype: Any = None,
        precision: Any = None) -> Any:
    """a @ b, plus acc when it is given."""

def dot_scaled(lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any,
               rhs_format: Any, acc: Any = None, fast_math: Any = False,
               lhs_k_pack: Any = True, rhs_k_pack: Any = True, out_dtype: Any = Ellipsis) -> Any:
    """(lhs * its scales) @ (rhs * its scales), plus acc when it is given, in float32."""

def empty(shape: Any, dtype: Any = Ellipsis) -> Any:
    """A tile of any values; they are zeros, so that runs agree."""

def erf(x: Any) -> Any:
    """Error function.  Error: at most 4 units in the last place."""

def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x.  Error: at most 5 units in the last place."""

def exp(x: Any) -> Any:
    """e ** x.  Error: at most 4 units in the last place."""

def exp2(x: Any) -> Any:
    """2 ** x.  Error: at most 4 units in the last place."""

def expand_dims(x: Any, axis: Any) -> Any:
    """x with new axes of extent 1; axis, or each of them, is an axis of the result."""

def expm1(x: Any) -> Any:
    """e ** x - 1, exact near 0.  Error: at most 4 units in the last place."""

def extract(x: Any, starts: Any, shape: Any) -> Any:
    """The part of x of a shape: x[starts[0] : starts[0] + shape[0], ...]."""

def fdiv(x: Any, y: Any, ieee_rounding: Any = False) -> Any:
    """x / y.  ieee_rounding: accepted for Triton's kernels; it is always so."""

def ffs(x: Any) -> Any:
    """1 + index of the lowest set bit, or 0."""

def flip(x: Any, dim: Any = -1) -> Any:
    """x with the order of an axis reversed, or of several; None: of the last one."""

float16: DType
float32: DType
float64: DType
float8_e4m3fn: DType
float8_e5m2: DType
float8e4nv: DType
float8e5: DType
def floor(x: Any) -> Any:
    """Greatest integer not above x, a float; -0.0 of -0.0."""

def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding; float16 and bfloat16 too."""

def fmax(x: Any, y: Any) -> Any:
    """The greater; the other one if one is NaN; of 0.0 and -0.0 either."""

def fmin(x: Any, y: Any) -> Any:
    """The lesser; the other one if one is NaN; of 0.0 and -0.0 either."""

def full(shape: Any, value: Any, dtype: Any = None) -> Any:
    """A tile of shape whose elements are value."""

def full_like(x: Any, value: Any) -> Any:
    """A tile of value of x's shape and dtype.   Source: numpy.full_like."""

def gamma(x: Any) -> Any:
    """Gamma function; NaN of negative integers, infinite at 0.  Error: at most 10 units in the last
    place."""

def gather(src: Any, index: Any, axis: Any) -> Any:
    """The elements of src at indices along axis: src[i, index[i, j, k], k] for axis 1 of three."""

def grid_spans(stop: Any, size: Any, axis: Any = 0, num_stages: Any = None,
               warp_specialize: Any = None, unroll: Any = None) -> Any:
    """A loop over the spans of size elements up to stop that are this program's."""

def histogram(x: Any, bins: Any, mask: Any = None) -> Any:
    """Counts of 0, 1, ..., bins - 1 in x, int32 of shape (bins,)."""

def hypot(x: Any, y: Any) -> Any:
    """sqrt(x*x + y*y) without overflow; infinite if either is, even beside NaN.  Error: at most 4
    units in the last place."""

def inline_asm_elementwise(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any,
                           pack: Any) -> Any:
    """The results of PTX for each element of args, on a GPU or in the emulator."""

def insert(x: Any, part: Any, starts: Any) -> Any:
    """x with a part replaced: x[starts[0] : starts[0] + part.shape[0], ...] = part, as a new
    tile."""

int1: DType
int16: DType
int32: DType
int64: DType
int8: DType
def interleave(x: Any, y: Any) -> Any:
    """The elements of x and y in turn along the last axis."""

def isfinite(x: Any) -> Any:
    """Whether x is neither NaN nor infinite."""

def isinf(x: Any) -> Any:
    """Whether x is infinite."""

def isnan(x: Any) -> Any:
    """Whether x is NaN."""

def item(x: Any) -> Any:
    """The element of a tile of one element, as a scalar.   Source: numpy.ndarray.item."""

def join(x: Any, y: Any) -> Any:
    """x and y, broadcast together, side by side on a new last axis of extent 2."""

def lgamma(x: Any) -> Any:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...  Error: at
    most 16 units in the last place, those of 1 where the result is less, and of lgamma(-x) below
    0."""

def load(pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = Ellipsis,
         padding_option: Any = "", cache_modifier: Any = "", eviction_policy: Any = "",
         volatile: Any = False) -> Any:
    """The elements at pointer; where mask is false, other (0 when not given), unread."""

def load_tensor_descriptor(desc: Any, offsets: Any) -> Any:
    """The box of a tensor descriptor at a tuple of offsets, in elements: desc.load(offsets)."""

def log(x: Any) -> Any:
    """Natural logarithm; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def log10(x: Any) -> Any:
    """Logarithm to base 10; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def log1p(x: Any) -> Any:
    """log(1 + x), exact near 0; -inf of -1, NaN below.  Error: at most 4 units in the last
    place."""

def log2(x: Any) -> Any:
    """Logarithm to base 2; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def logsumexp(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
              where: Any = None) -> Any:
    """log(sum(exp(x))) along axis, without overflow; floats of 16 bits are computed in float32."""

def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any,
                   order: Any = Ellipsis) -> Any:
    """A box of an array: bn.load and bn.store take it, bn.advance moves it."""

def make_tensor_descriptor(base: Any, shape: Any, strides: Any, block_shape: Any,
                           padding_option: Any = "zero") -> Any:
    """An array whose boxes of one shape are loaded and stored: d.load(offsets), d.store(...)."""

def map(f: Any, *tiles: Any, mask: Any = None, other: Any = 0) -> Any:
    """f of the elements of tiles, which are broadcast together; a tuple where f returns one."""

def max(x: Any, axis: Any = None, return_indices: Any = False,
        return_indices_tie_break_left: Any = True, keep_dims: Any = False,
        keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The greatest element along axis; NaN if there is one."""

def max_constancy(x: Any, values: Any) -> Any:
    """x, assumed to be runs of equal elements."""

def max_contiguous(x: Any, values: Any) -> Any:
    """x, assumed to be runs that rise by 1."""

def maximum(x: Any, y: Any) -> Any:
    """The greater; NaN if either is NaN."""

def mean(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
         where: Any = None) -> Any:
    """The mean along axis, of x's dtype; of integers float32, of those of 64 bits float64."""

def median(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False) -> Any:
    """The median along axis, along several, or of all elements (axis=None); NaN if there is one."""

def min(x: Any, axis: Any = None, return_indices: Any = False,
        return_indices_tie_break_left: Any = True, keep_dims: Any = False,
        keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The least element along axis; NaN if there is one."""

def minimum(x: Any, y: Any) -> Any:
    """The lesser; NaN if either is NaN."""

def multiple_of(x: Any, values: Any) -> Any:
    """x, assumed to start at a multiple of values."""

def nanargmax(x: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False,
              keepdims: Any = False, *, where: Any = None) -> Any:
    """Index of the greatest element along axis but NaN."""

def nanargmin(x: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False,
              keepdims: Any = False, *, where: Any = None) -> Any:
    """Index of the least element along axis but NaN."""

def nancumprod(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """Products of the elements up to each."""

def nancumsum(x: Any, axis: Any = None, reverse: Any = False, dtype: Any = None) -> Any:
    """Sums of the elements up to each, NaN being 0."""

def nanmax(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
           initial: Any = None, where: Any = None) -> Any:
    """The greatest element along axis but NaN."""

def nanmean(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
            where: Any = None) -> Any:
    """The mean along axis, as of mean, of the elements but NaN."""

def nanmin(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
           initial: Any = None, where: Any = None) -> Any:
    """The least element along axis but NaN."""

def nanprod(x: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None,
            keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The product along axis, as prod, of the elements but NaN."""

def nanstd(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
           ddof: Any = 0, where: Any = None) -> Any:
    """The square root of the variance along axis, as of nanvar."""

def nansum(x: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None,
           keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The sum along axis, as of sum, of the elements but NaN."""

def nanvar(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
           ddof: Any = 0, where: Any = None) -> Any:
    """The variance along axis, as of var, of the elements but NaN."""

def next_power_of_2(n: Any) -> Any:
    """The least power of two that is not less than n, for a compile-time int, and outside."""

def nextafter(x: Any, y: Any) -> Any:
    """The next float of the dtype after x towards y; y if they are equal."""

def num_programs(axis: Any) -> Any:
    """Number of programs along a grid axis (0, 1 or 2), a Python int kept in int32."""

def ones(shape: Any, dtype: Any = Ellipsis) -> Any:
    """A tile of ones.   Source: numpy.ones."""

def ones_like(x: Any) -> Any:
    """A tile of ones of x's shape and dtype.   Source: numpy.ones_like."""

def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two independent normal float32 from two uniform ones."""

def permute(x: Any, *axes: Any) -> Any:
    """x with its axes in another order.   Source: numpy.permute_dims."""

def persistent(shape: Any, tile: Any, group: Any = 8, num_stages: Any = None,
               warp_specialize: Any = None, unroll: Any = None) -> Any:
    """A loop over the (row span, column span) tiles of shape that are this program's."""

def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = 10) -> Any:
    """Four words of random bits for a counter of four words, each an int tile or scalar."""

def popc(x: Any) -> Any:
    """Number of bits set."""

def prod(x: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None,
         keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The product along axis, with the dtypes of sum."""

def program_id(axis: Any) -> Any:
    """Index of this program along a grid axis (0, 1 or 2), a Python int kept in int32."""

def ptp(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False) -> Any:
    """The greatest element less the least along axis; integers wrap; NaN if there is one."""

def rand(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Uniform float32 in [0, 1), one for each element of offset: the same bits everywhere."""

def rand4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four independent tiles as of rand."""

def randint(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Random uint32, one for each element of offset: 32 independent bits."""

def randint4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four independent tiles of uint32, for each element of offset."""

def randn(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Normal float32 of mean 0 and variance 1, one for each element of offset."""

def randn4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four independent tiles as of randn."""

def range(start: Any, stop: Any = None, step: Any = 1, num_stages: Any = None,
          loop_unroll_factor: Any = None, flatten: Any = False, warp_specialize: Any = None,
          disallow_acc_multi_buffer: Any = False, disable_licm: Any = False,
          unroll: Any = None) -> Any:
    """Python's range, of ints known at run time."""

def ravel(x: Any, can_reorder: Any = False) -> Any:
    """x as a tile of rank 1.   Source: numpy.ravel."""

def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False,
           keepdims: Any = False) -> Any:
    """The elements along axis combined by a function, and the axis dropped."""

def reduce_and(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
               initial: Any = None, where: Any = None) -> Any:
    """And of the bits of integers along axis."""

def reduce_or(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
              initial: Any = None, where: Any = None) -> Any:
    """Or of the bits of integers along axis."""

def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element of x several times along axis; axis=None: along all of x in C order."""

def reshape(x: Any, *shape: Any, can_reorder: Any = False) -> Any:
    """The elements of x in C order in another shape; one extent may be -1."""

def rint(x: Any) -> Any:
    """Nearest integer, ties to even, a float, with the sign of x."""

def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """x with its elements moved by shift along axis; those that leave it come in at its start."""

def round(x: Any) -> Any:
    """The nearest integer, ties to even; ints and bools stay.   Source: numpy.round."""

def rsqrt(x: Any) -> Any:
    """1 / sqrt(x); infinite at 0, NaN below.  Error: at most 4 units in the last place."""

def scatter(x: Any, index: Any, values: Any, axis: Any) -> Any:
    """x with x[i, index[i, j, k], k] replaced by values[i, j, k], for axis 1 of three; a new
    tile."""

def searchsorted(a: Any, v: Any, side: Any = "left") -> Any:
    """The index in a before which each element of v keeps it sorted, int32 of v's shape."""

def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""

def sin(x: Any) -> Any:
    """Sine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def sinh(x: Any) -> Any:
    """Hyperbolic sine.  Error: at most 4 units in the last place."""

def softmax(x: Any, dim: Any = 0, keep_dims: Any = False, ieee_rounding: Any = False,
            where: Any = None) -> Any:
    """exp(x - max(x)) / sum(exp(x - max(x))) along dim."""

def sort(x: Any, axis: Any = -1, descending: Any = False, stable: Any = False) -> Any:
    """The elements along axis in ascending order."""

def span(start: Any, size: Any) -> Any:
    """size elements of an axis from start on."""

def spans(stop: Any, size: Any, start: Any = 0, step: Any = None, num_stages: Any = None,
          warp_specialize: Any = None, unroll: Any = None) -> Any:
    """A loop over the spans of size elements from start to stop, step (size) apart."""

def split(x: Any) -> Any:
    """The halves of a last axis of extent 2: (x[..., 0], x[..., 1])."""

def sqrt(x: Any) -> Any:
    """Square root, correctly rounded; NaN below 0, -0.0 of -0.0."""

def sqrt_rn(x: Any) -> Any:
    """The square root, correctly rounded."""

def squeeze(x: Any, axis: Any = None) -> Any:
    """x without its axes of extent 1, or without those given.   Source: numpy.squeeze."""

def stack(tiles: Any, axis: Any = 0) -> Any:
    """Tiles and scalars of one shape along a new axis, an axis of the result."""

def static_assert(condition: Any, message: Any = "") -> Any:
    """Stop the compilation unless a compile-time condition holds."""

def static_print(*values: Any, sep: Any = " ", end: Any = "\n") -> Any:
    """Print values, or their types, while the kernel is compiled."""

def std(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
        ddof: Any = 0, where: Any = None) -> Any:
    """The square root of the variance along axis, as of var."""

def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Any = Ellipsis,
          cache_modifier: Any = "", eviction_policy: Any = "") -> Any:
    """Write value to pointer where mask is true."""

def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> Any:
    """Write value to the box of a tensor descriptor at offsets: desc.store(offsets, value)."""

def sum(x: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None,
        keepdims: Any = False, *, initial: Any = None, where: Any = None) -> Any:
    """The sum along axis, along several, or of all elements (axis=None)."""

def swapaxes(x: Any, axis1: Any, axis2: Any) -> Any:
    """x with two axes exchanged.   Source: numpy.swapaxes."""

def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """The place of element (i, j) of a (size_i, size_j) grid that is walked in groups of rows."""

def tan(x: Any) -> Any:
    """Tangent of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent.  Error: at most 4 units in the last place."""

def topk(x: Any, k: Any, axis: Any = -1, largest: Any = True, return_indices: Any = False) -> Any:
    """The k greatest elements along axis, the greatest first."""

def trans(x: Any, *axes: Any) -> Any:
    """x with its axes in another order; without axes the last two are swapped."""

def trunc(x: Any) -> Any:
    """Nearest integer towards zero, a float, with the sign of x."""

uint16: DType
uint32: DType
uint64: DType
uint8: DType
def uint_to_uniform_float(x: Any) -> Any:
    """float32 in [0, 1) from ints of 32 or 64 random bits."""

def umulhi(x: Any, y: Any) -> Any:
    """High half of the product of two 32- or 64-bit integers taken as unsigned."""

def unique_counts(x: Any) -> Any:
    """The different elements of x in ascending order, how often each is in it, and their number."""

def var(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
        ddof: Any = 0, where: Any = None) -> Any:
    """The mean squared distance from the mean along axis."""

def view(x: Any, *shape: Any) -> Any:
    """reshape under Triton's older name; with a dtype, the bits of x taken as that dtype."""

def welford(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
            where: Any = None) -> Any:
    """(mean, m2, count) along axis: m2 is the sum of squared distances from the mean."""

def welford_combine(mean_1: Any, m2_1: Any, count_1: Any, mean_2: Any, m2_2: Any,
                    count_2: Any) -> Any:
    """The moments of two parts of the data together, each as welford gives them."""

def where(condition: Any, x: Any, y: Any) -> Any:
    """x where condition, else y; the three are broadcast together."""

def xor_sum(x: Any, axis: Any = None, keep_dims: Any = False, keepdims: Any = False, *,
            initial: Any = None, where: Any = None) -> Any:
    """Exclusive or of the integers along axis."""

def zeros(shape: Any, dtype: Any = Ellipsis) -> Any:
    """A tile of zeros.   Source: numpy.zeros."""

def zeros_like(x: Any) -> Any:
    """A tile of zeros of x's shape and dtype.   Source: numpy.zeros_like."""

__version__: str

__all__ = [
    "Kernel", "auto", "jit", "autotune", "block_function", "Config", "current_device", "device",
    "evaluate", "heuristics", "testing", "acos", "acosh", "advance", "arange", "argmax", "argmin",
    "argsort", "asin", "asinh", "associative_scan", "assume", "atan", "atan2", "atanh",
    "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "bfloat16", "block", "bool_", "broadcast", "broadcast_to", "cast",
    "cat", "cbrt", "cdiv", "ceil", "clamp", "clz", "concatenate", "constexpr", "copysign", "cos",
    "cosh", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "debug_barrier",
    "device_assert", "device_print", "div", "div_rn", "dot", "dot_scaled", "empty", "erf", "erfc",
    "exp", "exp2", "expand_dims", "expm1", "extract", "fdiv", "ffs", "flip", "float16", "float32",
    "float64", "float8_e4m3fn", "float8_e5m2", "float8e4nv", "float8e5", "floor", "fma", "fmax",
    "fmin", "full", "full_like", "gamma", "gather", "grid_spans", "histogram", "hypot",
    "inline_asm_elementwise", "insert", "int1", "int16", "int32", "int64", "int8", "interleave",
    "isfinite", "isinf", "isnan", "item", "join", "lgamma", "libdevice", "load",
    "load_tensor_descriptor", "log", "log10", "log1p", "log2", "logsumexp", "make_block_ptr",
    "make_tensor_descriptor", "max_constancy", "max_contiguous", "maximum", "mean", "median",
    "minimum", "multiple_of", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax",
    "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "next_power_of_2", "nextafter",
    "num_programs", "ones", "ones_like", "pair_uniform_to_normal", "permute", "persistent",
    "philox", "popc", "prod", "program_id", "ptp", "rand", "rand4x", "randint", "randint4x",
    "randn", "randn4x", "ravel", "reduce", "reduce_and", "reduce_or", "repeat", "reshape", "rint",
    "roll", "rsqrt", "scatter", "searchsorted", "sigmoid", "sin", "sinh", "softmax", "sort", "span",
    "spans", "split", "sqrt", "sqrt_rn", "squeeze", "stack", "static_assert", "static_print",
    "static_range", "std", "store", "store_tensor_descriptor", "swapaxes", "swizzle2d", "tan",
    "tanh", "topk", "trans", "trunc", "uint16", "uint32", "uint64", "uint8",
    "uint_to_uniform_float", "umulhi", "unique_counts", "var", "view", "welford", "welford_combine",
    "where", "xor_sum", "zeros", "zeros_like",
]
