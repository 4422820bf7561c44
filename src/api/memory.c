/* What the pools of an engine hold: hone/memory.h. */
#include <hone/memory.h>

#include "api/api.h"
#include "base/error.h"
#include "runtime/pools.h"

const char *hone_memory_purpose_name(hone_memory_purpose purpose) {
  static const char *const names[HONE_MEMORY_PURPOSES] = {
      [HONE_MEMORY_FOR_OTHER] = "other",
      [HONE_MEMORY_FOR_WEIGHTS] = "weights",
      [HONE_MEMORY_FOR_ACTIVATIONS] = "activations",
      [HONE_MEMORY_FOR_WORKSPACE] = "workspace",
      [HONE_MEMORY_FOR_IO] = "io",
      [HONE_MEMORY_FOR_LATE] = "late",
  };
  return (unsigned)purpose < HONE_MEMORY_PURPOSES ? names[purpose] : "?";
}

hone_status hone_engine_memory(hone_engine *engine, hone_memory_stats *out, hone_error *error) {
  hn_device *device;
  if (!engine || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_engine_memory needs an engine and a place for the result");
  const hn_backend *b = hn_api_backend(engine, &device);
  return hn_pools_describe(b, device, out) ? HONE_OK : hn_fail_memory(error, 0, "what the pools hold");
}

void hone_memory_stats_free(hone_memory_stats *stats) {
  if (stats) hn_pools_free(stats);
}

void hone_memory_record(const hone_memory_stats *stats, hone_facts *facts) {
  if (stats && facts) hn_pools_record(stats, facts);
}

static uint32_t pools_of(const hone_engine *engine, hn_mempool *out[2]) {
  hn_device *device;
  const hn_backend *b = hn_api_backend(engine, &device);
  return hn_pools_of(b, device, out);
}

uint64_t hone_engine_reclaim(hone_engine *engine) {
  hn_mempool *pool[2];
  uint64_t bytes = 0;
  const uint32_t n = engine ? pools_of(engine, pool) : 0;
  for (uint32_t i = 0; i < n; i++) bytes += hn_mempool_reclaim(pool[i]);
  return bytes;
}

hone_status hone_engine_memory_keep(hone_engine *engine, uint64_t bytes, hone_error *error) {
  hn_mempool *pool[2];
  if (!engine) return hn_fail(error, HONE_ERROR_USAGE, "hone_engine_memory_keep needs an engine");
  const uint32_t n = pools_of(engine, pool);
  for (uint32_t i = 0; i < n; i++) hn_mempool_keep(pool[i], bytes);
  return HONE_OK;
}

hone_engine *hone_plan_engine(const hone_plan *plan) { return plan ? hn_api_engine(plan) : NULL; }
