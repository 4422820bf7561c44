/* libfakecuda: NVIDIA's driver API on a machine without a GPU, as far as hone calls it. One lock around
 * everything; kernels are those that libfakenvrtc has built for this machine's processor.
 *
 * HONE_FAKE_ARCH 75 | 80 ... 121     HONE_FAKE_MEMORY bytes     HONE_FAKE_FAIL, HONE_FAKE_MISSING:
 * fake_fail.h HONE_FAKE_TRACE lists what is done, HONE_FAKE_QUIET keeps faults off stderr, HONE_FAKE_SEED
 * changes orders
 */
#include "fake.h"
#include "fake_fail.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) CUresult CUDAAPI

enum { LIMIT_STATIC = 48 * 1024 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static unsigned retained;
static __thread bool current;
static fake_module *modules;
static char context_object, legacy_object;
static CUcontext const the_context = (CUcontext)&context_object;
static CUstream legacy = (CUstream)&legacy_object;

__attribute__((constructor)) static void start(void) { fake_hide_missing(); }

static void leave(const int *locked) {
  if (*locked) pthread_mutex_unlock(&lock);
}

/* Every call: takes the lock, and fails where it has to. ENTER_CONTEXT: needs a context that is not lost. */
#define ENTER(function, usual)                                                                               \
  const int locked __attribute__((cleanup(leave))) = !pthread_mutex_lock(&lock);                             \
  int code = (usual);                                                                                        \
  if (fake_fails(#function, &code, NULL, 0)) return (CUresult)code;                                          \
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED
#define ENTER_CONTEXT(function, usual)                                                                       \
  ENTER(function, usual);                                                                                    \
  if (!current || !retained) return CUDA_ERROR_INVALID_CONTEXT;                                              \
  if (fake_sticky) return fake_sticky

/* What blocks and multiprocessors of each architecture have, from the CUDA programming guide's table of
 * compute capabilities. The first is what is emulated where nothing is said. */
typedef struct generation {
  int arch, shared_kb,
      threads; /* of a block at most, without the 1 KB that the system takes; of a multiprocessor */
} generation;
static const generation generations[] = {
    {80, 163, 2048}, {75, 64, 1024},   {86, 99, 1536},   {87, 163, 1536},  {88, 99, 1536},  {89, 99, 1536},
    {90, 227, 2048}, {100, 227, 2048}, {103, 227, 2048}, {110, 227, 1536}, {120, 99, 1536}, {121, 99, 1536},
};
static const generation *device_generation(void) {
  const char *text = getenv("HONE_FAKE_ARCH");
  const int n = text ? atoi(text) : 0;
  for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
    if (generations[i].arch == n) return &generations[i];
  return generations;
}
static int arch(void) { return device_generation()->arch; }
static unsigned shared_optin(void) { return (unsigned)device_generation()->shared_kb * 1024; }
static unsigned shared_in_all(void) { return shared_optin() + (arch() == 75 ? 0 : 1024); }

/* ---------------------------------------------------------------- device and context */

API cuInit(unsigned flags) {
  const int locked __attribute__((cleanup(leave))) = !pthread_mutex_lock(&lock);
  int code = CUDA_ERROR_NO_DEVICE;
  if (fake_fails("cuInit", &code, NULL, 0)) return (CUresult)code;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  initialised = true;
  return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_at(CUresult error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == error) return (int)i;
  return -1;
}

API cuGetErrorName(CUresult error, const char **text) {
  const int i = error_at(error);
  *text = i < 0 ? NULL : errors[i].name;
  return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Of the fault that the context is lost by, the emulator's own words. */
API cuGetErrorString(CUresult error, const char **text) {
  const int locked __attribute__((cleanup(leave))) = !pthread_mutex_lock(&lock), i = error_at(error);
  *text = i < 0 ? NULL : errors[i].text;
  if (error && error == fake_sticky) *text = fake_sticky_text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whoever asks shall know: HN_CUDA_EMULATED of the driver's table. */
__attribute__((visibility("default"))) int hone_device_is_emulated(void);
int hone_device_is_emulated(void) { return 1; }

API cuDeviceGetCount(int *n) {
  ENTER(cuDeviceGetCount, CUDA_ERROR_UNKNOWN);
  *n = 1;
  return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(cuDeviceGet, CUDA_ERROR_INVALID_DEVICE);
  if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int size, CUdevice device) {
  ENTER(cuDeviceGetName, CUDA_ERROR_INVALID_DEVICE);
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, (size_t)size, "hone emulated GPU");
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  ENTER(cuDeviceTotalMem_v2, CUDA_ERROR_INVALID_DEVICE);
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  size_t unused;
  fake_memory_info(&unused, bytes);
  return CUDA_SUCCESS;
}

API cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  ENTER(cuDeviceGetAttribute, CUDA_ERROR_INVALID_VALUE);
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  switch ((int)attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = arch() / 10; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = arch() % 10; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = EMU_MAX_THREADS; break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = device_generation()->threads; break;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = LIMIT_STATIC; break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = (int)shared_optin(); break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = (int)shared_in_all(); break;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = 1024; break;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = EMU_WARP; break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 1000000; break;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 256; break;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 4 << 20; break;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: *value = 65536; break;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 2; break;
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: *value = 1; break;
  default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain, CUDA_ERROR_OUT_OF_MEMORY);
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  retained++;
  *context = the_context;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease(CUdevice device) {
  ENTER(cuDevicePrimaryCtxRelease_v2, CUDA_ERROR_INVALID_CONTEXT);
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  if (!retained) return CUDA_ERROR_INVALID_CONTEXT;
  if (--retained == 0) fake_forget_all(); /* with it, a fault */
  return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext context) {
  ENTER(cuCtxSetCurrent, CUDA_ERROR_INVALID_CONTEXT);
  if (context && (context != the_context || !retained)) return CUDA_ERROR_INVALID_CONTEXT;
  current = context != NULL;
  return CUDA_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *context) {
  ENTER(cuCtxGetCurrent, CUDA_ERROR_INVALID_CONTEXT);
  *context = current ? the_context : NULL;
  return CUDA_SUCCESS;
}

API cuCtxSynchronize(void) {
  ENTER_CONTEXT(cuCtxSynchronize, CUDA_ERROR_LAUNCH_FAILED);
  return fake_sync_all();
}

/* ---------------------------------------------------------------- memory */

API cuMemGetInfo(size_t *free_bytes, size_t *total) {
  ENTER_CONTEXT(cuMemGetInfo_v2, CUDA_ERROR_UNKNOWN);
  fake_memory_info(free_bytes, total);
  return CUDA_SUCCESS;
}

API cuMemAlloc(CUdeviceptr *p, size_t bytes) {
  ENTER_CONTEXT(cuMemAlloc_v2, CUDA_ERROR_OUT_OF_MEMORY);
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  void *at = fake_alloc(bytes);
  *p = (CUdeviceptr)(uintptr_t)at;
  return at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMemFree(CUdeviceptr p) {
  ENTER_CONTEXT(cuMemFree_v2, CUDA_ERROR_INVALID_VALUE);
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  const CUresult fault = fake_sync_all(); /* as the driver does */
  if (p && !fake_free((void *)(uintptr_t)p)) return CUDA_ERROR_INVALID_VALUE;
  return fault;
}

API cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(cuMemHostAlloc, CUDA_ERROR_OUT_OF_MEMORY);
  (void)flags;
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  *p = bytes ? fake_alloc_host(bytes) : NULL;
  return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMemFreeHost(void *p) {
  ENTER_CONTEXT(cuMemFreeHost, CUDA_ERROR_INVALID_VALUE);
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  const CUresult fault = fake_sync_all();
  if (!fake_free_host(p)) return CUDA_ERROR_INVALID_VALUE;
  return fault;
}

API cuMemHostRegister(void *p, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(cuMemHostRegister_v2, CUDA_ERROR_INVALID_VALUE);
  (void)flags;
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  return fake_register(p, bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

API cuMemHostUnregister(void *p) {
  ENTER_CONTEXT(cuMemHostUnregister, CUDA_ERROR_INVALID_VALUE);
  const CUresult fault = fake_sync_all();
  return fake_unregister(p) ? fault : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

API cuPointerGetAttributes(unsigned n, CUpointer_attribute *attribute, void **value, CUdeviceptr p) {
  ENTER_CONTEXT(cuPointerGetAttributes, CUDA_ERROR_INVALID_VALUE);
  const void *at = (const void *)(uintptr_t)p;
  const bool device = fake_touches_device(at), known = device || fake_is_pinned(at);
  for (unsigned i = 0; i < n; i++) switch ((int)attribute[i]) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)value[i] = device ? CU_MEMORYTYPE_DEVICE : known ? CU_MEMORYTYPE_HOST : 0;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value[i] = known ? 0 : -2; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value[i] = known ? p : 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
  return CUDA_SUCCESS;
}

/* Work on a stream. */
#define ENTER_STREAM(function, usual, handle)                                                                \
  ENTER_CONTEXT(function, usual);                                                                            \
  fake_stream *s = stream_of(handle);                                                                        \
  if (!s) return CUDA_ERROR_INVALID_HANDLE

static fake_stream *stream_of(CUstream handle) {
  static CUstream real;
  if (handle && handle != CU_STREAM_LEGACY && handle != legacy) return fake_stream_of(handle);
  if (!real) fake_stream_new(0, &real);
  return fake_stream_of(real);
}

static bool reachable(const void *p, size_t bytes) {
  return !fake_touches_device(p) || fake_is_device(p, bytes);
}

API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER_STREAM(cuMemcpyAsync, CUDA_ERROR_INVALID_VALUE, stream);
  fake_op op = {
      .kind = FAKE_COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .bytes = bytes};
  if (!bytes) return CUDA_SUCCESS;
  if (!to || !from || !reachable(op.to, bytes) || !reachable(op.from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  /* From ordinary memory the driver takes the bytes before it returns, from pinned memory when it copies. */
  const bool from_host = !fake_touches_device(op.from), to_host = !fake_touches_device(op.to);
  if (from_host && !fake_is_pinned(op.from) && !s->capture) {
    op.staged = malloc(bytes);
    if (!op.staged) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(op.staged, op.from, bytes);
  }
  const CUresult r = fake_submit(s, &op);
  if (r || s->capture || !to_host || fake_is_pinned(op.to)) return r;
  return fake_sync_stream(s); /* to ordinary memory the driver waits */
}

static CUresult set(CUdeviceptr to, unsigned value, unsigned width, size_t n, fake_stream *s) {
  void *p = (void *)(uintptr_t)to;
  if (!n) return CUDA_SUCCESS;
  if (to % width || !fake_is_device(p, n * width)) return CUDA_ERROR_INVALID_VALUE;
  return fake_submit(
      s, &(fake_op){.kind = FAKE_SET, .to = p, .bytes = n * width, .value = value, .width = width});
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  ENTER_STREAM(cuMemsetD8Async, CUDA_ERROR_INVALID_VALUE, stream);
  return set(to, value, 1, n, s);
}

API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  ENTER_STREAM(cuMemsetD32Async, CUDA_ERROR_INVALID_VALUE, stream);
  return set(to, value, 4, n, s);
}

__attribute__((visibility("default"))) int fakeBeginsEarly(CUstream stream);
int fakeBeginsEarly(CUstream stream) {
  const int locked __attribute__((cleanup(leave))) = !pthread_mutex_lock(&lock);
  (void)locked;
  fake_stream *s = fake_stream_of(stream);
  return s && s->early && arch() >= 90;
}

/* What the fake libraries put on a stream in place of kernels: call(args), on a copy of args. */
API fakeCall(CUstream stream, void (*call)(const void *args), const void *args, size_t bytes) {
  ENTER_STREAM(fakeCall, CUDA_ERROR_INVALID_VALUE, stream);
  fake_op op = {.kind = FAKE_CALL, .call = call, .args = malloc(bytes), .bytes = bytes};
  if (!op.args) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(op.args, args, bytes);
  return fake_submit(s, &op);
}

/* ---------------------------------------------------------------- modules and kernels */

static fake_module *module_of(CUmodule handle) {
  for (fake_module *m = modules; m; m = m->next)
    if (m == (fake_module *)handle) return m;
  return NULL;
}

static fake_function *function_of(CUfunction handle) {
  for (fake_module *m = modules; m; m = m->next)
    for (fake_function *f = m->functions; f; f = f->next)
      if (f == (fake_function *)handle) return f;
  return NULL;
}

/* The section headers are what an object ends with. */
static size_t image_bytes(const void *image) {
  const Elf64_Ehdr *e = image;
  if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_machine != EM_X86_64 || e->e_type != ET_DYN) return 0;
  return e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
}

API cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER_CONTEXT(cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE);
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  const bool stub = !memcmp(image, HN_EMU_STUB, 8);
  const size_t bytes = stub ? 0 : image_bytes(image);
  fake_module *m = bytes || stub ? calloc(1, sizeof *m) : NULL;
  if (!m) return CUDA_ERROR_INVALID_IMAGE;
  m->fd = -1;
  if (stub) {
    static const hn_emu_module nothing;
    m->emu = &nothing;
    m->next = modules;
    modules = m;
    *module = (CUmodule)m;
    return CUDA_SUCCESS;
  }
  m->fd = memfd_create("hone kernel", MFD_CLOEXEC);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
  size_t done = 0;
  for (ssize_t n; done < bytes; done += (size_t)n)
    if ((n = write(m->fd, (const char *)image + done, bytes - done)) <= 0) break;
  /* The file stays open as long as the module, so that no other gets its name. */
  m->library = done == bytes ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  m->emu = m->library ? dlsym(m->library, "hn_emu_text") : NULL;
  if (!m->emu) {
    if (m->library) dlclose(m->library);
    close(m->fd);
    free(m);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  m->next = modules;
  modules = m;
  *module = (CUmodule)m;
  return CUDA_SUCCESS;
}

API cuModuleUnload(CUmodule module) {
  ENTER_CONTEXT(cuModuleUnload, CUDA_ERROR_INVALID_HANDLE);
  fake_module *m = module_of(module);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult refused = fake_refuse_in_capture();
  if (refused) return refused;
  const CUresult fault = fake_sync_all();
  for (fake_module **at = &modules; *at; at = &(*at)->next)
    if (*at == m) {
      *at = m->next;
      break;
    }
  while (m->functions) {
    fake_function *f = m->functions;
    m->functions = f->next;
    free(f);
  }
  if (m->library) dlclose(m->library);
  if (m->fd >= 0) close(m->fd);
  free(m);
  return fault;
}

API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER_CONTEXT(cuModuleGetFunction, CUDA_ERROR_NOT_FOUND);
  fake_module *m = module_of(module);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  char symbol[256];
  snprintf(symbol, sizeof symbol, "hn_entry_%s", name);
  static const hn_emu_entry nothing = {.name = "recorded", .max_threads = EMU_MAX_THREADS};
  const hn_emu_entry *entry = m->library ? dlsym(m->library, symbol) : &nothing;
  if (!entry) return CUDA_ERROR_NOT_FOUND;
  for (fake_function *f = m->functions; f; f = f->next)
    if (f->entry == entry) {
      *function = (CUfunction)f;
      return CUDA_SUCCESS;
    }
  fake_function *f = calloc(1, sizeof *f);
  if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
  *f = (fake_function){.next = m->functions, .module = m, .entry = entry, .shared = LIMIT_STATIC};
  m->functions = f;
  *function = (CUfunction)f;
  return CUDA_SUCCESS;
}

static unsigned static_shared(const fake_function *f) {
  return (unsigned)(f->module->emu->shared_end - f->module->emu->shared);
}

API cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  ENTER_CONTEXT(cuFuncGetAttribute, CUDA_ERROR_INVALID_VALUE);
  const fake_function *f = function_of(function);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  switch ((int)attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)f->entry->max_threads; break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)static_shared(f); break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 64; break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = arch(); break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = (int)f->shared; break;
  default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENTER_CONTEXT(cuFuncSetAttribute, CUDA_ERROR_INVALID_VALUE);
  fake_function *f = function_of(function);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) f->large_clusters = value != 0;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value < 0 || (unsigned)value + static_shared(f) > shared_optin()) return CUDA_ERROR_INVALID_VALUE;
  f->shared = (unsigned)value;
  return CUDA_SUCCESS;
}

API cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  ENTER_CONTEXT(cuFuncGetParamInfo, CUDA_ERROR_INVALID_VALUE);
  const fake_function *f = function_of(function);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (index || !f->entry->size) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0, *size = f->entry->size;
  return CUDA_SUCCESS;
}

API cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params, void **extra) {
  ENTER_STREAM(cuLaunchKernelEx, CUDA_ERROR_LAUNCH_FAILED, c->hStream);
  fake_function *f = function_of(function);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned long threads = (unsigned long)c->blockDimX * c->blockDimY * c->blockDimZ;
  if (!params || !params[0] || extra || !threads || !c->gridDimX || !c->gridDimY || !c->gridDimZ ||
      c->gridDimX > 0x7fffffffu || c->gridDimY > 65535 || c->gridDimZ > 65535 || threads > EMU_MAX_THREADS ||
      c->blockDimZ > 64)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > f->entry->max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (c->sharedMemBytes + static_shared(f) > LIMIT_STATIC && c->sharedMemBytes > f->shared)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned cluster = 1;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) cluster = c->attrs[i].value.clusterDim.x;
  if (!cluster || c->gridDimX % cluster || cluster > (f->large_clusters ? EMU_MAX_CLUSTER : 8))
    return CUDA_ERROR_INVALID_VALUE;
  /* Static shared memory is one for all blocks here. */
  if (cluster > 1 && (arch() < 90 || (f->entry->call && static_shared(f)))) return CUDA_ERROR_NOT_SUPPORTED;
  if (!f->entry->call) return CUDA_SUCCESS;
  const size_t size = f->entry->size;
  fake_op op = {.kind = FAKE_LAUNCH, .function = f, .args = aligned_alloc(64, (size + 63) / 64 * 64 + 64)};
  if (!op.args) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(op.args, params[0], size);
  op.launch = (emu_launch){.module = f->module->emu,
                           .entry = f->entry,
                           .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                           .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                           .shared = c->sharedMemBytes,
                           .cluster = cluster,
                           .args = op.args};
  const CUresult r = fake_submit(s, &op);
  if (r) free(op.args);
  return r;
}

/* ---------------------------------------------------------------- streams, events, graphs */

API cuStreamCreate(CUstream *out, unsigned flags) {
  ENTER_CONTEXT(cuStreamCreate, CUDA_ERROR_OUT_OF_MEMORY);
  return fake_stream_new(flags, out);
}

API cuStreamDestroy(CUstream stream) {
  ENTER_CONTEXT(cuStreamDestroy_v2, CUDA_ERROR_INVALID_HANDLE);
  fake_stream *s = fake_stream_of(stream);
  return s ? fake_stream_delete(s) : CUDA_ERROR_INVALID_HANDLE;
}

API cuStreamSynchronize(CUstream stream) {
  ENTER_STREAM(cuStreamSynchronize, CUDA_ERROR_LAUNCH_FAILED, stream);
  return fake_sync_stream(s);
}

API cuStreamQuery(CUstream stream) {
  ENTER_STREAM(cuStreamQuery, CUDA_ERROR_LAUNCH_FAILED, stream);
  return fake_query_stream(s);
}

API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  ENTER_STREAM(cuStreamWaitEvent, CUDA_ERROR_INVALID_HANDLE, stream);
  fake_event *e = fake_event_of(event);
  if (flags) return CUDA_ERROR_NOT_SUPPORTED;
  return e ? fake_wait(s, e) : CUDA_ERROR_INVALID_HANDLE;
}

API cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  ENTER_STREAM(cuStreamBeginCapture_v2, CUDA_ERROR_NOT_SUPPORTED, stream);
  if (!stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return fake_capture_begin(s, mode);
}

API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  ENTER_STREAM(cuStreamEndCapture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, stream);
  return fake_capture_end(s, graph);
}

API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER_CONTEXT(cuThreadExchangeStreamCaptureMode, CUDA_ERROR_NOT_SUPPORTED);
  if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  fake_exchange_mode(mode);
  return CUDA_SUCCESS;
}

/* The fake graph's order is its own: of an empty node only that it is there counts. */
API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                           const CUgraphNode **before,
#if CUDA_VERSION >= 13000
                           const CUgraphEdgeData **edges,
#endif
                           size_t *n) {
  ENTER_STREAM(cuStreamGetCaptureInfo, CUDA_ERROR_NOT_SUPPORTED, stream);
  *status = s->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (id) *id = 1;
  if (graph) *graph = s->capture ? (CUgraph)s->capture->graph : NULL;
  if (before) *before = NULL;
#if CUDA_VERSION >= 13000
  if (edges) *edges = NULL;
#endif
  if (n) *n = 0;
  return CUDA_SUCCESS;
}

API cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n) {
  ENTER_CONTEXT(cuGraphAddEmptyNode, CUDA_ERROR_OUT_OF_MEMORY);
  (void)before, (void)n;
  *out = (CUgraphNode)graph;
  return CUDA_SUCCESS;
}

API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes,
#if CUDA_VERSION >= 13000
                                      const CUgraphEdgeData *edges,
#endif
                                      size_t n, unsigned flags) {
  ENTER_STREAM(cuStreamUpdateCaptureDependencies, CUDA_ERROR_NOT_SUPPORTED, stream);
#if CUDA_VERSION >= 13000
  (void)edges;
#endif
  if (!s->capture || n != 1 || *nodes != (CUgraphNode)s->capture->graph ||
      flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  s->early = false;
  return CUDA_SUCCESS;
}

API cuEventCreate(CUevent *event, unsigned flags) {
  ENTER_CONTEXT(cuEventCreate, CUDA_ERROR_OUT_OF_MEMORY);
  return fake_event_new(flags, event);
}

API cuEventDestroy(CUevent event) {
  ENTER_CONTEXT(cuEventDestroy_v2, CUDA_ERROR_INVALID_HANDLE);
  fake_event *e = fake_event_of(event);
  return e ? fake_event_delete(e) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventRecord(CUevent event, CUstream stream) {
  ENTER_STREAM(cuEventRecord, CUDA_ERROR_INVALID_HANDLE, stream);
  fake_event *e = fake_event_of(event);
  return e ? fake_record(s, e, false) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  ENTER_STREAM(cuEventRecordWithFlags, CUDA_ERROR_INVALID_HANDLE, stream);
  fake_event *e = fake_event_of(event);
  return e ? fake_record(s, e, flags & CU_EVENT_RECORD_EXTERNAL && s->capture) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventSynchronize(CUevent event) {
  ENTER_CONTEXT(cuEventSynchronize, CUDA_ERROR_LAUNCH_FAILED);
  fake_event *e = fake_event_of(event);
  return e ? fake_sync_event(e) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventQuery(CUevent event) {
  ENTER_CONTEXT(cuEventQuery, CUDA_ERROR_LAUNCH_FAILED);
  fake_event *e = fake_event_of(event);
  return e ? fake_query_event(e) : CUDA_ERROR_INVALID_HANDLE;
}

/* Both of the names that it has had. */
#undef cuEventElapsedTime
API cuEventElapsedTime(float *ms, CUevent from, CUevent to);
API cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
  ENTER_CONTEXT(cuEventElapsedTime, CUDA_ERROR_INVALID_HANDLE);
  const fake_event *a = fake_event_of(from), *b = fake_event_of(to);
  if (!a || !b || !a->marker || !b->marker || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!a->marker->done || !b->marker->done) return CUDA_ERROR_NOT_READY;
  *ms = (float)(1e3 * (b->marker->time - a->marker->time));
  return CUDA_SUCCESS;
}
API cuEventElapsedTime(float *ms, CUevent from, CUevent to) { return cuEventElapsedTime_v2(ms, from, to); }

API cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  ENTER_CONTEXT(cuGraphInstantiateWithFlags, CUDA_ERROR_OUT_OF_MEMORY);
  (void)flags;
  fake_graph *g = fake_graph_of(graph, false);
  return g ? fake_instantiate(g, exec) : CUDA_ERROR_INVALID_VALUE;
}

API cuGraphUpload(CUgraphExec exec, CUstream stream) {
  ENTER_STREAM(cuGraphUpload, CUDA_ERROR_OUT_OF_MEMORY, stream);
  (void)s;
  return fake_graph_of(exec, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ENTER_STREAM(cuGraphLaunch, CUDA_ERROR_LAUNCH_FAILED, stream);
  fake_graph *g = fake_graph_of(exec, true);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return fake_submit(s, &(fake_op){.kind = FAKE_GRAPH, .graph = g});
}

API cuGraphExecDestroy(CUgraphExec exec) {
  ENTER_CONTEXT(cuGraphExecDestroy, CUDA_ERROR_INVALID_VALUE);
  fake_graph *g = fake_graph_of(exec, true);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  fake_graph_release(g);
  return CUDA_SUCCESS;
}

API cuGraphDestroy(CUgraph graph) {
  ENTER_CONTEXT(cuGraphDestroy, CUDA_ERROR_INVALID_VALUE);
  fake_graph *g = fake_graph_of(graph, false);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  fake_graph_release(g);
  return CUDA_SUCCESS;
}

/* Tensor maps belong to arch 90, whose kernels are not emulated but recorded. */
API cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                           const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box,
                           const cuuint32_t *element_stride, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                           CUtensorMapFloatOOBfill fill) {
  (void)type, (void)rank, (void)address, (void)dim, (void)stride, (void)box, (void)element_stride,
      (void)interleave, (void)swizzle, (void)l2, (void)fill;
  memset(map, 0, sizeof *map);
  return arch() < 90 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- for tests */

/* Reads the environment anew; with it a lost context is new. */
__attribute__((visibility("default"))) void hn_fake_reset(void);
void hn_fake_reset(void) {
  const int locked __attribute__((cleanup(leave))) = !pthread_mutex_lock(&lock);
  fake_fail_reset();
  fake_forget_all();
}
