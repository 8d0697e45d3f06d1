"""Options of a launch that Triton has and blocknumba does without."""

from __future__ import annotations

from collections.abc import Mapping

from blocknumba.dispatch.launch.signature import Signature
from blocknumba.errors import BlockValueError, UnsupportedError, require
from blocknumba.wording import shown

# what they would change is decided here otherwise, or is of the other compiler alone
_WITHOUT_EFFECT = frozenset((
    "allowed_dot_input_precisions", "arch", "backend_name", "default_dot_input_precision",
    "deprecated_fp8_dot_operand_dtypes", "enable_reflect_ftz", "enable_warp_specialization",
    "instrumentation_mode", "max_num_imprecise_acc_default", "num_buffers_warp_spec",
    "num_consumer_groups", "ptx_options", "ptx_version", "reg_dec_producer", "reg_inc_consumer",
    "sanitize_overflow", "supported_fp8_dtypes", "warp_size"))
# accepted as None alone: files of the other compiler
_NONE_ONLY = frozenset(("extern_libs", "ir_override"))
_WARP_SIZE = 32


def without_triton_options(signature: Signature, keywords: Mapping[str, object]) -> dict:
    """The keywords of a launch without the options that only Triton has.

    Errors: UnsupportedError for one that asks for what there is not.
    """
    left = {}
    for name, value in keywords.items():
        if name in signature.names or name not in _WITHOUT_EFFECT | _NONE_ONLY:
            left[name] = value
            continue
        require(name not in _NONE_ONLY or not value, "{}: given {}={}, accepted None",
                signature.kernel, name, shown(value), error=UnsupportedError)
        require(name != "warp_size" or value == _WARP_SIZE, "{}: given warp_size={}, accepted {}",
                signature.kernel, shown(value), _WARP_SIZE, error=BlockValueError)
    return left
