#include "optimize/step/step.h"

#include "base/error.h"

#include <stdio.h>

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

hone_status hn_plan_no_memory(const hn_plan *p, uint64_t bytes, const char *what, uint32_t places,
                              hone_error *error) {
  char text[200];
  const hn_slot *most = NULL;
  for (size_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    if (places >> s->place & 1 && s->alias == HN_NO_SLOT && s->value && s->value->name &&
        (!most || s->bytes > most->bytes))
      most = s;
  }
  if (most)
    snprintf(text, sizeof text, "%.60s (the largest is '%.80s', %llu bytes)", what, most->value->name,
             (unsigned long long)most->bytes);
  else
    snprintf(text, sizeof text, "%.60s", what);
  return hn_no_memory(p->backend, p->device, bytes, text, error);
}
