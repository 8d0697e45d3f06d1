"""NVVM IR of block functions in Numba's cache: entries that are not current count as missing.

numba-cuda pickles the IR of a kernel and of all that it calls, as texts, and watches one file: that
of the kernel.  The text of a block function is a str that brings along what it was made of.  Where
that has changed, unpickling it raises an OSError, on which Numba compiles the kernel anew.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from blocknumba.dispatch.compile.fingerprint import fingerprint
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.nvvm_lower.assumptions import Arguments
from blocknumba.nvvm_lower.target import Target


@dataclass(frozen=True, slots=True)
class Promise:
    """Promises of the callers of a block function.

    arrays: how far they go: "global", "aligned" or "any"; see compilation.py.
    wide: arrays may have 2**31 elements and more.
    shared_bytes: dynamic shared memory of the launch, which the function may take for itself.
    """

    arrays: str = "any"
    wide: bool = False
    shared_bytes: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """All that the code of a block function is made of; compared by identity.

    kernel, constants, options, promise: of the block function.   arguments, target: of the call.
    is_launched: as of Caller.
    """

    kernel: Kernel
    constants: tuple[tuple[str, object], ...]
    options: Options
    arguments: Arguments
    target: Target
    promise: Promise = Promise()
    is_launched: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether its shared memory is that of launches."""
        return self.is_launched or self.promise.shared_bytes is not None

    def digest(self) -> str | None:
        """The same in every process; None where there is none."""
        constants: Mapping[str, object] = dict(self.constants)
        specialization, _ = self.kernel.specialize(self.arguments, constants, self.options,
                                                   self.target, disjoint=False)
        return fingerprint(self.kernel.python_function, specialization, constants)


class CachedText(str):
    """NVVM IR of a block function.

    origin: what it was made of.   dynamic_bytes: dynamic shared memory that it needs.
    """

    origin: Origin
    dynamic_bytes: int

    def __new__(cls, text: str, origin: Origin, dynamic_bytes: int) -> CachedText:
        made = super().__new__(cls, text)
        made.origin, made.dynamic_bytes = origin, dynamic_bytes
        return made

    @property
    def is_granted(self) -> bool:
        """Whether callers promised what launches give, and have no dynamic arrays of their own."""
        return self.origin.promise.shared_bytes is not None

    def __reduce__(self) -> tuple:
        """Errors: PicklingError where no later process could tell whether the text is current."""
        self.origin.kernel.require_name()
        name, digest = self.origin.kernel.signature.kernel, self.origin.digest()
        if digest is None:
            raise pickle.PicklingError(
                f"{name}: a block function that reads what has no digest cannot be in Numba's "
                "cache; compile its caller without cache=True")
        # bytes, so that whatever is wrong with them is found by _current_text
        return _current_text, (str.__str__(self), pickle.dumps(self.origin), digest,
                               self.dynamic_bytes)


def _current_text(text: str, origin: bytes, digest: str, dynamic_bytes: int) -> CachedText:
    """The text, if what it was made of is what it was.

    Errors: OSError if not, or if it cannot be found.
    """
    try:
        found = pickle.loads(origin)
        is_current = found.digest() == digest
    except Exception as error:  # names may be gone, and modules raise anything
        raise OSError(f"a block function cannot be found: {error}") from error
    if not is_current:
        raise OSError(f"{found.kernel.signature.kernel}: a block function that has changed")
    if dynamic_bytes:
        # optional: imported where a kernel of numba-cuda is read
        from blocknumba.dispatch.block_functions.launched_memory import give_at_launches
        give_at_launches()
    return CachedText(text, found, dynamic_bytes)
