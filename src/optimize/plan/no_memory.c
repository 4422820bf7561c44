#include "optimize/plan/backend.h"

#include "base/error.h"

hone_status hn_no_memory(const hn_backend *b, hn_device *d, uint64_t bytes, const char *purpose,
                         hone_error *error) {
  hn_memory_use use;
  if (!b->memory) return hn_fail_memory(error, bytes, purpose);
  if (b->sync(d, NULL, error) == HONE_ERROR_DEVICE) return HONE_ERROR_DEVICE;
  b->memory(d, &use);
  hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate %llu bytes for %s: the device has %.2f of %.2f GB free",
          (unsigned long long)bytes, purpose, (double)use.free * 1e-9, (double)use.total * 1e-9);
  hn_error_hint(error, "use a smaller batch or shape, or free the device's memory");
  return HONE_ERROR_MEMORY;
}
