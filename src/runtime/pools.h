/* Memory of a device's pools (hone/memory.h) for contexts, and what they hold as numbers and as facts. */
#ifndef HN_RUNTIME_POOLS_H
#define HN_RUNTIME_POOLS_H

#include "model/ir/eval.h"
#include "optimize/step/step.h"

/* Device memory for a context of the plan; NULL: there is none. */
void *hn_pools_take(const hn_plan *plan, hone_memory_purpose purpose, size_t bytes);
void hn_pools_give(const hn_plan *plan, void *at); /* NULL is fine */
/* Where a device's memory is the host's: what the budget allocates comes from there. */
void hn_pools_serve(const hn_plan *plan, hn_budget *budget);

/* The device's pools, each once; how many. */
uint32_t hn_pools_of(const hn_backend *backend, hn_device *device, hn_mempool *out[2]);
/* False when out of memory (*out is then empty). */
bool hn_pools_describe(const hn_backend *backend, hn_device *device, hone_memory_stats *out);
void hn_pools_free(hone_memory_stats *stats);
void hn_pools_record(const hone_memory_stats *stats, hone_facts *facts);

#endif
