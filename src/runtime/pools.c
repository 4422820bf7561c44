#include "runtime/pools.h"

#include "base/mem.h"
#include "base/os.h"

void *hn_pools_take(const hn_plan *p, hone_memory_purpose purpose, size_t bytes) {
  return hn_device_alloc(p->backend, p->device, &p->tenant, false, purpose, bytes);
}

void hn_pools_give(const hn_plan *p, void *at) { hn_device_free(p->backend, p->device, false, at); }

static void *take_value(void *plan, size_t bytes) { return hn_pools_take(plan, HONE_MEMORY_FOR_LATE, bytes); }
static void give_value(void *plan, void *at) { hn_pools_give(plan, at); }

void hn_pools_serve(const hn_plan *p, hn_budget *budget) {
  budget->take = take_value;
  budget->give = give_value;
  budget->memory = (void *)(uintptr_t)p;
}

uint32_t hn_pools_of(const hn_backend *b, hn_device *device, hn_mempool *out[2]) {
  out[0] = b->pool(device, false);
  out[1] = b->pool(device, true);
  return out[0] == out[1] ? 1 : 2;
}

bool hn_pools_describe(const hn_backend *b, hn_device *device, hone_memory_stats *out) {
  hn_mempool *pool[2];
  hn_memory_use use = {0};
  const uint32_t n = hn_pools_of(b, device, pool);
  *out = (hone_memory_stats){0};
  for (uint32_t i = 0; i < n; i++) {
    if (!hn_mempool_describe(pool[i], &out->pool[i])) {
      hn_pools_free(out);
      return false;
    }
    out->n_pools++;
  }
  if (b->memory) b->memory(device, &use);
  out->device_total = use.total;
  out->device_free = use.system_free;
  out->host_rss = hn_rss_bytes();
  out->host_rss_peak = hn_rss_peak_bytes();
  return true;
}

void hn_pools_free(hone_memory_stats *stats) {
  for (uint32_t i = 0; i < stats->n_pools; i++) hn_free(stats->pool[i].owner);
  *stats = (hone_memory_stats){0};
}

void hn_pools_record(const hone_memory_stats *stats, hone_facts *facts) {
  for (uint32_t i = 0; i < stats->n_pools; i++) {
    const hone_memory_pool *m = &stats->pool[i];
    hone_facts_add_memory_pool(facts, &(hone_memory_pool_fact){.pool = m->name,
                                                               .used = m->used,
                                                               .reserved = m->reserved,
                                                               .high_water = m->high_water,
                                                               .fragmentation = m->fragmentation,
                                                               .taken = m->taken,
                                                               .reclaims = m->reclaims});
    for (uint32_t k = 0; k < m->n_owners; k++) {
      const hone_memory_owner *o = &m->owner[k];
      if (!o->name[0]) continue;
      hone_facts_add_memory_pool(facts, &(hone_memory_pool_fact){.pool = m->name,
                                                                 .owner = o->name,
                                                                 .used = o->used,
                                                                 .reserved = o->reserved,
                                                                 .high_water = o->high_water,
                                                                 .fragmentation = o->fragmentation});
    }
  }
}
