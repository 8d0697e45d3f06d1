"""`bn.compile`: compiling a kernel without arguments, for a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Mapping

from blocknumba.dispatch.compiled import Compiled
from blocknumba.dispatch.kernel import Kernel, default_target
from blocknumba.dispatch.options import require_options
from blocknumba.dispatch.type_spelling import literal, parse_types, split_types
from blocknumba.errors import BlockTypeError, require, require_known
from blocknumba.nvvm_lower.target import Target
from blocknumba.tracebacks import without_our_frames
from blocknumba.wording import shown


@without_our_frames
def compile(kernel: Kernel, signature: object, constants: Mapping[str, object] | None = None, *,
            target: str | Target | None = None, **options: object) -> Compiled:
    """The code of a kernel for arguments of given types.

    signature: types of the parameters that are not constants, as a tuple, a dict by name or one
        string: "f32[:,::1], f32[:], i32" (Numba) or "*fp32:16, i32" (Triton); "int" and "float"
        are Python's numbers, which take the dtype of what they meet.  It may also have an entry
        for every parameter, those of constants being values: "f32[:], int, 1024".
    constants: values of the constexprs; also None for an argument that is left out.
    target: "sm_90a" and the like; without it, what a launch would use.
    options: compile options, as for @bn.jit.
    The code is for arrays that share no memory, as most launches are.
    Errors: BlockTypeError for constants or types that do not fit the kernel.
    """
    require(isinstance(kernel, Kernel), "compile: given {!r}, accepted a @bn.jit kernel", kernel)
    name = kernel.signature.kernel
    require_options(name, options)
    signature, constants = _values_taken_out(kernel, signature, dict(constants or {}))
    constants = _all_constants(kernel, constants)
    names = [formal.name for formal in kernel.signature.formals if formal.name not in constants]
    chosen = (target if isinstance(target, Target)
              else Target.parse(target) if target else default_target())
    specialization, _ = kernel.specialize(parse_types(signature, names, name), constants,
                                          kernel.options.override(options), chosen,
                                          disjoint=True)
    return kernel.compile(specialization, constants)


def _values_taken_out(kernel: Kernel, signature: object, constants: dict[str, object],
                      ) -> tuple[object, dict[str, object]]:
    """The signature of what is not constant, and all constants that were given.

    Errors: BlockTypeError for an entry of a constant that is not a value.
    """
    name, formals = kernel.signature.kernel, kernel.signature.formals
    entries = split_types(signature)
    if isinstance(entries, Mapping):
        return signature, constants
    fixed = [formal.name for formal in formals if formal.is_constant or formal.name in constants]
    free = [formal.name for formal in formals if formal.name not in fixed]
    if fixed and len(entries) == len(free):
        return signature, constants
    require(len(entries) == len(formals), "{}: given {} types, accepted {} ({}){}", name,
            len(entries), len(free), ", ".join(free),
            f", or {len(formals)} with the values of {', '.join(fixed)}" if fixed else "")
    types = []
    for formal, entry in zip(formals, entries):
        if not formal.is_constant and formal.name not in constants:
            types.append(entry)
            continue
        require(formal.name not in constants, "{}: given the constant {} twice", name, formal.name)
        try:
            constants[formal.name] = literal(entry)
        except ValueError:
            raise BlockTypeError(f"{name}: argument {formal.name}: given {shown(entry)}, "
                                 "accepted the value of a constant") from None
    return types, constants


def _all_constants(kernel: Kernel, given: Mapping[str, object]) -> dict[str, object]:
    """The constants in the order of the signature, defaults filled in."""
    name, formals = kernel.signature.kernel, kernel.signature.formals
    require_known(f"{name}: given the constants", given, kernel.signature.names)
    constants = {}
    for formal in formals:
        if formal.name in given:
            constants[formal.name] = given[formal.name]
        elif formal.is_constant:
            require(formal.has_default, "{}: missing the constant {}", name, formal.name)
            constants[formal.name] = formal.default
    return constants
