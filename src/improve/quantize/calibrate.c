/* The float model on all samples, one by one; what each value holds goes into its histogram and is forgotten.
 */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "improve/values.h"

typedef struct watcher {
  hn_quantizing *q;
  const hn_plan *plan;
  bool failed;
} watcher;

static bool observe(hn_quantizing *q, const char *name, const hone_tensor *t) {
  hn_quantize_range *r = hn_map_get(&q->by_name, name);
  hn_quantize_means *m = hn_map_get(&q->means_by_name, name);
  hone_tensor *rows = NULL;
  if ((!r && !m) || !t || !t->data || t->desc.dtype != HONE_DTYPE_F32) return true;
  if (t->desc.layout != HONE_LAYOUT_ROW_MAJOR && !(rows = hn_rows_of(t))) return false;
  if (rows) t = rows;
  if (r) hn_quantize_observe(r->seen, t->data, hone_desc_count(&t->desc));
  for (; m; m = m->next) hn_quantize_means_add(m, t);
  hn_rows_free(rows);
  return true;
}

static void step_done(void *arg, const hn_step *s, hone_tensor *const *out) {
  watcher *w = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = out[i] ? hn_value_of_step(w->plan, s, i) : NULL;
    if (v && !observe(w->q, v->name, out[i])) w->failed = true;
  }
}

/* Whether the samples so far show what later ones hold is asked after three quarters of them. */
static void keep_early(hn_quantizing *q) {
  for (size_t i = 0; i < q->ranges.len; i++) {
    hn_quantize_histogram *h = q->ranges.ptr[i]->seen;
    h->early_least = h->least;
    h->early_most = h->most;
  }
}

static hone_status one_sample(hn_quantizing *q, hn_side *side, hn_quantize_samples *samples, uint32_t i,
                              hone_error *error) {
  const hn_feed *feeds;
  const hn_plan *p = side->plan;
  hone_status status = hn_quantize_samples_read(samples, i, &feeds, error);
  if (status == HONE_OK) status = hn_quantize_cover_add(q, samples, i, feeds, p->n_inputs, error);
  if (status == HONE_OK) status = hn_side_run(side, feeds, p->n_inputs, error);
  for (uint32_t k = 0; k < p->n_inputs && status == HONE_OK; k++) {
    if (!observe(q, p->inputs[k]->name, &feeds[k].data.tensor))
      status = hn_fail_memory(error, 0, "what an input holds");
  }
  return status;
}

hone_status hn_quantize_calibrate(hn_quantizing *q, hn_side *side, hn_quantize_samples *samples,
                                  hone_error *error) {
  watcher w = {.q = q, .plan = side->plan};
  const uint32_t n = q->samples_wanted = hn_quantize_samples_count(samples), early = n - n / 4;
  hone_status status = hn_quantize_cover_begin(q, samples, error);
  hn_context_watch(side->context, step_done, &w, false);
  for (uint32_t i = 0; i < n && status == HONE_OK && !q->stopped; i++) {
    status = one_sample(q, side, samples, i, error);
    if (status != HONE_OK) break;
    q->samples++;
    if (q->samples == early) keep_early(q);
    q->stopped = q->o->progress && !q->o->progress(q->o->progress_arg, HONE_QUANTIZE_CALIBRATES, i + 1, n);
  }
  hn_context_watch(side->context, NULL, NULL, false);
  if (status == HONE_OK && w.failed) status = hn_fail_memory(error, 0, "what a value holds");
  if (status == HONE_OK && q->samples < early) keep_early(q);
  return status == HONE_OK ? hn_quantize_cover_end(q, samples, error) : status;
}
