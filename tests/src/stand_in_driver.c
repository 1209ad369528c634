/* Stand-in for the drivers of CUDA and ROCm, and a layer between ombx and MPI (LD_PRELOAD). stand_in.rs appends a wrapper of every
 * call of MPI to this file.
 *
 * The memory of its device is accessible inside its own copies and inside calls of MPI only. A program that touches it elsewhere
 * crashes. OMBX_STAND_IN lists what goes wrong:
 *   no_device   the driver finds no device
 *   unable      MPI says that it takes no memory of devices
 *   full        the device has 1 MiB
 *   allocation  no memory can be allocated
 *   pin         no memory of the host can be pinned
 *   copy        copies to the device fail
 *   lost        every call fails after the first 4 copies
 *   wrong       a byte of every copy of at least 64 bytes from the device is one too large
 *   spoilt      a byte of every buffer of at least 64 bytes grows by one when a call of MPI returns
 *   touch       a copy from the device returns without its bytes, and the program touches the device instead
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 4096     /* buffers at the same time */
#define LEAST 64      /* bytes of a buffer in which a byte is changed */
#define CHANGED 42    /* byte */
#define COPIES 4      /* before a device is lost */
#define PAGE 4096
#define MEMORY ((size_t)8 << 30)
#define FULL ((size_t)1 << 20)

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, LOST = 719, FAILED = 700 };

struct buffer {
    unsigned char *there;  /* address on the device, without access */
    unsigned char *inside; /* the same pages for the driver */
    size_t bytes, length;
};

static struct buffer buffers[MOST];
static size_t used;
static int inside_mpi, copies, devices_wanted = 2, current = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int wrong(const char *what) {
    const char *all = getenv("OMBX_STAND_IN"), *found = all != NULL ? strstr(all, what) : NULL;
    return found != NULL && (found == all || found[-1] == ',') && (found[strlen(what)] == 0 || found[strlen(what)] == ',');
}

static int is_lost(void) { return wrong("lost") && copies > COPIES; }

static size_t total(void) { return wrong("full") ? FULL : MEMORY; }

/* Calls of MPI: the pages are open from the first that a thread enters to the last that one leaves. */
static void protect(int protection) {
    for (int i = 0; i < MOST; i++)
        if (buffers[i].there != NULL && mprotect(buffers[i].there, buffers[i].length, protection) != 0) abort();
}

static void enter_mpi(void) {
    pthread_mutex_lock(&lock);
    if (inside_mpi++ == 0) protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
}

static void leave_mpi(void) {
    pthread_mutex_lock(&lock);
    if (wrong("spoilt"))
        for (int i = 0; i < MOST; i++)
            if (buffers[i].there != NULL && buffers[i].bytes >= LEAST) buffers[i].inside[CHANGED]++;
    if (--inside_mpi == 0) protect(PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static int allocate(uint64_t *address, size_t bytes) {
    if (is_lost()) return LOST;
    if (current < 0) return INVALID_DEVICE;
    if (wrong("allocation")) return FAILED;
    size_t length = (bytes + PAGE - 1) / PAGE * PAGE;
    pthread_mutex_lock(&lock);
    int code = used + length > total() ? OUT_OF_MEMORY : FAILED;
    for (int i = 0; i < MOST && code == FAILED; i++) {
        struct buffer *buffer = &buffers[i];
        if (buffer->there != NULL) continue;
        int pages = memfd_create("device", MFD_CLOEXEC);
        if (pages < 0 || ftruncate(pages, (off_t)length) != 0) abort();
        int access = inside_mpi > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
        buffer->inside = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, pages, 0);
        buffer->there = mmap(NULL, length, access, MAP_SHARED, pages, 0);
        close(pages);
        if (buffer->inside == MAP_FAILED || buffer->there == MAP_FAILED) abort();
        memset(buffer->inside, 0x5a, length);
        buffer->bytes = bytes, buffer->length = length;
        used += length;
        *address = (uint64_t)(uintptr_t)buffer->there;
        code = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static struct buffer *holding(uint64_t address, size_t bytes) {
    for (int i = 0; i < MOST; i++) {
        uint64_t start = (uint64_t)(uintptr_t)buffers[i].there;
        if (start != 0 && address >= start && address + bytes <= start + buffers[i].bytes) return &buffers[i];
    }
    return NULL;
}

static int release(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct buffer *buffer = holding(address, 0);
    if (buffer != NULL) {
        munmap(buffer->there, buffer->length);
        munmap(buffer->inside, buffer->length);
        used -= buffer->length;
        memset(buffer, 0, sizeof *buffer);
    }
    pthread_mutex_unlock(&lock);
    return buffer != NULL ? SUCCESS : FAILED;
}

static int copy(uint64_t address, void *host, size_t bytes, int to_device) {
    pthread_mutex_lock(&lock);
    struct buffer *buffer = holding(address, bytes);
    copies++;
    int code = is_lost() ? LOST : buffer == NULL || (to_device && wrong("copy")) ? FAILED : SUCCESS;
    if (code == SUCCESS) {
        unsigned char *inside = buffer->inside + (address - (uint64_t)(uintptr_t)buffer->there);
        if (to_device) memcpy(inside, host, bytes);
        else if (wrong("touch")) memcpy(host, (void *)(uintptr_t)address, bytes);
        else memcpy(host, inside, bytes);
        if (!to_device && bytes >= LEAST && wrong("wrong")) ((unsigned char *)host)[CHANGED]++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int name(char *text, int length, const char *what, int device) {
    snprintf(text, (size_t)length, "%s%d", what, device);
    return SUCCESS;
}

/* The functions of both drivers. Address and pointer are passed in the same way. */
#define BOTH(cuda, hip, parameters, ...) \
    int cuda parameters { __VA_ARGS__ } \
    int hip parameters { __VA_ARGS__ }

BOTH(cuInit, hipInit, (unsigned flags), (void)flags; return wrong("no_device") ? NO_DEVICE : SUCCESS;)
BOTH(cuDriverGetVersion, hipDriverGetVersion, (int *version), *version = 12040; return SUCCESS;)
BOTH(cuDeviceGetCount, hipGetDeviceCount, (int *count), *count = devices_wanted; return SUCCESS;)
BOTH(cuDeviceGet, hipDeviceGet, (int *device, int number), *device = number; return number < devices_wanted ? SUCCESS : INVALID_DEVICE;)
BOTH(cuDeviceGetName, hipDeviceGetName, (char *text, int length, int device), return name(text, length, "Stand-in ", device);)
BOTH(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char *text, int length, int device), return name(text, length, "ffff:ff:ff.", device);)
BOTH(cuDeviceGetAttribute, hipDeviceGetAttribute, (int *value, int attribute, int device), (void)attribute; (void)device; *value = 1; return SUCCESS;)
BOTH(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, (int *can, int device, int peer), *can = device != peer; return SUCCESS;)
BOTH(cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t *bytes, int device), (void)device; *bytes = total(); return SUCCESS;)
BOTH(cuMemGetInfo_v2, hipMemGetInfo, (size_t *unused, size_t *all), *all = total(); *unused = total() - used; return SUCCESS;)
BOTH(cuMemAlloc_v2, hipMalloc, (uint64_t *address, size_t bytes), return allocate(address, bytes);)
BOTH(cuMemAllocManaged, hipMallocManaged, (uint64_t *address, size_t bytes, unsigned flags), return flags == 1 ? allocate(address, bytes) : FAILED;)
BOTH(cuMemFree_v2, hipFree, (uint64_t address), return release(address);)
BOTH(cuMemcpyHtoD_v2, hipMemcpyHtoD, (uint64_t to, const void *from, size_t bytes), return copy(to, (void *)from, bytes, 1);)
BOTH(cuMemcpyDtoH_v2, hipMemcpyDtoH, (void *to, uint64_t from, size_t bytes), return copy(from, to, bytes, 0);)
BOTH(cuMemPrefetchAsync, hipMemPrefetchAsync, (uint64_t address, size_t bytes, int device, void *stream), (void)device; return stream == NULL && holding(address, bytes) != NULL ? SUCCESS : FAILED;)
BOTH(cuMemHostRegister_v2, hipHostRegister, (void *start, size_t bytes, unsigned flags), (void)start; (void)bytes; return flags == 0 && !wrong("pin") ? SUCCESS : FAILED;)
BOTH(cuMemHostUnregister, hipHostUnregister, (void *start), (void)start; return SUCCESS;)
BOTH(cuCtxSynchronize, hipDeviceSynchronize, (void), return is_lost() ? LOST : SUCCESS;)

int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(intptr_t)(device + 1); return SUCCESS; }
int cuCtxSetCurrent(void *context) { current = (int)(intptr_t)context - 1; return is_lost() ? LOST : SUCCESS; }
int hipSetDevice(int device) { current = device; return is_lost() ? LOST : SUCCESS; }

static const char *describe(int code) {
    return code == NO_DEVICE ? "no device is detected" : code == OUT_OF_MEMORY ? "out of memory" : code == LOST ? "the device is lost" : "it failed";
}
int cuGetErrorString(int code, const char **text) { *text = describe(code); return SUCCESS; }
const char *hipGetErrorString(int code) { return describe(code); }

/* The management library: 8 of 16 lanes, two links to another device. */
int nvmlInit_v2(void) { return SUCCESS; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) { (void)bus; *device = NULL; return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "1.2.3"); return SUCCESS; }
#define MANAGED(name, number) \
    int nvmlDeviceGet##name(void *device, unsigned *value) { (void)device; *value = number; return SUCCESS; }
MANAGED(CurrPcieLinkWidth, 8)
MANAGED(CurrPcieLinkGeneration, 4)
MANAGED(MaxPcieLinkWidth, 16)
MANAGED(MaxPcieLinkGeneration, 5)
int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *value) { (void)device; *value = kind == 1 ? 1980 : 2619; return SUCCESS; }
int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *later) { (void)device; *now = 1; *later = 0; return SUCCESS; }
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) { return nvmlDeviceGetEccMode(device, later, now); }
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *value) { (void)device; *value = link < 2; return SUCCESS; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, char *info) {
    (void)device; (void)link;
    strcpy(info + 36, "0000:AB:00.0");
    return SUCCESS;
}

/* What MPI says of itself. */
static int able(void) { return !wrong("unable"); }
int MPIX_Query_cuda_support(void) { return able(); }
int MPIX_Query_hip_support(void) { return able(); }
int MPIX_Query_rocm_support(void) { return able(); }
int MPIX_GPU_query_support(int kind, int *answer) { (void)kind; *answer = able(); return MPI_SUCCESS; }

