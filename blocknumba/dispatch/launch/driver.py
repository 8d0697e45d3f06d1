"""The CUDA driver, through cuda-bindings; launches go through ctypes or CuPy, which cost less."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from types import ModuleType

import numpy as np

from blocknumba.errors import LaunchError
from blocknumba.tile_ir.ir.tensor_map import SIZE_BYTES, Sizes
from blocknumba.tile_ir.ir.types import DType

_MODULE = "cupy_backends.cuda.api.driver"


def cupy_launch() -> Callable[..., None] | None:
    """cuLaunchKernel, of integers; None when nobody imported CuPy.

    It lets go of the GIL, and raises for a status that is not 0.
    """
    return getattr(sys.modules.get(_MODULE), "launchKernel", None)


def status_of(error: Exception) -> int:
    """The driver's status that cupy_launch() raised; any other error is raised again."""
    refused = getattr(sys.modules.get(_MODULE), "CUDADriverError", ())
    if not isinstance(error, refused):
        raise error
    return error.status


_LAUNCH_VERSION = 12000  # of CUDA, whose cuLaunchKernelEx is called
# the driver's names of element types; TMA only moves elements
_MAP_ELEMENTS = {"bool": "UINT8", "int8": "UINT8", "uint8": "UINT8", "float8_e4m3fn": "UINT8",
                 "float8_e5m2": "UINT8", "int16": "UINT16", "uint16": "UINT16",
                 "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int32": "INT32",
                 "uint32": "UINT32", "float32": "FLOAT32", "int64": "INT64", "uint64": "UINT64",
                 "float64": "FLOAT64"}


class Driver:
    """The driver of a machine with at least one GPU.

    api: the module cuda.bindings.driver.
    device_count: GPUs that CUDA_VISIBLE_DEVICES leaves visible.
    is_host: whether it stands for this machine's processor.
    """

    is_host = False

    def __init__(self, api: ModuleType, device_count: int):
        self.api = api
        self.device_count = device_count
        self._contexts: dict[int, object] = {}

    # Devices and contexts

    def current_device(self) -> int:
        """The ordinal of this thread's device, 0 when it has not chosen one."""
        status, device = self.api.cuCtxGetDevice()
        return int(device) if status == self.api.CUresult.CUDA_SUCCESS else 0

    def capability(self, device: int) -> tuple[int, int]:
        """The compute capability of a device."""
        return (self.attribute("COMPUTE_CAPABILITY_MAJOR", device),
                self.attribute("COMPUTE_CAPABILITY_MINOR", device))

    def attribute(self, name: str, device: int) -> int:
        """An attribute of a device, by its name in the driver after CU_DEVICE_ATTRIBUTE_."""
        wanted = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self.check("cuDeviceGetAttribute", self.api.cuDeviceGetAttribute(wanted, device))[0]

    def cuda_version(self) -> tuple[int, int]:
        """The newest CUDA release whose code the driver runs."""
        (version,) = self.check("cuDriverGetVersion", self.api.cuDriverGetVersion())
        return version // 1000, version % 1000 // 10

    def device_name(self, device: int) -> str:
        """The marketing name of a device."""
        (name,) = self.check("cuDeviceGetName", self.api.cuDeviceGetName(256, device))
        return name.split(b"\0", 1)[0].decode()

    @contextmanager
    def on_device(self, device: int) -> Iterator[None]:
        """Make the primary context of a device current for the body."""
        self.check("cuCtxPushCurrent", self.api.cuCtxPushCurrent(self._context(device)))
        try:
            yield
        finally:
            self.check("cuCtxPopCurrent", self.api.cuCtxPopCurrent())

    def enter_thread(self, device: int) -> None:
        """Give a thread that has no context yet the primary one of a device."""
        status, context = self.api.cuCtxGetCurrent()
        if status != self.api.CUresult.CUDA_SUCCESS or not int(context):
            self.check("cuCtxSetCurrent", self.api.cuCtxSetCurrent(self._context(device)))

    def pointer_device(self, pointer: int) -> int:
        """The device whose memory a pointer is in; the current one for a null pointer."""
        if not pointer:
            return self.current_device()
        ordinal = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        device = ctypes.c_int()
        self.check("cuPointerGetAttribute", (self._pointer_attribute(
            ctypes.byref(device), int(ordinal), ctypes.c_uint64(pointer)),))
        return device.value

    @cached_property
    def _pointer_attribute(self) -> Callable[..., int]:
        """cuPointerGetAttribute: (data, attribute, pointer) to a status.

        That of cuda-bindings 13.3 says device 0 for every pointer.
        Source: NVIDIA/cuda-python, issue 2928.
        """
        return ctypes.CFUNCTYPE(ctypes.c_int)(self.address("cuPointerGetAttribute"))

    # Memory; all in the order of a stream, in the current context

    def allocate(self, size_bytes: int, stream: int) -> int:
        """Device memory, 256-byte aligned."""
        (pointer,) = self.check("cuMemAllocAsync", self.api.cuMemAllocAsync(size_bytes, stream))
        return int(pointer)

    def free(self, pointer: int, stream: int) -> None:
        """Free memory of allocate, in the order of the stream."""
        self.check("cuMemFreeAsync", self.api.cuMemFreeAsync(pointer, stream))

    def copy_to_device(self, pointer: int, host: int, size_bytes: int, stream: int) -> None:
        """Copy bytes from a host address to device memory."""
        self.check("cuMemcpyHtoDAsync",
                   self.api.cuMemcpyHtoDAsync(pointer, host, size_bytes, stream))

    def copy_to_host(self, host: int, pointer: int, size_bytes: int, stream: int) -> None:
        """Copy bytes from device memory to a host address."""
        self.check("cuMemcpyDtoHAsync",
                   self.api.cuMemcpyDtoHAsync(host, pointer, size_bytes, stream))

    def copy_on_device(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Copy bytes between addresses of devices."""
        self.check("cuMemcpyAsync", self.api.cuMemcpyAsync(target, source, size_bytes, stream))

    def clear(self, pointer: int, size_bytes: int, stream: int) -> None:
        """Set bytes of device memory to 0."""
        self.check("cuMemsetD8Async", self.api.cuMemsetD8Async(pointer, 0, size_bytes, stream))

    # Streams

    def synchronize(self, stream: int) -> None:
        """Wait until a stream has done everything that was queued."""
        self.check("cuStreamSynchronize", self.api.cuStreamSynchronize(stream))

    def order(self, first: int, then: int) -> None:
        """Make work queued later on `then` wait for work queued so far on `first`."""
        flag = self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        (event,) = self.check("cuEventCreate", self.api.cuEventCreate(flag))
        try:
            self.check("cuEventRecord", self.api.cuEventRecord(event, first))
            self.check("cuStreamWaitEvent", self.api.cuStreamWaitEvent(then, event, 0))
        finally:
            self.check("cuEventDestroy", self.api.cuEventDestroy(event))

    @contextmanager
    def new_stream(self) -> Iterator[int]:
        """A stream that does not wait for the legacy one, for the body."""
        (stream,) = self.check("cuStreamCreate", self.api.cuStreamCreate(
            self.api.CUstream_flags.CU_STREAM_NON_BLOCKING))
        try:
            yield int(stream)
        finally:
            self.check("cuStreamDestroy", self.api.cuStreamDestroy(stream))

    def is_capturing(self, stream: int) -> bool:
        """Whether what is queued on a stream goes into a graph."""
        status, capturing = self.api.cuStreamIsCapturing(stream)
        none = self.api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        # the legacy stream says with an error that another one is being captured
        return bool(status) or capturing != none

    # Events and graphs, of the current context

    def new_event(self) -> object:
        """An event that knows when it happened."""
        return self.check("cuEventCreate", self.api.cuEventCreate(0))[0]

    def destroy_event(self, event: object) -> None:
        """Destroy an event of new_event."""
        self.check("cuEventDestroy", self.api.cuEventDestroy(event))

    def record(self, event: object, stream: int) -> None:
        """Make an event happen when a stream gets here."""
        self.check("cuEventRecord", self.api.cuEventRecord(event, stream))

    def elapsed_ms(self, start: object, end: object) -> float:
        """The time between two events that have happened."""
        return self.check("cuEventElapsedTime", self.api.cuEventElapsedTime(start, end))[0]

    @contextmanager
    def graph(self, run: Callable[[int], object], stream: int, times: int) -> Iterator[object]:
        """A graph of what a function queues on a stream, that many times over, for the body."""
        mode = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.check("cuStreamBeginCapture", self.api.cuStreamBeginCapture(stream, mode))
        try:
            for _ in range(times):
                run(stream)
        finally:
            status, graph = self.api.cuStreamEndCapture(stream)
        self.check("cuStreamEndCapture", (status,))
        try:
            (executable,) = self.check("cuGraphInstantiate",
                                       self.api.cuGraphInstantiate(graph, 0))
        finally:
            self.check("cuGraphDestroy", self.api.cuGraphDestroy(graph))
        try:
            yield executable
        finally:
            self.check("cuGraphExecDestroy", self.api.cuGraphExecDestroy(executable))

    def launch_graph(self, graph: object, stream: int) -> None:
        """Run a graph on a stream."""
        self.check("cuGraphLaunch", self.api.cuGraphLaunch(graph, stream))

    # Kernels

    @contextmanager
    def outside_capture(self) -> Iterator[None]:
        """Let the body load code while this thread captures a stream; nothing of it is captured."""
        relaxed = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        exchange = self.api.cuThreadExchangeStreamCaptureMode
        (before,) = self.check("cuThreadExchangeStreamCaptureMode", exchange(relaxed))
        try:
            yield
        finally:
            self.check("cuThreadExchangeStreamCaptureMode", exchange(before))

    def load_kernel(self, cubin: bytes, symbol: str) -> int:
        """The handle of a kernel in a cubin, good in every context; it is never unloaded."""
        (library,) = self.check("cuLibraryLoadData", self.api.cuLibraryLoadData(
            cubin, None, None, 0, None, None, 0))
        (kernel,) = self.check("cuLibraryGetKernel",
                               self.api.cuLibraryGetKernel(library, symbol.encode()))
        return int(kernel)

    def load_in_context(self, kernel: int) -> None:
        """Load a kernel's code into the current context now, and not when it is first launched."""
        self.check("cuKernelGetFunction",
                   self.api.cuKernelGetFunction(self.api.CUkernel(kernel)))

    def allow_dynamic_shared(self, kernel: int, device: int, size_bytes: int) -> None:
        """Let a kernel ask for more dynamic shared memory than the 48 KiB of old."""
        name = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.check("cuKernelSetAttribute", self.api.cuKernelSetAttribute(
            name, size_bytes, self.api.CUkernel(kernel), device))

    def allow_dynamic_shared_in(self, library: int, size_bytes: int) -> None:
        """Let all kernels of a library ask for so much of it on the current device, at least."""
        api, device = self.api, self.current_device()
        name = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = api.CUlibrary(library)
        (count,) = self.check("cuLibraryGetKernelCount", api.cuLibraryGetKernelCount(handle))
        (kernels,) = self.check("cuLibraryEnumerateKernels",
                                api.cuLibraryEnumerateKernels(count, handle))
        for kernel in kernels:
            (allowed,) = self.check("cuKernelGetAttribute",
                                    api.cuKernelGetAttribute(name, kernel, device))
            if allowed < size_bytes:
                self.allow_dynamic_shared(int(kernel), device, size_bytes)

    def encode_tensor_map(self, dtype: DType, pointer: int, sizes: Sizes, box: Sequence[int],
                          swizzle_bytes: int, as_tf32: bool = False) -> bytes:
        """The 128 bytes that describe a box of an array to TMA; elements outside read as 0.

        sizes: of the array.  box: its extents, in the same order.
        as_tf32: float32 elements are rounded on their way to shared memory.
        """
        api = self.api
        kind = getattr(api.CUtensorMapDataType, map_element(dtype, as_tf32))
        swizzle = getattr(api.CUtensorMapSwizzle, map_swizzle(swizzle_bytes))
        (encoded,) = self.check("cuTensorMapEncodeTiled", api.cuTensorMapEncodeTiled(
            kind, len(box), pointer, [api.cuuint64_t(extent) for extent in sizes.extents],
            [api.cuuint64_t(stride) for stride in sizes.strides_bytes],
            [api.cuuint32_t(extent) for extent in box], [api.cuuint32_t(1)] * len(box),
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
        return ctypes.string_at(encoded.getPtr(), SIZE_BYTES)

    @cached_property
    def launch(self) -> Callable[..., int]:
        """cuLaunchKernelEx: (config, kernel, parameters, None), made by c_void_p.from_param, to a
        status.

        cuda-bindings' functions convert every argument and the status at each call, which costs
        as much as a quarter of the launch.  Like them, this one lets go of the GIL.
        """
        return ctypes.CFUNCTYPE(ctypes.c_int)(self.address("cuLaunchKernelEx"))

    def address(self, function: str) -> int:
        """Address of one of the driver's functions."""
        address, _ = self.check("cuGetProcAddress", self.api.cuGetProcAddress(
            function.encode(), _LAUNCH_VERSION, 0))
        return int(address)

    def check(self, function: str, result: tuple) -> tuple:
        """The values of a call.  Errors: LaunchError with the driver's own words."""
        if result[0]:
            raise LaunchError(f"{function}: {self.describe(result[0])}")
        return result[1:]

    def describe(self, status: object) -> str:
        """The name and the meaning of a status."""
        status = self.api.CUresult(status)
        texts = (self.api.cuGetErrorName(status)[1], self.api.cuGetErrorString(status)[1])
        known = [text.decode() for text in texts if text]
        return ": ".join(known) if known else f"CUDA error {int(status)}"

    def _context(self, device: int) -> object:
        """The primary context of a device, kept for the life of the process."""
        context = self._contexts.get(device)
        if context is None:
            (context,) = self.check("cuDevicePrimaryCtxRetain",
                                    self.api.cuDevicePrimaryCtxRetain(device))
            self._contexts[device] = context
        return context


def _may_have_a_gpu() -> bool:
    """Whether the driver finds a GPU, where it can be asked before cuda-bindings are imported.

    That takes some 30 ms, which first launches on the CPU need not wait for.
    """
    if not sys.platform.startswith("linux"):
        return True
    count = ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        return not driver.cuInit(0) and not driver.cuDeviceGetCount(
            ctypes.byref(count)) and count.value > 0
    except (OSError, AttributeError):
        return False


@cache
def find_driver() -> Driver | None:
    """The driver, or None on a machine without a GPU, a driver or cuda-bindings."""
    if not _may_have_a_gpu():
        return None
    try:
        # here and not above: blocknumba must import, and run on the CPU, without it
        from cuda.bindings import driver as api
        status = api.cuInit(0)[0]
        status, count = (status, 0) if status else api.cuDeviceGetCount()
    except (ImportError, RuntimeError):
        return None
    return Driver(api, count) if not status and count else None


def require_driver(what: str) -> Driver:
    """The driver.  Errors: LaunchError saying what needs it."""
    driver = find_driver()
    if driver is None:
        raise LaunchError(f"{what}: no CUDA device was found",
                          hint="pass NumPy arrays to run on the CPU")
    return driver


def map_element(dtype: DType, as_tf32: bool = False) -> str:
    """The driver's name of the elements of a tensor map."""
    return f"CU_TENSOR_MAP_DATA_TYPE_{'TFLOAT32' if as_tf32 else _MAP_ELEMENTS[dtype.name]}"


def map_swizzle(size_bytes: int) -> str:
    """The driver's name of the swizzle of a tensor map."""
    return f"CU_TENSOR_MAP_SWIZZLE_{f'{size_bytes}B' if size_bytes else 'NONE'}"


def host_pointer(array: np.ndarray) -> int:
    """The address of the first element of a host array."""
    return array.__array_interface__["data"][0]
