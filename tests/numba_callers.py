"""Kernels of numba-cuda, run on the GPU or, whole, by the emulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from blocknumba.emulator import Module, Options, Report

EMULATED, ON_GPU = "emulator", "gpu"


@dataclass(frozen=True)
class Machine:
    """Where a kernel of numba-cuda runs.

    kind: EMULATED or ON_GPU.   capability: the emulated GPU's, as numba-cuda spells it.
    link: how block functions get into the kernel.
    """

    kind: str
    capability: tuple = (9, 0, "a")
    link: str = "ir"

    def run(self, function, grid, threads: int, *arguments, shared_bytes: int = 0,
            **options) -> Report | None:
        """The @cuda.jit kernel of a function, launched; arrays are NumPy's.

        shared_bytes: dynamic shared memory.   options: of @cuda.jit.   Returns the emulator's
        counters.
        """
        from numba import cuda
        if self.kind == ON_GPU:
            kernel = cuda.jit(function, lto=self.link == "ltoir", **options)
            given = [on_device(argument) for argument in arguments]
            kernel[grid, threads, 0, shared_bytes](*given)
            for argument, array in zip(arguments, given):
                if isinstance(argument, np.ndarray):
                    argument[...] = in_bits(array).copy_to_host().view(argument.dtype)
            return None
        module = Module.parse(self.ptx(function, arguments, **options))
        parameters = [each for argument in arguments for each in fields(argument)]
        return module.launch(module.kernels[0], grid, threads, parameters, shared_bytes,
                             options=Options(seed=0))

    def ptx(self, function, arguments, **options) -> str:
        """The PTX of a kernel and of everything that it calls."""
        from numba import cuda
        from numba.cuda.typing.typeof import typeof
        signature = tuple(map(typeof, arguments))
        if self.link == "ltoir":
            codes, _ = cuda.compile_all(function, signature, cc=self.capability, device=False,
                                        abi="numba", output="ltoir", **options)
            return linked(codes, self.capability)
        text, _ = cuda.compile_ptx(function, signature, cc=self.capability, **options)
        return text


def on_device(argument: object) -> object:
    """An array on the GPU; numba-cuda copies none of ml_dtypes' dtypes, so its bits."""
    from numba import cuda
    if not isinstance(argument, np.ndarray):
        return argument
    return cuda.to_device(in_bits(argument)).view(argument.dtype)


def in_bits(array: object) -> object:
    """An array of NumPy or numba-cuda as unsigned integers."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def linked(codes: list, capability: tuple) -> str:
    """The PTX that nvJitLink makes of several pieces of LTO IR."""
    from cuda.bindings import nvjitlink
    name = "".join(map(str, capability))
    handle = nvjitlink.create(3, [f"-arch=compute_{name}", "-lto", "-ptx"])
    try:
        for code in codes:
            data = getattr(code, "data", code)
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, data, len(data), "code")
        nvjitlink.complete(handle)
        text = bytearray(nvjitlink.get_linked_ptx_size(handle))
        nvjitlink.get_linked_ptx(handle, text)
    finally:
        nvjitlink.destroy(handle)
    return bytes(text).rstrip(b"\0").decode()


def fields(argument: object) -> list:
    """What numba-cuda passes for an argument: of an array nulls, sizes, pointer, shape, strides."""
    if not isinstance(argument, np.ndarray):
        return [np.asarray(argument)[()]]
    return [0, 0, argument.size, argument.itemsize, argument, *argument.shape, *argument.strides]


MACHINES = (*(pytest.param(Machine(EMULATED, capability), id=f"sm_{''.join(map(str, capability))}")
              for capability in ((8, 0), (9, 0, "a"), (10, 0))),
            pytest.param(Machine(EMULATED, link="ltoir"), id="sm_90a-ltoir"))
GPUS = (Machine(ON_GPU), Machine(ON_GPU, link="ltoir"))
