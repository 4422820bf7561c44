/* The quantised model against the float one, on samples of the calibration set. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>

enum { CHECKS = 8 };

typedef struct sums {
  double signal, noise, error, most;
  uint64_t count, rows, same;
} sums;

static int64_t largest(const hone_tensor *t, int64_t from, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (hn_get_f64(t, from + i) > hn_get_f64(t, from + best)) best = i;
  return best;
}

static void add(sums *s, const hone_tensor *a, const hone_tensor *b) {
  const int64_t n = hone_desc_count(&a->desc), row = a->desc.rank > 0 ? a->desc.dim[a->desc.rank - 1] : 1;
  for (int64_t i = 0; i < n; i++) {
    const double x = hn_get_f64(a, i), d = hn_get_f64(b, i) - x;
    s->signal += x * x;
    s->noise += d * d;
    s->error += d;
    s->most = fmax(s->most, fabs(d));
  }
  s->count += (uint64_t)n;
  for (int64_t i = 0; row > 1 && i + row <= n; i += row) {
    s->rows++;
    s->same += largest(a, i, row) == largest(b, i, row);
  }
}

static hone_status compare(sums *s, const hn_side *exact, const hn_side *narrow, hone_error *error) {
  for (uint32_t i = 0; i < exact->plan->n_outputs; i++) {
    const hone_tensor *a = hn_context_output(exact->context, i), *b = hn_context_output(narrow->context, i);
    if (!a || !b || !hone_dtype_is_float(a->desc.dtype) || !hone_dtype_is_float(b->desc.dtype)) continue;
    if (!hone_desc_same_dims(&a->desc, &b->desc))
      return hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' changed its shape",
                     exact->plan->outputs[i]->name);
    add(&s[i], a, b);
  }
  return HONE_OK;
}

static hone_status keep(hn_quantizing *q, const hn_plan *p, const sums *s, hone_error *error) {
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    if (!s[i].count) continue;
    const hone_quantize_output o = {.name = hn_arena_strdup(&q->arena, p->outputs[i]->name),
                                    .sqnr_db = 10 * log10(s[i].signal / s[i].noise),
                                    .mean_error = s[i].error / (double)s[i].count,
                                    .max_error = s[i].most,
                                    .rows = s[i].rows,
                                    .same_top1 = s[i].same};
    if (!o.name || !hn_vec_push(&q->outputs, o)) return hn_fail_memory(error, sizeof o, "the check");
  }
  return HONE_OK;
}

/* Errors of a tenth of the signal's power: an answer that stands out may still be the same, the rest is not.
 */
#define POOR_DB 10.0

static hone_status warn_of_poor(hn_quantizing *q, hone_error *error) {
  const bool bits8 = q->o->to == HONE_QUANTIZE_INT8;
  hone_status status = HONE_OK;
  for (size_t i = 0; i < q->outputs.len && status == HONE_OK; i++) {
    const hone_quantize_output *o = &q->outputs.ptr[i];
    if (!(o->sqnr_db < POOR_DB)) continue;
    status = hn_quantize_warn(
        q, error,
        "output '%.80s' is far from the float model's (SQNR %.1f dB, below %g): hone verify with "
        "--layers names the layer it comes from, %s",
        o->name, o->sqnr_db, POOR_DB,
        bits8 ? "and --skip, --equalize, --method or --max-drop may mend it"
              : "and --skip keeps nodes in f32");
  }
  return status;
}

hone_status hn_quantize_check(hn_quantizing *q, hn_side *exact, hn_quantize_samples *samples,
                              hone_error *error) {
  const hone_quantize_options *o = q->o;
  const uint32_t all = hn_quantize_samples_count(samples), wanted = o->checks ? o->checks : CHECKS;
  const uint32_t n = wanted < all ? wanted : all;
  hn_side narrow = {0};
  sums *s = hn_calloc(exact->plan->n_outputs + 1, sizeof *s);
  hone_status status = s ? HONE_OK : hn_fail_memory(error, sizeof *s, "the check");
  if (status == HONE_OK)
    status = hn_side_open(q->model,
                          &(hn_side_options){.level = 2,
                                             .threads = o->threads,
                                             .bindings = o->bindings,
                                             .n_bindings = o->n_bindings,
                                             .batch = o->batch},
                          &narrow, error);
  bool stopped = false;
  for (uint32_t i = 0; i < n && status == HONE_OK && !stopped; i++) {
    const hn_feed *feeds;
    status = hn_quantize_samples_read(samples, (uint32_t)((uint64_t)i * all / n), &feeds, error);
    if (status == HONE_OK) status = hn_side_run(exact, feeds, exact->plan->n_inputs, error);
    if (status == HONE_OK) status = hn_side_run(&narrow, feeds, exact->plan->n_inputs, error);
    if (status == HONE_OK) status = compare(s, exact, &narrow, error);
    if (status == HONE_OK) q->checks++;
    stopped = o->progress && !o->progress(o->progress_arg, HONE_QUANTIZE_CHECKS, i + 1, n);
  }
  if (status == HONE_OK && q->checks) status = keep(q, exact->plan, s, error);
  if (status == HONE_OK && q->checks) status = warn_of_poor(q, error);
  hn_side_close(&narrow);
  hn_free(s);
  return status;
}
