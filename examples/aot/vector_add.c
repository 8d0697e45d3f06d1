/* out = x + y by the kernel `add` of ../vector_add.py, without Python: README.md says how. */
#include <stdio.h>
#include <stdlib.h>

#include "add.h"

enum { SIZE = 1 << 20, BLOCK = 1024 };

static void check(CUresult status, const char *what)
{
    const char *name = "unknown error";
    if (!status)
        return;
    cuGetErrorName(status, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    exit(2);
}

int main(void)
{
    static float x[SIZE], y[SIZE], out[SIZE];
    CUdevice device;
    CUcontext context;
    CUfunction add;
    CUdeviceptr device_x, device_y, device_out;
    long wrong = 0;

    for (long i = 0; i < SIZE; i++) {
        x[i] = (float)i;
        y[i] = 0.5f;
    }
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(add_load(&add), "add_load");
    check(cuMemAlloc(&device_x, sizeof x), "cuMemAlloc");
    check(cuMemAlloc(&device_y, sizeof y), "cuMemAlloc");
    check(cuMemAlloc(&device_out, sizeof out), "cuMemAlloc");
    check(cuMemcpyHtoD(device_x, x, sizeof x), "cuMemcpyHtoD");
    check(cuMemcpyHtoD(device_y, y, sizeof y), "cuMemcpyHtoD");
    check(add_launch(add, 0, SIZE / BLOCK, 1, 1, device_x, SIZE, device_y, SIZE, device_out, SIZE),
          "add_launch");
    check(cuMemcpyDtoH(out, device_out, sizeof out), "cuMemcpyDtoH");
    for (long i = 0; i < SIZE; i++)
        wrong += out[i] != x[i] + y[i];
    printf("%ld of %d elements are wrong\n", wrong, SIZE);
    return wrong != 0;
}
