#include "insight/profile/layers.h"

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/fault.h"
#include "insight/profile/audit.h"
#include "insight/profile/bound.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SAMPLES_MOST = 32 << 20 };

hone_status hn_layers_begin(hn_layer_table *t, const hone_facts *facts, hone_error *error) {
  *t = (hn_layer_table){0};
  size_t totals;
  hone_facts_step_stats(facts, &totals);
  t->has_totals = totals > 0;
  hone_facts_steps(facts, &t->step_count);
  t->row_of_step = hn_calloc(t->step_count, sizeof *t->row_of_step);
  if (!t->row_of_step)
    return hn_fail_memory(error, t->step_count * sizeof *t->row_of_step, "the layer table");
  for (size_t i = 0; i < t->step_count; i++) t->row_of_step[i] = -1;
  return HONE_OK;
}

void hn_layers_free(hn_layer_table *t) {
  hn_vec_free(&t->rows);
  hn_vec_free(&t->current);
  hn_vec_free(&t->running);
  hn_vec_free(&t->samples);
  hn_map_free(&t->row_of_text);
  hn_str_free(&t->key);
  hn_arena_free(&t->keys);
  hn_free(t->row_of_step);
  t->row_of_step = NULL;
}

static const hone_step_fact *step_of(const hone_facts *facts, int32_t index) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(facts, &n);
  return index >= 0 && (size_t)index < n ? &steps[index] : NULL;
}

static hone_layer new_row(const hone_facts *facts, const hone_span *span) {
  const hone_step_fact *step = step_of(facts, span->step);
  hone_layer row = {.step = span->step, .kind = span->kind};
  row.name = step && step->name ? step->name : span->name;
  row.type = span->op_type ? span->op_type : step ? step->op_type : NULL;
  row.tactic = span->tactic ? span->tactic : step ? step->tactic : NULL;
  if (!row.type) row.type = hone_span_kind_name(span->kind);
  if (!row.name) row.name = row.type;
  return row;
}

/* The row of a span: by step, or for spans without one by kind, name and type; -1 when out of memory. */
static ptrdiff_t find_row(hn_layer_table *t, const hone_facts *facts, const hone_span *span) {
  if (HN_FAULT("layers_one_row") && t->rows.len) return 0;
  if (span->step >= 0 && t->row_of_step[span->step] >= 0) return t->row_of_step[span->step];
  hone_layer row = new_row(facts, span);
  if (span->step < 0) {
    hn_str_clear(&t->key);
    hn_str_printf(&t->key, "%d\x1f%s\x1f%s", (int)span->kind, row.name, row.type);
    if (t->key.failed) return -1;
    const uintptr_t known = (uintptr_t)hn_map_get(&t->row_of_text, t->key.ptr);
    if (known) return (ptrdiff_t)known - 1;
    const char *key = hn_arena_strdup(&t->keys, t->key.ptr);
    if (!key || !hn_map_set(&t->row_of_text, key, (void *)(uintptr_t)(t->rows.len + 1))) return -1;
  }
  if (!hn_vec_push(&t->rows, row) || !hn_vec_push(&t->current, -1.0)) return -1;
  if (span->step >= 0) t->row_of_step[span->step] = (int32_t)t->rows.len - 1;
  return (ptrdiff_t)t->rows.len - 1;
}

hone_status hn_layers_add(hn_layer_table *t, const hone_facts *facts, const hone_span *const *spans,
                          size_t count, const double *exclusive, hone_error *error) {
  for (size_t i = 0; i < count; i++) {
    hone_span_kind kind = spans[i]->kind;
    if (kind == HONE_SPAN_RUN || kind == HONE_SPAN_IDLE) continue;
    /* Stages outside the run are in hone_stages; a row without time would only mislead. */
    if (HN_FAULT("layers_lost_span") && i == 1) continue;
    /* The computation as a whole, of which the step statistics are the parts. */
    if (t->has_totals && kind == HONE_SPAN_KERNEL && spans[i]->step < 0) continue;
    if ((kind == HONE_SPAN_PRE || kind == HONE_SPAN_POST) && exclusive[i] <= 0) continue;
    ptrdiff_t r = find_row(t, facts, spans[i]);
    if (r < 0) return hn_fail_memory(error, t->rows.len * sizeof *t->rows.ptr, "the layer table");
    hone_layer *row = &t->rows.ptr[r];
    const hone_step_fact *step = step_of(facts, spans[i]->step);
    row->calls += 1;
    row->flops += (double)(spans[i]->flops ? spans[i]->flops : step ? step->flops : 0);
    row->executed_flops += spans[i]->flops ? (double)spans[i]->flops : hn_executed_flops(step);
    row->bytes += (double)(spans[i]->bytes ? spans[i]->bytes : step ? step->bytes : 0);
    if (t->current.ptr[r] < 0) {
      t->current.ptr[r] = 0;
      if (!hn_vec_push(&t->running, (uint32_t)r)) return hn_fail_memory(error, 0, "the layer table");
    }
    t->current.ptr[r] += exclusive[i] / 1e6;
  }
  for (size_t i = 0; i < t->running.len; i++) {
    const uint32_t r = t->running.ptr[i];
    if (!hn_vec_push(&t->samples, (hn_layer_sample){r, t->iterations, t->current.ptr[r]}))
      return hn_fail_memory(error, t->samples.len * sizeof *t->samples.ptr, "the layer samples");
    t->current.ptr[r] = -1;
  }
  t->running.len = 0;
  t->iterations++;
  return HONE_OK;
}

static int by_layer(const void *pa, const void *pb) {
  const hn_layer_sample *a = pa, *b = pb;
  return a->layer < b->layer ? -1 : a->layer > b->layer;
}

/* By type, by name, or by an ONNX node that runs in it: what a fused step swallowed is still found. */
static bool selected(const hone_facts *facts, const hone_layer *row, const char *filter) {
  if (!filter || strcasecmp(row->type, filter) == 0 || fnmatch(filter, row->name, 0) == 0) return true;
  const hone_step_fact *step = step_of(facts, row->step);
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(facts, &n);
  for (size_t i = 0; step && i < step->node_count; i++)
    if (nodes[step->nodes[i]].name && fnmatch(filter, nodes[step->nodes[i]].name, 0) == 0) return true;
  return false;
}

/* Statistics over all iterations: one in which the layer did not run (a branch not taken) counts as zero. */
static hone_status finish_stats(hn_layer_table *t, size_t iterations, hn_arena *arena, hone_error *error) {
  /* A sample of each layer and iteration is kept; no network is run so often and has so many layers. */
  if (t->rows.len && iterations > SAMPLES_MOST / t->rows.len)
    return hn_fail(error, HONE_ERROR_INPUT, "%zu layers in %zu iterations are more than can be looked at",
                   t->rows.len, iterations);
  if (t->samples.len) qsort(t->samples.ptr, t->samples.len, sizeof *t->samples.ptr, by_layer);
  size_t at = 0;
  for (size_t r = 0; r < t->rows.len; r++) {
    hone_layer *row = &t->rows.ptr[r];
    double *values = HN_NEW_ARRAY(arena, double, iterations);
    for (; values && at < t->samples.len && t->samples.ptr[at].layer == r; at++)
      values[t->samples.ptr[at].iteration] = t->samples.ptr[at].ms;
    if (!values || !hone_stats_compute(values, iterations, &row->stats))
      return hn_fail_memory(error, iterations * sizeof *values, "the layer statistics");
    row->samples_ms = values;
    row->time_ms = HN_FAULT("layers_median_as_mean") ? row->stats.min : row->stats.mean;
    row->calls /= (double)iterations;
    row->flops /= (double)iterations;
    row->executed_flops /= (double)iterations;
    row->bytes /= (double)iterations;
  }
  return HONE_OK;
}

static bool fill_nodes(hn_arena *arena, const hone_facts *facts, hone_layer *row) {
  const hone_step_fact *step = step_of(facts, row->step);
  if (!step || !step->node_count) return true;
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(facts, &n);
  const char **names = HN_NEW_ARRAY(arena, const char *, step->node_count);
  if (!names) return false;
  for (size_t i = 0; i < step->node_count; i++) {
    const char *name = nodes[step->nodes[i]].name;
    names[i] = name ? name : "";
  }
  row->onnx_nodes = names;
  row->onnx_node_count = step->node_count;
  return true;
}

static int slower_first(const void *pa, const void *pb, void *layers) {
  uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
  const hone_layer *rows = layers;
  const double a_ms = hn_typical_ms(&rows[a]), b_ms = hn_typical_ms(&rows[b]);
  if (a_ms != b_ms) return a_ms > b_ms ? -1 : 1;
  return a < b ? -1 : a > b;
}

static int larger_first(const void *pa, const void *pb) {
  const hone_type_share *a = pa, *b = pb;
  if (a->time_ms != b->time_ms) return a->time_ms > b->time_ms ? -1 : 1;
  return strcmp(a->type, b->type);
}

static hone_status share_types(hn_layer_table *t, hn_arena *arena, hone_profile *p, hone_error *error) {
  hone_type_share *shares = HN_NEW_ARRAY(arena, hone_type_share, t->rows.len + 1);
  hn_map index = {0};
  hone_status status = HONE_OK;
  size_t n = 0;
  for (size_t r = 0; shares && r < t->rows.len; r++) {
    const hone_layer *row = &t->rows.ptr[r];
    hone_type_share *share = hn_map_get(&index, row->type);
    if (!share) {
      share = &shares[n++];
      share->type = row->type;
      if (!hn_map_set(&index, row->type, share)) goto memory;
    }
    share->layers++;
    share->time_ms += row->time_ms;
    share->pct += row->pct;
    share->flops += row->flops;
    share->bytes += row->bytes;
  }
  if (!shares) goto memory;
  qsort(shares, n, sizeof *shares, larger_first);
  p->types = shares;
  p->type_count = n;
  goto done;
memory:
  status = hn_fail_memory(error, t->rows.len * sizeof *shares, "the operator types");
done:
  hn_map_free(&index);
  return status;
}

/* Rows of the steps of which only totals over some runs are known. */
static hone_status add_totals(hn_layer_table *t, const hone_facts *facts, hone_error *error) {
  size_t n;
  const hone_step_stats *stats = hone_facts_step_stats(facts, &n);
  for (size_t i = 0; i < n; i++) {
    const hone_step_stats *s = &stats[i];
    const double runs = (double)s->runs, calls = (double)s->count / runs;
    const hone_step_fact *step = step_of(facts, s->step);
    hone_layer row = new_row(facts, &(hone_span){.step = s->step, .kind = s->kind});
    row.calls = calls;
    row.time_ms = s->total_ms / runs;
    row.flops = (double)step->flops * calls;
    row.executed_flops = hn_executed_flops(step) * calls;
    row.bytes = (double)step->bytes * calls;
    /* What the tool says of one execution is what it says of a run only when there is one in each. */
    const bool each = s->count == s->runs;
    row.stats = (hone_sample_stats){.count = (size_t)s->runs,
                                    .mean = row.time_ms,
                                    .p50 = each && s->median_ms > 0 ? s->median_ms : NAN,
                                    .p95 = NAN,
                                    .min = each && s->min_ms > 0 ? s->min_ms : NAN,
                                    .max = each && s->max_ms > 0 ? s->max_ms : NAN,
                                    .stddev = NAN,
                                    .cv = NAN};
    if (!hn_vec_push(&t->rows, row))
      return hn_fail_memory(error, t->rows.len * sizeof *t->rows.ptr, "the layer table");
  }
  return HONE_OK;
}

/* Layers that were timed one by one add up to something else than the run that holds them. Their shares
 * divide what the run spends on layers; `ms` is that. */
static void share_totals(hn_layer_table *t, size_t first, double ms, double wall_ms, hn_arena *arena,
                         hone_profile *p) {
  double sum = 0;
  for (size_t r = first; r < t->rows.len; r++) sum += t->rows.ptr[r].time_ms;
  for (size_t r = first; r < t->rows.len; r++)
    t->rows.ptr[r].pct = sum > 0 && wall_ms > 0
                             ? 100 * t->rows.ptr[r].time_ms / sum * (ms < wall_ms ? ms : wall_ms) / wall_ms
                             : 0;
  p->note =
      sum <= 0 && wall_ms <= 0 ? hn_arena_strdup(arena, "the record holds layers and no times")
      : fabs(sum - ms) > 0.005 * ms
          ? hn_arena_printf(arena,
                            "the layers were timed one by one and add up to %.3f ms; in a run they take "
                            "%.3f ms, of which the shares are",
                            sum, ms)
          : hn_arena_strdup(arena, "only totals of the layers were recorded: when each ran is not known");
}

/* A product that took time and whose operations the tool could not count (its weights' shape is missing). */
static bool is_uncounted(const hone_layer *row) {
  return row->flops <= 0 && row->kind == HONE_SPAN_KERNEL &&
         (strstr(row->type, "Conv") || strstr(row->type, "MatMul") || strcmp(row->type, "Gemm") == 0);
}

hone_status hn_layers_finish(hn_layer_table *t, const char *filter, hn_arena *arena, hone_profile *p,
                             hone_error *error) {
  hone_status status = finish_stats(t, p->iterations, arena, error);
  if (status) return status;
  const size_t measured = t->rows.len;
  double all_ms = 0, uncounted_ms = 0;
  status = add_totals(t, p->facts, error);
  if (status) return status;
  const hn_utilisation *utilisation = hn_utilisation_of_steps(p->facts, arena);
  if (!utilisation) return hn_fail_memory(error, 0, "the counters of the layers");
  for (size_t r = 0; r < t->rows.len; r++) {
    hone_layer *row = &t->rows.ptr[r];
    row->pct = p->closure.wall_ms > 0 ? 100 * row->time_ms / p->closure.wall_ms : 0;
    hn_bound_layer(p->facts, utilisation, row);
    p->flops += row->flops;
    p->bytes += row->bytes;
    all_ms += row->time_ms;
    if (is_uncounted(row)) uncounted_ms += row->time_ms;
  }
  if (!hn_find_beaten(p, t->rows.ptr, t->rows.len, arena)) return hn_fail_memory(error, 0, "the roofs");
  /* What the tool counted is not the network's work when the heavy layers are not among it. */
  if (uncounted_ms > 0.01 * all_ms) p->flops = 0;
  if (t->has_totals) {
    const hone_closure *c = &p->closure;
    /* Beside stamped runs the totals are the parts of their computation; alone they are all that there is. */
    const double ms =
        measured ? c->layers_ms + c->reformats_ms : c->wall_ms - c->gaps_ms - fmax(c->residual_ms, 0);
    share_totals(t, measured, ms, c->wall_ms, arena, p);
  }
  status = share_types(t, arena, p, error);
  if (status) return status;

  hone_layer *layers = HN_NEW_ARRAY(arena, hone_layer, t->rows.len + 1);
  uint32_t *order = HN_NEW_ARRAY(arena, uint32_t, t->rows.len + 1);
  if (!layers || !order) return hn_fail_memory(error, t->rows.len * sizeof *layers, "the layer table");
  size_t n = 0;
  for (size_t r = 0; r < t->rows.len; r++) {
    if (!selected(p->facts, &t->rows.ptr[r], filter)) continue;
    layers[n] = t->rows.ptr[r];
    if (!fill_nodes(arena, p->facts, &layers[n])) return hn_fail_memory(error, 0, "the layer's nodes");
    order[n] = (uint32_t)n;
    n++;
  }
  qsort_r(order, n, sizeof *order, slower_first, layers);
  p->layers = layers;
  p->layer_count = n;
  p->filtered = n < t->rows.len;
  p->by_time = order;
  return hn_audit(p, t->rows.ptr, t->rows.len, arena, &p->doubt, error);
}
