#include <hone/device_memory.h>

#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>

enum { ALIGN = 256 };

hone_status hone_memory_alloc(hone_engine *engine, hone_memory_kind kind, size_t bytes, void **out,
                              hone_error *error) {
  if (!engine || !out || (kind != HONE_MEMORY_PINNED && kind != HONE_MEMORY_DEVICE))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_memory_alloc needs an engine, pinned or device as kind, and a place for the result");
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  if (!bytes) bytes = 1;
  if (!b->asynchronous)
    *out = bytes > SIZE_MAX - ALIGN ? NULL : hn_aligned(ALIGN, bytes);
  else
    *out = kind == HONE_MEMORY_PINNED ? b->alloc_host(device, bytes) : b->alloc(device, bytes);
  if (*out) return HONE_OK;
  return kind == HONE_MEMORY_DEVICE && b->asynchronous
             ? hn_no_memory(b, device, bytes, "memory of the caller", error)
             : hn_fail_memory(error, bytes, "memory of the caller");
}

void hone_memory_free(hone_engine *engine, void *memory) {
  if (!engine || !memory) return;
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  if (!b->asynchronous)
    hn_free(memory);
  else if (b->where(device, memory, 1) == HONE_MEMORY_DEVICE)
    b->free(device, memory);
  else
    b->free_host(device, memory);
}

hone_status hone_memory_pin(hone_engine *engine, void *memory, size_t bytes, hone_error *error) {
  if (!engine || !memory || !bytes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_memory_pin needs an engine and memory");
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  return b->pin ? b->pin(device, memory, bytes, error) : HONE_OK;
}

hone_status hone_memory_unpin(hone_engine *engine, void *memory, hone_error *error) {
  if (!engine || !memory)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_memory_unpin needs an engine and memory");
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  return b->unpin ? b->unpin(device, memory, error) : HONE_OK;
}

hone_memory_kind hone_memory_where(const hone_engine *engine, const void *memory, size_t bytes) {
  if (!engine || !memory) return HONE_MEMORY_UNKNOWN;
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  return b->where ? b->where(device, memory, bytes) : HONE_MEMORY_PAGEABLE;
}

hone_status hone_memory_copy(hone_engine *engine, void *to, const void *from, size_t bytes,
                             hone_error *error) {
  if (!engine || (bytes && (!to || !from)))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_memory_copy needs an engine and memory");
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  if (!bytes) return HONE_OK;
  if (!b->asynchronous) {
    memmove(to, from, bytes);
    return HONE_OK;
  }
  const hone_status status = b->copy(device, NULL, to, from, bytes, error);
  return status == HONE_OK ? b->sync(device, NULL, error) : status;
}
