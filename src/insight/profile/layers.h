/* The layer table: exclusive times of spans, gathered by step. */
#ifndef HN_INSIGHT_LAYERS_H
#define HN_INSIGHT_LAYERS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#include <hone/insight.h>

typedef struct hn_layer_sample {
  uint32_t layer;
  uint32_t iteration; /* counted from 0, complete ones only */
  double ms;
} hn_layer_sample;

/* Gathers one iteration after the other. Zeroed is ready; everything it returns lives in the arena it is
 * given. */
typedef struct hn_layer_table {
  HN_VEC(hone_layer) rows;
  HN_VEC(double) current;          /* per row: milliseconds in the iteration that is being gathered */
  HN_VEC(uint32_t) running;        /* the rows of that iteration: there may be many more */
  HN_VEC(hn_layer_sample) samples; /* one per row and iteration in which it ran */
  uint32_t iterations;
  int32_t *row_of_step; /* -1: none yet */
  hn_map row_of_text;   /* of spans without a step: what they are -> row + 1 */
  hn_str key;
  hn_arena keys;
  size_t step_count;
  bool has_totals; /* of some steps the facts hold only statistics, see hone_step_stats */
} hn_layer_table;

hone_status hn_layers_begin(hn_layer_table *table, const hone_facts *facts, hone_error *error);
/* Adds the spans of one iteration with their exclusive nanoseconds. */
hone_status hn_layers_add(hn_layer_table *table, const hone_facts *facts, const hone_span *const *spans,
                          size_t count, const double *exclusive, hone_error *error);
/* Finishes rows, order by time and shares by type into *profile (whose iterations and closure are filled). */
hone_status hn_layers_finish(hn_layer_table *table, const char *filter, hn_arena *arena,
                             hone_profile *profile, hone_error *error);
void hn_layers_free(hn_layer_table *table);

#endif
