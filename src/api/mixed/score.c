/* What a choice loses: on labelled data, or of the outputs against those of the input. */
#include "api/measure/watch.h"
#include "api/mixed/mixed.h"

#include "base/error.h"
#include "model/ops/common/op.h"

#include <math.h>

enum { NOISE_SAMPLES = 4 };

/* ---- labelled data */

static bool progress(void *arg, uint64_t done, uint64_t total) {
  return hn_mix_tell(arg, "accuracy", (uint32_t)done, (uint32_t)total);
}

static double metric_of(const hone_eval_result *r, hone_mixed_metric metric) {
  return metric == HONE_MIXED_TOP1 ? r->top1 : metric == HONE_MIXED_TOP5 ? r->top5 : r->map;
}

static hone_status evaluate(hn_mixing *m, const hn_mix_side *s, int half, double *value, uint64_t *samples,
                            hone_error *error) {
  hone_eval_result r;
  const hone_status status = hone_eval_run(s->context, m->o->set,
                                           &(hone_eval_options){.preprocess = m->q.preprocess,
                                                                .first = (uint32_t)half,
                                                                .every = 2,
                                                                .boxes = m->o->boxes,
                                                                .progress = progress,
                                                                .arg = m},
                                           &r, error);
  if (status != HONE_OK) return status;
  const bool stopped = r.stopped;
  *value = metric_of(&r, m->o->metric);
  *samples = r.samples;
  hone_eval_free(&r);
  if (stopped) return hn_watch_stopped(error);
  if (isfinite(*value)) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "the data gives no %s", hone_mixed_metric_name(m->o->metric));
  hn_error_expected(error, "top1: classes; top5: six classes or more; map: boxes");
  return HONE_ERROR_INPUT;
}

/* ---- outputs against outputs */

typedef struct sums {
  double signal, noise; /* of all samples */
  double cosine;        /* sum over samples */
  uint64_t samples;
} sums;

static void add(sums *s, const hone_tensor *a, const hone_tensor *b) {
  double aa = 0, bb = 0, ab = 0, noise = 0;
  if (!a || !b || !hone_dtype_is_float(a->desc.dtype) || !hone_dtype_is_float(b->desc.dtype)) return;
  s->samples++;
  if (!hone_desc_same_dims(&a->desc, &b->desc)) { /* a selection that came out otherwise */
    s->noise = INFINITY;
    return;
  }
  for (int64_t i = 0, n = hone_desc_count(&a->desc); i < n; i++) {
    const double x = hn_get_f64(a, i), y = hn_get_f64(b, i);
    if (x == y || (isnan(x) && isnan(y))) { /* infinities among them */
      if (isfinite(x)) aa += x * x, bb += y * y, ab += x * y;
      continue;
    }
    aa += x * x, bb += y * y, ab += x * y;
    noise += (x - y) * (x - y);
  }
  s->signal += aa;
  s->noise += noise;
  s->cosine += noise == 0 ? 1 : aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* The worst output counts. What is no number costs everything. */
static double noise_of(const sums *s) {
  const double share = s->noise == 0 ? 0 : s->signal > 0 ? s->noise / s->signal : INFINITY;
  return isnan(share) ? INFINITY : share;
}

static double drop_of(const sums *s, hone_mixed_metric metric) {
  if (metric != HONE_MIXED_COSINE) return noise_of(s);
  const double drop = 1 - s->cosine / (double)s->samples;
  return isnan(drop) || !isfinite(s->noise) ? 1 : s->noise == 0 ? 0 : fmax(drop, 1e-16);
}

static hone_status compare(hn_mixing *m, const hn_mix_side *side, int half, uint32_t most,
                           hone_mixed_metric metric, double *drop, uint64_t *samples, hone_error *error) {
  hn_quantize_samples *set = m->samples[half];
  const uint32_t all = hn_quantize_samples_count(set), n = most && most < all ? most : all,
                 outputs = hone_plan_outputs(m->wide.plan);
  const hone_tensor **in = hn_calloc(hone_plan_inputs(m->wide.plan) + 1, sizeof *in);
  sums *s = hn_calloc(outputs + 1, sizeof *s);
  hone_status status = in && s ? HONE_OK : hn_fail_memory(error, 0, "outputs");
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    status = hn_mix_read(m, half, i, in, error);
    if (status == HONE_OK) status = hn_watch_run(m->o->watch, m->wide.context, in, 0, error);
    if (status == HONE_OK) status = hn_watch_run(m->o->watch, side->context, in, 0, error);
    for (uint32_t k = 0; k < outputs && status == HONE_OK; k++)
      add(&s[k], hone_context_output(m->wide.context, k), hone_context_output(side->context, k));
    if (status == HONE_OK && !hn_mix_tell(m, "accuracy", i + 1, n)) status = hn_watch_stopped(error);
  }
  *drop = 0;
  *samples = 0;
  for (uint32_t k = 0; k < outputs && status == HONE_OK; k++) {
    if (!s[k].samples) continue;
    *samples = s[k].samples;
    *drop = fmax(*drop, drop_of(&s[k], metric));
  }
  if (status == HONE_OK && !*samples)
    status = hn_fail(error, HONE_ERROR_INPUT, "no output holds floats that could be compared");
  hn_free(s);
  hn_free((void *)in);
  return status;
}

hone_status hn_mix_noise(hn_mixing *m, const hn_mix_side *side, double *noise, hone_error *error) {
  uint64_t samples;
  return compare(m, side, HN_MIX_CHOOSES, NOISE_SAMPLES, HONE_MIXED_SQNR, noise, &samples, error);
}

/* ---- */

hone_status hn_mix_score(hn_mixing *m, const hn_mix_side *side, int half, hone_mixed_score *out,
                         hone_error *error) {
  const hone_mixed_metric metric = m->o->metric;
  hone_status status = HONE_OK;
  if (hone_mixed_metric_labelled(metric)) {
    if (!out->samples) status = evaluate(m, &m->wide, half, &out->before, &out->samples, error);
    if (status == HONE_OK) status = evaluate(m, side, half, &out->after, &out->samples, error);
    out->drop = out->before - out->after;
    return status;
  }
  status = compare(m, side, half, 0, metric, &out->drop, &out->samples, error);
  out->before = metric == HONE_MIXED_COSINE ? 1 : (double)INFINITY;
  out->after = metric == HONE_MIXED_COSINE ? 1 - out->drop : -10 * log10(out->drop);
  return status;
}
