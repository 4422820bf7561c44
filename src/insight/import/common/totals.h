/* Layers of tools that say how long executions took, but not when: gathers them by name and writes a step
 * with statistics for each. */
#ifndef HN_INSIGHT_IMPORT_TOTALS_H
#define HN_INSIGHT_IMPORT_TOTALS_H

#include "base/vec.h"
#include "insight/import/import.h"

typedef struct hn_total {
  const char *key;
  uint32_t index;      /* in the list */
  hone_step_fact step; /* name NULL: the key; strings must live as long as the import */
  hone_span_kind kind;
  double sum_ms, min_ms, max_ms;
  uint64_t count;
  HN_VEC(float) samples; /* of each execution; emptied when there are too many: no median then */
} hn_total;

typedef struct hn_totals {
  HN_VEC(hn_total *) list; /* in order of appearance */
  hn_map by_key;
  size_t samples;
} hn_totals;

void hn_totals_free(hn_totals *t);

/* The entry of a key, new with everything 0 but the key, kind KERNEL and anchor_node -1; NULL when out of
 * memory. */
hn_total *hn_totals_get(hn_totals *t, hn_import *in, const char *key);
/* One execution. Times that are not finite or negative do not count. False when out of memory. */
bool hn_totals_add(hn_totals *t, hn_total *total, double ms);
/* Adds steps and their statistics to the facts; `runs` of the network are covered. steps[] (NULL: not wanted)
 * receives the index of each step. */
hone_status hn_totals_write(hn_totals *t, hn_import *in, uint64_t runs, int32_t *steps, hone_error *error);

#endif
