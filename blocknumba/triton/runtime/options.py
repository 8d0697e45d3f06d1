"""Options of a launch as Triton has them: some blocknumba does without, some have other limits."""

from __future__ import annotations

from collections.abc import Mapping

from blocknumba.dispatch.compile.options import MAX_STAGES, Options
from blocknumba.dispatch.launch.signature import Signature
from blocknumba.errors import BlockValueError, ResourceError, UnsupportedError, require
from blocknumba.gpu_layout.layouts.registers import MAX_WARPS
from blocknumba.triton.errors import of_compilation
from blocknumba.typing.triton.functions import WARP_SIZE
from blocknumba.wording import shown

# what they would change is decided here otherwise, or is of the other compiler alone
_WITHOUT_EFFECT = frozenset((
    "allowed_dot_input_precisions", "arch", "backend_name", "default_dot_input_precision",
    "deprecated_fp8_dot_operand_dtypes", "enable_reflect_ftz", "enable_warp_specialization",
    "instrumentation_mode", "max_num_imprecise_acc_default", "num_buffers_warp_spec",
    "num_consumer_groups", "ptx_options", "ptx_version", "reg_dec_producer", "reg_inc_consumer",
    "sanitize_overflow", "supported_fp8_dtypes", "warp_size"))
# accepted as None alone: files of the other compiler; CUDA's libdevice is always there
_NONE_ONLY = frozenset(("extern_libs", "ir_override"))
_OWN_LIBRARIES = frozenset(("libdevice",))


class NoPowerOfTwo(BlockValueError, AssertionError):
    """A number of warps that is no power of two, which for Triton is an assertion."""


def without_triton_options(signature: Signature, keywords: Mapping[str, object]) -> dict:
    """The keywords of a launch without the options that only Triton has.

    Errors: UnsupportedError for one that asks for what there is not.
    """
    left = {}
    for name, value in keywords.items():
        if name in signature.names or name not in _WITHOUT_EFFECT | _NONE_ONLY:
            left[name] = value
            continue
        is_given = name == "extern_libs" and value and not _OWN_LIBRARIES.issuperset(value)
        require(not (is_given or name == "ir_override" and value), "{}: given {}={}, accepted None",
                signature.kernel, name, shown(value), error=UnsupportedError)
        require(name != "warp_size" or value == WARP_SIZE, "{}: given warp_size={}, accepted {}",
                signature.kernel, shown(value), WARP_SIZE, error=BlockValueError)
    return left


class TritonOptions(Options):
    """Options, with what Triton says of numbers that no program can have.

    Errors of override: NoPowerOfTwo; Triton's OutOfResources for too many warps.
    """

    __slots__ = ()

    def override(self, changes: Mapping[str, object]) -> Options:
        """See Options.override; more stages than a loop can have are as many as it can."""
        numbers = {name: value for name, value in changes.items() if type(value) is int}
        if "num_warps" in numbers:
            _check_warps(numbers["num_warps"])
        if numbers.get("num_stages", 0) > MAX_STAGES:
            changes = {**changes, "num_stages": MAX_STAGES}
        return Options.override(self, changes)


def _check_warps(count: int) -> None:
    require(count & count - 1 == 0, "num_warps: given {}, accepted a power of two up to {}", count,
            MAX_WARPS, error=NoPowerOfTwo)
    if count > MAX_WARPS:
        raise of_compilation(ResourceError(
            f"num_warps: given {count}, accepted 1 to {MAX_WARPS}", resource="threads",
            required=count * WARP_SIZE, limit=MAX_WARPS * WARP_SIZE))
