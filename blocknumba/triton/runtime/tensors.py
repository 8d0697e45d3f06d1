"""Stand-ins for tensors: of a dtype alone, and of a tensor whose elements are read as another's."""

from __future__ import annotations

from collections.abc import Sequence


class MockTensor:
    """A tensor without memory, for `kernel.warmup(MockTensor(torch.float32), ...)`.

    dtype: of any library, or of the language.  shape: in elements.

    Example:
    >>> @triton.jit
    ... def fill(x, n, BLOCK: tl.constexpr):
    ...     i = tl.arange(0, BLOCK)
    ...     tl.store(x + i, 7, mask=i < n)
    >>> compiled = fill.warmup(triton.MockTensor(tl.float32), 8, BLOCK=8, grid=(1,))
    >>> compiled is not None
    True
    """

    def __init__(self, dtype: object, shape: Sequence[int] | None = None):
        self.dtype, self.shape = dtype, list(shape or [1])

    @staticmethod
    def wrap_dtype(argument: object) -> object:
        """A stand-in for an argument that is a dtype of Torch; any other as it is."""
        cls = type(argument)
        is_dtype = (cls.__module__, cls.__name__) == ("torch", "dtype")
        return MockTensor(argument) if is_dtype else argument

    def stride(self) -> tuple[int, ...]:
        """The strides of a contiguous tensor, in elements."""
        strides = [1]
        for extent in self.shape[:0:-1]:
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        """Address 0, which is aligned."""
        return 0


class TensorWrapper:
    """A tensor or array whose memory is read as elements of another dtype.

    base: of any library.  dtype: of any library, or of the language.

    Example:
    >>> triton.TensorWrapper(np.zeros(4, np.uint8), tl.float8e5).dtype
    float8_e5m2
    """

    def __init__(self, base: object, dtype: object):
        self.base, self.dtype = base, dtype
        self.data, self.device = base.data, getattr(base, "device", None)
        self.shape = base.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.base.data_ptr()

    def stride(self, *axes: int) -> object:
        """The strides of the tensor below."""
        return self.base.stride(*axes)

    def element_size(self) -> int:
        """Bytes of an element of the tensor below."""
        return self.base.element_size()

    def cpu(self) -> TensorWrapper:
        """A copy on the host."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: object) -> TensorWrapper:
        """A copy on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        """Copy the elements of another."""
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def new_empty(self, sizes: Sequence[int]) -> TensorWrapper:
        """A new one of other extents."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: object, dtype: object) -> object:
    """A tensor or array as an argument whose elements are of another dtype.

    The tensor itself where it has that dtype.
    Errors: TypeError for what is neither a tensor nor an array.

    Example:
    >>> @triton.jit
    ... def fill(x):
    ...     tl.store(x + tl.arange(0, 4), 1.0)
    >>> codes = np.zeros(4, np.uint8)
    >>> _ = fill[(1,)](triton.reinterpret(codes, tl.float8e5))
    >>> codes
    array([60, 60, 60, 60], dtype=uint8)
    """
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if not hasattr(base, "dtype"):
        raise TypeError(f"reinterpret: given {type(tensor).__name__}, accepted a tensor")
    return base if dtype == base.dtype else TensorWrapper(base, dtype)
