"""Options of each stage of the compiler, from a specialization.

A module of its own: block functions and drawings run the stages too.
"""

from __future__ import annotations

from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.typing.context import Options as TypingOptions


def typing_options(specialization: Specialization) -> TypingOptions:
    """The options of typing, from a specialization."""
    options = specialization.options
    return TypingOptions(debug=options.debug, target=str(specialization.target or ""),
                         dialect=options.dialect, contract=options.contract,
                         num_warps=options.num_warps)


def layout_options(specialization: Specialization, num_warps: int) -> LayoutOptions:
    """The options of the layout passes, from a specialization."""
    options, target = specialization.options, specialization.target
    num_stages = 1 if options.num_stages == 0 else options.num_stages
    return LayoutOptions(num_warps, num_stages, specialization.disjoint,
                         specialization.numbers_describe, target.capabilities,
                         target.shared_bytes_per_block, options.num_ctas)
