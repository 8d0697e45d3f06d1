"""The peers in numba-cuda: one thread an element, or one block of THREADS a row."""

import math

from numba import cuda, float32

THREADS = 256


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit(device=True)
def block_sum(value, shared):
    """The sum of value over the block, in every thread."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            shared[thread] += shared[thread + step]
        cuda.syncthreads()
        step //= 2
    total = shared[0]
    cuda.syncthreads()
    return total


@cuda.jit(device=True)
def block_max(value, shared):
    """The greatest value of the block, in every thread."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            shared[thread] = max(shared[thread], shared[thread + step])
        cuda.syncthreads()
        step //= 2
    greatest = shared[0]
    cuda.syncthreads()
    return greatest


@cuda.jit
def softmax(x, y):
    shared = cuda.shared.array(THREADS, float32)
    i, columns = cuda.blockIdx.x, x.shape[1]
    greatest = float32(-math.inf)
    for j in range(cuda.threadIdx.x, columns, THREADS):
        greatest = max(greatest, float32(x[i, j]))
    greatest = block_max(greatest, shared)
    total = float32(0)
    for j in range(cuda.threadIdx.x, columns, THREADS):
        total += math.exp(float32(x[i, j]) - greatest)
    scale = float32(1) / block_sum(total, shared)
    for j in range(cuda.threadIdx.x, columns, THREADS):
        y[i, j] = math.exp(float32(x[i, j]) - greatest) * scale


@cuda.jit
def layernorm(x, weight, bias, y, epsilon):
    shared = cuda.shared.array(THREADS, float32)
    i, columns = cuda.blockIdx.x, x.shape[1]
    total = float32(0)
    for j in range(cuda.threadIdx.x, columns, THREADS):
        total += float32(x[i, j])
    mean = block_sum(total, shared) / float32(columns)
    squares = float32(0)
    for j in range(cuda.threadIdx.x, columns, THREADS):
        centred = float32(x[i, j]) - mean
        squares += centred * centred
    variance = block_sum(squares, shared) / float32(columns)
    scale = float32(1) / math.sqrt(variance + float32(epsilon))
    for j in range(cuda.threadIdx.x, columns, THREADS):
        centred = float32(x[i, j]) - mean
        y[i, j] = centred * scale * float32(weight[j]) + float32(bias[j])
