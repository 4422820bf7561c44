/* What an engine's pools hold (hone/memory.h), as numbers and as facts. */
#ifndef HN_RUNTIME_POOLS_H
#define HN_RUNTIME_POOLS_H

#include "optimize/step/backend.h"

/* The device's pools, each once; how many. */
uint32_t hn_pools_of(const hn_backend *backend, hn_device *device, hn_mempool *out[2]);
/* False when out of memory (*out is then empty). */
bool hn_pools_describe(const hn_backend *backend, hn_device *device, hone_memory_stats *out);
void hn_pools_free(hone_memory_stats *stats);
void hn_pools_record(const hone_memory_stats *stats, hone_facts *facts);

#endif
