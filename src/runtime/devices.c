#include "runtime/devices.h"

#include "backends/cpu/backend.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#ifdef HN_CUDA_BACKEND
#include "backends/cuda/backend.h"
#endif

static const hn_backend *const backends[] = {
    &hn_backend_cpu,
#ifdef HN_CUDA_BACKEND
    &hn_backend_cuda,
#endif
};

hone_status hn_backend_find(const char *name, const hn_backend **out, uint32_t *index, hone_error *error) {
  if (!name) name = "cpu";
  const size_t len = strcspn(name, ":");
  *out = NULL;
  *index = 0;
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (strlen(backends[i]->name) == len && strncmp(backends[i]->name, name, len) == 0) *out = backends[i];
  if (!*out && len == 4 && strncmp(name, "cuda", 4) == 0)
    return hn_fail(error, HONE_ERROR_MISSING,
                   "device cuda is not available: this build of hone has no CUDA backend");
  char *end = NULL;
  if (*out && name[len]) {
    unsigned long n = strtoul(name + len + 1, &end, 10);
    if (!name[len + 1] || *end || n > 1023) *out = NULL;
    *index = (uint32_t)n;
  }
  if (*out) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "unknown device '%.64s'", name);
  hn_error_expected(error, "cpu, cuda or cuda:N");
  return HONE_ERROR_USAGE;
}
