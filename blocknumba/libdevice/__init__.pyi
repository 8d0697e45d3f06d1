"""CUDA's libdevice by its names, as `bn.libdevice.*` and Triton's `tl.math.*`.

What a name means does not depend on the device.  Names with an f at their end, and without it the
same (`sinf`), are of float32; the others keep the dtype of their operands, as Triton's do, but for
those that name a type (`dadd_rz`, `llmax`).  Several results are a tuple: `sincos`, `frexp`.
Source: CUDA libdevice User's Guide.
"""

from typing import Any

def abs(x: Any) -> Any:
    """|x|."""

def acos(x: Any) -> Any:
    """Arc cosine in radians; NaN outside [-1, 1].  Error: at most 4 units in the last place."""

def acosf(x: Any) -> Any:
    """acos of float32."""

def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1.  Error: at most 4 units in the last place."""

def acoshf(x: Any) -> Any:
    """acosh of float32."""

def add_rd(x: Any, y: Any) -> Any:
    """x + y, rounded towards minus infinity."""

def add_rn(x: Any, y: Any) -> Any:
    """x + y, rounded to nearest."""

def add_ru(x: Any, y: Any) -> Any:
    """x + y, rounded towards infinity."""

def add_rz(x: Any, y: Any) -> Any:
    """x + y, rounded towards zero."""

def asin(x: Any) -> Any:
    """Arc sine in radians; NaN outside [-1, 1].  Error: at most 4 units in the last place."""

def asinf(x: Any) -> Any:
    """asin of float32."""

def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine.  Error: at most 4 units in the last place."""

def asinhf(x: Any) -> Any:
    """asinh of float32."""

def atan(x: Any) -> Any:
    """Arc tangent in radians.  Error: at most 4 units in the last place."""

def atan2(x: Any, y: Any) -> Any:
    """Angle in radians, in [-pi, pi], of the point of abscissa y and ordinate x.  Error: at most 4
    units in the last place."""

def atan2f(x: Any, y: Any) -> Any:
    """atan2 of float32."""

def atanf(x: Any) -> Any:
    """atan of float32."""

def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.  Error: at most 4 units in the
    last place."""

def atanhf(x: Any) -> Any:
    """atanh of float32."""

def brev(x: Any) -> Any:
    """The bits of an int32 in the opposite order."""

def brevll(x: Any) -> Any:
    """The bits of an int64 in the opposite order."""

def byte_perm(x: Any, y: Any, s: Any) -> Any:
    """Four of the eight bytes of y and x, int32: byte i is that of number (s >> 4 * i) & 7."""

def cbrt(x: Any) -> Any:
    """Cube root, of either sign.  Error: at most 4 units in the last place."""

def cbrtf(x: Any) -> Any:
    """cbrt of float32."""

def cdiv(x: Any, div: Any) -> Any:
    """ceil(x / div) for positive integers, in a kernel and outside."""

def ceil(x: Any) -> Any:
    """Least integer not below x, a float; -0.0 of (-1, -0.0]."""

def ceilf(x: Any) -> Any:
    """ceil of float32."""

def clamp(x: Any, min: Any, max: Any) -> Any:
    """x limited to [min, max]; NaN stays NaN.   Source: numpy.clip."""

def clz(x: Any) -> Any:
    """Number of leading zero bits."""

def clzll(x: Any) -> Any:
    """Number of leading zero bits of an int64, int32."""

def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y, NaN too."""

def copysignf(x: Any, y: Any) -> Any:
    """copysign of float32."""

def cos(x: Any) -> Any:
    """Cosine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def cosf(x: Any) -> Any:
    """cos of float32."""

def cosh(x: Any) -> Any:
    """Hyperbolic cosine.  Error: at most 4 units in the last place."""

def coshf(x: Any) -> Any:
    """cosh of float32."""

def cospi(x: Any) -> Any:
    """cos(pi * x).   Error: at most 6 units in the last place."""

def cospif(x: Any) -> Any:
    """cospi of float32."""

def cyl_bessel_i0(x: Any) -> Any:
    """The modified Bessel function of the first kind of order 0."""

def cyl_bessel_i0f(x: Any) -> Any:
    """cyl_bessel_i0 of float32."""

def cyl_bessel_i1(x: Any) -> Any:
    """The modified Bessel function of the first kind of order 1."""

def cyl_bessel_i1f(x: Any) -> Any:
    """cyl_bessel_i1 of float32."""

def dadd_rd(x: Any, y: Any) -> Any:
    """add_rd of float64."""

def dadd_rn(x: Any, y: Any) -> Any:
    """add_rn of float64."""

def dadd_ru(x: Any, y: Any) -> Any:
    """add_ru of float64."""

def dadd_rz(x: Any, y: Any) -> Any:
    """add_rz of float64."""

def ddiv_rd(x: Any, y: Any) -> Any:
    """div_rd of float64."""

def ddiv_rn(x: Any, y: Any) -> Any:
    """div_rn of float64."""

def ddiv_ru(x: Any, y: Any) -> Any:
    """div_ru of float64."""

def ddiv_rz(x: Any, y: Any) -> Any:
    """div_rz of float64."""

def div_rd(x: Any, y: Any) -> Any:
    """x / y, rounded towards minus infinity."""

def div_rn(x: Any, y: Any) -> Any:
    """x / y, correctly rounded."""

def div_ru(x: Any, y: Any) -> Any:
    """x / y, rounded towards infinity."""

def div_rz(x: Any, y: Any) -> Any:
    """x / y, rounded towards zero."""

def dmul_rd(x: Any, y: Any) -> Any:
    """mul_rd of float64."""

def dmul_rn(x: Any, y: Any) -> Any:
    """mul_rn of float64."""

def dmul_ru(x: Any, y: Any) -> Any:
    """mul_ru of float64."""

def dmul_rz(x: Any, y: Any) -> Any:
    """mul_rz of float64."""

def double2float_rd(x: Any) -> Any:
    """A float64 as float32, rounded down."""

def double2float_rn(x: Any) -> Any:
    """A float64 as float32, rounded to nearest."""

def double2float_ru(x: Any) -> Any:
    """A float64 as float32, rounded up."""

def double2float_rz(x: Any) -> Any:
    """A float64 as float32, rounded towards zero."""

def double2hiint(x: Any) -> Any:
    """The upper 32 bits of a float64, int32."""

def double2int_rd(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def double2int_rn(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def double2int_ru(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def double2int_rz(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def double2ll_rd(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def double2ll_rn(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def double2ll_ru(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def double2ll_rz(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def double2loint(x: Any) -> Any:
    """The lower 32 bits of a float64, int32."""

def double2uint_rd(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def double2uint_rn(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def double2uint_ru(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def double2uint_rz(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def double2ull_rd(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def double2ull_rn(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def double2ull_ru(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def double2ull_rz(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def double_as_longlong(x: Any) -> Any:
    """The bits of a float64 as int64."""

def drcp_rd(x: Any) -> Any:
    """rcp_rd of float64."""

def drcp_rn(x: Any) -> Any:
    """rcp_rn of float64."""

def drcp_ru(x: Any) -> Any:
    """rcp_ru of float64."""

def drcp_rz(x: Any) -> Any:
    """rcp_rz of float64."""

def dsqrt_rd(x: Any) -> Any:
    """sqrt_rd of float64."""

def dsqrt_rn(x: Any) -> Any:
    """sqrt_rn of float64."""

def dsqrt_ru(x: Any) -> Any:
    """sqrt_ru of float64."""

def dsqrt_rz(x: Any) -> Any:
    """sqrt_rz of float64."""

def dsub_rd(x: Any, y: Any) -> Any:
    """sub_rd of float64."""

def dsub_rn(x: Any, y: Any) -> Any:
    """sub_rn of float64."""

def dsub_ru(x: Any, y: Any) -> Any:
    """sub_ru of float64."""

def dsub_rz(x: Any, y: Any) -> Any:
    """sub_rz of float64."""

def erf(x: Any) -> Any:
    """Error function.  Error: at most 4 units in the last place."""

def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x.  Error: at most 5 units in the last place."""

def erfcf(x: Any) -> Any:
    """erfc of float32."""

def erfcinv(x: Any) -> Any:
    """The inverse of erfc; infinite at 0, -infinite at 2, NaN outside."""

def erfcinvf(x: Any) -> Any:
    """erfcinv of float32."""

def erfcx(x: Any) -> Any:
    """exp(x * x) * erfc(x).   Error: at most 16 units in the last place, 1 of float32."""

def erfcxf(x: Any) -> Any:
    """erfcx of float32."""

def erff(x: Any) -> Any:
    """erf of float32."""

def erfinv(x: Any) -> Any:
    """The inverse of erf; infinite at -1 and 1, NaN outside."""

def erfinvf(x: Any) -> Any:
    """erfinv of float32."""

def exp(x: Any) -> Any:
    """e ** x.  Error: at most 4 units in the last place."""

def exp10(x: Any) -> Any:
    """10 ** x."""

def exp10f(x: Any) -> Any:
    """exp10 of float32."""

def exp2(x: Any) -> Any:
    """2 ** x.  Error: at most 4 units in the last place."""

def exp2f(x: Any) -> Any:
    """exp2 of float32."""

def expf(x: Any) -> Any:
    """exp of float32."""

def expm1(x: Any) -> Any:
    """e ** x - 1, exact near 0.  Error: at most 4 units in the last place."""

def expm1f(x: Any) -> Any:
    """expm1 of float32."""

def fabs(x: Any) -> Any:
    """|x|."""

def fabsf(x: Any) -> Any:
    """fabs of float32."""

def fadd_rd(x: Any, y: Any) -> Any:
    """add_rd of float32."""

def fadd_rn(x: Any, y: Any) -> Any:
    """add_rn of float32."""

def fadd_ru(x: Any, y: Any) -> Any:
    """add_ru of float32."""

def fadd_rz(x: Any, y: Any) -> Any:
    """add_rz of float32."""

def fast_cosf(x: Any) -> Any:
    """Cosine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def fast_dividef(x: Any, y: Any) -> Any:
    """x / y, correctly rounded."""

def fast_exp10f(x: Any) -> Any:
    """10 ** x."""

def fast_expf(x: Any) -> Any:
    """e ** x.  Error: at most 4 units in the last place."""

def fast_fdividef(x: Any, y: Any) -> Any:
    """x / y, correctly rounded."""

def fast_log10f(x: Any) -> Any:
    """Logarithm to base 10; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def fast_log2f(x: Any) -> Any:
    """Logarithm to base 2; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def fast_logf(x: Any) -> Any:
    """Natural logarithm; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def fast_powf(x: Any, y: Any) -> Any:
    """x ** y.   Source: numpy.power."""

def fast_sincosf(x: Any) -> Any:
    """(sin(x), cos(x))."""

def fast_sinf(x: Any) -> Any:
    """Sine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def fast_tanf(x: Any) -> Any:
    """Tangent of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def fast_tanhf(x: Any) -> Any:
    """Hyperbolic tangent.  Error: at most 4 units in the last place."""

def fdim(x: Any, y: Any) -> Any:
    """x - y where that is positive, else 0; NaN where x or y is."""

def fdimf(x: Any, y: Any) -> Any:
    """fdim of float32."""

def fdiv(x: Any, y: Any, ieee_rounding: Any = False) -> Any:
    """x / y.  ieee_rounding: accepted for Triton's kernels; it is always so."""

def fdiv_rd(x: Any, y: Any) -> Any:
    """div_rd of float32."""

def fdiv_rn(x: Any, y: Any) -> Any:
    """div_rn of float32."""

def fdiv_ru(x: Any, y: Any) -> Any:
    """div_ru of float32."""

def fdiv_rz(x: Any, y: Any) -> Any:
    """div_rz of float32."""

def ffs(x: Any) -> Any:
    """1 + index of the lowest set bit, or 0."""

def ffsll(x: Any) -> Any:
    """1 + the index of the lowest set bit of an int64, or 0; int32."""

def finitef(x: Any) -> Any:
    """Whether x is neither NaN nor infinite."""

def float2half_rn(x: Any) -> Any:
    """The bits of x as float16, rounded to nearest, int16."""

def float2int_rd(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def float2int_rn(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def float2int_ru(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def float2int_rz(x: Any) -> Any:
    """x as int32, rounded as the last two letters say."""

def float2ll_rd(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def float2ll_rn(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def float2ll_ru(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def float2ll_rz(x: Any) -> Any:
    """x as int64, rounded as the last two letters say."""

def float2uint_rd(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def float2uint_rn(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def float2uint_ru(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def float2uint_rz(x: Any) -> Any:
    """x as uint32, rounded as the last two letters say."""

def float2ull_rd(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def float2ull_rn(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def float2ull_ru(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def float2ull_rz(x: Any) -> Any:
    """x as uint64, rounded as the last two letters say."""

def float_as_int(x: Any) -> Any:
    """The bits of a float32 as int32."""

def float_as_uint(x: Any) -> Any:
    """The bits of a float32 as uint32."""

def floor(x: Any) -> Any:
    """Greatest integer not above x, a float; -0.0 of -0.0."""

def floorf(x: Any) -> Any:
    """floor of float32."""

def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding; float16 and bfloat16 too."""

def fma_rd(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded towards minus infinity."""

def fma_rn(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding; float16 and bfloat16 too."""

def fma_ru(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded towards infinity."""

def fma_rz(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded towards zero."""

def fmaf(x: Any, y: Any, z: Any) -> Any:
    """fma of float32."""

def fmaf_rd(x: Any, y: Any, z: Any) -> Any:
    """fma_rd of float32."""

def fmaf_rn(x: Any, y: Any, z: Any) -> Any:
    """fma of float32."""

def fmaf_ru(x: Any, y: Any, z: Any) -> Any:
    """fma_ru of float32."""

def fmaf_rz(x: Any, y: Any, z: Any) -> Any:
    """fma_rz of float32."""

def fmax(x: Any, y: Any) -> Any:
    """The greater; the other one if one is NaN; of 0.0 and -0.0 either."""

def fmaxf(x: Any, y: Any) -> Any:
    """fmax of float32."""

def fmin(x: Any, y: Any) -> Any:
    """The lesser; the other one if one is NaN; of 0.0 and -0.0 either."""

def fminf(x: Any, y: Any) -> Any:
    """fmin of float32."""

def fmod(x: Any, y: Any) -> Any:
    """The remainder of x / y with the sign of x, exact.   Source: numpy.fmod."""

def fmodf(x: Any, y: Any) -> Any:
    """fmod of float32."""

def fmul_rd(x: Any, y: Any) -> Any:
    """mul_rd of float32."""

def fmul_rn(x: Any, y: Any) -> Any:
    """mul_rn of float32."""

def fmul_ru(x: Any, y: Any) -> Any:
    """mul_ru of float32."""

def fmul_rz(x: Any, y: Any) -> Any:
    """mul_rz of float32."""

def frcp_rd(x: Any) -> Any:
    """rcp_rd of float32."""

def frcp_rn(x: Any) -> Any:
    """rcp_rn of float32."""

def frcp_ru(x: Any) -> Any:
    """rcp_ru of float32."""

def frcp_rz(x: Any) -> Any:
    """rcp_rz of float32."""

def frexp(x: Any) -> Any:
    """(m, e) with x = m * 2**e, 0.5 <= |m| < 1, e int32; (x, 0) of 0, infinities and NaN."""

def frexpf(x: Any) -> Any:
    """frexp of float32."""

def frsqrt_rn(x: Any) -> Any:
    """rsqrt_rn of float32."""

def fsqrt_rd(x: Any) -> Any:
    """sqrt_rd of float32."""

def fsqrt_rn(x: Any) -> Any:
    """sqrt_rn of float32."""

def fsqrt_ru(x: Any) -> Any:
    """sqrt_ru of float32."""

def fsqrt_rz(x: Any) -> Any:
    """sqrt_rz of float32."""

def fsub_rd(x: Any, y: Any) -> Any:
    """sub_rd of float32."""

def fsub_rn(x: Any, y: Any) -> Any:
    """sub_rn of float32."""

def fsub_ru(x: Any, y: Any) -> Any:
    """sub_ru of float32."""

def fsub_rz(x: Any, y: Any) -> Any:
    """sub_rz of float32."""

def hadd(x: Any, y: Any) -> Any:
    """(x + y) // 2 without overflow."""

def half2float(x: Any) -> Any:
    """The float32 of the bits of a float16, given as int16."""

def hiloint2double(hi: Any, lo: Any) -> Any:
    """The float64 whose upper and lower 32 bits are hi and lo."""

def hypot(x: Any, y: Any) -> Any:
    """sqrt(x*x + y*y) without overflow; infinite if either is, even beside NaN.  Error: at most 4
    units in the last place."""

def hypotf(x: Any, y: Any) -> Any:
    """hypot of float32."""

def ilogb(x: Any) -> Any:
    """The exponent of x, int32: the least one of 0 and NaN, the greatest of infinities."""

def ilogbf(x: Any) -> Any:
    """ilogb of float32."""

def int2double_rn(x: Any) -> Any:
    """int32 as float64, rounded to nearest."""

def int2float_rd(x: Any) -> Any:
    """int32 as float32, rounded as the last two letters say."""

def int2float_rn(x: Any) -> Any:
    """int32 as float32, rounded to nearest."""

def int2float_ru(x: Any) -> Any:
    """int32 as float32, rounded as the last two letters say."""

def int2float_rz(x: Any) -> Any:
    """int32 as float32, rounded as the last two letters say."""

def int_as_float(x: Any) -> Any:
    """The float32 of the bits of an int32."""

def isfinited(x: Any) -> Any:
    """Whether x is neither NaN nor infinite."""

def isinf(x: Any) -> Any:
    """Whether x is infinite."""

def isinfd(x: Any) -> Any:
    """Whether x is infinite."""

def isinff(x: Any) -> Any:
    """Whether x is infinite."""

def isnan(x: Any) -> Any:
    """Whether x is NaN."""

def isnand(x: Any) -> Any:
    """Whether x is NaN."""

def isnanf(x: Any) -> Any:
    """Whether x is NaN."""

def j0(x: Any) -> Any:
    """The Bessel function of the first kind of order 0."""

def j0f(x: Any) -> Any:
    """j0 of float32."""

def j1(x: Any) -> Any:
    """The Bessel function of the first kind of order 1."""

def j1f(x: Any) -> Any:
    """j1 of float32."""

def jn(x: Any, y: Any) -> Any:
    """The Bessel function of the first kind of an integer order."""

def jnf(n: Any, x: Any) -> Any:
    """jn of float32."""

def ldexp(x: Any, n: Any) -> Any:
    """x * 2**n, rounded once.   n: ints."""

def ldexpf(x: Any, n: Any) -> Any:
    """ldexp of float32."""

def lgamma(x: Any) -> Any:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...  Error: at
    most 16 units in the last place, those of 1 where the result is less, and of lgamma(-x) below
    0."""

def lgammaf(x: Any) -> Any:
    """lgamma of float32."""

def ll2double_rd(x: Any) -> Any:
    """int64 as float64, rounded as the last two letters say."""

def ll2double_rn(x: Any) -> Any:
    """int64 as float64, rounded to nearest."""

def ll2double_ru(x: Any) -> Any:
    """int64 as float64, rounded as the last two letters say."""

def ll2double_rz(x: Any) -> Any:
    """int64 as float64, rounded as the last two letters say."""

def ll2float_rd(x: Any) -> Any:
    """int64 as float32, rounded as the last two letters say."""

def ll2float_rn(x: Any) -> Any:
    """int64 as float32, rounded to nearest."""

def ll2float_ru(x: Any) -> Any:
    """int64 as float32, rounded as the last two letters say."""

def ll2float_rz(x: Any) -> Any:
    """int64 as float32, rounded as the last two letters say."""

def llabs(x: Any) -> Any:
    """|x| of int64."""

def llmax(x: Any, y: Any) -> Any:
    """The greater of two int64."""

def llmin(x: Any, y: Any) -> Any:
    """The lesser of two int64."""

def llrint(x: Any) -> Any:
    """The nearest integer as int64, ties to even."""

def llrintf(x: Any) -> Any:
    """llrint of float32."""

def llround(x: Any) -> Any:
    """The nearest integer as int64, halves away from zero."""

def llroundf(x: Any) -> Any:
    """llround of float32."""

def log(x: Any) -> Any:
    """Natural logarithm; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def log10(x: Any) -> Any:
    """Logarithm to base 10; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def log10f(x: Any) -> Any:
    """log10 of float32."""

def log1p(x: Any) -> Any:
    """log(1 + x), exact near 0; -inf of -1, NaN below.  Error: at most 4 units in the last
    place."""

def log1pf(x: Any) -> Any:
    """log1p of float32."""

def log2(x: Any) -> Any:
    """Logarithm to base 2; -inf of 0, NaN below.  Error: at most 4 units in the last place."""

def log2f(x: Any) -> Any:
    """log2 of float32."""

def logb(x: Any) -> Any:
    """The exponent of x as a float: -inf of 0, inf of infinities."""

def logbf(x: Any) -> Any:
    """logb of float32."""

def logf(x: Any) -> Any:
    """log of float32."""

def longlong_as_double(x: Any) -> Any:
    """The float64 of the bits of an int64."""

def max(x: Any, y: Any) -> Any:
    """The greater; NaN if either is NaN."""

def maximum(x: Any, y: Any) -> Any:
    """The greater; NaN if either is NaN."""

def min(x: Any, y: Any) -> Any:
    """The lesser; NaN if either is NaN."""

def minimum(x: Any, y: Any) -> Any:
    """The lesser; NaN if either is NaN."""

def modf(x: Any) -> Any:
    """(fraction, whole part) of x, both with its sign."""

def modff(x: Any) -> Any:
    """modf of float32."""

def mul24(x: Any, y: Any) -> Any:
    """Low 32 bits of the product of the low 24 bits of two int32, taken as signed."""

def mul64hi(x: Any, y: Any) -> Any:
    """High half of the product of two int64."""

def mul_rd(x: Any, y: Any) -> Any:
    """x * y, rounded towards minus infinity."""

def mul_rn(x: Any, y: Any) -> Any:
    """x * y, rounded to nearest."""

def mul_ru(x: Any, y: Any) -> Any:
    """x * y, rounded towards infinity."""

def mul_rz(x: Any, y: Any) -> Any:
    """x * y, rounded towards zero."""

def mulhi(x: Any, y: Any) -> Any:
    """High half of the product of two int32."""

def nearbyint(x: Any) -> Any:
    """Nearest integer, ties to even, a float, with the sign of x."""

def nearbyintf(x: Any) -> Any:
    """nearbyint of float32."""

def nextafter(x: Any, y: Any) -> Any:
    """The next float of the dtype after x towards y; y if they are equal."""

def nextafterf(x: Any, y: Any) -> Any:
    """nextafter of float32."""

def norm3d(x: Any, y: Any, z: Any) -> Any:
    """sqrt(x*x + y*y + z*z) without overflow.   Error: at most 9 units in the last place."""

def norm3df(x: Any, y: Any, z: Any) -> Any:
    """norm3d of float32."""

def norm4d(x: Any, y: Any, z: Any, w: Any) -> Any:
    """sqrt(x*x + y*y + z*z + w*w) without overflow.   Error: at most 9 units in the last place."""

def norm4df(x: Any, y: Any, z: Any, w: Any) -> Any:
    """norm4d of float32."""

def normcdf(x: Any) -> Any:
    """The share of a normal distribution that is below x."""

def normcdff(x: Any) -> Any:
    """normcdf of float32."""

def normcdfinv(x: Any) -> Any:
    """The point below which the share x of a normal distribution is."""

def normcdfinvf(x: Any) -> Any:
    """normcdfinv of float32."""

def popc(x: Any) -> Any:
    """Number of bits set."""

def popcll(x: Any) -> Any:
    """Number of bits set of an int64, int32."""

def pow(x: Any, y: Any) -> Any:
    """x ** y.   Source: numpy.power."""

def powf(x: Any, y: Any) -> Any:
    """pow of float32."""

def powi(x: Any, n: Any) -> Any:
    """x to an integer power n.   Error: that of the op power; of float32, one unit."""

def powif(x: Any, n: Any) -> Any:
    """powi of float32."""

def rcbrt(x: Any) -> Any:
    """1 / cbrt(x)."""

def rcbrtf(x: Any) -> Any:
    """rcbrt of float32."""

def rcp64h(x: Any) -> Any:
    """The upper 32 bits of 1 / x of a float64; the others are 0."""

def rcp_rd(x: Any) -> Any:
    """1 / x, rounded towards minus infinity."""

def rcp_rn(x: Any) -> Any:
    """1 / x, rounded to nearest."""

def rcp_ru(x: Any) -> Any:
    """1 / x, rounded towards infinity."""

def rcp_rz(x: Any) -> Any:
    """1 / x, rounded towards zero."""

def remainder(x: Any, y: Any) -> Any:
    """x - n * y, exact, n the integer nearest to x / y, even in ties.   Source: C's remainder."""

def remainderf(x: Any, y: Any) -> Any:
    """remainder of float32."""

def remquo(x: Any, y: Any) -> Any:
    """(remainder(x, y), the low three bits of n with the sign of x / y, int32)."""

def remquof(x: Any, y: Any) -> Any:
    """remquo of float32."""

def rhadd(x: Any, y: Any) -> Any:
    """(x + y + 1) // 2 without overflow."""

def rhypot(x: Any, y: Any) -> Any:
    """1 / hypot(x, y)."""

def rhypotf(x: Any, y: Any) -> Any:
    """rhypot of float32."""

def rint(x: Any) -> Any:
    """Nearest integer, ties to even, a float, with the sign of x."""

def rintf(x: Any) -> Any:
    """rint of float32."""

def rnorm3d(x: Any, y: Any, z: Any) -> Any:
    """1 / norm3d(x, y, z).   Error: at most 11 units in the last place."""

def rnorm3df(x: Any, y: Any, z: Any) -> Any:
    """rnorm3d of float32."""

def rnorm4d(x: Any, y: Any, z: Any, w: Any) -> Any:
    """1 / norm4d(x, y, z, w).   Error: at most 11 units in the last place."""

def rnorm4df(x: Any, y: Any, z: Any, w: Any) -> Any:
    """rnorm4d of float32."""

def round(x: Any) -> Any:
    """The nearest integer, halves away from zero: C's round, not NumPy's, which is rint."""

def roundf(x: Any) -> Any:
    """round of float32."""

def rsqrt(x: Any) -> Any:
    """1 / sqrt(x); infinite at 0, NaN below.  Error: at most 4 units in the last place."""

def rsqrt_rn(x: Any) -> Any:
    """1 / sqrt(x); of float32, rounded to nearest."""

def rsqrtf(x: Any) -> Any:
    """rsqrt of float32."""

def sad(x: Any, y: Any, z: Any) -> Any:
    """|x - y| + z of int32 x and y, modulo 2**32; uint32."""

def saturatef(x: Any) -> Any:
    """x limited to [0, 1]; 0 for NaN."""

def scalbn(x: Any, n: Any) -> Any:
    """x * 2**n, rounded once.   n: ints."""

def scalbnf(x: Any, n: Any) -> Any:
    """scalbn of float32."""

def signbit(x: Any) -> Any:
    """1 where the sign bit is set, -0.0 and -NaN included, else 0, as int32."""

def signbitd(x: Any) -> Any:
    """1 where the sign bit is set, -0.0 and -NaN included, else 0, as int32."""

def signbitf(x: Any) -> Any:
    """1 where the sign bit is set, -0.0 and -NaN included, else 0, as int32."""

def sin(x: Any) -> Any:
    """Sine of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def sincos(x: Any) -> Any:
    """(sin(x), cos(x))."""

def sincosf(x: Any) -> Any:
    """sincos of float32."""

def sincospi(x: Any) -> Any:
    """(sin(pi * x), cos(pi * x)).   Error: at most 6 units in the last place."""

def sincospif(x: Any) -> Any:
    """sincospi of float32."""

def sinf(x: Any) -> Any:
    """sin of float32."""

def sinh(x: Any) -> Any:
    """Hyperbolic sine.  Error: at most 4 units in the last place."""

def sinhf(x: Any) -> Any:
    """sinh of float32."""

def sinpi(x: Any) -> Any:
    """sin(pi * x).   Error: at most 6 units in the last place."""

def sinpif(x: Any) -> Any:
    """sinpi of float32."""

def sqrt(x: Any) -> Any:
    """Square root, correctly rounded; NaN below 0, -0.0 of -0.0."""

def sqrt_rd(x: Any) -> Any:
    """The square root of x, rounded towards minus infinity."""

def sqrt_rn(x: Any) -> Any:
    """The square root, correctly rounded."""

def sqrt_ru(x: Any) -> Any:
    """The square root of x, rounded towards infinity."""

def sqrt_rz(x: Any) -> Any:
    """The square root of x, rounded towards zero."""

def sqrtf(x: Any) -> Any:
    """sqrt of float32."""

def sub_rd(x: Any, y: Any) -> Any:
    """x - y, rounded towards minus infinity."""

def sub_rn(x: Any, y: Any) -> Any:
    """x - y, rounded to nearest."""

def sub_ru(x: Any, y: Any) -> Any:
    """x - y, rounded towards infinity."""

def sub_rz(x: Any, y: Any) -> Any:
    """x - y, rounded towards zero."""

def tan(x: Any) -> Any:
    """Tangent of x radians; NaN of an infinity.  Error: at most 4 units in the last place."""

def tanf(x: Any) -> Any:
    """tan of float32."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent.  Error: at most 4 units in the last place."""

def tanhf(x: Any) -> Any:
    """tanh of float32."""

def tgamma(x: Any) -> Any:
    """Gamma function; NaN of negative integers, infinite at 0.  Error: at most 10 units in the last
    place."""

def tgammaf(x: Any) -> Any:
    """tgamma of float32."""

def trunc(x: Any) -> Any:
    """Nearest integer towards zero, a float, with the sign of x."""

def truncf(x: Any) -> Any:
    """trunc of float32."""

def uhadd(x: Any, y: Any) -> Any:
    """(x + y) // 2 of two uint32 without overflow."""

def uint2double_rn(x: Any) -> Any:
    """uint32 as float64, rounded to nearest."""

def uint2float_rd(x: Any) -> Any:
    """uint32 as float32, rounded as the last two letters say."""

def uint2float_rn(x: Any) -> Any:
    """uint32 as float32, rounded to nearest."""

def uint2float_ru(x: Any) -> Any:
    """uint32 as float32, rounded as the last two letters say."""

def uint2float_rz(x: Any) -> Any:
    """uint32 as float32, rounded as the last two letters say."""

def uint_as_float(x: Any) -> Any:
    """The float32 of the bits of a uint32."""

def ull2double_rd(x: Any) -> Any:
    """uint64 as float64, rounded as the last two letters say."""

def ull2double_rn(x: Any) -> Any:
    """uint64 as float64, rounded to nearest."""

def ull2double_ru(x: Any) -> Any:
    """uint64 as float64, rounded as the last two letters say."""

def ull2double_rz(x: Any) -> Any:
    """uint64 as float64, rounded as the last two letters say."""

def ull2float_rd(x: Any) -> Any:
    """uint64 as float32, rounded as the last two letters say."""

def ull2float_rn(x: Any) -> Any:
    """uint64 as float32, rounded to nearest."""

def ull2float_ru(x: Any) -> Any:
    """uint64 as float32, rounded as the last two letters say."""

def ull2float_rz(x: Any) -> Any:
    """uint64 as float32, rounded as the last two letters say."""

def ullmax(x: Any, y: Any) -> Any:
    """The greater of two uint64."""

def ullmin(x: Any, y: Any) -> Any:
    """The lesser of two uint64."""

def umax(x: Any, y: Any) -> Any:
    """The greater of two uint32."""

def umin(x: Any, y: Any) -> Any:
    """The lesser of two uint32."""

def umul24(x: Any, y: Any) -> Any:
    """Low 32 bits of the product of the low 24 bits of two uint32."""

def umul64hi(x: Any, y: Any) -> Any:
    """High half of the product of two uint64."""

def umulhi(x: Any, y: Any) -> Any:
    """High half of the product of two 32- or 64-bit integers taken as unsigned."""

def urhadd(x: Any, y: Any) -> Any:
    """(x + y + 1) // 2 of two uint32 without overflow."""

def usad(x: Any, y: Any, z: Any) -> Any:
    """|x - y| + z of uint32, modulo 2**32."""

def y0(x: Any) -> Any:
    """The Bessel function of the second kind of order 0; NaN below 0."""

def y0f(x: Any) -> Any:
    """y0 of float32."""

def y1(x: Any) -> Any:
    """The Bessel function of the second kind of order 1; NaN below 0."""

def y1f(x: Any) -> Any:
    """y1 of float32."""

def yn(x: Any, y: Any) -> Any:
    """The Bessel function of the second kind of an integer order; NaN below 0."""

def ynf(n: Any, x: Any) -> Any:
    """yn of float32."""


__all__ = [
    "abs", "acos", "acosf", "acosh", "acoshf", "add_rd", "add_rn", "add_ru", "add_rz", "asin",
    "asinf", "asinh", "asinhf", "atan", "atan2", "atan2f", "atanf", "atanh", "atanhf", "brev",
    "brevll", "byte_perm", "cbrt", "cbrtf", "cdiv", "ceil", "ceilf", "clamp", "clz", "clzll",
    "copysign", "copysignf", "cos", "cosf", "cosh", "coshf", "cospi", "cospif", "cyl_bessel_i0",
    "cyl_bessel_i0f", "cyl_bessel_i1", "cyl_bessel_i1f", "dadd_rd", "dadd_rn", "dadd_ru", "dadd_rz",
    "ddiv_rd", "ddiv_rn", "ddiv_ru", "ddiv_rz", "div_rd", "div_rn", "div_ru", "div_rz", "dmul_rd",
    "dmul_rn", "dmul_ru", "dmul_rz", "double2float_rd", "double2float_rn", "double2float_ru",
    "double2float_rz", "double2hiint", "double2int_rd", "double2int_rn", "double2int_ru",
    "double2int_rz", "double2ll_rd", "double2ll_rn", "double2ll_ru", "double2ll_rz", "double2loint",
    "double2uint_rd", "double2uint_rn", "double2uint_ru", "double2uint_rz", "double2ull_rd",
    "double2ull_rn", "double2ull_ru", "double2ull_rz", "double_as_longlong", "drcp_rd", "drcp_rn",
    "drcp_ru", "drcp_rz", "dsqrt_rd", "dsqrt_rn", "dsqrt_ru", "dsqrt_rz", "dsub_rd", "dsub_rn",
    "dsub_ru", "dsub_rz", "erf", "erfc", "erfcf", "erfcinv", "erfcinvf", "erfcx", "erfcxf", "erff",
    "erfinv", "erfinvf", "exp", "exp10", "exp10f", "exp2", "exp2f", "expf", "expm1", "expm1f",
    "fabs", "fabsf", "fadd_rd", "fadd_rn", "fadd_ru", "fadd_rz", "fast_cosf", "fast_dividef",
    "fast_exp10f", "fast_expf", "fast_fdividef", "fast_log10f", "fast_log2f", "fast_logf",
    "fast_powf", "fast_sincosf", "fast_sinf", "fast_tanf", "fast_tanhf", "fdim", "fdimf", "fdiv",
    "fdiv_rd", "fdiv_rn", "fdiv_ru", "fdiv_rz", "ffs", "ffsll", "finitef", "float2half_rn",
    "float2int_rd", "float2int_rn", "float2int_ru", "float2int_rz", "float2ll_rd", "float2ll_rn",
    "float2ll_ru", "float2ll_rz", "float2uint_rd", "float2uint_rn", "float2uint_ru",
    "float2uint_rz", "float2ull_rd", "float2ull_rn", "float2ull_ru", "float2ull_rz", "float_as_int",
    "float_as_uint", "floor", "floorf", "fma", "fma_rd", "fma_rn", "fma_ru", "fma_rz", "fmaf",
    "fmaf_rd", "fmaf_rn", "fmaf_ru", "fmaf_rz", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf",
    "fmul_rd", "fmul_rn", "fmul_ru", "fmul_rz", "frcp_rd", "frcp_rn", "frcp_ru", "frcp_rz", "frexp",
    "frexpf", "frsqrt_rn", "fsqrt_rd", "fsqrt_rn", "fsqrt_ru", "fsqrt_rz", "fsub_rd", "fsub_rn",
    "fsub_ru", "fsub_rz", "hadd", "half2float", "hiloint2double", "hypot", "hypotf", "ilogb",
    "ilogbf", "int2double_rn", "int2float_rd", "int2float_rn", "int2float_ru", "int2float_rz",
    "int_as_float", "isfinited", "isinf", "isinfd", "isinff", "isnan", "isnand", "isnanf", "j0",
    "j0f", "j1", "j1f", "jn", "jnf", "ldexp", "ldexpf", "lgamma", "lgammaf", "ll2double_rd",
    "ll2double_rn", "ll2double_ru", "ll2double_rz", "ll2float_rd", "ll2float_rn", "ll2float_ru",
    "ll2float_rz", "llabs", "llmax", "llmin", "llrint", "llrintf", "llround", "llroundf", "log",
    "log10", "log10f", "log1p", "log1pf", "log2", "log2f", "logb", "logbf", "logf",
    "longlong_as_double", "max", "maximum", "min", "minimum", "modf", "modff", "mul24", "mul64hi",
    "mul_rd", "mul_rn", "mul_ru", "mul_rz", "mulhi", "nearbyint", "nearbyintf", "nextafter",
    "nextafterf", "norm3d", "norm3df", "norm4d", "norm4df", "normcdf", "normcdff", "normcdfinv",
    "normcdfinvf", "popc", "popcll", "pow", "powf", "powi", "powif", "rcbrt", "rcbrtf", "rcp64h",
    "rcp_rd", "rcp_rn", "rcp_ru", "rcp_rz", "remainder", "remainderf", "remquo", "remquof", "rhadd",
    "rhypot", "rhypotf", "rint", "rintf", "rnorm3d", "rnorm3df", "rnorm4d", "rnorm4df", "round",
    "roundf", "rsqrt", "rsqrt_rn", "rsqrtf", "sad", "saturatef", "scalbn", "scalbnf", "signbit",
    "signbitd", "signbitf", "sin", "sincos", "sincosf", "sincospi", "sincospif", "sinf", "sinh",
    "sinhf", "sinpi", "sinpif", "sqrt", "sqrt_rd", "sqrt_rn", "sqrt_ru", "sqrt_rz", "sqrtf",
    "sub_rd", "sub_rn", "sub_ru", "sub_rz", "tan", "tanf", "tanh", "tanhf", "tgamma", "tgammaf",
    "trunc", "truncf", "uhadd", "uint2double_rn", "uint2float_rd", "uint2float_rn", "uint2float_ru",
    "uint2float_rz", "uint_as_float", "ull2double_rd", "ull2double_rn", "ull2double_ru",
    "ull2double_rz", "ull2float_rd", "ull2float_rn", "ull2float_ru", "ull2float_rz", "ullmax",
    "ullmin", "umax", "umin", "umul24", "umul64hi", "umulhi", "urhadd", "usad", "y0", "y0f", "y1",
    "y1f", "yn", "ynf",
]
