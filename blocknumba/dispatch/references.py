"""Kernels as pickle and copy see them: like functions, by name.

pickle writes a function as the name that it is found by, and cloudpickle writes it whole where no
other process could find it: in `__main__`, in notebooks, in functions.  A kernel is no function.
So it is pickled as one that stands for it, whose name is the kernel's, and which makes a kernel
like it when it is called.
"""

from __future__ import annotations

import operator
import pickle
import sys
import weakref
from types import FunctionType


class Named:
    """A kernel, or a decorator's, that is found by its name: a copy of it is itself.

    __module__, __qualname__: of its function.
    """

    __slots__ = ()

    def remake(self) -> tuple[type, tuple]:
        """A class and arguments that make one like it."""
        raise NotImplementedError

    @property
    def _reference(self) -> FunctionType:
        """The function that stands for it."""
        if self not in _REFERENCES:
            made = _REFERENCES[self] = _reference(*self.remake())
            made.__module__, made.__qualname__ = self.__module__, f"{self.__qualname__}._reference"
            _REFERRED[made] = weakref.ref(self)
        return _REFERENCES[self]

    def __copy__(self) -> Named:
        return self

    def __deepcopy__(self, memo: dict) -> Named:
        return self

    def __reduce_ex__(self, protocol: int) -> tuple | str:
        """Errors: PicklingError for one that is not found by its name."""
        name = f"{self.__module__}.{self.__qualname__}"
        is_found = _found(self.__module__, self.__qualname__) is self
        # nothing says which of the two asks, but cloudpickle does not before it is loaded
        if not is_found and "cloudpickle" not in sys.modules:
            raise pickle.PicklingError(
                f"{self.__name__}: a kernel is pickled by its name, and {name} is not this one; "
                "define it at the top level of a module, or use cloudpickle")
        if protocol < 4:  # no names with dots
            return self.__qualname__
        return _referred, (self._reference,)


_REFERENCES: weakref.WeakKeyDictionary[Named, FunctionType] = weakref.WeakKeyDictionary()
_REFERRED: weakref.WeakKeyDictionary[FunctionType, weakref.ref] = weakref.WeakKeyDictionary()


def _reference(cls: type, arguments: tuple) -> FunctionType:
    def reference() -> Named:
        return cls(*arguments)
    return reference


def _referred(reference: FunctionType) -> Named:
    """What a function stands for; a new one, where the function was not found but read."""
    known = _REFERRED.get(reference)
    return reference() if known is None else known()


def _found(module: str, name: str) -> object:
    """What has a name; None when nothing has."""
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
