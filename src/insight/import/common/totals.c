#include "insight/import/common/totals.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES_MOST = 4 << 20 };

void hn_totals_free(hn_totals *t) {
  for (size_t i = 0; i < t->list.len; i++) hn_vec_free(&t->list.ptr[i]->samples);
  hn_vec_free(&t->list);
  hn_map_free(&t->by_key);
}

hn_total *hn_totals_get(hn_totals *t, hn_import *in, const char *key) {
  hn_total *total = hn_map_get(&t->by_key, key);
  if (total) return total;
  total = HN_NEW(&in->arena, hn_total);
  if (!total || !(total->key = hn_import_text(in, key)) || !hn_vec_push(&t->list, total)) return NULL;
  total->index = (uint32_t)(t->list.len - 1);
  total->kind = HONE_SPAN_KERNEL;
  total->step.anchor_node = -1;
  return hn_map_set(&t->by_key, total->key, total) ? total : NULL;
}

bool hn_totals_add(hn_totals *t, hn_total *total, double ms) {
  if (!isfinite(ms) || ms < 0) return true;
  if (!total->count || ms < total->min_ms) total->min_ms = ms;
  if (ms > total->max_ms) total->max_ms = ms;
  total->sum_ms += ms;
  total->count++;
  if (t->samples >= SAMPLES_MOST) return true;
  t->samples++;
  return hn_vec_push(&total->samples, (float)ms);
}

static int by_value(const void *pa, const void *pb) {
  float a = *(const float *)pa, b = *(const float *)pb;
  return a < b ? -1 : a > b;
}

static double median(hn_total *total) {
  size_t n = total->samples.len;
  if (!n || n != total->count) return 0;
  qsort(total->samples.ptr, n, sizeof *total->samples.ptr, by_value);
  return n % 2 ? (double)total->samples.ptr[n / 2]
               : ((double)total->samples.ptr[n / 2 - 1] + (double)total->samples.ptr[n / 2]) / 2;
}

hone_status hn_totals_write(hn_totals *t, hn_import *in, uint64_t runs, int32_t *steps, hone_error *error) {
  for (size_t i = 0; i < t->list.len; i++) {
    hn_total *total = t->list.ptr[i];
    int32_t step = hn_import_step(in, total->step.name ? total->step.name : total->key, &total->step);
    if (step < 0) return hn_fail_memory(error, 0, "a step");
    if (steps) steps[i] = step;
    hone_step_stats stats = {.step = step,
                             .kind = total->kind,
                             .count = total->count,
                             .runs = runs,
                             .total_ms = total->sum_ms,
                             .median_ms = median(total),
                             .min_ms = total->min_ms,
                             .max_ms = total->max_ms};
    hone_facts_add_step_stats(in->facts, &stats);
  }
  return HONE_OK;
}
