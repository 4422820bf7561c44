#include "backends/cuda/driver/memory.h"

#include <stdio.h>

#define GRAIN ((size_t)2 << 20) /* pages of the device */

static void *take(void *self, size_t bytes) {
  hn_device *d = self;
  CUdeviceptr at = 0;
  CUresult r = d->cu.cuMemAlloc(&at, bytes);
  if (r == CUDA_SUCCESS) return (void *)(uintptr_t)at;
  hn_cuda_check(d, r, "cuMemAlloc", NULL); /* notices a lost context */
  return NULL;
}

static void give(void *self, void *at, size_t bytes) {
  (void)bytes;
  ((hn_device *)self)->cu.cuMemFree((CUdeviceptr)(uintptr_t)at);
}

static void *take_host(void *self, size_t bytes) {
  hn_device *d = self;
  void *p = NULL;
  CUresult r = d->cu.cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (r == CUDA_SUCCESS) return p;
  hn_cuda_check(d, r, "cuMemHostAlloc", NULL);
  return NULL;
}

static void give_host(void *self, void *at, size_t bytes) {
  (void)bytes;
  ((hn_device *)self)->cu.cuMemFreeHost(at);
}

static bool ready(void *self) { return hn_cuda_enter(self, NULL) == HONE_OK; }

static void settle(void *self) {
  if (ready(self)) hn_cuda_settle(self);
}

bool hn_cuda_memory_open(hn_device *d) {
  char name[32];
  hn_mempool_source source = {.self = d,
                              .take = take,
                              .give = give,
                              .ready = ready,
                              .settle = settle,
                              .grain = GRAIN,
                              /* the emulator watches the bounds of what it gave */
                              .apart = hn_mempool_apart(d->cu.emulated && d->cu.emulated())};
  snprintf(name, sizeof name, "cuda:%u", d->index);
  d->memory = hn_mempool_create(name, &source);
  source.take = take_host;
  source.give = give_host;
  source.grain = 4096;
  source.host = true;
  d->host = hn_mempool_create("pinned", &source);
  return d->memory && d->host;
}

/* ------------------------------------------------------------------ memory of others */

hone_status hn_cuda_pin(hn_device *d, void *p, size_t bytes, hone_error *error) {
  const hone_status status = hn_cuda_enter(d, error);
  if (status != HONE_OK) return status;
  return HN_CU(d, error, cuMemHostRegister, p, bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

hone_status hn_cuda_unpin(hn_device *d, void *p, hone_error *error) {
  const hone_status status = hn_cuda_enter(d, error);
  if (status != HONE_OK) return status;
  hn_cuda_settle(d);
  return HN_CU(d, error, cuMemHostUnregister, p);
}

/* The driver knows no address of ordinary memory, and leaves the type at 0. (Asked for one attribute it calls
 * that an error, which compute-sanitizer reports.) */
static hone_memory_kind where(hn_device *d, uintptr_t at, CUdeviceptr *for_kernels) {
  unsigned type = 0;
  int ordinal = (int)d->index;
  CUpointer_attribute attribute[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                     CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  void *value[] = {&type, &ordinal, for_kernels};
  *for_kernels = 0;
  if (d->cu.cuPointerGetAttributes(3, attribute, value, at) != CUDA_SUCCESS) return HONE_MEMORY_PAGEABLE;
  if (type == CU_MEMORYTYPE_HOST) return HONE_MEMORY_PINNED;
  if (type != CU_MEMORYTYPE_DEVICE) return HONE_MEMORY_PAGEABLE;
  return ordinal == (int)d->index ? HONE_MEMORY_DEVICE : HONE_MEMORY_UNKNOWN;
}

hone_memory_kind hn_cuda_where(hn_device *d, const void *p, size_t bytes) {
  if (!p || hn_cuda_enter(d, NULL) != HONE_OK) return HONE_MEMORY_PAGEABLE;
  CUdeviceptr unused;
  const hone_memory_kind first = where(d, (uintptr_t)p, &unused);
  if (bytes < 2 || where(d, (uintptr_t)p + bytes - 1, &unused) == first) return first;
  /* A part of it is pinned: as good as none. */
  return first == HONE_MEMORY_DEVICE ? HONE_MEMORY_UNKNOWN : HONE_MEMORY_PAGEABLE;
}

bool hn_cuda_reaches(hn_device *d, const void *p, size_t bytes) {
  const uintptr_t end[] = {(uintptr_t)p, (uintptr_t)p + bytes - 1};
  for (int i = 0; i < 2; i++) {
    CUdeviceptr at;
    const hone_memory_kind kind = where(d, end[i], &at);
    if ((kind != HONE_MEMORY_PINNED && kind != HONE_MEMORY_DEVICE) || at != (CUdeviceptr)end[i]) return false;
  }
  return true;
}
