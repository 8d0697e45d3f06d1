/* A CUDA driver without a GPU: memory is host memory, and launches are recorded and handed to a
   callback, which may do what the kernel would have done.

   Built by stub.py into libcuda.so.1.  STUB_DEVICES in the environment says how many devices
   there are (1).  Every function returns 0, success, unless stub_fail says otherwise. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_RECORDS 4096
#define MAX_PARAMETERS 64
#define FIRST_CONTEXT 0x1000
#define CONTEXT(device) ((void *)(FIRST_CONTEXT + 16L * (device)))

typedef unsigned long long word;

/* What the tests read. */

/* parameters: the first 8 bytes of each; addresses: of each, until the next launch. */
struct launch {
    word kernel, stream, device, grid[3], block[3], shared, cluster[3], cooperative, dependent,
         parameters[MAX_PARAMETERS], addresses[MAX_PARAMETERS];
};
struct wait { word stream, after; };

static struct launch launches[MAX_RECORDS];
static struct wait waits[MAX_RECORDS];
static long launch_count, wait_count, load_count, copy_count, shared_limit;
static int parameter_count, next_failure, quiet;
static void (*on_launch)(const struct launch *);

EXPORT long stub_launch_count(void) { return launch_count; }
EXPORT const struct launch *stub_launch(long i) { return &launches[i % MAX_RECORDS]; }
EXPORT long stub_wait_count(void) { return wait_count; }
EXPORT const struct wait *stub_wait(long i) { return &waits[i % MAX_RECORDS]; }
EXPORT long stub_load_count(void) { return load_count; }
EXPORT long stub_copy_count(void) { return copy_count; }
EXPORT long stub_shared_limit(void) { return shared_limit; }
EXPORT void stub_parameters(int count) { parameter_count = count; }
EXPORT void stub_quiet(int on) { quiet = on; }  /* launches cost nothing and leave no trace */
EXPORT void stub_fail(int status) { next_failure = status; }
EXPORT void stub_on_launch(void (*callback)(const struct launch *)) { on_launch = callback; }

/* Devices and contexts. */

static __thread void *stack[64];
static __thread int depth;
static word next_handle = 0x10000;

static int current_device(void) {
    return depth ? (int)(((long)stack[depth - 1] - FIRST_CONTEXT) / 16) : 0;
}
static void *new_handle(void) { return (void *)(next_handle += 16); }

EXPORT int cuInit(unsigned flags) { return 0; }
EXPORT int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
EXPORT int cuDeviceGetCount(int *count) {
    const char *text = getenv("STUB_DEVICES");
    *count = text ? atoi(text) : 1;
    return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
EXPORT int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "stub %d", device);
    return 0;
}
EXPORT int cuDeviceGetUuid_v2(char *uuid, int device) { memset(uuid, 1 + device, 16); return 0; }
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1UL << 36; return 0; }
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 1: *value = 1024; break;  /* threads per block */
    case 10: *value = 32; break;   /* warp size */
    case 16: *value = 132; break;  /* multiprocessors */
    case 75: *value = 9; break;    /* compute capability, major */
    case 76: *value = 0; break;    /* minor */
    default: *value = 1;
    }
    return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = CONTEXT(device);
    return 0;
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 1;
    return 0;
}
EXPORT int cuCtxGetCurrent(void **context) { *context = depth ? stack[depth - 1] : 0; return 0; }
EXPORT int cuCtxSetCurrent(void *context) {
    if (!depth) depth = 1;
    stack[depth - 1] = context;
    return 0;
}
EXPORT int cuCtxPushCurrent_v2(void *context) { stack[depth++] = context; return 0; }
EXPORT int cuCtxPopCurrent_v2(void **context) { *context = stack[--depth]; return 0; }
EXPORT int cuCtxGetDevice(int *device) { *device = current_device(); return depth ? 0 : 201; }
EXPORT int cuCtxGetApiVersion(void *context, unsigned *version) { *version = 13000; return 0; }

/* Memory: host memory, of which we remember the device. */

static struct { char *start; size_t size; int device; } blocks[MAX_RECORDS];
static int block_count;

static int allocate(word *pointer, size_t size) {
    void *memory;
    if (posix_memalign(&memory, 256, size ? size : 1)) return 2;
    blocks[block_count % MAX_RECORDS].start = memory;
    blocks[block_count % MAX_RECORDS].size = size;
    blocks[block_count++ % MAX_RECORDS].device = current_device();
    *pointer = (word)memory;
    return 0;
}
static int copy(void *to, const void *from, size_t size) {
    copy_count++;
    memcpy(to, from, size);
    return 0;
}
EXPORT int stub_allocation_count(void) { return block_count; }
EXPORT int cuMemAlloc_v2(word *pointer, size_t size) { return allocate(pointer, size); }
EXPORT int cuMemAllocAsync(word *pointer, size_t size, void *s) { return allocate(pointer, size); }
EXPORT int cuMemFree_v2(word pointer) { free((void *)pointer); return 0; }
EXPORT int cuMemFreeAsync(word pointer, void *stream) { free((void *)pointer); return 0; }
EXPORT int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    *unused = 1UL << 35;
    *total = 1UL << 36;
    return 0;
}
EXPORT int cuMemcpyHtoD_v2(word to, const void *from, size_t size) {
    return copy((void *)to, from, size);
}
EXPORT int cuMemcpyDtoH_v2(void *to, word from, size_t size) {
    return copy(to, (void *)from, size);
}
EXPORT int cuMemcpyHtoDAsync_v2(word to, const void *from, size_t size, void *stream) {
    return copy((void *)to, from, size);
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, word from, size_t size, void *stream) {
    return copy(to, (void *)from, size);
}
EXPORT int cuPointerGetAttribute(void *value, int attribute, word pointer) {
    *(int *)value = 0;
    for (int i = 0; i < block_count && i < MAX_RECORDS; i++)
        if ((char *)pointer >= blocks[i].start && (char *)pointer < blocks[i].start + blocks[i].size)
            *(int *)value = blocks[i].device;
    return 0;
}

EXPORT int cuMemcpyAsync(word to, word from, size_t size, void *stream) {
    return copy((void *)to, (void *)from, size);
}
EXPORT int cuMemsetD8Async(word to, unsigned char value, size_t size, void *stream) {
    memset((void *)to, value, size);
    return 0;
}

/* Streams and events: an event remembers the stream that it was last recorded on, and when: time
   passes by 1 us for each program that is launched. */

static word now_us;
struct event { word stream, time_us; };

EXPORT int cuStreamCreate(void **stream, unsigned flags) { *stream = new_handle(); return 0; }
static int synchronize_count;
EXPORT int stub_synchronize_count(void) { return synchronize_count; }
EXPORT int cuStreamSynchronize(void *stream) {
    synchronize_count++;
    int status = next_failure;
    next_failure = 0;
    return status;
}
EXPORT int cuStreamIsCapturing(void *stream, int *status) { *status = 0; return 0; }
EXPORT int cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(struct event));
    return 0;
}
EXPORT int cuEventDestroy_v2(void *event) { free(event); return 0; }
EXPORT int cuEventRecord(struct event *event, void *stream) {
    *event = (struct event){(word)stream, now_us};
    return 0;
}
EXPORT int cuEventElapsedTime_v2(float *ms, struct event *start, struct event *end) {
    *ms = (end->time_us - start->time_us) * 1e-3f;
    return 0;
}
EXPORT int cuEventElapsedTime(float *ms, struct event *start, struct event *end) {
    return cuEventElapsedTime_v2(ms, start, end);
}
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    waits[wait_count % MAX_RECORDS].stream = (word)stream;
    waits[wait_count++ % MAX_RECORDS].after = *(word *)event;
    return 0;
}

/* Tensor maps: what they are made of, word by word, instead of NVIDIA's encoding. */
static int map_count;

EXPORT int stub_map_count(void) { return map_count; }
EXPORT int cuTensorMapEncodeTiled(unsigned char *map, int element, unsigned rank, void *array,
                                  const word *extents, const word *strides, const unsigned *box,
                                  const unsigned *steps, int interleave, int swizzle,
                                  int promotion, int fill) {
    int words[32] = {element, rank, interleave, swizzle, promotion, fill};
    map_count++;
    memcpy(words + 6, &array, 8);
    for (unsigned i = 0; i < rank && i < 5; i++) {
        words[8 + i] = extents[i];
        words[13 + i] = i ? strides[i - 1] : 0;
        words[18 + i] = box[i];
        words[23 + i] = steps[i];
    }
    memcpy(map, words, sizeof words);
    return 0;
}

/* Kernels. */

EXPORT int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned n,
                             void *c, void *d, unsigned m) {
    load_count++;
    *library = new_handle();
    return 0;
}
static int counts[MAX_RECORDS];  /* of parameters, by kernel */
static int *count_of(void *kernel) { return &counts[(word)kernel / 16 % MAX_RECORDS]; }

EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    *kernel = new_handle();
    *count_of(*kernel) = parameter_count;
    return 0;
}
EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
    shared_limit = value;
    return 0;
}
EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    *value = 0;
    return 0;
}
EXPORT int cuLibraryGetKernelCount(unsigned *count, void *library) {
    *count = 1;
    return 0;
}
EXPORT int cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library) {
    *kernels = library;  /* each library has one; only stub_shared_limit sees which */
    return 0;
}
/* CUlaunchAttribute and CUlaunchConfig. */
struct attribute { int id, padding; unsigned value[16]; };
struct config {
    unsigned gx, gy, gz, bx, by, bz, shared;
    void *stream;
    struct attribute *attributes;
    unsigned attribute_count;
};
enum { COOPERATIVE = 2, CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

EXPORT int cuLaunchKernelEx(const struct config *config, void *kernel, void **parameters,
                            void **extra) {
    if (quiet) return 0;
    int status = next_failure;
    next_failure = 0;
    if (status) return status;
    if (!depth) return 201;  /* CUDA_ERROR_INVALID_CONTEXT */
    now_us += config->gx * config->gy * config->gz;
    struct launch *record = &launches[launch_count++ % MAX_RECORDS];
    *record = (struct launch){
        (word)kernel, (word)config->stream, current_device(),
        {config->gx, config->gy, config->gz}, {config->bx, config->by, config->bz},
        config->shared, {1, 1, 1}};
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct attribute *attribute = &config->attributes[i];
        switch (attribute->id) {
        case COOPERATIVE: record->cooperative = attribute->value[0]; break;
        case PROGRAMMATIC_STREAM_SERIALIZATION: record->dependent = attribute->value[0]; break;
        case CLUSTER_DIMENSION:
            for (int axis = 0; axis < 3; axis++) record->cluster[axis] = attribute->value[axis];
            break;
        default: return 1;
        }
    }
    for (int i = 0; i < *count_of(kernel); i++) {
        memcpy(&record->parameters[i], parameters[i], 8);
        record->addresses[i] = (word)parameters[i];
    }
    if (on_launch) on_launch(record);
    return 0;
}

EXPORT int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream,
                          void **parameters, void **extra) {
    struct config config = {gx, gy, gz, bx, by, bz, shared, stream};
    return cuLaunchKernelEx(&config, kernel, parameters, extra);
}
EXPORT int cuGetErrorName(int status, const char **text) {
    *text = status == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" : "CUDA_ERROR_STUB";
    return 0;
}
EXPORT int cuGetErrorString(int status, const char **text) { *text = "as asked"; return 0; }

/* How cuda-bindings finds all these; what the tests do not need does nothing. */

static int nothing(void) { return 0; }

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, word flags,
                               int *found) {
    static void *self;
    static const char *suffixes[] = {"", "_v2", "_v3"};
    char symbol[256];
    if (!self) self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    *function = (void *)nothing;
    for (int i = 0; i < 3; i++) {  /* the newest wins */
        snprintf(symbol, sizeof symbol, "%s%s", name, suffixes[i]);
        void *address = self ? dlsym(self, symbol) : NULL;
        if (address) *function = address;
    }
    if (found) *found = 0;
    return 0;
}
EXPORT int cuGetProcAddress(const char *name, void **function, int version, word flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
EXPORT int cuGetExportTable(const void **table, void *id) { *table = NULL; return 1; }
