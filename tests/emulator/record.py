"""Run the kernels of recorded_cases.py on a GPU of capability 9.0, and keep what they answer.

    python tests/emulator/record.py [FILE]

writes FILE, by default data/recorded.npz beside this script: one array for each case by its name,
and the card and the driver's version under "card" and "driver".  A case that fails is left out.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from isolated import IsolatedCalls  # noqa: E402  the path is set above
from recorded_cases import Case, cases  # noqa: E402
from cuda.bindings import driver  # noqa: E402

from blocknumba.emulator import TensorMap  # noqa: E402

RECORDED = Path(__file__).parent / "data" / "recorded.npz"
_LIMIT_S = 60  # of one case


def check(outcome: tuple) -> object:
    """The results of a driver call.

    Errors: RuntimeError when it failed.
    """
    status, *results = outcome
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(status))
    return results[0] if len(results) == 1 else results


def to_device(array: np.ndarray) -> int:
    """The address of a copy of an array on the device."""
    address = check(driver.cuMemAlloc(max(array.nbytes, 16)))
    check(driver.cuMemcpyHtoD(address, np.ascontiguousarray(array).ctypes.data, array.nbytes))
    return int(address)


def encode(tensor_map: TensorMap) -> driver.CUtensorMap:
    """The driver's encoding of a tensor map, for a copy of its array on the device."""
    array = tensor_map.array
    kinds, swizzles = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    kind = {"float16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            "float32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            "uint8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8}[array.dtype.name]
    swizzle = {0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE, 32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
               64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
               128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B}[tensor_map.swizzle]
    return check(driver.cuTensorMapEncodeTiled(
        kind, array.ndim, to_device(array),
        [driver.cuuint64_t(extent) for extent in reversed(array.shape)],
        [driver.cuuint64_t(stride) for stride in reversed(array.strides[:-1])],
        [driver.cuuint32_t(extent) for extent in reversed(tensor_map.box)],
        [driver.cuuint32_t(1)] * array.ndim,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))


def open_device() -> None:
    """Make a context of the first GPU current."""
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))


def describe() -> dict[str, np.ndarray]:
    """The card and the driver's version."""
    card = check(driver.cuDeviceGetName(100, check(driver.cuDeviceGet(0))))
    return {"card": np.array(card.split(b"\0")[0].decode()),
            "driver": np.array(check(driver.cuDriverGetVersion()))}


def execute_named(name: str) -> np.ndarray:
    """The output on the device of the case of a name."""
    return execute(next(case for case in cases() if case.name == name))


def execute(case: Case) -> np.ndarray:
    """The output of a case on the device."""
    module = check(driver.cuModuleLoadData(case.text.encode() + b"\0"))
    function = check(driver.cuModuleGetFunction(module, b"k"))
    output = to_device(case.output)
    values = [ctypes.c_uint64(output)]
    for value in case.inputs:
        values.append(encode(value) if isinstance(value, TensorMap)
                      else ctypes.c_uint64(to_device(value)))
    addresses = [value.getPtr() if isinstance(value, driver.CUtensorMap)
                 else ctypes.addressof(value) for value in values]
    parameters = (ctypes.c_void_p * len(addresses))(*addresses)
    check(driver.cuLaunchKernel(function, 1, 1, 1, case.threads, 1, 1, 0, 0,
                                ctypes.addressof(parameters), 0))
    check(driver.cuCtxSynchronize())
    result = np.zeros_like(case.output)
    check(driver.cuMemcpyDtoH(result.ctypes.data, output, result.nbytes))
    check(driver.cuModuleUnload(module))
    return result


def main(path: Path) -> None:
    """Record all cases; one that fails on the GPU is named, and left out."""
    call = IsolatedCalls(open_device, _LIMIT_S)
    results = call(describe)
    for case in cases():
        try:
            recorded = call(execute_named, case.name)
        except RuntimeError as refused:
            print(f"{case.name}: {refused}", flush=True)
            continue
        results[case.name] = recorded.view(np.uint8)
        differ = int((~case.agrees(case.emulate(), recorded)).sum())
        if differ:
            print(f"{case.name}: the emulator differs in {differ} of {recorded.size} elements",
                  flush=True)
    call.close()
    np.savez_compressed(path, **results)
    print(f"{len(results) - 2} of {len(cases())} cases recorded on {results['card']} in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED)
