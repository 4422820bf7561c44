#include "backends/cuda/driver/memory.h"

enum { GRAIN = 512, LARGE = 2 << 20 };

/* Small blocks: eight classes for each power of two, so an eighth is lost at most. Large ones: whole pages of
 * the device. */
size_t hn_cuda_size_class(size_t bytes) {
  if (bytes > SIZE_MAX - LARGE) return bytes;
  if (bytes <= GRAIN) return GRAIN;
  if (bytes > LARGE) return hn_round_up(bytes, LARGE);
  size_t step = GRAIN / 8;
  while (step * 16 < bytes) step *= 2;
  return hn_round_up(bytes, step > GRAIN / 2 ? step : GRAIN / 2);
}

hn_cuda_heap *hn_cuda_heap_create(hn_device *d, bool pinned) {
  hn_cuda_heap *h = hn_calloc(1, sizeof *h);
  if (!h) return NULL;
  h->device = d, h->pinned = pinned;
  pthread_mutex_init(&h->lock, NULL);
  return h;
}

static void *take(hn_cuda_heap *h, size_t size) {
  hn_device *d = h->device;
  CUresult r;
  void *p = NULL;
  h->calls++;
  if (h->pinned) {
    r = d->cu.cuMemHostAlloc(&p, size, CU_MEMHOSTALLOC_PORTABLE);
  } else {
    CUdeviceptr at = 0;
    r = d->cu.cuMemAlloc(&at, size);
    p = (void *)(uintptr_t)at;
  }
  if (r != CUDA_SUCCESS) {
    hn_cuda_check(d, r, h->pinned ? "cuMemHostAlloc" : "cuMemAlloc", NULL); /* notices a lost context */
    return NULL;
  }
  h->held += size;
  return p;
}

static void give(hn_cuda_heap *h, const hn_cuda_block *b) {
  hn_device *d = h->device;
  h->calls++;
  h->held -= b->size;
  if (h->pinned)
    d->cu.cuMemFreeHost(b->at);
  else
    d->cu.cuMemFree((CUdeviceptr)(uintptr_t)b->at);
}

static void trim(hn_cuda_heap *h) {
  for (size_t i = 0; i < h->spare.len; i++) give(h, &h->spare.ptr[i]);
  h->spare.len = 0;
}

void hn_cuda_heap_destroy(hn_cuda_heap *h) {
  if (!h) return;
  trim(h);
  for (size_t i = 0; i < h->used.len; i++) give(h, &h->used.ptr[i]);
  hn_vec_free(&h->used);
  hn_vec_free(&h->spare);
  pthread_mutex_destroy(&h->lock);
  hn_free(h);
}

/* The smallest spare block that fits and wastes no more than an eighth. */
static void *reuse(hn_cuda_heap *h, size_t size, hn_cuda_block *out) {
  size_t best = h->spare.len;
  for (size_t i = 0; i < h->spare.len; i++) {
    const size_t have = h->spare.ptr[i].size;
    if (have >= size && have <= size + size / 8 && (best == h->spare.len || have < h->spare.ptr[best].size))
      best = i;
  }
  if (best == h->spare.len) return NULL;
  *out = h->spare.ptr[best];
  h->spare.ptr[best] = h->spare.ptr[--h->spare.len];
  return out->at;
}

void *hn_cuda_heap_alloc(hn_cuda_heap *h, size_t bytes) {
  if (hn_cuda_enter(h->device, NULL) != HONE_OK) return NULL;
  const size_t size = hn_cuda_size_class(bytes);
  hn_cuda_block b = {.size = size};
  pthread_mutex_lock(&h->lock);
  /* Room in both lists first: then a free cannot fail. */
  if (hn_vec_reserve(&h->used, h->used.len + 1) &&
      hn_vec_reserve(&h->spare, h->used.len + h->spare.len + 1)) {
    if (!reuse(h, size, &b)) b.at = take(h, size);
    if (!b.at && h->spare.len) {
      trim(h);
      b.at = take(h, size);
    }
  }
  if (b.at) {
    b.wanted = bytes;
    h->used.ptr[h->used.len++] = b;
    h->in_use += bytes;
    if (h->in_use > h->peak) h->peak = h->in_use;
  }
  pthread_mutex_unlock(&h->lock);
  return b.at;
}

void hn_cuda_heap_free(hn_cuda_heap *h, void *p) {
  if (!p) return;
  if (hn_cuda_enter(h->device, NULL) == HONE_OK) hn_cuda_settle(h->device);
  pthread_mutex_lock(&h->lock);
  for (size_t i = h->used.len; i-- > 0;) {
    if (h->used.ptr[i].at != p) continue;
    h->spare.ptr[h->spare.len++] = h->used.ptr[i];
    h->in_use -= h->used.ptr[i].wanted;
    h->used.ptr[i] = h->used.ptr[--h->used.len];
    break;
  }
  pthread_mutex_unlock(&h->lock);
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

/* The driver knows no address of ordinary memory, and says so by an error. */
static hone_memory_kind where(hn_device *d, uintptr_t at) {
  unsigned type = 0;
  int ordinal = 0;
  if (d->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS)
    return HONE_MEMORY_PAGEABLE;
  if (type == CU_MEMORYTYPE_HOST) return HONE_MEMORY_PINNED;
  if (type != CU_MEMORYTYPE_DEVICE) return HONE_MEMORY_PAGEABLE;
  if (d->cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS &&
      ordinal != (int)d->index)
    return HONE_MEMORY_UNKNOWN;
  return HONE_MEMORY_DEVICE;
}

hone_memory_kind hn_cuda_where(hn_device *d, const void *p, size_t bytes) {
  if (!p || hn_cuda_enter(d, NULL) != HONE_OK) return HONE_MEMORY_PAGEABLE;
  const hone_memory_kind first = where(d, (uintptr_t)p);
  if (bytes < 2 || where(d, (uintptr_t)p + bytes - 1) == first) return first;
  /* A part of it is pinned: as good as none. */
  return first == HONE_MEMORY_DEVICE ? HONE_MEMORY_UNKNOWN : HONE_MEMORY_PAGEABLE;
}
