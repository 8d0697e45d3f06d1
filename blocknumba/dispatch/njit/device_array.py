"""`bn.device(x)`: an array in GPU memory as functions that Numba compiles take it."""

from __future__ import annotations

from dataclasses import dataclass

from numba.core import types

from blocknumba.dispatch.launch.arrays import LEGACY_STREAM, array_info
from blocknumba.dispatch.launch.specialize import argument_of
from blocknumba.dispatch.launch.streams import producer_streams
from blocknumba.dispatch.njit.numba_types import DeviceArrayType
from blocknumba.errors import BlockTypeError
from blocknumba.wording import shown


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A view of an array in GPU memory for `@njit` functions, which may launch kernels on it.

    owner: the array, kept alive.
    pointer: address of the first element.
    shape, strides: per axis, in elements.
    stream: handle of the stream that launches go to: the current one of the array's library.
    mappable: a tensor map can describe it, whatever the box.
    _numba_type_: the type; Numba finds it by this name without calling Python.
    """

    owner: object
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stream: int
    mappable: bool
    _numba_type_: types.Type

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """That of the array."""
        return self.owner.__cuda_array_interface__


def device(x: object) -> DeviceArray:
    """View an array in GPU memory as an argument of `@njit` functions that launch kernels on it.

    x: an array of CuPy, Torch or Numba, or of any library with `__cuda_array_interface__` or
        DLPack, of rank 0 to 16.  Make the view once and pass it many times: it costs more than a
        launch.  In the function it has `shape`, `ndim` and `size`.
    Launches go to the stream that is current in x's library now; a stream that a launch names wins.
    Errors: BlockTypeError for anything else; those of a launch that is given x.

    Example:
    >>> try:
    ...     bn.device(np.zeros(4))
    ... except bn.errors.BlockError as error:
    ...     print(error.hint)
    pass NumPy arrays to @njit functions as they are
    """
    info = array_info(x, "device")
    if info is None or info.device is None:
        raise BlockTypeError(f"device: given {shown(x)}, accepted an array in GPU memory",
                             hint="pass NumPy arrays to @njit functions as they are")
    stream = next(iter(producer_streams((info,), info.device)), LEGACY_STREAM)
    kind = DeviceArrayType(info.dtype, len(info.shape), info.device, info.readonly)
    return DeviceArray(x, info.pointer, info.shape, info.strides, stream,
                       argument_of(info).mappable, kind)
