/* A driver whose only kernel is the vector add of examples/aot, run on the host by what it is
   given; the code that it is given must be a cubin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

static int loaded;

CUresult CUDAAPI cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : 0; }
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return 0; }
CUresult CUDAAPI cuGetErrorName(CUresult status, const char **name) { *name = "error"; return 0; }

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)&loaded;
    return 0;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) { return 0; }

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *pointer, size_t size)
{
    *pointer = (CUdeviceptr)aligned_alloc(256, (size + 255) / 256 * 256);
    return 0;
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
    memcpy((void *)to, from, size);
    return 0;
}

CUresult CUDAAPI cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
    memcpy(to, (void *)from, size);
    return 0;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *code)
{
    loaded = !memcmp(code, "\177ELF", 4);
    return loaded ? 0 : CUDA_ERROR_INVALID_IMAGE;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *kernel, CUmodule module, const char *name)
{
    *kernel = (CUfunction)&loaded;
    return strcmp(name, "add") ? CUDA_ERROR_NOT_FOUND : 0;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction kernel, unsigned x, unsigned y, unsigned z,
                                unsigned threads, unsigned, unsigned, unsigned shared,
                                CUstream stream, void **parameters, void **extra)
{
    /* pointer and extent of x, y and out; an extent is a 32-bit number in the kernel */
    const float *a = *(float **)parameters[0], *b = *(float **)parameters[2];
    float *out = *(float **)parameters[4];
    int size = *(int *)parameters[1];

    if (size != *(int *)parameters[3] || size != *(int *)parameters[5] || threads % 32)
        return CUDA_ERROR_INVALID_VALUE;
    for (long i = 0; i < (long)x * 1024 && i < size; i++)
        out[i] = a[i] + b[i];
    return 0;
}
